//! TLS for the emulator: an authority made at the start, a certificate for this machine's names signed by it, AES-128-GCM first.
//!
//! Clients trust the authority ([`Identity::authority_pem`]); its key is forgotten as soon as it has signed, and neither key
//! is ever written anywhere.

use crate::ciphers;
use crate::{Error, Kind, Result};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// What the certificate is for: every name of this machine by which a client may reach a loopback port.
const NAMES: [&str; 3] = ["127.0.0.1", "::1", "localhost"];

/// A certificate in use, and who vouches for it.
pub(crate) struct Identity {
    pub(crate) acceptor: TlsAcceptor,
    /// The authority's certificate, PEM.
    pub(crate) authority_pem: String,
}

impl Identity {
    /// Makes a new one.
    ///
    /// # Errors
    /// [`Kind::Local`]: the system has no randomness.
    pub(crate) fn generate() -> Result<Identity> {
        let failed = |e: rcgen::Error| Error::new(Kind::Local, "cannot make a certificate").with_source(e);
        let authority_key = KeyPair::generate().map_err(failed)?;
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        authority.distinguished_name.push(DnType::CommonName, "blobjet serve, for this machine only");
        let authority_certificate = authority.self_signed(&authority_key).map_err(failed)?;
        let key = KeyPair::generate().map_err(failed)?;
        let mut certificate = CertificateParams::new(NAMES.map(str::to_owned)).map_err(failed)?;
        certificate.distinguished_name.push(DnType::CommonName, "localhost");
        // OpenSSL in its strict mode (Python from 3.13 on) asks for it.
        certificate.use_authority_key_identifier_extension = true;
        let certificate = certificate.signed_by(&key, &Issuer::new(authority, authority_key)).map_err(failed)?;

        let broken = |e| Error::new(Kind::Local, "cannot set up TLS").with_source(e);
        let mut config = ServerConfig::builder_with_provider(Arc::new(ciphers::provider()))
            .with_safe_default_protocol_versions()
            .map_err(broken)?
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )
            .map_err(broken)?;
        // Clients that would rather have a dearer cipher get the same as all others, so that they can be compared.
        config.ignore_client_order = true;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Identity { acceptor: TlsAcceptor::from(Arc::new(config)), authority_pem: authority_certificate.pem() })
    }
}
