//! Turns a fuzzer's bytes into an input that is nearly right: a valid text, and edits of it.
//!
//! Bytes drawn blindly never get past the first character of a document or a URL. Here the first byte picks one of the seeds and
//! every four after it are one edit, so both a random engine and one led by coverage reach what lies behind.

/// Texts to begin with, and words that mean something to the parser under test.
pub(super) struct Language {
    pub(super) seeds: &'static [&'static str],
    pub(super) words: &'static [&'static str],
}

/// Bytes that end, escape or break something in most formats.
const TRICKY: [u8; 16] = [0, b'\t', b'\n', b'\r', b' ', b'"', b'%', b'&', b'/', b';', b'<', b'=', b'>', b'?', 0x7F, 0xFF];

impl Language {
    /// The input these bytes stand for.
    pub(super) fn text(&self, bytes: &[u8]) -> Vec<u8> {
        let Some((&seed, edits)) = bytes.split_first() else { return Vec::new() };
        let mut text = self.seeds[usize::from(seed) % self.seeds.len()].as_bytes().to_vec();
        for edit in edits.chunks_exact(4) {
            self.edit(&mut text, [edit[0], edit[1], edit[2], edit[3]]);
        }
        text
    }

    fn edit(&self, text: &mut Vec<u8>, [what, high, low, value]: [u8; 4]) {
        let at = usize::from(u16::from_be_bytes([high, low])) % (text.len() + 1);
        let end = (at + 1 + usize::from(value)).min(text.len());
        match what % 6 {
            0 => text.insert(at, value),
            1 => text.insert(at, TRICKY[usize::from(value) % TRICKY.len()]),
            2 if at < text.len() => text[at] = value,
            3 => drop(text.drain(at..end)),
            4 => text.extend_from_within(at..end),
            _ => {
                let word = self.words[usize::from(value) % self.words.len()];
                drop(text.splice(at..at, word.bytes()));
            }
        }
    }
}

#[test]
fn edits_are_what_they_say() {
    let language = Language { seeds: &["abc", "xyz"], words: &["WORD"] };
    for (bytes, text) in [
        (&[0][..], &b"abc"[..]),
        (&[3], b"xyz"),
        (&[0, 0, 0, 1, b'!'], b"a!bc"),
        (&[0, 1, 0, 0, 15], b"\xFFabc"),
        (&[0, 2, 0, 2, b'C'], b"abC"),
        (&[0, 3, 0, 1, 0], b"ac"),
        (&[0, 4, 0, 1, 9], b"abcbc"),
        (&[0, 5, 0, 3, 0], b"abcWORD"),
        (&[], b""),
    ] {
        assert_eq!(language.text(bytes), text, "{bytes:?}");
    }
}
