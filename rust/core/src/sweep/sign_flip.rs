//! The paired sign-flip test: how often random signs of the deltas give a sum as far from zero as the observed one.
//!
//! R. A. Fisher, "The Design of Experiments", 1935, section 21.

use super::Settings;
use super::deltas::Deltas;
use super::draw::for_each_chunk;
use super::matmul::{Matrix, multiply};
use super::weights::{CHUNK, Scheme};
use crate::error::Error;
use crate::stop::Stop;

/// Most queries for which every assignment of signs is tried: 2^15 of them.
pub const EXACT_QUERIES: usize = 16;

/// The paired sign-flip test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignFlip {
    /// Assignments whose sum is at least as far from zero as the observed one.
    pub as_extreme: usize,
    /// Assignments tried.
    pub assignments: usize,
    /// Whether these were all that there are (up to the sign of the whole).
    pub exact: bool,
}

/// The sign-flip test of each comparison.
pub fn flip_signs(comparisons: &[Deltas], settings: Settings<'_>, stop: &Stop) -> Result<Vec<SignFlip>, Error> {
    let queries = comparisons[0].values.len();
    let exact = queries <= EXACT_QUERIES;
    let (scheme, assignments) = if exact {
        (Scheme::EverySign, 1 << (queries - 1))
    } else {
        (Scheme::RandomSigns, settings.resamples)
    };
    let matrix = Matrix::new(comparisons.iter(), queries);
    let limits: Vec<ObservedSum> = comparisons.iter().map(ObservedSum::new).collect();
    let items = 0..assignments.div_ceil(CHUNK);
    let drawn = for_each_chunk(scheme, queries, items, settings, stop, |counts, sums, chunk, number| {
        let weights = chunk.fill();
        sums.clear();
        sums.resize(matrix.width, [0; CHUNK]);
        multiply(weights, &matrix.pairs, sums, settings.level);
        counts.resize(comparisons.len(), 0);
        let used = CHUNK.min(assignments - number * CHUNK);
        for (((sums, limit), deltas), total) in sums.iter().zip(&limits).zip(comparisons).zip(counts) {
            for (within, sum) in sums[..used].iter().map(|sum| sum.abs()).enumerate() {
                *total += usize::from(
                    sum > limit.surely || sum >= limit.possibly && limit.reached(deltas, weights.of_resample(within)),
                );
            }
        }
    })?;
    Ok(drawn
        .counts
        .into_iter()
        .map(|as_extreme| SignFlip {
            as_extreme,
            assignments,
            exact,
        })
        .collect())
}

/// The observed sum of a comparison, as a limit for the sums of other signs.
struct ObservedSum {
    /// Exact magnitude, less the tolerance for ties.
    observed: f64,
    /// A rounded magnitude above this reaches the observed one.
    surely: i32,
    /// A rounded magnitude below this does not.
    possibly: i32,
}

impl ObservedSum {
    fn new(deltas: &Deltas) -> Self {
        let queries = deltas.values.len();
        let sum = deltas
            .planes
            .weighted_sum(&deltas.values, std::iter::repeat_n(1, queries));
        let tolerance = deltas.tolerance * deltas.magnification / deltas.unit;
        #[expect(clippy::cast_possible_truncation, reason = "a cast saturates, which is as good")]
        let slack = deltas
            .slack
            .saturating_mul(2)
            .saturating_add(tolerance.ceil() as i32)
            .saturating_add(1);
        let rounded = deltas.sum.abs();
        Self {
            observed: sum.abs() - deltas.tolerance,
            surely: rounded.saturating_add(slack),
            possibly: rounded.saturating_sub(slack),
        }
    }

    fn reached(&self, deltas: &Deltas, signs: impl Iterator<Item = i32>) -> bool {
        deltas.planes.weighted_sum(&deltas.values, signs).abs() >= self.observed
    }
}
