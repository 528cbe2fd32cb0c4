//! Student's t distribution.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Two-sided probability of a magnitude of at least `statistic` with `freedom` degrees of freedom (at least one).
#[must_use]
pub fn two_sided(statistic: f64, freedom: f64) -> f64 {
    // Twice the lower tail: one minus the upper would lose small probabilities.
    distribution(freedom).map_or(1.0, |student| (2.0 * student.cdf(-statistic.abs())).min(1.0))
}

/// The value below which lies `probability`, in (0, 1).
#[must_use]
pub fn quantile(probability: f64, freedom: f64) -> f64 {
    distribution(freedom).map_or(0.0, |student| student.inverse_cdf(probability))
}

fn distribution(freedom: f64) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, freedom).ok()
}
