//! The TLS ciphers of both ends, AES-128-GCM first, by whichever library is the fastest on this processor.
//!
//! aws-lc seals 512 bits at a time where the processor has AVX-512, and otherwise 128. ring goes 256 bits at a time where there is VAES
//! on AVX2 registers, which many servers have (EPYC of 2021: 5.9 against 3.3 GiB/s for a record in cache). Key exchange, signatures
//! and certificates are aws-lc's in any case. Invariant: which suites are offered, and in which order, does not depend on the
//! processor.

use rustls::crypto::{CryptoProvider, aws_lc_rs, ring};
use rustls::{CipherSuite, SupportedCipherSuite};

/// What TLS is made of. AES-128-GCM is the fastest wherever there are AES instructions, and the service takes it.
pub(crate) fn provider() -> CryptoProvider {
    let mut provider = aws_lc_rs::default_provider();
    if ring_is_faster() {
        for suite in &mut provider.cipher_suites {
            if let Some(same) = of_ring(suite.suite()) {
                *suite = same;
            }
        }
    }
    provider.cipher_suites.sort_by_key(|suite| !is_aes_128_gcm(suite.suite()));
    provider
}

fn of_ring(name: CipherSuite) -> Option<SupportedCipherSuite> {
    ring::ALL_CIPHER_SUITES.iter().find(|suite| suite.suite() == name).copied()
}

fn is_aes_128_gcm(name: CipherSuite) -> bool {
    matches!(
        name,
        CipherSuite::TLS13_AES_128_GCM_SHA256
            | CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
            | CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
    )
}

#[cfg(target_arch = "x86_64")]
fn ring_is_faster() -> bool {
    let vaes = is_x86_feature_detected!("vaes") && is_x86_feature_detected!("vpclmulqdq") && is_x86_feature_detected!("avx2");
    vaes && !is_x86_feature_detected!("avx512f")
}

#[cfg(not(target_arch = "x86_64"))]
fn ring_is_faster() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aes_128_gcm_is_first_and_nothing_is_missing() {
        let offered: Vec<_> = provider().cipher_suites.iter().map(SupportedCipherSuite::suite).collect();
        assert_eq!(offered[0], CipherSuite::TLS13_AES_128_GCM_SHA256);
        for suite in aws_lc_rs::DEFAULT_CIPHER_SUITES {
            assert!(offered.contains(&suite.suite()), "{suite:?}");
            // The other library could stand in for each.
            assert!(of_ring(suite.suite()).is_some(), "{suite:?}");
        }
        assert_eq!(offered.len(), aws_lc_rs::DEFAULT_CIPHER_SUITES.len());
    }
}
