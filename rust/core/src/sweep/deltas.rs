//! The deltas of one comparison: what is said of them without resampling, and their 16-bit rounding.
//!
//! Sums of rounded deltas are cheap. Each lies within a known distance of the exact sum, so that only the few resamples
//! near an interval end or near zero need an exact sum; the rounding never shows in a result.

use super::weights::{pack, unpack};
use crate::bootstrap::exact_sum::{Planes, bit_range, exact_sum, power_of_two};
use crate::bootstrap::{paired_deltas, to_f64};

/// The deltas of one comparison.
pub struct Deltas {
    /// Candidate minus baseline, query by query.
    pub values: Vec<f64>,
    /// The deltas as integers, for exact sums.
    pub planes: Planes,
    /// The rounded deltas, two and two packed; an odd last one is followed by a zero.
    pub pairs: Vec<i32>,
    /// Value of a unit of the rounded deltas, times `magnification`.
    pub unit: f64,
    /// Power of two that keeps tiny deltas out of the subnormals.
    pub magnification: f64,
    /// Sum of the rounded deltas, in units.
    pub sum: i32,
    /// Most that any resample's exact sum lies from its rounded one, in units; zero where the rounding is exact.
    pub slack: i32,
    /// What is said of the deltas themselves.
    pub description: Description,
    /// Below this distance two sums are equal but for the rounding of the scores.
    pub tolerance: f64,
}

/// What is said of the deltas without resampling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Description {
    /// Their mean.
    pub effect: f64,
    /// Their standard deviation with `n - 1` in the denominator; zero where they are equal but for rounding.
    pub deviation: f64,
    /// Queries on which the candidate is better.
    pub wins: usize,
    /// Queries on which both are equal but for rounding.
    pub ties: usize,
    /// Queries on which the baseline is better.
    pub losses: usize,
}

impl Deltas {
    /// Prepare a comparison of scores paired by position; `None` where deltas or their sums are not finite.
    #[must_use]
    pub fn new(baseline: &[f64], candidate: &[f64]) -> Option<Self> {
        let values = paired_deltas(baseline, candidate)?;
        let largest = values.iter().fold(0.0_f64, |largest, delta| largest.max(delta.abs()));
        let planes = Planes::new(&values);
        let description = describe(baseline, candidate, &values, &planes, largest);
        let magnitudes = baseline.iter().chain(candidate).map(|score| score.abs() * f64::EPSILON);
        let tolerance = magnitudes.sum::<f64>().min(f64::MAX);
        let magnification = if largest < 1e-250 { power_of_two(900) } else { 1.0 };
        // Sums of as many rounded values stay below 2^30.
        let bits = 30_u32
            .saturating_sub(usize::BITS - values.len().leading_zeros())
            .clamp(1, 15)
            .cast_signed();
        let (unit, slack) = match bit_range(&values) {
            None => (1.0, 0),
            Some((low, high)) if high - low <= bits => (power_of_two(low) * magnification, 0),
            // Half a unit a draw, and a little for the rounding of the quotients.
            Some(_) => (
                largest * magnification / (f64::from(bits).exp2() - 1.0),
                i32::try_from(values.len() / 2 + 2).unwrap_or(i32::MAX),
            ),
        };
        let rounded = |query: usize| values.get(query).map_or(0, |delta| round(delta * magnification / unit));
        let pairs: Vec<i32> = (0..values.len())
            .step_by(2)
            .map(|query| pack(rounded(query), rounded(query + 1)))
            .collect();
        let sum = pairs
            .iter()
            .map(|&pair| unpack(pair))
            .map(|(first, second)| first + second)
            .sum();
        Some(Self {
            values,
            planes,
            pairs,
            unit,
            magnification,
            sum,
            slack,
            description,
            tolerance,
        })
    }

    /// Standard error of the effect.
    #[must_use]
    pub fn standard_error(&self) -> f64 {
        self.description.deviation / to_f64(self.values.len()).sqrt()
    }
}

/// Round to the nearest integer, ties to even.
#[expect(clippy::cast_possible_truncation, reason = "a quotient is at most 2^15 - 1")]
fn round(quotient: f64) -> i16 {
    // Numbers of this size have no fraction, so the addition rounds; without SSE4.1 the function for it is a call.
    const NO_FRACTION: f64 = 6_755_399_441_055_744.0;
    (quotient + NO_FRACTION - NO_FRACTION) as i16
}

fn describe(baseline: &[f64], candidate: &[f64], deltas: &[f64], planes: &Planes, largest: f64) -> Description {
    let queries = to_f64(deltas.len());
    let effect = planes.weighted_sum(deltas, std::iter::repeat_n(1, deltas.len())) / queries;
    let (mut wins, mut losses) = (0, 0);
    let (mut least, mut most, mut magnitude) = (f64::INFINITY, f64::NEG_INFINITY, 0.0_f64);
    for ((before, after), &delta) in baseline.iter().zip(candidate).zip(deltas) {
        let rounding = (before.abs() + after.abs()).min(f64::MAX) * f64::EPSILON;
        wins += usize::from(delta > rounding);
        losses += usize::from(delta < -rounding);
        (least, most, magnitude) = (least.min(delta), most.max(delta), magnitude.max(rounding));
    }
    let deviation = if deltas.len() < 2 || most - least <= 2.0 * magnitude {
        0.0
    } else {
        // A power of two near the largest delta keeps the squares from overflow and underflow and changes no bit.
        let exponent = bit_range(&[largest]).map_or(0, |(_, high)| high.clamp(-1000, 1000));
        let (down, up) = (power_of_two(-exponent), power_of_two(exponent));
        let squares = deltas
            .iter()
            .map(|delta| ((delta - effect) * down) * ((delta - effect) * down));
        (exact_sum(squares) / (queries - 1.0)).sqrt() * up
    };
    Description {
        effect,
        deviation,
        wins,
        ties: deltas.len() - wins - losses,
        losses,
    }
}
