//! The hashes by which people tell whether they have the same bytes.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// Which hash it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HashName {
    /// BLAKE3, which several threads take of one file.
    #[default]
    Blake3,
    /// SHA-256 of FIPS 180-4, which other tools give, and which one thread takes in order.
    Sha256,
}

impl HashName {
    /// Every hash, the default one first.
    pub const ALL: [Self; 2] = [Self::Blake3, Self::Sha256];

    /// How records name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Blake3 => "blake3",
            Self::Sha256 => "sha256",
        }
    }

    /// The hash of all `parts`, one after another.
    #[must_use]
    pub fn of(self, parts: &[&[u8]]) -> Digest {
        match self {
            Self::Blake3 => {
                let mut hasher = blake3::Hasher::new();
                for part in parts {
                    hasher.update(part);
                }
                hasher.finalize().into()
            }
            Self::Sha256 => {
                let mut hasher = Sha256::new();
                for part in parts {
                    hasher.update(part);
                }
                hasher.into()
            }
        }
    }
}

/// What a hash came to; it is written in hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    name: HashName,
    bytes: [u8; 32],
}

impl Digest {
    /// Which hash it is of.
    #[must_use]
    pub fn name(&self) -> HashName {
        self.name
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.bytes
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl From<blake3::Hash> for Digest {
    fn from(hash: blake3::Hash) -> Self {
        Self {
            name: HashName::Blake3,
            bytes: hash.into(),
        }
    }
}

impl From<Sha256> for Digest {
    fn from(hasher: Sha256) -> Self {
        Self {
            name: HashName::Sha256,
            bytes: hasher.finalize().into(),
        }
    }
}

/// Takes bytes in order.
pub enum Hasher {
    /// See [`HashName::Blake3`].
    Blake3(Box<blake3::Hasher>),
    /// See [`HashName::Sha256`].
    Sha256(Sha256),
}

impl Hasher {
    /// Start with no bytes.
    #[must_use]
    pub fn new(name: HashName) -> Self {
        match name {
            HashName::Blake3 => Self::Blake3(Box::default()),
            HashName::Sha256 => Self::Sha256(Sha256::new()),
        }
    }

    /// Add bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Blake3(hasher) => {
                hasher.update(bytes);
            }
            Self::Sha256(hasher) => hasher.update(bytes),
        }
    }

    /// The hash of all that was added.
    #[must_use]
    pub fn finish(self) -> Digest {
        match self {
            Self::Blake3(hasher) => hasher.finalize().into(),
            Self::Sha256(hasher) => hasher.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_standards() {
        // FIPS 180-4's example "abc" (NIST, SHA256.pdf), and the BLAKE3 paper's reference implementation.
        let known = [
            "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ];
        for (name, known) in HashName::ALL.into_iter().zip(known) {
            let mut hasher = Hasher::new(name);
            hasher.update(b"a");
            hasher.update(b"bc");
            assert_eq!(name.of(&[b"ab", b"", b"c"]).to_string(), known);
            assert_eq!(hasher.finish(), name.of(&[b"abc"]));
            assert_eq!(name.of(&[]).name(), name);
        }
    }
}
