//! Classes of the bytes of a JSON string, many bytes at a time.
//!
//! Code by hand for AVX2, and plain Rust that compilers vectorise for what the target has as a baseline (SSE2, NEON).
//! Both give the same answers.

use crate::simd::{Level, Simd};

/// Bytes classified at once.
pub const WIDTH: usize = 64;

/// Bytes in a row.
pub type Block = [u8; WIDTH];

/// Bit `i` of each mask tells about byte `i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Masks {
    /// A quotation mark, a backslash or a control character below 0x20: where plain text ends.
    pub special: u64,
    /// A byte at or above 0x80.
    pub non_ascii: u64,
    /// A UTF-8 continuation byte, 0x80 to 0xBF.
    pub continuation: u64,
}

/// The level at which records are parsed.
///
/// Vectors of 512 bits were measured too: their masks come no sooner, and parsing took a tenth longer with them (`cargo
/// bench --bench corpus -- parse`, Zen 4).
#[must_use]
pub fn best_level() -> Level {
    Level::best().at_most_256_bits()
}

/// A way to classify bytes.
pub trait Lanes: Simd {
    /// Tell whether no byte is special or at or above 0x80.
    #[inline(always)]
    fn is_plain(self, block: &Block) -> bool {
        match self.level() {
            Level::Portable => portable::is_plain(block),
            // SAFETY: the token of either level shows that this machine has AVX2.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2(_) | Level::Avx512(_) => unsafe { avx2::is_plain(block) },
        }
    }

    /// Classify every byte.
    #[inline(always)]
    fn masks(self, block: &Block) -> Masks {
        match self.level() {
            Level::Portable => portable::masks(block),
            // SAFETY: the token of either level shows that this machine has AVX2.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2(_) | Level::Avx512(_) => unsafe { avx2::masks(block) },
        }
    }
}

impl<S: Simd> Lanes for S {}

mod portable {
    use super::{Block, Masks};

    #[inline(always)]
    pub(super) fn is_plain(block: &Block) -> bool {
        // Without a branch, so that it is vectorised.
        let is_other = |byte: u8| byte.cast_signed() < 0x20 || byte == b'"' || byte == b'\\';
        !block.iter().fold(false, |other, &byte| other | is_other(byte))
    }

    #[inline(always)]
    pub(super) fn masks(block: &Block) -> Masks {
        const HIGH: u64 = 0x8080_8080_8080_8080;
        let mut masks = Masks {
            special: 0,
            non_ascii: 0,
            continuation: 0,
        };
        for (position, word) in block.as_chunks::<8>().0.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            let low = word & !HIGH;
            // Per byte, without carries between bytes: bit 7 of `0x7F + x` is set unless x is zero.
            let differs = |byte: u8| (low ^ (u64::from(byte) * 0x0101_0101_0101_0101)) + !HIGH;
            let at_least_space = low + 0x6060_6060_6060_6060;
            let special = !(differs(b'"') & differs(b'\\') & at_least_space) & !word & HIGH;
            let non_ascii = word & HIGH;
            let continuation = non_ascii & !(word << 1);
            let shift = 8 * position;
            masks.special |= gather(special) << shift;
            masks.non_ascii |= gather(non_ascii) << shift;
            masks.continuation |= gather(continuation) << shift;
        }
        masks
    }

    /// Gather bit 7 of each byte into the low eight bits.
    #[inline(always)]
    fn gather(high_bits: u64) -> u64 {
        // The multiplication moves bit 7 of byte i to bit 56 + i; no two terms meet in one bit.
        (high_bits >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
    }
}

/// Two halves of 32 bytes.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{Block, Masks};
    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_cmpgt_epi8, _mm256_loadu_si256, _mm256_max_epu8, _mm256_movemask_epi8,
        _mm256_or_si256, _mm256_set1_epi8,
    };

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn is_plain(block: &Block) -> bool {
        let other = |half: __m256i| {
            let quote = _mm256_cmpeq_epi8(half, _mm256_set1_epi8(b'"'.cast_signed()));
            let backslash = _mm256_cmpeq_epi8(half, _mm256_set1_epi8(b'\\'.cast_signed()));
            // As signed numbers, control characters and bytes from 0x80 on are those below 0x20.
            let outside = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x20), half);
            _mm256_or_si256(_mm256_or_si256(quote, backslash), outside)
        };
        let [first, second] = load(block).map(other);
        _mm256_movemask_epi8(_mm256_or_si256(first, second)) == 0
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn masks(block: &Block) -> Masks {
        let special = |half: __m256i| {
            let quote = _mm256_cmpeq_epi8(half, _mm256_set1_epi8(b'"'.cast_signed()));
            let backslash = _mm256_cmpeq_epi8(half, _mm256_set1_epi8(b'\\'.cast_signed()));
            let limit = _mm256_set1_epi8(0x1f);
            let control = _mm256_cmpeq_epi8(_mm256_max_epu8(half, limit), limit);
            _mm256_or_si256(_mm256_or_si256(quote, backslash), control)
        };
        // As signed numbers, continuation bytes are those below -64.
        let continuation = |half: __m256i| _mm256_cmpgt_epi8(_mm256_set1_epi8(-64), half);
        let bits = |half: __m256i| u64::from(_mm256_movemask_epi8(half).cast_unsigned());
        let halves = load(block);
        Masks {
            special: bits(special(halves[0])) | bits(special(halves[1])) << 32,
            non_ascii: bits(halves[0]) | bits(halves[1]) << 32,
            continuation: bits(continuation(halves[0])) | bits(continuation(halves[1])) << 32,
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(block: &Block) -> [__m256i; 2] {
        let halves = block.as_chunks::<32>().0;
        // SAFETY: each half has the 32 bytes that are read; the loads need no alignment.
        [0, 1].map(|half| unsafe { _mm256_loadu_si256(halves[half].as_ptr().cast()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Kernel;
    use proptest::prelude::*;

    struct Classify(Block);
    impl Kernel for Classify {
        type Output = Masks;
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Masks {
            simd.masks(&self.0)
        }
    }

    struct TestPlain(Block);
    impl Kernel for TestPlain {
        type Output = bool;
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> bool {
            simd.is_plain(&self.0)
        }
    }

    #[test]
    fn every_byte_at_every_position_is_tested_for_being_plain() {
        for byte in 0..=255 {
            let expected = (0x20..0x80).contains(&byte) && byte != b'"' && byte != b'\\';
            for position in 0..WIDTH {
                let mut bytes = [b'a'; WIDTH];
                bytes[position] = byte;
                for level in Level::available() {
                    assert_eq!(level.run(TestPlain(bytes)), expected, "{byte} at {position}, {level:?}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn every_level_gives_the_masks_that_the_definition_gives(bytes in proptest::array::uniform::<_, WIDTH>(any::<u8>())) {
            let mask = |holds: &dyn Fn(u8) -> bool| {
                bytes.iter().enumerate().fold(0, |mask, (position, &byte)| mask | u64::from(holds(byte)) << position)
            };
            let expected = Masks {
                special: mask(&|byte| byte < 0x20 || byte == b'"' || byte == b'\\'),
                non_ascii: mask(&|byte| byte >= 0x80),
                continuation: mask(&|byte| (0x80..0xc0).contains(&byte)),
            };
            for level in Level::available() {
                prop_assert_eq!(level.run(Classify(bytes)), expected);
            }
        }
    }
}
