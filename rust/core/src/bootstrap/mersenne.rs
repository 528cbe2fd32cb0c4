//! `CPython`'s random stream: MT19937 seeded by an integer, and `randrange` on top of it.
//!
//! M. Matsumoto and T. Nishimura, "Mersenne Twister: a 623-dimensionally equidistributed uniform pseudo-random number
//! generator", ACM TOMACS 8(1), 1998. The stream must equal `random.Random(seed).randrange(n)` word for word, so the
//! seeding (`init_by_array` over the 32-bit words of the absolute value) and the rejection (`getrandbits` of
//! `n.bit_length()` bits, redrawn while it is not below `n`) follow `CPython`, not a distribution of our own.

use crate::simd::{Kernel, Level, Simd};

/// Words in the state; one refill of the generator makes as many.
pub const STATE_WORDS: usize = 624;
/// Distance of the word that each step mixes in.
const MIDDLE: usize = 397;
const UPPER_BIT: u32 = 0x8000_0000;
const LOWER_BITS: u32 = 0x7fff_ffff;
const TWIST: u32 = 0x9908_b0df;

/// The raw generator: `next_block` yields the next 624 tempered 32-bit words.
#[derive(Clone)]
pub struct Mersenne {
    state: Box<[u32; STATE_WORDS]>,
}

impl Mersenne {
    /// Seed by the absolute value of an integer, given as little-endian 32-bit words.
    ///
    /// `random.Random(seed)` takes the absolute value itself; an empty slice or all zeros is the seed 0.
    #[must_use]
    pub fn new(magnitude: &[u32]) -> Self {
        let used = magnitude.iter().rposition(|&word| word != 0).map_or(1, |last| last + 1);
        let key = magnitude.get(..used).unwrap_or(&[0]);
        let mut state = Box::new([0_u32; STATE_WORDS]);
        // Reference seeding, init_genrand(19650218) followed by init_by_array(key).
        state[0] = 19_650_218;
        for i in 1..STATE_WORDS {
            let previous = state[i - 1];
            state[i] = (previous ^ (previous >> 30))
                .wrapping_mul(1_812_433_253)
                .wrapping_add(word(i));
        }
        let (mut i, mut j) = (1, 0);
        for _ in 0..STATE_WORDS.max(key.len()) {
            let previous = state[i - 1];
            state[i] = (state[i] ^ (previous ^ (previous >> 30)).wrapping_mul(1_664_525))
                .wrapping_add(key[j])
                .wrapping_add(word(j));
            i += 1;
            j += 1;
            if i == STATE_WORDS {
                state[0] = state[STATE_WORDS - 1];
                i = 1;
            }
            if j == key.len() {
                j = 0;
            }
        }
        for _ in 0..STATE_WORDS - 1 {
            let previous = state[i - 1];
            state[i] = (state[i] ^ (previous ^ (previous >> 30)).wrapping_mul(1_566_083_941)).wrapping_sub(word(i));
            i += 1;
            if i == STATE_WORDS {
                state[0] = state[STATE_WORDS - 1];
                i = 1;
            }
        }
        state[0] = UPPER_BIT;
        Self { state }
    }

    /// Move the state on by one block of 624 words without reading them.
    pub fn advance(&mut self, level: Level) {
        // Wider vectors are slower here: the words mixed in lie at no multiple of their size.
        level.at_most_256_bits().run(Regenerate(&mut self.state));
    }

    /// Write to `indices` every accepted draw of `below` from the current block, in stream order.
    ///
    /// `indices` must hold at least `start + 624 + SLACK` entries; returns the end of what was written.
    fn accept(&self, below: u32, indices: &mut [u32], start: usize, level: Level) -> usize {
        let room = &mut indices[start..start + STATE_WORDS + SLACK];
        let shift = below.leading_zeros();
        start
            + level.run(Accept {
                state: &self.state,
                shift,
                below,
                room,
            })
    }
}

/// Blocks of 624 words whose draws are handed out at a time: their indices stay in the first-level cache.
const BATCH_BLOCKS: usize = 8;

/// The accepted draws of a batch of words, apart from the stream that made them.
#[derive(Default)]
pub struct Batch {
    buffer: Vec<u32>,
    end: usize,
    state: Vec<u32>,
}

impl Batch {
    /// The draws, in stream order.
    #[must_use]
    pub fn indices(&self) -> &[u32] {
        &self.buffer[..self.end]
    }
}

/// A place in the stream of draws.
pub struct Mark {
    generator: Mersenne,
    /// Draws of the generator's last blocks that have not been handed out.
    buffered: Vec<u32>,
}

/// The stream of `randrange(below)`, in batches or piece by piece.
#[derive(Clone)]
pub struct Draws {
    generator: Mersenne,
    below: u32,
    level: Level,
    buffer: Vec<u32>,
    start: usize,
    end: usize,
}

impl Draws {
    /// The stream of `random.Random(seed).randrange(below)`.
    ///
    /// `seed` is the absolute value of the seed in little-endian 32-bit words.
    ///
    /// # Panics
    ///
    /// If `below` is zero or does not fit 32 bits.
    #[must_use]
    pub fn new(seed: &[u32], below: usize, level: Level) -> Self {
        let below = u32::try_from(below).expect("fewer than 2^32 deltas");
        assert!(below > 0, "there is no index below zero");
        let buffer = vec![0; BATCH_BLOCKS * STATE_WORDS + SLACK];
        Self {
            generator: Mersenne::new(seed),
            below,
            level,
            buffer,
            start: 0,
            end: 0,
        }
    }

    /// The accepted draws of the next batch of words.
    pub fn next_batch(&mut self) -> &[u32] {
        (self.start, self.end) = (0, 0);
        for _ in 0..BATCH_BLOCKS {
            self.generator.advance(self.level);
            self.end = self
                .generator
                .accept(self.below, &mut self.buffer, self.end, self.level);
        }
        &self.buffer[..self.end]
    }

    /// As `next_batch`, for another thread: the draws go into `batch`, and with them the state of the stream after it.
    pub fn fill_batch(&mut self, batch: &mut Batch) {
        self.next_batch();
        batch.buffer.resize(self.buffer.len(), 0);
        std::mem::swap(&mut self.buffer, &mut batch.buffer);
        batch.end = self.end;
        batch.state.clear();
        batch.state.extend_from_slice(&*self.generator.state);
        (self.start, self.end) = (0, 0);
    }

    /// Go on after a batch that another thread has filled.
    pub fn continue_after(&mut self, batch: &Batch) {
        self.generator.state.copy_from_slice(&batch.state);
        (self.start, self.end) = (0, 0);
    }

    /// Pass over the next batch of words.
    pub fn skip_batch(&mut self) {
        for _ in 0..BATCH_BLOCKS {
            self.generator.advance(self.level);
        }
    }

    /// Make the next `wanted` draws the first of `draws`, which may hold others behind them.
    pub fn read(&mut self, wanted: usize, draws: &mut Vec<u32>) {
        draws.resize(draws.len().max(wanted + STATE_WORDS + SLACK), 0);
        let mut end = wanted.min(self.end - self.start);
        draws[..end].copy_from_slice(&self.buffer[self.start..][..end]);
        self.start += end;
        if end < wanted {
            // Nothing is buffered any more, so whole blocks go to their place at once.
            while end < wanted {
                self.generator.advance(self.level);
                end = self.generator.accept(self.below, draws, end, self.level);
            }
            (self.start, self.end) = (0, end - wanted);
            self.buffer[..self.end].copy_from_slice(&draws[wanted..end]);
        }
    }

    /// Where the stream stands.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark {
            generator: self.generator.clone(),
            buffered: self.buffer[self.start..self.end].to_vec(),
        }
    }

    /// Go on where the stream stood.
    pub fn return_to(&mut self, mark: &Mark) {
        self.generator.clone_from(&mark.generator);
        (self.start, self.end) = (0, mark.buffered.len());
        self.buffer[..self.end].copy_from_slice(&mark.buffered);
    }

    /// The next draws, at least one and no more than `most` (which is at least one).
    pub fn take(&mut self, most: usize) -> &[u32] {
        while self.start == self.end {
            self.next_batch();
        }
        let start = self.start;
        self.start = self.end.min(start + most);
        &self.buffer[start..self.start]
    }
}

/// The stream of 32-bit words: what `getrandbits(32)` returns, one after the other.
pub struct Words {
    generator: Mersenne,
    level: Level,
    tempered: Box<[u32; STATE_WORDS]>,
    start: usize,
}

impl Words {
    /// The words of `random.Random(seed)`; `seed` is its absolute value in little-endian 32-bit words.
    #[must_use]
    pub fn new(seed: &[u32], level: Level) -> Self {
        Self {
            generator: Mersenne::new(seed),
            level,
            tempered: Box::new([0; STATE_WORDS]),
            start: STATE_WORDS,
        }
    }

    /// The next word.
    pub fn take_one(&mut self) -> u32 {
        if self.start == STATE_WORDS {
            self.generator.advance(self.level);
            for (word, &raw) in self.tempered.iter_mut().zip(self.generator.state.iter()) {
                *word = temper(raw);
            }
            self.start = 0;
        }
        self.start += 1;
        self.tempered[self.start - 1]
    }
}

/// Entries past the last accepted index that a vector store may touch.
const SLACK: usize = 16;

#[expect(
    clippy::cast_possible_truncation,
    reason = "an index below a key's length; the reference adds it as 32 bits"
)]
fn word(index: usize) -> u32 {
    index as u32
}

/// One step of the recurrence for three loops, none of which reads what it writes.
#[inline(always)]
fn regenerate(state: &mut [u32; STATE_WORDS]) {
    let last = state[STATE_WORDS - 1];
    let mix = |high: u32, low: u32, middle: u32| {
        let joined = (high & UPPER_BIT) | (low & LOWER_BITS);
        middle ^ (joined >> 1) ^ ((joined & 1).wrapping_neg() & TWIST)
    };
    let split = STATE_WORDS - MIDDLE;
    for i in 0..split {
        state[i] = mix(state[i], state[i + 1], state[i + MIDDLE]);
    }
    // Within each of the next two loops the word mixed in lies 227 behind, so it was finished before the loop began.
    for i in split..2 * split {
        state[i] = mix(state[i], state[i + 1], state[i - split]);
    }
    for i in 2 * split..STATE_WORDS - 1 {
        state[i] = mix(state[i], state[i + 1], state[i - split]);
    }
    state[STATE_WORDS - 1] = mix(last, state[0], state[MIDDLE - 1]);
}

struct Regenerate<'a>(&'a mut [u32; STATE_WORDS]);

impl Kernel for Regenerate<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        regenerate(self.0);
    }
}

/// Writes the accepted draws of a block to the front of `room` and counts them.
struct Accept<'a> {
    state: &'a [u32; STATE_WORDS],
    shift: u32,
    below: u32,
    room: &'a mut [u32],
}

impl Kernel for Accept<'_> {
    type Output = usize;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> usize {
        let Self {
            state,
            shift,
            below,
            room,
        } = self;
        match simd.level() {
            Level::Portable => accept_portable(state, shift, below, room),
            // SAFETY: the token shows that this machine has the features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2(_) => unsafe { avx2::accept(state, shift, below, room) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512(_) => unsafe { avx512::accept(state, shift, below, room) },
        }
    }
}

#[inline(always)]
fn temper(mut y: u32) -> u32 {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c_5680;
    y ^= (y << 15) & 0xefc6_0000;
    y ^ (y >> 18)
}

fn accept_portable(state: &[u32; STATE_WORDS], shift: u32, below: u32, room: &mut [u32]) -> usize {
    let mut end = 0;
    for &raw in state {
        let draw = temper(raw) >> shift;
        // Written always and kept by moving on: a branch here would be mispredicted for up to half of all draws.
        room[end] = draw;
        end += usize::from(draw < below);
    }
    end
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{SLACK, STATE_WORDS};
    use std::arch::x86_64::{
        __m256i, _mm_cvtsi32_si128, _mm256_and_si256, _mm256_castsi256_ps, _mm256_cmpgt_epi32, _mm256_loadu_si256,
        _mm256_movemask_ps, _mm256_permutevar8x32_epi32, _mm256_set1_epi32, _mm256_slli_epi32, _mm256_srl_epi32,
        _mm256_srli_epi32, _mm256_storeu_si256, _mm256_xor_si256,
    };

    /// For every mask of accepted lanes, the lanes that move to the front.
    static FRONT: [[u32; 8]; 256] = {
        let mut table = [[0; 8]; 256];
        let mut mask = 0;
        while mask < 256 {
            let (mut lane, mut end) = (0, 0);
            while lane < 8 {
                if mask >> lane & 1 == 1 {
                    table[mask][end] = lane;
                    end += 1;
                }
                lane += 1;
            }
            mask += 1;
        }
        table
    };

    #[expect(
        clippy::cast_ptr_alignment,
        reason = "the loads and stores are those that need no alignment"
    )]
    #[target_feature(enable = "avx2,popcnt")]
    pub(super) fn accept(state: &[u32; STATE_WORDS], shift: u32, below: u32, room: &mut [u32]) -> usize {
        assert!(room.len() >= STATE_WORDS + SLACK);
        let mask7 = _mm256_set1_epi32(0x9d2c_5680_u32.cast_signed());
        let mask15 = _mm256_set1_epi32(0xefc6_0000_u32.cast_signed());
        let count = _mm_cvtsi32_si128(shift.cast_signed());
        // AVX2 compares signed numbers only; flipping the top bit of both sides makes that an unsigned comparison.
        let flip = _mm256_set1_epi32(i32::MIN);
        let limit = _mm256_xor_si256(_mm256_set1_epi32(below.cast_signed()), flip);
        let mut end = 0;
        for eight in state.chunks_exact(8) {
            // SAFETY: `eight` holds 8 words; `room` has at least 8 entries behind `end`, since `end` grows by at most
            // 8 for each of the 78 groups and the assertion above leaves a slack of more.
            unsafe {
                let mut y = _mm256_loadu_si256(eight.as_ptr().cast::<__m256i>());
                y = _mm256_xor_si256(y, _mm256_srli_epi32::<11>(y));
                y = _mm256_xor_si256(y, _mm256_and_si256(_mm256_slli_epi32::<7>(y), mask7));
                y = _mm256_xor_si256(y, _mm256_and_si256(_mm256_slli_epi32::<15>(y), mask15));
                y = _mm256_xor_si256(y, _mm256_srli_epi32::<18>(y));
                y = _mm256_srl_epi32(y, count);
                let accepted = _mm256_cmpgt_epi32(limit, _mm256_xor_si256(y, flip));
                let mask = _mm256_movemask_ps(_mm256_castsi256_ps(accepted)).cast_unsigned();
                let order = _mm256_loadu_si256(FRONT[(mask & 255) as usize].as_ptr().cast::<__m256i>());
                let packed = _mm256_permutevar8x32_epi32(y, order);
                _mm256_storeu_si256(room.as_mut_ptr().add(end).cast::<__m256i>(), packed);
                end += mask.count_ones() as usize;
            }
        }
        end
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::{SLACK, STATE_WORDS};
    use std::arch::x86_64::{
        __m512i, _mm_cvtsi32_si128, _mm512_and_si512, _mm512_cmplt_epu32_mask, _mm512_loadu_si512,
        _mm512_maskz_compress_epi32, _mm512_set1_epi32, _mm512_slli_epi32, _mm512_srl_epi32, _mm512_srli_epi32,
        _mm512_storeu_si512, _mm512_xor_si512,
    };

    #[expect(
        clippy::cast_ptr_alignment,
        reason = "the loads and stores are those that need no alignment"
    )]
    #[target_feature(enable = "avx512f,popcnt")]
    pub(super) fn accept(state: &[u32; STATE_WORDS], shift: u32, below: u32, room: &mut [u32]) -> usize {
        assert!(room.len() >= STATE_WORDS + SLACK);
        let mask7 = _mm512_set1_epi32(0x9d2c_5680_u32.cast_signed());
        let mask15 = _mm512_set1_epi32(0xefc6_0000_u32.cast_signed());
        let count = _mm_cvtsi32_si128(shift.cast_signed());
        let limit = _mm512_set1_epi32(below.cast_signed());
        let mut end = 0;
        for sixteen in state.chunks_exact(16) {
            // SAFETY: `sixteen` holds 16 words; `room` has at least 16 entries behind `end`, since `end` grows by at
            // most 16 for each of the 39 groups and the assertion above leaves a slack of 16.
            unsafe {
                let mut y = _mm512_loadu_si512(sixteen.as_ptr().cast::<__m512i>());
                y = _mm512_xor_si512(y, _mm512_srli_epi32::<11>(y));
                y = _mm512_xor_si512(y, _mm512_and_si512(_mm512_slli_epi32::<7>(y), mask7));
                y = _mm512_xor_si512(y, _mm512_and_si512(_mm512_slli_epi32::<15>(y), mask15));
                y = _mm512_xor_si512(y, _mm512_srli_epi32::<18>(y));
                y = _mm512_srl_epi32(y, count);
                let accepted = _mm512_cmplt_epu32_mask(y, limit);
                // Compressed in a register: compressing into memory is slow on Zen 4.
                let packed = _mm512_maskz_compress_epi32(accepted, y);
                _mm512_storeu_si512(room.as_mut_ptr().add(end).cast::<__m512i>(), packed);
                end += accepted.count_ones() as usize;
            }
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(seed: &[u32], below: usize, level: Level) -> Vec<u32> {
        let mut draws = Draws::new(seed, below, level);
        (0..5).map(|_| draws.take(1)[0]).collect()
    }

    #[test]
    fn the_stream_is_that_of_cpython() {
        // random.Random(seed).randrange(below), five times, printed by CPython 3.11.
        for level in Level::available() {
            assert_eq!(first(&[7], 300, level), [165, 77, 202, 24, 37]);
        }
    }

    #[test]
    fn draws_are_read_in_order_from_any_mark() {
        for below in [1, 3, 300, 70_000] {
            let mut plain = Draws::new(&[7], below, Level::Portable);
            let expected: Vec<u32> = (0..20_000).map(|_| plain.take(1)[0]).collect();
            for level in Level::available() {
                let mut draws = Draws::new(&[7], below, level);
                let (mut marks, mut start, mut read) = (Vec::new(), 0, Vec::new());
                for wanted in [1, 0, 700, 9_000, 3, 5_000, 12] {
                    marks.push((draws.mark(), start, wanted));
                    draws.read(wanted, &mut read);
                    assert_eq!(read[..wanted], expected[start..start + wanted]);
                    start += wanted;
                }
                for (mark, start, wanted) in marks.iter().rev() {
                    draws.return_to(mark);
                    draws.read(*wanted, &mut read);
                    assert_eq!(read[..*wanted], expected[*start..start + wanted]);
                }
            }
        }
    }

    #[test]
    fn words_are_those_of_cpython() {
        // random.Random(7).getrandbits(32), three times and after 1000 more, printed by CPython 3.11.
        for level in Level::available() {
            let mut words = Words::new(&[7], level);
            assert_eq!(
                [words.take_one(), words.take_one(), words.take_one()],
                [1_390_851_128, 4_071_050_724, 647_892_279]
            );
            assert_eq!((0..1_000).map(|_| words.take_one()).last(), Some(1_307_461_650));
        }
    }

    #[test]
    fn leading_zero_words_of_a_seed_do_not_count() {
        assert_eq!(first(&[], 1000, Level::Portable), first(&[0, 0], 1000, Level::Portable));
        assert_eq!(
            first(&[5, 0], 1000, Level::Portable),
            first(&[5], 1000, Level::Portable)
        );
    }

    #[test]
    fn every_level_accepts_the_same_draws() {
        for below in [
            1,
            2,
            3,
            255,
            256,
            257,
            300,
            65_536,
            65_537,
            (1 << 31) + 1,
            u32::MAX as usize,
        ] {
            let mut portable = Draws::new(&[1, 2, 3], below, Level::Portable);
            let batches: Vec<Vec<u32>> = (0..4).map(|_| portable.next_batch().to_vec()).collect();
            for level in Level::available() {
                let mut draws = Draws::new(&[1, 2, 3], below, level);
                for batch in &batches {
                    assert_eq!(draws.next_batch(), batch);
                }
            }
        }
    }
}
