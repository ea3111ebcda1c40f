//! MD5 of many messages at once, sixteen side by side.
//!
//! One MD5 is a chain of dependent steps and uses a fraction of what a processor can do (0.65 GB/s). Messages do not depend on each other: where there
//! is AVX2, two registers of eight words hold the states of sixteen of them, and a step is one step of all. A lane whose message has
//! ended takes the next one. What is left over has no company and costs what one message costs; [`side_by_side`] says how to avoid
//! that. Invariant: a digest never depends on what was hashed beside it.
//!
//! Source: RFC 1321.

use md5::{Digest as _, Md5};

/// Messages that are hashed side by side.
pub(crate) const LANES: usize = 16;

const BLOCK: usize = 64;

/// Blocks a lane gets on by before free lanes look for another message: 64 KiB.
const STRETCH: usize = 1024;

/// Hashes every message that `next` has, and hands each back with its digest as soon as that is there. `next` is asked again
/// whenever a lane is free; it pays from some four messages at a time on, and a single one is left to the `md-5` crate.
pub(crate) fn side_by_side<M: AsRef<[u8]>>(mut next: impl FnMut() -> Option<M>, mut done: impl FnMut(M, [u8; 16])) {
    #[cfg(target_arch = "x86_64")]
    if wide::is_supported() {
        while let Some(first) = next() {
            match next() {
                Some(second) => in_lanes([first, second], &mut next, &mut done),
                None => alone(first, &mut done),
            }
        }
        return;
    }
    while let Some(message) = next() {
        alone(message, &mut done);
    }
}

fn alone<M: AsRef<[u8]>>(message: M, done: &mut impl FnMut(M, [u8; 16])) {
    let digest = Md5::digest(message.as_ref()).into();
    done(message, digest);
}

#[cfg(target_arch = "x86_64")]
fn in_lanes<M: AsRef<[u8]>>(first: [M; 2], next: &mut impl FnMut() -> Option<M>, done: &mut impl FnMut(M, [u8; 16])) {
    let mut lanes: [Option<Lane<M>>; LANES] = std::array::from_fn(|_| None);
    let mut states = wide::States::default();
    let mut first = first.into_iter();
    loop {
        for (i, lane) in lanes.iter_mut().enumerate().filter(|(_, lane)| lane.is_none()) {
            let Some(message) = first.next().or_else(&mut *next) else { break };
            *lane = Some(Lane::new(message));
            states.begin(i);
        }
        // A lane without a message goes along with one that has one; nobody looks at its state.
        let Some(some) = lanes.iter().flatten().next().map(Lane::ahead) else { return };
        let ahead = lanes.each_ref().map(|lane| lane.as_ref().map_or(some, Lane::ahead));
        let blocks = states.compress(ahead, STRETCH);
        for (i, slot) in lanes.iter_mut().enumerate() {
            if slot.as_mut().is_some_and(|lane| lane.is_through_after(blocks))
                && let Some(lane) = slot.take()
            {
                done(lane.message, states.digest(i));
            }
        }
    }
}

/// A message on its way, and what is put behind it (RFC 1321, 3.1 and 3.2).
#[cfg(target_arch = "x86_64")]
struct Lane<M> {
    message: M,
    /// Bytes of the message, in whole blocks, that were hashed.
    hashed: usize,
    /// The rest of the message, a one bit, zeros, and the length in bits.
    end: [u8; 2 * BLOCK],
    /// The part of `end` that is still to be hashed.
    left: std::ops::Range<usize>,
}

#[cfg(target_arch = "x86_64")]
impl<M: AsRef<[u8]>> Lane<M> {
    fn new(message: M) -> Lane<M> {
        let data = message.as_ref();
        let rest = &data[data.len() / BLOCK * BLOCK..];
        let mut end = [0; 2 * BLOCK];
        end[..rest.len()].copy_from_slice(rest);
        end[rest.len()] = 0x80;
        // The mark and the eight bytes of the length need room behind the rest.
        let len = if rest.len() + 9 <= BLOCK { BLOCK } else { 2 * BLOCK };
        let bits = (data.len() as u64).wrapping_mul(8);
        end[len - 8..len].copy_from_slice(&bits.to_le_bytes());
        Lane { message, hashed: 0, end, left: 0..len }
    }

    /// Whole blocks that come next: at least one.
    fn ahead(&self) -> &[u8] {
        let data = self.message.as_ref();
        let whole = &data[self.hashed..data.len() / BLOCK * BLOCK];
        if whole.is_empty() { &self.end[self.left.clone()] } else { whole }
    }

    /// Whether that was all of it.
    fn is_through_after(&mut self, blocks: usize) -> bool {
        let bytes = blocks * BLOCK;
        if self.hashed < self.message.as_ref().len() / BLOCK * BLOCK {
            self.hashed += bytes;
        } else {
            self.left.start += bytes;
        }
        self.left.is_empty()
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use super::{BLOCK, LANES};
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi32, _mm256_and_si256, _mm256_loadu_si256, _mm256_or_si256, _mm256_permute2x128_si256,
        _mm256_set1_epi32, _mm256_setzero_si256, _mm256_slli_epi32, _mm256_srli_epi32, _mm256_storeu_si256,
        _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpacklo_epi32, _mm256_unpacklo_epi64, _mm256_xor_si256,
    };

    /// Words of 32 bits in a register.
    const WORDS: usize = 8;
    /// Registers a word of all states takes. The second hides that each step waits for the one before it.
    const REGISTERS: usize = LANES / WORDS;

    type Wide = [__m256i; REGISTERS];

    pub(super) fn is_supported() -> bool {
        is_x86_feature_detected!("avx2")
    }

    /// The words A, B, C, D of each lane's state.
    #[derive(Default)]
    pub(super) struct States([[u32; LANES]; 4]);

    impl States {
        /// A lane's state is that of no bytes (RFC 1321, 3.3).
        pub(super) fn begin(&mut self, lane: usize) {
            for (words, value) in self.0.iter_mut().zip([0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476]) {
                words[lane] = value;
            }
        }

        pub(super) fn digest(&self, lane: usize) -> [u8; 16] {
            let mut digest = [0; 16];
            for (bytes, words) in digest.chunks_exact_mut(4).zip(&self.0) {
                bytes.copy_from_slice(&words[lane].to_le_bytes());
            }
            digest
        }

        /// Takes as many whole blocks of each lane's data as there are for all, at most `most`, and says how many.
        pub(super) fn compress(&mut self, data: [&[u8]; LANES], most: usize) -> usize {
            let blocks = data.iter().map(|data| data.len() / BLOCK).min().unwrap_or_default().min(most);
            assert!(is_supported());
            // SAFETY: AVX2 is there.
            unsafe { compress(&mut self.0, data.map(|data| &data[..blocks * BLOCK]), blocks) };
            blocks
        }
    }

    /// RFC 1321, 3.4: the integer part of 2^32 times abs(sin(i + 1)).
    const SINES: [u32; 64] = [
        0xd76a_a478,
        0xe8c7_b756,
        0x2420_70db,
        0xc1bd_ceee,
        0xf57c_0faf,
        0x4787_c62a,
        0xa830_4613,
        0xfd46_9501, //
        0x6980_98d8,
        0x8b44_f7af,
        0xffff_5bb1,
        0x895c_d7be,
        0x6b90_1122,
        0xfd98_7193,
        0xa679_438e,
        0x49b4_0821, //
        0xf61e_2562,
        0xc040_b340,
        0x265e_5a51,
        0xe9b6_c7aa,
        0xd62f_105d,
        0x0244_1453,
        0xd8a1_e681,
        0xe7d3_fbc8, //
        0x21e1_cde6,
        0xc337_07d6,
        0xf4d5_0d87,
        0x455a_14ed,
        0xa9e3_e905,
        0xfcef_a3f8,
        0x676f_02d9,
        0x8d2a_4c8a, //
        0xfffa_3942,
        0x8771_f681,
        0x6d9d_6122,
        0xfde5_380c,
        0xa4be_ea44,
        0x4bde_cfa9,
        0xf6bb_4b60,
        0xbebf_bc70, //
        0x289b_7ec6,
        0xeaa1_27fa,
        0xd4ef_3085,
        0x0488_1d05,
        0xd9d4_d039,
        0xe6db_99e5,
        0x1fa2_7cf8,
        0xc4ac_5665, //
        0xf429_2244,
        0x432a_ff97,
        0xab94_23a7,
        0xfc93_a039,
        0x655b_59c3,
        0x8f0c_cc92,
        0xffef_f47d,
        0x8584_5dd1, //
        0x6fa8_7e4f,
        0xfe2c_e6e0,
        0xa301_4314,
        0x4e08_11a1,
        0xf753_7e82,
        0xbd3a_f235,
        0x2ad7_d2bb,
        0xeb86_d391, //
    ];

    /// One step of all lanes: word `$k` of the block, `$s` bits to the left, sine `$i`.
    macro_rules! step {
        ($mix:ident, $a:ident $b:ident $c:ident $d:ident, $words:ident[$k:expr] << $s:literal, $i:expr) => {
            for v in 0..REGISTERS {
                let sine = _mm256_set1_epi32(SINES[$i].cast_signed());
                let known = _mm256_add_epi32($a[v], _mm256_add_epi32($words[v][$k % 16], sine));
                let sum = _mm256_add_epi32(known, $mix($b[v], $c[v], $d[v]));
                let turned = _mm256_or_si256(_mm256_slli_epi32::<$s>(sum), _mm256_srli_epi32::<{ 32 - $s }>(sum));
                $a[v] = _mm256_add_epi32(turned, $b[v]);
            }
        };
    }

    /// Sixteen steps, from sine `$from` on; step `i` takes word `i * $times + $plus`.
    macro_rules! round {
        ($mix:ident, $a:ident $b:ident $c:ident $d:ident, $words:ident, $from:literal, $times:literal, $plus:literal,
         $s1:literal $s2:literal $s3:literal $s4:literal) => {
            round!(@four $mix, $a $b $c $d, $words, $from, $times, $plus, $s1 $s2 $s3 $s4, 0);
            round!(@four $mix, $a $b $c $d, $words, $from, $times, $plus, $s1 $s2 $s3 $s4, 4);
            round!(@four $mix, $a $b $c $d, $words, $from, $times, $plus, $s1 $s2 $s3 $s4, 8);
            round!(@four $mix, $a $b $c $d, $words, $from, $times, $plus, $s1 $s2 $s3 $s4, 12);
        };
        (@four $mix:ident, $a:ident $b:ident $c:ident $d:ident, $words:ident, $from:literal, $times:literal, $plus:literal,
         $s1:literal $s2:literal $s3:literal $s4:literal, $i:literal) => {
            step!($mix, $a $b $c $d, $words[$i * $times + $plus] << $s1, $from + $i);
            step!($mix, $d $a $b $c, $words[($i + 1) * $times + $plus] << $s2, $from + $i + 1);
            step!($mix, $c $d $a $b, $words[($i + 2) * $times + $plus] << $s3, $from + $i + 2);
            step!($mix, $b $c $d $a, $words[($i + 3) * $times + $plus] << $s4, $from + $i + 3);
        };
    }

    /// Each of `data` has `blocks` blocks.
    #[target_feature(enable = "avx2")]
    fn compress(states: &mut [[u32; LANES]; 4], data: [&[u8]; LANES], blocks: usize) {
        let [mut a, mut b, mut c, mut d] = states.each_ref().map(|words| load(words));
        for block in 0..blocks {
            let mut words = [[_mm256_setzero_si256(); 16]; REGISTERS];
            for (words, data) in words.iter_mut().zip(data.as_chunks::<WORDS>().0) {
                let at = block * BLOCK;
                let (low, high) = words.split_at_mut(WORDS);
                low.copy_from_slice(&transpose(data.each_ref().map(|data| half(&data[at..]))));
                high.copy_from_slice(&transpose(data.each_ref().map(|data| half(&data[at + BLOCK / 2..]))));
            }
            let before = [a, b, c, d];
            round!(f, a b c d, words, 0, 1, 0, 7 12 17 22);
            round!(g, a b c d, words, 16, 5, 1, 5 9 14 20);
            round!(h, a b c d, words, 32, 3, 5, 4 11 16 23);
            round!(i, a b c d, words, 48, 7, 0, 6 10 15 21);
            for (now, before) in [&mut a, &mut b, &mut c, &mut d].into_iter().zip(before) {
                for (now, before) in now.iter_mut().zip(before) {
                    *now = _mm256_add_epi32(*now, before);
                }
            }
        }
        for (words, wide) in states.iter_mut().zip([a, b, c, d]) {
            store(wide, words);
        }
    }

    #[target_feature(enable = "avx2")]
    fn f(x: __m256i, y: __m256i, z: __m256i) -> __m256i {
        _mm256_xor_si256(z, _mm256_and_si256(x, _mm256_xor_si256(y, z)))
    }

    #[target_feature(enable = "avx2")]
    fn g(x: __m256i, y: __m256i, z: __m256i) -> __m256i {
        f(z, x, y)
    }

    #[target_feature(enable = "avx2")]
    fn h(x: __m256i, y: __m256i, z: __m256i) -> __m256i {
        _mm256_xor_si256(_mm256_xor_si256(y, z), x)
    }

    #[target_feature(enable = "avx2")]
    fn i(x: __m256i, y: __m256i, z: __m256i) -> __m256i {
        _mm256_xor_si256(y, _mm256_or_si256(x, _mm256_xor_si256(z, _mm256_set1_epi32(-1))))
    }

    #[target_feature(enable = "avx2")]
    fn load(words: &[u32; LANES]) -> Wide {
        let (parts, _) = words.as_chunks::<WORDS>();
        // SAFETY: a part is eight words long; the load asks for no alignment.
        std::array::from_fn(|v| unsafe { _mm256_loadu_si256(parts[v].as_ptr().cast()) })
    }

    #[target_feature(enable = "avx2")]
    fn store(wide: Wide, words: &mut [u32; LANES]) {
        for (part, register) in words.as_chunks_mut::<WORDS>().0.iter_mut().zip(wide) {
            // SAFETY: as above.
            unsafe { _mm256_storeu_si256(part.as_mut_ptr().cast(), register) }
        }
    }

    /// The first half of a block.
    #[target_feature(enable = "avx2")]
    fn half(data: &[u8]) -> __m256i {
        let half = &data[..BLOCK / 2];
        // SAFETY: 32 bytes are there; the load asks for no alignment.
        unsafe { _mm256_loadu_si256(half.as_ptr().cast()) }
    }

    /// Words by lane into lanes by word.
    #[target_feature(enable = "avx2")]
    fn transpose(r: [__m256i; WORDS]) -> [__m256i; WORDS] {
        let pair = |i: usize| (_mm256_unpacklo_epi32(r[i], r[i + 1]), _mm256_unpackhi_epi32(r[i], r[i + 1]));
        let four = |i: usize| {
            let ((low, high), (low2, high2)) = (pair(i), pair(i + 2));
            [
                _mm256_unpacklo_epi64(low, low2),
                _mm256_unpackhi_epi64(low, low2),
                _mm256_unpacklo_epi64(high, high2),
                _mm256_unpackhi_epi64(high, high2),
            ]
        };
        let (upper, lower) = (four(0), four(4));
        std::array::from_fn(|i| match i {
            0..4 => _mm256_permute2x128_si256::<0x20>(upper[i], lower[i]),
            _ => _mm256_permute2x128_si256::<0x31>(upper[i - 4], lower[i - 4]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Digests by message, in the order the messages came.
    fn digests(messages: &[Vec<u8>]) -> Vec<[u8; 16]> {
        let mut all = vec![None; messages.len()];
        let mut next = messages.iter().enumerate().map(|(i, message)| Numbered(i, message));
        side_by_side(|| next.next(), |message: Numbered<'_>, digest| assert_eq!(all[message.0].replace(digest), None));
        all.into_iter().map(|digest| digest.expect("each is hashed")).collect()
    }

    struct Numbered<'a>(usize, &'a [u8]);

    impl AsRef<[u8]> for Numbered<'_> {
        fn as_ref(&self) -> &[u8] {
            self.1
        }
    }

    #[test]
    fn the_published_vectors_beside_each_other() {
        // RFC 1321, appendix A.5.
        let vectors = [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("a", "0cc175b9c0f1b6a831c399e269772661"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
            ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "d174ab98d277d9f5a5611c2c9f419d9f"),
            (&"1234567890".repeat(8), "57edf4a22be3c955ac49da2e2107b67a"),
        ];
        let messages: Vec<Vec<u8>> = vectors.iter().map(|(text, _)| text.as_bytes().to_vec()).collect();
        for (digest, (text, hex)) in digests(&messages).iter().zip(vectors) {
            assert_eq!(digest.iter().map(|b| format!("{b:02x}")).collect::<String>(), hex, "{text}");
        }
    }

    /// As many messages as come, of every length about a block's ends, and a long one that keeps its lane: the same as one by one.
    #[test]
    fn the_same_as_one_by_one() {
        let of_len = |len: usize| (0..len).map(|i| (i * 131 + len * 7 + i / 251).to_le_bytes()[0]).collect::<Vec<u8>>();
        for count in [0, 1, 2, 3, LANES - 1, LANES, LANES + 1, 5 * LANES + 3] {
            let mut messages: Vec<Vec<u8>> = (0..count).map(|i| of_len(i * 37 % 200 + i % 3 * 64)).collect();
            if let Some(first) = messages.first_mut() {
                *first = of_len(3 * STRETCH * BLOCK + 61);
            }
            let expected: Vec<[u8; 16]> = messages.iter().map(|message| Md5::digest(message).into()).collect();
            assert!(digests(&messages) == expected, "{count}");
        }
        let messages: Vec<Vec<u8>> = (0..260).map(of_len).collect();
        let expected: Vec<[u8; 16]> = messages.iter().map(|message| Md5::digest(message).into()).collect();
        assert!(digests(&messages) == expected);
    }
}
