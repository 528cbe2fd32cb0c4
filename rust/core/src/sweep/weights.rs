//! How often each query counts in each of 24 resamples: the numbers of its draws, or the signs of its delta.
//!
//! Weights of two neighbouring queries are packed in one `i32`, low half first, and those of eight resamples lie side
//! by side, so that one vector instruction multiplies and adds sixteen of them.

use crate::bootstrap::level::Level;
use crate::bootstrap::mersenne::{Draws, Words};

/// Resamples whose vectors lie side by side.
pub const LANES: usize = 8;
/// Groups of eight resamples in a chunk.
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

/// The random numbers of one chunk after the other.
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

    /// Copy the numbers of the next 24 resamples.
    pub fn read(&mut self, queries: usize, numbers: &mut Vec<u32>) {
        numbers.clear();
        match self {
            Self::Draws(draws) => {
                let mut left = CHUNK * queries;
                while left > 0 {
                    let some = draws.take(left);
                    numbers.extend_from_slice(some);
                    left -= some.len();
                }
            }
            Self::Words(words) => {
                numbers.extend(std::iter::repeat_with(|| words.take_one()).take(CHUNK * queries.div_ceil(32)));
            }
            Self::Counter => {}
        }
    }
}

/// The weights of 24 resamples.
pub struct Weights {
    queries: usize,
    /// Pairs of queries; an odd last one has a partner of weight zero.
    pairs: usize,
    rows: Vec<i32>,
    values: Vec<[i32; LANES]>,
}

impl Weights {
    /// Room for the weights of so many queries.
    #[must_use]
    pub fn new(queries: usize) -> Self {
        let pairs = queries.div_ceil(2);
        Self {
            queries,
            pairs,
            rows: vec![0; LANES * pairs],
            values: vec![[0; LANES]; PANELS * pairs],
        }
    }

    /// Turn the numbers of chunk `chunk` into weights.
    pub fn fill(&mut self, scheme: Scheme, chunk: usize, numbers: &[u32]) {
        for panel in 0..PANELS {
            for lane in 0..LANES {
                let within = panel * LANES + lane;
                let row = &mut self.rows[lane * self.pairs..][..self.pairs];
                match scheme {
                    Scheme::Counts => count(&numbers[within * self.queries..][..self.queries], row),
                    Scheme::RandomSigns => {
                        let words = self.queries.div_ceil(32);
                        // CPython drops the low bits of the last word that `getrandbits` does not need.
                        let drop = (32 * words - self.queries) % 32;
                        let numbers = &numbers[within * words..][..words];
                        sign(self.queries, row, |query| {
                            let last = usize::from(query / 32 + 1 == words);
                            numbers[query / 32] >> (query % 32 + last * drop) & 1 == 1
                        });
                    }
                    Scheme::EverySign => {
                        let number = chunk * CHUNK + within;
                        sign(self.queries, row, |query| number >> query & 1 == 1);
                    }
                }
            }
            let panel = &mut self.values[panel * self.pairs..][..self.pairs];
            for (pair, lanes) in panel.iter_mut().enumerate() {
                *lanes = std::array::from_fn(|lane| self.rows[lane * self.pairs + pair]);
            }
        }
    }

    /// The weights of eight resamples, pair by pair.
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

/// The random numbers of 24 resamples, and room for their weights.
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

    /// How often each query was drawn in one bootstrap resample; an odd number of queries is followed by a zero.
    pub fn count(&mut self, within: usize, counts: &mut Vec<i32>) {
        let row = &mut self.weights.rows[..self.weights.pairs];
        count(
            &self.numbers[within * self.weights.queries..][..self.weights.queries],
            row,
        );
        counts.clear();
        counts.extend(
            row.iter()
                .map(|&pair| unpack(pair))
                .flat_map(|(first, second)| [first, second]),
        );
    }
}

/// Count how often each query was drawn. A count fits its 16 bits: a query that makes up 2^15 of the draws would be an
/// event of probability below 10^-100000.
fn count(draws: &[u32], row: &mut [i32]) {
    row.fill(0);
    for &query in draws {
        row[query as usize >> 1] += 1 << ((query & 1) * 16);
    }
}

fn sign(queries: usize, row: &mut [i32], flipped: impl Fn(usize) -> bool) {
    let weight = |query| match query < queries {
        false => 0,
        true if flipped(query) => -1,
        true => 1,
    };
    for (pair, packed) in row.iter_mut().enumerate() {
        *packed = pack(weight(2 * pair), weight(2 * pair + 1));
    }
}
