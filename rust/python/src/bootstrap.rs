//! The paired bootstrap over two arrays of scores.

use groundkit_core::bootstrap::{self, Comparison, Settings};
use groundkit_core::error::Error;
use groundkit_core::parallel;
use groundkit_core::simd::Level;
use groundkit_core::stop::Stop;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::{run, run_briefly};

/// Draws of at most a few milliseconds, for which a thread of their own would be a good part of the time.
const BRIEF_DRAWS: usize = 4_000_000;

/// Effect, interval ends and the counts of means at or below and at or above zero.
type Outcome = (f64, f64, f64, usize, usize);

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
) -> PyResult<Option<Outcome>> {
    let (baseline, candidate) = (baseline.to_vec(py)?, candidate.to_vec(py)?);
    let seed = seed_words(seed);
    let settings = Settings {
        resamples,
        seed: &seed,
        threads: parallel::count_threads(threads),
        level: level.map_or_else(|| Ok(Level::best()), level_named)?,
    };
    let stop = Stop::default();
    let work = || match bootstrap::paired_bootstrap(&baseline, &candidate, settings, confidence_level, &stop) {
        Ok(Comparison { effect, summary }) => Ok(Some((
            effect,
            summary.low,
            summary.high,
            summary.non_positive,
            summary.non_negative,
        ))),
        Err(Error::NotFinite { .. }) => Ok(None),
        Err(error) => Err(error),
    };
    if resamples.saturating_mul(baseline.len()) < BRIEF_DRAWS {
        run_briefly(py, work)
    } else {
        run(py, &stop, work)
    }
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
