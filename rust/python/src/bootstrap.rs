//! The paired bootstrap over two arrays of scores.

use groundkit_core::bootstrap::exact_sum::exact_sum;
use groundkit_core::bootstrap::{self, Error, Settings};
use groundkit_core::parallel;
use groundkit_core::simd::Level;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyValueError};
use pyo3::prelude::*;

use crate::interrupt::detached;

/// Effect, interval ends and the counts of means at or below and at or above zero.
type Comparison = (f64, f64, f64, usize, usize);

/// Compare two arrays of scores, paired by position; `None` where the deltas or their sums are not finite.
#[pyfunction]
#[pyo3(signature = (baseline, candidate, *, resamples, seed, confidence_level, threads=None, level=None))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python arrive by value")]
pub fn paired_bootstrap(
    py: Python<'_>,
    baseline: PyBuffer<f64>,
    candidate: PyBuffer<f64>,
    resamples: usize,
    seed: &[u8],
    confidence_level: f64,
    threads: Option<usize>,
    level: Option<&str>,
) -> PyResult<Option<Comparison>> {
    let deltas: Vec<f64> = baseline
        .to_vec(py)?
        .into_iter()
        .zip(candidate.to_vec(py)?)
        .map(|(before, after)| after - before)
        .collect();
    #[expect(clippy::cast_precision_loss, reason = "fewer than 2^32 queries")]
    let count = deltas.len() as f64;
    // The largest sum that any resample can have must be finite, so that no mean depends on the order of additions.
    let largest = deltas.iter().fold(0.0_f64, |largest, delta| largest.max(delta.abs()));
    if deltas.iter().any(|delta| !delta.is_finite()) || !(largest * count).is_finite() {
        return Ok(None);
    }
    let level = level.map_or_else(|| Ok(Level::best()), level_named)?;
    let seed = seed_words(seed);
    let settings = Settings {
        resamples,
        seed: &seed,
        threads: parallel::count_threads(threads),
        level,
    };
    let summary = detached(py, |interrupted| {
        bootstrap::paired_bootstrap(&deltas, settings, confidence_level, interrupted)
    })?
    .map_err(|error| match error {
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        Error::OutOfMemory => PyMemoryError::new_err(error.to_string()),
    })?;
    let effect = exact_sum(deltas) / count;
    Ok(Some((
        effect,
        summary.low,
        summary.high,
        summary.non_positive,
        summary.non_negative,
    )))
}

/// The vector instruction level of this name.
pub fn level_named(name: &str) -> PyResult<Level> {
    Level::named(name).ok_or_else(|| PyValueError::new_err(format!("this machine has no level {name:?}")))
}

/// The 32-bit words of a seed's little-endian bytes.
pub fn seed_words(seed: &[u8]) -> Vec<u32> {
    seed.chunks(4)
        .map(|bytes| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte)))
        .collect()
}

/// The names of the vector instruction levels of this machine, the plainest first.
#[pyfunction]
pub fn levels() -> Vec<&'static str> {
    Level::available().iter().map(|level| level.name()).collect()
}
