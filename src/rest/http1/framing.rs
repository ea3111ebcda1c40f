//! How long the body of an answer is, and what of the bytes that come belongs to it (RFC 9112, sections 6 and 7).

use crate::rest::headers::{Headers, text};

/// What may stand beside the data of a chunked body, altogether: extensions of chunks, and trailers.
const MOST_BESIDE: usize = 64 * 1024;

/// A body that is being received.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// So many bytes more.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked(Chunked),
    /// All that comes until the other side closes.
    UntilClose,
}

/// The bytes are no body as HTTP frames it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub(super) &'static str);

/// Where in a chunked body we are.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Chunked {
    at: At,
    /// Bytes of extensions and trailers so far.
    beside: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// In a chunk's size, of which so many digits have come.
    Size {
        size: u64,
        digits: u8,
    },
    /// Behind a chunk's size, in what is of no interest to us.
    Extension {
        size: u64,
    },
    /// Before the line feed that ends the line of a size.
    SizeEnd {
        size: u64,
    },
    /// In the data of a chunk.
    Data {
        left: u64,
    },
    /// Behind the data, before a carriage return, and before a line feed.
    DataEnd,
    DataLineFeed,
    /// In the lines behind the last chunk; whether something stands in this one.
    Trailer {
        empty: bool,
    },
    /// Before the line feed that ends such a line, and, if the line is empty, the body.
    TrailerEnd {
        last: bool,
    },
    Done,
}

impl Default for At {
    fn default() -> At {
        At::Size { size: 0, digits: 0 }
    }
}

impl Framing {
    /// What the head of an answer says (RFC 9112, 6.3). `bodiless`: the request or the status has answers without one.
    ///
    /// # Errors
    /// A length that is none or several, and an encoding that nobody asked for.
    pub(super) fn of(headers: &Headers, bodiless: bool) -> Result<Framing, Malformed> {
        if bodiless {
            return Ok(Framing::Length(0));
        }
        let mut encodings = headers.all("transfer-encoding");
        if let Some(encoding) = encodings.next() {
            let chunked = encoding.eq_ignore_ascii_case(b"chunked") && encodings.next().is_none();
            return if chunked {
                Ok(Framing::Chunked(Chunked::default()))
            } else {
                Err(Malformed("the answer is encoded in a way that was not asked for"))
            };
        }
        // A list of the same length several times is allowed, be it in one header or in several.
        let mut lengths = headers.all("content-length").flat_map(|value| value.split(|byte| *byte == b','));
        let Some(first) = lengths.next() else { return Ok(Framing::UntilClose) };
        let first = length(first).ok_or(Malformed("the answer's Content-Length is no length"))?;
        if lengths.all(|other| length(other) == Some(first)) {
            Ok(Framing::Length(first))
        } else {
            Err(Malformed("the answer has several lengths"))
        }
    }

    /// Whether all of it has come.
    pub(super) fn is_done(&self) -> bool {
        match self {
            Framing::Length(left) => *left == 0,
            Framing::Chunked(chunked) => chunked.at == At::Done,
            Framing::UntilClose => false,
        }
    }

    /// Whether it is whole when the other side closes now.
    pub(super) fn may_end(&self) -> bool {
        matches!(self, Framing::UntilClose) || self.is_done()
    }

    /// Splits what has come: how many of these bytes have been used, and what of them is data. Nothing is used when it is done;
    /// data may be empty.
    ///
    /// # Errors
    /// Where they are not what should come.
    pub(super) fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, &'a [u8]), Malformed> {
        match self {
            Framing::Length(left) => {
                let data = up_to(bytes, *left);
                *left -= data.len() as u64;
                Ok((data.len(), data))
            }
            Framing::Chunked(chunked) => chunked.next(bytes),
            Framing::UntilClose => Ok((bytes.len(), bytes)),
        }
    }
}

impl Chunked {
    fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, &'a [u8]), Malformed> {
        for (used, byte) in bytes.iter().copied().enumerate() {
            self.at = match (self.at, byte) {
                (At::Data { left }, _) => {
                    let data = up_to(&bytes[used..], left);
                    let left = left - data.len() as u64;
                    self.at = if left == 0 { At::DataEnd } else { At::Data { left } };
                    return Ok((used + data.len(), data));
                }
                (At::Size { size, digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') if digits < 16 => {
                    let digit = char::from(byte).to_digit(16).unwrap_or_default();
                    At::Size { size: size << 4 | u64::from(digit), digits: digits + 1 }
                }
                (At::Size { size, digits: 1.. }, b'\r') => At::SizeEnd { size },
                (At::Size { size, digits: 1.. }, b';' | b' ' | b'\t') => At::Extension { size },
                (At::Extension { size }, b'\r') => At::SizeEnd { size },
                (At::Extension { size }, byte) if byte != b'\n' => self.beside(At::Extension { size })?,
                (At::SizeEnd { size: 0 }, b'\n') => At::Trailer { empty: true },
                (At::SizeEnd { size }, b'\n') => At::Data { left: size },
                (At::DataEnd, b'\r') => At::DataLineFeed,
                (At::DataLineFeed, b'\n') => At::default(),
                (At::Trailer { empty }, b'\r') => At::TrailerEnd { last: empty },
                (At::Trailer { .. }, byte) if byte != b'\n' => self.beside(At::Trailer { empty: false })?,
                (At::TrailerEnd { last: false }, b'\n') => At::Trailer { empty: true },
                (At::TrailerEnd { last: true }, b'\n') => {
                    self.at = At::Done;
                    return Ok((used + 1, &[]));
                }
                _ => return Err(Malformed("the answer's chunks are broken")),
            };
        }
        Ok((bytes.len(), &[]))
    }

    fn beside(&mut self, at: At) -> Result<At, Malformed> {
        self.beside += 1;
        if self.beside > MOST_BESIDE { Err(Malformed("there is too much beside the answer's chunks")) } else { Ok(at) }
    }
}

fn up_to(bytes: &[u8], most: u64) -> &[u8] {
    &bytes[..usize::try_from(most).map_or(bytes.len(), |most| most.min(bytes.len()))]
}

/// Digits and nothing else (RFC 9110, 8.6).
fn length(value: &[u8]) -> Option<u64> {
    let digits = text(value)?.trim_matches([' ', '\t']);
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a body says when it comes in pieces of this length, and how many bytes are left over behind it.
    fn read(framing: &mut Framing, wire: &[u8], piece: usize) -> Result<(Vec<u8>, usize), Malformed> {
        let mut out = Vec::new();
        let mut at = 0;
        while at < wire.len() && !framing.is_done() {
            let end = wire.len().min(at + piece);
            let (used, data) = framing.next(&wire[at..end])?;
            assert!(used > 0, "no progress at {at}");
            out.extend_from_slice(data);
            at += used;
        }
        Ok((out, wire.len() - at))
    }

    fn of(headers: &[(&str, &str)], bodiless: bool) -> Result<Framing, Malformed> {
        Framing::of(&headers.iter().copied().collect(), bodiless)
    }

    #[test]
    fn chunks_are_read_however_they_are_cut() {
        // RFC 9112, 7.1: sizes in hexadecimal, extensions and trailers to be ignored.
        let wire =
            b"4\r\nWiki\r\n6;name=\"a b\"\r\npedia \r\nE  \r\nin \r\n\r\nchunks.\r\n0\r\nExpires: never\r\nx: y\r\n\r\nHTTP";
        for piece in [1, 2, 3, 5, 1000] {
            let mut framing = Framing::Chunked(Chunked::default());
            let (data, left) = read(&mut framing, wire, piece).unwrap();
            assert_eq!((data.as_slice(), left), (&b"Wikipedia in \r\n\r\nchunks."[..], 4), "pieces of {piece}");
            assert!(framing.is_done());
        }
    }

    #[test]
    fn broken_chunks_are_refused() {
        for wire in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "4\nWiki",
            "4\r\nWikixx",
            "4\r\nWiki\n",
            "4\r\r",
            "0\r\n\n",
            "00000000000000001\r\n",
            "4;a\n",
            "0\r\na\nb\r\n\r\n",
            "0\r\n\r\r",
        ] {
            for piece in [1, 100] {
                assert!(read(&mut Framing::Chunked(Chunked::default()), wire.as_bytes(), piece).is_err(), "{wire:?}");
            }
        }
        for (before, filling) in [("1;", "a"), ("0\r\n", "a"), ("0\r\n", "a: b\r\n")] {
            let wire = format!("{before}{}", filling.repeat(2 * MOST_BESIDE));
            assert!(read(&mut Framing::Chunked(Chunked::default()), wire.as_bytes(), 1000).is_err(), "{before:?}");
        }
    }

    #[test]
    fn heads_say_how_long_bodies_are() {
        let chunked = || Ok(Framing::Chunked(Chunked::default()));
        let refused = |framing: Result<Framing, Malformed>| framing.is_err();
        assert_eq!(of(&[("content-length", "18446744073709551615")], false), Ok(Framing::Length(u64::MAX)));
        assert_eq!(of(&[("content-length", "7, 7"), ("content-length", "7")], false), Ok(Framing::Length(7)));
        assert_eq!(of(&[("content-length", "7")], true), Ok(Framing::Length(0)));
        assert_eq!(of(&[("transfer-encoding", "Chunked"), ("content-length", "7")], false), chunked());
        assert_eq!(of(&[], false), Ok(Framing::UntilClose));
        for wrong in ["", "-1", "+7", "7 8", "7,8", "0x7", "18446744073709551616"] {
            assert!(refused(of(&[("content-length", wrong)], false)), "{wrong:?}");
        }
        for wrong in ["gzip", "gzip, chunked", "identity", ""] {
            assert!(refused(of(&[("transfer-encoding", wrong)], false)), "{wrong:?}");
        }
        assert!(refused(of(&[("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")], false)));
    }

    #[test]
    fn a_length_ends_where_it_says() {
        let mut framing = Framing::Length(5);
        assert_eq!(read(&mut framing, b"abcdefg", 2), Ok((b"abcde".to_vec(), 2)));
        assert!(framing.is_done() && framing.may_end());
        let mut framing = Framing::Length(5);
        assert_eq!(read(&mut framing, b"abc", 2), Ok((b"abc".to_vec(), 0)));
        assert!(!framing.is_done() && !framing.may_end());
        assert!(!Framing::UntilClose.is_done() && Framing::UntilClose.may_end());
    }

    proptest::proptest! {
        /// However a body is cut on its way: the same bytes, the same end, and the same verdict on it.
        #[test]
        fn cuts_change_nothing(
            sizes in proptest::collection::vec(1usize..40, 0..6),
            spoilt in proptest::option::of((0usize..200, proptest::num::u8::ANY)),
            piece in 1usize..50,
        ) {
            let data: Vec<Vec<u8>> = sizes.iter().map(|size| vec![b'a'; *size]).collect();
            let mut wire: Vec<u8> = data.iter().flat_map(|data| [format!("{:X}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat()).collect();
            wire.extend_from_slice(b"0\r\nx: y\r\n\r\nbehind");
            let sound = spoilt.is_none();
            if let Some((at, byte)) = spoilt {
                let at = at % wire.len();
                wire[at] = byte;
            }
            let of = |piece| read(&mut Framing::Chunked(Chunked::default()), &wire, piece);
            let whole = of(wire.len());
            if sound {
                proptest::prop_assert_eq!(&whole, &Ok((data.concat(), 6)));
            }
            proptest::prop_assert_eq!(of(piece), whole);
        }
    }
}
