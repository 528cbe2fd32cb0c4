//! How often each query counts in each of 48 resamples: the numbers of its draws, or the signs of its delta.
//!
//! Weights of two neighbouring queries are packed in one `i32`, low half first, and those of sixteen resamples lie side
//! by side, so that vector instructions multiply and add many of them.

use crate::bootstrap::mersenne::{Draws, Mark, Words};
use crate::simd::{Kernel, Level, Simd};

/// Resamples whose vectors lie side by side.
pub const LANES: usize = 16;
/// Groups of sixteen resamples in a chunk.
pub const PANELS: usize = 3;
/// Resamples that are multiplied together.
pub const CHUNK: usize = LANES * PANELS;

/// Pack the weights or the deltas of two queries.
#[must_use]
pub fn pack(first: i16, second: i16) -> i32 {
    (u32::from(first.cast_unsigned()) | u32::from(second.cast_unsigned()) << 16).cast_signed()
}

/// The two halves of a packed pair.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "the low half is what is asked for")]
pub fn unpack(pair: i32) -> (i32, i32) {
    (i32::from(pair as i16), pair >> 16)
}

/// What the weights of a resample are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// The bootstrap: how often `randrange(n)` drew the query.
    Counts,
    /// The sign-flip test: minus one where the query's bit of `getrandbits(n)` is set, one elsewhere.
    RandomSigns,
    /// Every assignment of signs that leaves the last query's alone; resample `b` flips the queries of its bits.
    EverySign,
}

impl Scheme {
    /// Random numbers that a resample takes.
    #[must_use]
    pub fn numbers(self, queries: usize) -> usize {
        match self {
            Self::Counts => queries,
            Self::RandomSigns => queries.div_ceil(32),
            Self::EverySign => 0,
        }
    }
}

/// The random numbers of one resample after the other.
pub enum Source {
    /// Indices below the number of queries.
    Draws(Draws),
    /// Bits.
    Words(Words),
    /// None are needed.
    Counter,
}

impl Source {
    /// The stream of a scheme; `seed` is the absolute value of the seed in little-endian 32-bit words.
    #[must_use]
    pub fn new(scheme: Scheme, seed: &[u32], queries: usize, level: Level) -> Self {
        match scheme {
            Scheme::Counts => Self::Draws(Draws::new(seed, queries, level)),
            Scheme::RandomSigns => Self::Words(Words::new(seed, level)),
            Scheme::EverySign => Self::Counter,
        }
    }

    /// Make the next `wanted` numbers the first of `numbers`, which may hold others behind them.
    pub fn read(&mut self, wanted: usize, numbers: &mut Vec<u32>) {
        match self {
            Self::Draws(draws) => draws.read(wanted, numbers),
            Self::Words(words) => {
                numbers.clear();
                numbers.extend(std::iter::repeat_with(|| words.take_one()).take(wanted));
            }
            Self::Counter => {}
        }
    }

    /// Where the stream of indices stands.
    #[must_use]
    pub fn mark(&self) -> Option<Mark> {
        match self {
            Self::Draws(draws) => Some(draws.mark()),
            Self::Words(_) | Self::Counter => None,
        }
    }
}

/// The weights of 48 resamples.
pub struct Weights {
    queries: usize,
    /// Pairs of queries; an odd last one has a partner of weight zero.
    pairs: usize,
    /// The weights of sixteen resamples, one row each.
    rows: Vec<i16>,
    values: Vec<[i32; LANES]>,
    level: Level,
}

impl Weights {
    /// Room for the weights of so many queries.
    #[must_use]
    pub fn new(queries: usize, level: Level) -> Self {
        let pairs = queries.div_ceil(2);
        Self {
            queries,
            pairs,
            rows: vec![0; LANES * 2 * pairs],
            values: vec![[0; LANES]; PANELS * pairs],
            level,
        }
    }

    /// Turn the numbers of chunk `chunk` into weights.
    pub fn fill(&mut self, scheme: Scheme, chunk: usize, numbers: &[u32]) {
        for panel in 0..PANELS {
            for (lane, row) in self.rows.chunks_exact_mut(2 * self.pairs).enumerate() {
                let within = panel * LANES + lane;
                let numbers = &numbers[within * scheme.numbers(self.queries)..][..scheme.numbers(self.queries)];
                match scheme {
                    Scheme::Counts => count_draws(numbers, row),
                    Scheme::RandomSigns => {
                        // CPython drops the low bits of the last word that `getrandbits` does not need.
                        let drop = (32 * numbers.len() - self.queries) % 32;
                        assign_signs(&mut row[..self.queries], |query| {
                            let last = usize::from(query / 32 + 1 == numbers.len());
                            numbers[query / 32] >> (query % 32 + last * drop) & 1 == 1
                        });
                    }
                    Scheme::EverySign => {
                        let number = chunk * CHUNK + within;
                        assign_signs(&mut row[..self.queries], |query| number >> query & 1 == 1);
                    }
                }
            }
            let panel = &mut self.values[panel * self.pairs..][..self.pairs];
            self.level.at_most_256_bits().run(Interleave {
                rows: &self.rows,
                panel,
            });
        }
    }

    /// The weights of sixteen resamples, pair by pair.
    #[must_use]
    pub fn panel(&self, panel: usize) -> &[[i32; LANES]] {
        &self.values[panel * self.pairs..][..self.pairs]
    }

    /// The weights of one resample of the chunk, query by query; an odd number of queries is followed by a zero.
    pub fn of_resample(&self, within: usize) -> impl Iterator<Item = i32> + '_ {
        self.panel(within / LANES).iter().flat_map(move |lanes| {
            let (first, second) = unpack(lanes[within % LANES]);
            [first, second]
        })
    }
}

/// The random numbers of 48 resamples, and room for their weights.
pub struct Chunk<'a> {
    /// What the weights are.
    pub scheme: Scheme,
    /// Place of the chunk among all.
    pub number: usize,
    /// Its random numbers.
    pub numbers: &'a [u32],
    /// Room for its weights.
    pub weights: &'a mut Weights,
}

impl<'a> Chunk<'a> {
    /// The weights of all resamples.
    #[must_use]
    pub fn fill(self) -> &'a Weights {
        self.weights.fill(self.scheme, self.number, self.numbers);
        self.weights
    }
}

/// Count how often each query was drawn. A count fits its 16 bits: a query that makes up 2^15 of the draws would be an
/// event of probability below 10^-100000.
pub fn count_draws(draws: &[u32], row: &mut [i16]) {
    row.fill(0);
    for &query in draws {
        row[query as usize] += 1;
    }
}

fn assign_signs(row: &mut [i16], flipped: impl Fn(usize) -> bool) {
    for (query, weight) in row.iter_mut().enumerate() {
        *weight = if flipped(query) { -1 } else { 1 };
    }
}

/// Puts the rows of sixteen resamples side by side.
struct Interleave<'a> {
    rows: &'a [i16],
    panel: &'a mut [[i32; LANES]],
}

impl Kernel for Interleave<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        match simd.level() {
            Level::Portable => interleave(self.rows, self.panel, 0),
            // SAFETY: the token of either level shows that this machine has AVX2.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2(_) | Level::Avx512(_) => unsafe { avx2::interleave(self.rows, self.panel) },
        }
    }
}

/// Put the rows of sixteen resamples side by side, from the pair `start` on.
fn interleave(rows: &[i16], panel: &mut [[i32; LANES]], start: usize) {
    let length = 2 * panel.len();
    for (pair, lanes) in panel.iter_mut().enumerate().skip(start) {
        *lanes = std::array::from_fn(|lane| {
            let row = &rows[lane * length..];
            pack(row[2 * pair], row[2 * pair + 1])
        });
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::LANES;
    use std::arch::x86_64::{
        __m256i, _mm256_loadu_si256, _mm256_permute2x128_si256, _mm256_storeu_si256, _mm256_unpackhi_epi32,
        _mm256_unpackhi_epi64, _mm256_unpacklo_epi32, _mm256_unpacklo_epi64,
    };

    /// Pairs, and rows, that are transposed together.
    const SIDE: usize = 8;

    #[target_feature(enable = "avx2")]
    pub(super) fn interleave(rows: &[i16], panel: &mut [[i32; LANES]]) {
        let length = 2 * panel.len();
        let (blocks, _) = panel.as_chunks_mut::<SIDE>();
        let transposed = SIDE * blocks.len();
        for (number, block) in blocks.iter_mut().enumerate() {
            for half in 0..LANES / SIDE {
                let eight = std::array::from_fn(|lane| {
                    let row = &rows[(half * SIDE + lane) * length..][2 * SIDE * number..][..2 * SIDE];
                    // SAFETY: the slice has the 32 bytes that are read; the load needs no alignment.
                    unsafe { _mm256_loadu_si256(row.as_ptr().cast()) }
                });
                for (lanes, column) in block.iter_mut().zip(transpose(eight)) {
                    let lanes = &mut lanes[half * SIDE..][..SIDE];
                    // SAFETY: the slice has the 32 bytes that are written; the store needs no alignment.
                    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), column) };
                }
            }
        }
        super::interleave(rows, panel, transposed);
    }

    /// Element `j` of vector `i` becomes element `i` of vector `j`.
    #[target_feature(enable = "avx2")]
    fn transpose(rows: [__m256i; SIDE]) -> [__m256i; SIDE] {
        let pairs: [[__m256i; 2]; 4] = std::array::from_fn(|pair| {
            let (one, other) = (rows[2 * pair], rows[2 * pair + 1]);
            [_mm256_unpacklo_epi32(one, other), _mm256_unpackhi_epi32(one, other)]
        });
        // Columns 0 to 3 of each half of the lanes, of the first four rows and of the last four.
        let fours: [[__m256i; 4]; 2] = std::array::from_fn(|four| {
            std::array::from_fn(|column| {
                let (one, other) = (pairs[2 * four][column / 2], pairs[2 * four + 1][column / 2]);
                match column % 2 {
                    0 => _mm256_unpacklo_epi64(one, other),
                    _ => _mm256_unpackhi_epi64(one, other),
                }
            })
        });
        std::array::from_fn(|column| {
            let (low, high) = (fours[0][column % 4], fours[1][column % 4]);
            match column / 4 {
                0 => _mm256_permute2x128_si256::<0x20>(low, high),
                _ => _mm256_permute2x128_si256::<0x31>(low, high),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_interleaves_the_counts_of_the_draws() {
        for queries in [1, 2, 15, 16, 17, 31, 300, 1_101] {
            let mut numbers = Vec::new();
            Source::new(Scheme::Counts, &[7], queries, Level::Portable).read(CHUNK * queries, &mut numbers);
            for level in Level::available() {
                let mut weights = Weights::new(queries, level);
                // Twice, since a second chunk finds the weights of the first.
                weights.fill(
                    Scheme::RandomSigns,
                    0,
                    &vec![0; CHUNK * Scheme::RandomSigns.numbers(queries)],
                );
                weights.fill(Scheme::Counts, 0, &numbers);
                for within in 0..CHUNK {
                    let mut counts = vec![0; queries.next_multiple_of(2)];
                    for &query in &numbers[within * queries..][..queries] {
                        counts[query as usize] += 1;
                    }
                    assert_eq!(weights.of_resample(within).collect::<Vec<_>>(), counts);
                }
            }
        }
    }
}
