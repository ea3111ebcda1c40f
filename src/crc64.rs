//! CRC-64/NVME, the checksum of `x-ms-content-crc64`, at the speed of memory.
//!
//! The `crc-fast` crate folds 512 bits at a time where the processor has AVX-512, and otherwise 128. Many servers are in
//! between, with VPCLMULQDQ on AVX2 registers: for them this file folds 256 bits at a time, which is twice as fast (EPYC of 2021:
//! 23 against 11.5 GB/s in cache), and leaves ends and short pieces to the crate. Invariant: the value never depends on the way it was computed or on where the data was
//! cut.
//!
//! Method: V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009.

use crc_fast::{CrcAlgorithm::Crc64Nvme, Digest};

/// A checksum under way.
#[derive(Debug, Clone)]
pub(crate) struct Crc64 {
    /// The shift register, as the next byte finds it.
    register: u64,
}

impl Crc64 {
    /// Of no bytes yet.
    pub(crate) fn new() -> Self {
        Crc64 { register: u64::MAX }
    }

    /// Takes the next bytes.
    pub(crate) fn update(&mut self, data: &[u8]) {
        #[cfg(target_arch = "x86_64")]
        if data.len() >= wide::WORTH && wide::is_supported() {
            // SAFETY: the features that `fold` needs were found on this processor.
            let (folded, rest) = unsafe { wide::fold(self.register, data) };
            self.register = narrow(narrow(0, &folded), rest);
            return;
        }
        self.register = narrow(self.register, data);
    }

    /// The checksum of the bytes so far.
    pub(crate) fn finish(&self) -> u64 {
        !self.register
    }
}

/// The register after some bytes, by the crate.
fn narrow(register: u64, data: &[u8]) -> u64 {
    let mut digest = Digest::new_with_init_state(Crc64Nvme, register);
    digest.update(data);
    digest.get_state()
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        __m128i, __m256i, _MM_HINT_T0, _mm_clmulepi64_si128, _mm_cvtsi64_si128, _mm_prefetch, _mm_set_epi64x, _mm_storeu_si128,
        _mm_xor_si128, _mm256_broadcastsi128_si256, _mm256_castsi256_si128, _mm256_clmulepi64_epi128, _mm256_extracti128_si256,
        _mm256_inserti128_si256, _mm256_loadu_si256, _mm256_setzero_si256, _mm256_xor_si256,
    };

    /// Registers that are folded side by side, to hide the four cycles a multiplication takes.
    const SIDE_BY_SIDE: usize = 8;

    /// Bytes a register holds.
    const WIDTH: usize = 32;

    /// Bytes a turn of the loop takes.
    const TURN: usize = SIDE_BY_SIDE * WIDTH;

    /// How far ahead memory is asked for: the processor's own reading ahead ends with each page. Cold data 9.6 -> 11.7 GB/s.
    const AHEAD: usize = 2048;

    /// A cache line.
    const LINE: usize = 64;

    /// Shorter pieces are as fast by the crate: bringing eight registers together has a price.
    pub(super) const WORTH: usize = 4 * TURN;

    /// The polynomial of CRC-64/NVME with its bits reversed, as the bytes of a message have theirs.
    const POLYNOMIAL: u64 = 0x9A6C_9329_AC4B_C9B5;

    /// `x^n` modulo the polynomial, bits reversed.
    const fn power(n: u32) -> u64 {
        let (mut value, mut i) = (1 << 63, 0);
        while i < n {
            value = (value >> 1) ^ if value & 1 == 1 { POLYNOMIAL } else { 0 };
            i += 1;
        }
        value
    }

    /// What takes 128 bits `bits` further down the message: the first half is multiplied by `x^(bits+64)`, the second by
    /// `x^bits`, each less one because a product of reversed numbers comes out one bit too low.
    const fn factors(bits: u32) -> (u64, u64) {
        (power(bits + 63), power(bits - 1))
    }

    const BY_A_TURN: (u64, u64) = factors(2048);
    const BY_A_REGISTER: (u64, u64) = factors(256);
    const BY_HALF_A_REGISTER: (u64, u64) = factors(128);

    /// Whether [`fold`] may be called, and is the best there is: with AVX-512 the crate is.
    pub(super) fn is_supported() -> bool {
        is_x86_feature_detected!("vpclmulqdq")
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("pclmulqdq")
            && !is_x86_feature_detected!("avx512vl")
    }

    /// Folds whole turns; returns sixteen bytes that stand for them, to be taken from a register of 0, and the bytes left over.
    ///
    /// # Panics
    /// For less than one turn of data.
    #[target_feature(enable = "avx2,vpclmulqdq,pclmulqdq")]
    pub(super) fn fold(register: u64, data: &[u8]) -> ([u8; 16], &[u8]) {
        let (turns, rest) = data.as_chunks::<TURN>();
        let (first, turns) = turns.split_first().expect("at least one turn of data");
        let mut state: [__m256i; SIDE_BY_SIDE] = std::array::from_fn(|i| load(first, i));
        // The bytes before these are in the register, which is added to the first eight.
        let before = _mm256_inserti128_si256::<0>(_mm256_setzero_si256(), _mm_cvtsi64_si128(register.cast_signed()));
        state[0] = _mm256_xor_si256(state[0], before);
        let factors = _mm256_broadcastsi128_si256(pair(BY_A_TURN));
        for turn in turns {
            for line in (0..TURN).step_by(LINE) {
                // SAFETY: asking for memory ahead never faults, wherever the address lies.
                #[allow(unused_unsafe, reason = "newer compilers have it as a safe function, the oldest supported does not")]
                unsafe {
                    _mm_prefetch::<_MM_HINT_T0>(turn.as_ptr().wrapping_add(AHEAD + line).cast())
                };
            }
            for (i, value) in state.iter_mut().enumerate() {
                *value = _mm256_xor_si256(moved(*value, factors), load(turn, i));
            }
        }
        let factors = _mm256_broadcastsi128_si256(pair(BY_A_REGISTER));
        let one = state[1..].iter().fold(state[0], |sum, next| _mm256_xor_si256(moved(sum, factors), *next));
        let (first, second) = (_mm256_castsi256_si128(one), _mm256_extracti128_si256::<1>(one));
        let factors = pair(BY_HALF_A_REGISTER);
        let moved = _mm_xor_si128(_mm_clmulepi64_si128::<0x00>(first, factors), _mm_clmulepi64_si128::<0x11>(first, factors));
        let mut out = [0; 16];
        // SAFETY: `out` has room for 16 bytes, and the store needs no alignment.
        unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), _mm_xor_si128(moved, second)) };
        (out, rest)
    }

    #[target_feature(enable = "avx2")]
    fn load(turn: &[u8; TURN], i: usize) -> __m256i {
        let bytes: &[u8; WIDTH] = &turn.as_chunks().0[i];
        // SAFETY: `bytes` has 32 bytes, and the load needs no alignment.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }

    #[target_feature(enable = "sse2")]
    fn pair((low, high): (u64, u64)) -> __m128i {
        _mm_set_epi64x(high.cast_signed(), low.cast_signed())
    }

    /// Both halves moved down the message.
    #[target_feature(enable = "avx2,vpclmulqdq")]
    fn moved(value: __m256i, factors: __m256i) -> __m256i {
        _mm256_xor_si256(_mm256_clmulepi64_epi128::<0x00>(value, factors), _mm256_clmulepi64_epi128::<0x11>(value, factors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crc64(pieces: &[&[u8]]) -> u64 {
        let mut crc = Crc64::new();
        pieces.iter().for_each(|piece| crc.update(piece));
        crc.finish()
    }

    /// Bytes without a pattern (xorshift).
    fn noise(len: usize) -> Vec<u8> {
        let mut x = 0x9E37_79B9_7F4A_7C15_u64;
        let next = |_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x.to_le_bytes()[3]
        };
        (0..len).map(next).collect()
    }

    #[test]
    fn any_length_is_as_the_crate_has_it() {
        let data = noise(5000);
        for len in 0..=data.len() {
            // From an odd place too: nothing may rely on alignment.
            for part in [&data[..len], &data[data.len() - len..]] {
                assert_eq!(crc64(&[part]), crc_fast::checksum(Crc64Nvme, part), "{len}");
            }
        }
    }

    #[test]
    fn cuts_do_not_matter() {
        let data = noise(20_000);
        let whole = crc_fast::checksum(Crc64Nvme, &data);
        for cut in [0, 1, 15, 16, 255, 1023, 1024, 1025, 4096, 9999, 19_000, 20_000] {
            for second in [cut, (cut + 1111).min(data.len()), data.len()] {
                let pieces = [&data[..cut], &data[cut..second], &data[second..]];
                assert_eq!(crc64(&pieces), whole, "{cut} {second}");
            }
        }
    }

    #[test]
    fn long_data_by_another_road() {
        // The definition, a bit at a time.
        let data = noise(70_001);
        let slow = data.iter().fold(u64::MAX, |register, byte| {
            (0..8).fold(register ^ u64::from(*byte), |r, _| (r >> 1) ^ if r & 1 == 1 { 0x9A6C_9329_AC4B_C9B5 } else { 0 })
        });
        assert_eq!(crc64(&[&data]), !slow);
    }
}
