//! Hashes of contents, and the lines they are printed in: those of `md5sum`, which it takes back with `-c`. Pure.

use crate::chunks::Chunks;
use crate::crc64::Crc64;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use clap::ValueEnum;
use md5::Md5;
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;
use std::fmt::Write as _;

/// `--algorithm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Algorithm {
    /// That of `Content-MD5`.
    Md5,
    /// CRC-64/NVME, that of `x-ms-content-crc64`.
    Crc64,
    Sha256,
}

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    Hex,
    /// As headers of the service have it.
    Base64,
}

/// A hash, finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hash {
    pub(crate) algorithm: Algorithm,
    bytes: Vec<u8>,
}

/// A hash under way.
pub(crate) enum Hashing {
    Md5(Md5),
    Crc64(Crc64),
    Sha256(Sha256),
}

impl Algorithm {
    /// As it is called in JSON.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Algorithm::Md5 => "md5",
            Algorithm::Crc64 => "crc64",
            Algorithm::Sha256 => "sha256",
        }
    }
}

impl Hashing {
    /// Of no bytes yet.
    pub(crate) fn new(algorithm: Algorithm) -> Hashing {
        match algorithm {
            Algorithm::Md5 => Hashing::Md5(Md5::new()),
            Algorithm::Crc64 => Hashing::Crc64(Crc64::new()),
            Algorithm::Sha256 => Hashing::Sha256(Sha256::new()),
        }
    }

    /// Takes the next bytes.
    pub(crate) fn update(&mut self, data: &Chunks) {
        data.iter().for_each(|piece| match self {
            Hashing::Md5(md5) => md5.update(piece),
            Hashing::Crc64(crc64) => crc64.update(piece),
            Hashing::Sha256(sha256) => sha256.update(piece),
        });
    }

    /// The hash of the bytes so far.
    pub(crate) fn finish(self) -> Hash {
        match self {
            Hashing::Md5(md5) => Hash::md5(md5.finalize().into()),
            // As a number is written: the most significant byte first.
            Hashing::Crc64(crc64) => Hash { algorithm: Algorithm::Crc64, bytes: crc64.finish().to_be_bytes().to_vec() },
            Hashing::Sha256(sha256) => Hash { algorithm: Algorithm::Sha256, bytes: sha256.finalize().to_vec() },
        }
    }
}

impl Hash {
    /// An MD5 that is known.
    pub(crate) fn md5(bytes: [u8; 16]) -> Hash {
        Hash { algorithm: Algorithm::Md5, bytes: bytes.to_vec() }
    }

    /// As it is written.
    pub(crate) fn text(&self, form: Form) -> String {
        match (form, self.algorithm) {
            (Form::Hex, _) => self.bytes.iter().fold(String::with_capacity(64), |mut out, byte| {
                let _ = write!(out, "{byte:02x}");
                out
            }),
            // The header has the bytes of the number the other way round (`rest::properties::crc64_header`).
            (Form::Base64, Algorithm::Crc64) => BASE64.encode(self.bytes.iter().rev().copied().collect::<Vec<_>>()),
            (Form::Base64, _) => BASE64.encode(&self.bytes),
        }
    }

    /// A line of `md5sum`, or of `md5sum --tag`, which tells the algorithm.
    pub(crate) fn line(&self, name: &str, form: Form, tagged: bool) -> String {
        let (mark, name) = escaped(name);
        let text = self.text(form);
        match tagged {
            true => format!("{mark}{} ({name}) = {text}", self.algorithm.word().to_uppercase()),
            false => format!("{mark}{text}  {name}"),
        }
    }
}

/// A name in such a line. Where it holds what would end or garble it, the line begins with `\`.
fn escaped(name: &str) -> (&'static str, Cow<'_, str>) {
    if !name.contains(['\\', '\n', '\r']) {
        return ("", name.into());
    }
    ("\\", name.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(algorithm: Algorithm, text: &str) -> Hash {
        let mut hashing = Hashing::new(algorithm);
        // In two pieces: what is cut where makes no difference.
        let (first, second) = text.as_bytes().split_at(text.len() / 2);
        [first, second].into_iter().for_each(|part| hashing.update(&Chunks::from(part.to_vec())));
        hashing.finish()
    }

    #[test]
    fn hashes_are_those_that_were_published() {
        // RFC 1321, A.5; FIPS 180-2, B.1; the check value of CRC-64/NVME; and the same from `openssl ... -binary | base64`.
        for (algorithm, text, hex, base64) in [
            (Algorithm::Md5, "abc", "900150983cd24fb0d6963f7d28e17f72", "kAFQmDzST7DWlj99KOF/cg=="),
            (Algorithm::Md5, "", "d41d8cd98f00b204e9800998ecf8427e", "1B2M2Y8AsgTpgAmY7PhCfg=="),
            (
                Algorithm::Sha256,
                "abc",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
                "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=",
            ),
            (Algorithm::Crc64, "123456789", "ae8b14860a799888", "iJh5CoYUi64="),
            (Algorithm::Crc64, "Hello World!", "02e51cc85efce1a5", "peH8Xsgc5QI="),
            (Algorithm::Crc64, "", "0000000000000000", "AAAAAAAAAAA="),
        ] {
            let hash = of(algorithm, text);
            assert_eq!((hash.text(Form::Hex).as_str(), hash.text(Form::Base64).as_str()), (hex, base64), "{algorithm:?} {text}");
        }
    }

    #[test]
    fn names_are_escaped_as_md5sum_does() {
        let hash = of(Algorithm::Md5, "");
        for (name, tagged, line) in [
            ("a b", false, "d41d8cd98f00b204e9800998ecf8427e  a b"),
            ("a\nb\\c\rd", false, "\\d41d8cd98f00b204e9800998ecf8427e  a\\nb\\\\c\\rd"),
            ("a\nb", true, "\\MD5 (a\\nb) = d41d8cd98f00b204e9800998ecf8427e"),
        ] {
            assert_eq!(hash.line(name, Form::Hex, tagged), line);
        }
    }
}
