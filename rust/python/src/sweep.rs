//! Many comparisons over one set of queries.

use groundkit_core::bootstrap::Error as Stop;
use groundkit_core::bootstrap::level::Level;
use groundkit_core::bootstrap::sum::exact_sum;
use groundkit_core::sweep::{self, Comparison, Error, Settings, student};
use groundkit_core::threads;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyValueError};
use pyo3::prelude::*;

use crate::bootstrap::{level_named, seed_words};
use crate::interrupt::detached;

/// Effect, standard deviation, wins, ties, losses.
type Description = (f64, f64, usize, usize, usize);
/// Interval ends and the counts of means at or below and at or above zero.
type Bootstrap = (f64, f64, usize, usize);
/// Assignments as extreme as the observed one, assignments tried, and whether these were all.
type SignFlip = (usize, usize, bool);
/// Resamples as extreme as the observed statistic, and the simultaneous interval.
type MaxT = (usize, f64, f64);
type Row = (Description, Bootstrap, Option<SignFlip>, Option<MaxT>);

/// Compare rows of a matrix of scores, one column a query.
///
/// Returns the comparisons and the means of the rows; or none, and the number of a comparison that is not finite.
///
/// `comparisons` are rows of baseline and candidate, and the number of the family.
#[pyfunction]
#[pyo3(signature = (scores, queries, comparisons, *, resamples, seed, confidence_level, sign_flip, family_levels, threads=None, level=None))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python arrive by value")]
pub fn compare_rows(
    py: Python<'_>,
    scores: PyBuffer<f64>,
    queries: usize,
    comparisons: Vec<(usize, usize, usize)>,
    resamples: usize,
    seed: &[u8],
    confidence_level: f64,
    sign_flip: bool,
    family_levels: Vec<f64>,
    threads: Option<usize>,
    level: Option<&str>,
) -> PyResult<(Vec<Row>, Vec<f64>, Option<usize>)> {
    let scores = scores.to_vec(py)?;
    let row = |number: usize| {
        let missing = || PyValueError::new_err(format!("there is no row {number}"));
        let start = number.checked_mul(queries).ok_or_else(missing)?;
        scores
            .get(start..)
            .and_then(|scores| scores.get(..queries))
            .ok_or_else(missing)
    };
    if queries == 0 || queries >= 1 << 28 {
        return Err(PyValueError::new_err(format!("a comparison of {queries} queries")));
    }
    let comparisons = comparisons
        .into_iter()
        .map(|(baseline, candidate, family)| {
            if !family_levels.is_empty() && family >= family_levels.len() {
                return Err(PyValueError::new_err(format!("there is no family {family}")));
            }
            Ok(Comparison {
                baseline: row(baseline)?,
                candidate: row(candidate)?,
                family,
            })
        })
        .collect::<PyResult<Vec<_>>>()?;
    let seed = seed_words(seed);
    let settings = Settings {
        resamples,
        seed: &seed,
        confidence_level,
        sign_flip,
        family_levels: &family_levels,
        threads: threads::count(threads),
        level: level.map_or_else(|| Ok(Level::best()), level_named)?,
    };
    match detached(py, |interrupted| sweep::sweep(&comparisons, settings, interrupted))? {
        Ok(rows) => Ok((rows.iter().map(as_tuple).collect(), means(&scores, queries), None)),
        Err(Error::NotFinite(number)) => Ok((Vec::new(), Vec::new(), Some(number))),
        Err(Error::Stop(Stop::Interrupted)) => Err(PyKeyboardInterrupt::new_err(())),
        Err(Error::Stop(error @ Stop::OutOfMemory)) => Err(PyMemoryError::new_err(error.to_string())),
    }
}

#[expect(clippy::cast_precision_loss, reason = "fewer than 2^28 queries")]
fn means(scores: &[f64], queries: usize) -> Vec<f64> {
    let rows = scores.chunks_exact(queries);
    rows.map(|row| exact_sum(row.iter().copied()) / queries as f64)
        .collect()
}

fn as_tuple(row: &sweep::Row) -> Row {
    let description = &row.description;
    let summary = &row.summary;
    (
        (
            description.effect,
            description.deviation,
            description.wins,
            description.ties,
            description.losses,
        ),
        (summary.low, summary.high, summary.non_positive, summary.non_negative),
        row.sign_flip
            .map(|flips| (flips.as_extreme, flips.assignments, flips.exact)),
        row.max_t.map(|max_t| (max_t.as_extreme, max_t.low, max_t.high)),
    )
}

/// Two-sided probability of a Student's t of at least this magnitude.
#[pyfunction]
pub fn student_two_sided(statistic: f64, freedom: f64) -> f64 {
    student::two_sided(statistic, freedom)
}

/// The value of Student's t below which lies `probability`.
#[pyfunction]
pub fn student_quantile(probability: f64, freedom: f64) -> f64 {
    student::quantile(probability, freedom)
}
