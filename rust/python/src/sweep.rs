//! Many comparisons over one set of queries.

use groundkit_core::bootstrap::exact_sum::exact_sum;
use groundkit_core::bootstrap::summary::Summary;
use groundkit_core::error::Error;
use groundkit_core::parallel;
use groundkit_core::simd::Level;
use groundkit_core::stop::Stop;
use groundkit_core::sweep::{self, Comparison, Settings, Stratum, stratified, student_t};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::bootstrap::{level_named, seed_words};
use crate::error::run;

/// Effect, standard deviation, wins, ties, losses.
type Description = (f64, f64, usize, usize, usize);
/// Interval ends and the counts of means at or below and at or above zero.
type Bootstrap = (f64, f64, usize, usize);
/// Assignments as extreme as the observed one, assignments tried, and whether these were all.
type SignFlip = (usize, usize, bool);
/// Resamples as extreme as the observed statistic, and the simultaneous interval.
type MaxT = (usize, f64, f64);
/// Scores, number of queries, rows of baseline and candidate, and seed.
type StratumArguments = (PyBuffer<f64>, usize, Vec<(usize, usize)>, Vec<u8>);
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
    let comparisons = comparisons
        .into_iter()
        .map(|(baseline, candidate, family)| {
            if !family_levels.is_empty() && family >= family_levels.len() {
                return Err(PyValueError::new_err(format!("there is no family {family}")));
            }
            Ok(Comparison {
                baseline: row(&scores, queries, baseline)?,
                candidate: row(&scores, queries, candidate)?,
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
        threads: parallel::count_threads(threads),
        level: level.map_or_else(|| Ok(Level::best()), level_named)?,
    };
    let stop = Stop::default();
    run(py, &stop, || match sweep::sweep(&comparisons, settings, &stop) {
        Ok(rows) => Ok((rows.iter().map(as_tuple).collect(), means(&scores, queries), None)),
        Err(Error::NotFinite { comparison }) => Ok((Vec::new(), Vec::new(), Some(comparison))),
        Err(error) => Err(error),
    })
}

/// Compare averages over strata, each with scores, number of queries, rows of baseline and candidate, and seed.
///
/// Returns interval ends and tail counts; or none, and the number of a comparison that is not finite.
#[pyfunction]
#[pyo3(signature = (strata, *, resamples, confidence_level, threads=None))]
pub fn compare_averages(
    py: Python<'_>,
    strata: Vec<StratumArguments>,
    resamples: usize,
    confidence_level: f64,
    threads: Option<usize>,
) -> PyResult<(Vec<Bootstrap>, Option<usize>)> {
    let mut owned = Vec::with_capacity(strata.len());
    for (scores, queries, pairs, seed) in strata {
        owned.push((scores.to_vec(py)?, queries, pairs, seed_words(&seed)));
    }
    let comparisons = owned
        .iter()
        .map(|(scores, queries, pairs, _)| {
            pairs
                .iter()
                .map(|&(baseline, candidate)| {
                    Ok(Comparison {
                        baseline: row(scores, *queries, baseline)?,
                        candidate: row(scores, *queries, candidate)?,
                        family: 0,
                    })
                })
                .collect::<PyResult<Vec<_>>>()
        })
        .collect::<PyResult<Vec<_>>>()?;
    if comparisons.windows(2).any(|pair| pair[0].len() != pair[1].len()) {
        return Err(PyValueError::new_err("every stratum needs the same comparisons"));
    }
    let strata: Vec<Stratum<'_>> = comparisons
        .iter()
        .zip(&owned)
        .map(|(comparisons, (_, _, _, seed))| Stratum { comparisons, seed })
        .collect();
    let settings = Settings {
        resamples,
        seed: &[],
        confidence_level,
        sign_flip: false,
        family_levels: &[],
        threads: parallel::count_threads(threads),
        level: Level::best(),
    };
    let stop = Stop::default();
    run(py, &stop, || match stratified(&strata, settings, &stop) {
        Ok(summaries) => Ok((summaries.iter().map(bootstrap_tuple).collect(), None)),
        Err(Error::NotFinite { comparison }) => Ok((Vec::new(), Some(comparison))),
        Err(error) => Err(error),
    })
}

/// The scores of one row of a matrix of at least one and fewer than 2^28 queries.
fn row(scores: &[f64], queries: usize, number: usize) -> PyResult<&[f64]> {
    let missing = || PyValueError::new_err(format!("there is no row {number} of {queries} queries"));
    if queries == 0 || queries >= 1 << 28 {
        return Err(missing());
    }
    let start = number.checked_mul(queries).ok_or_else(missing)?;
    scores
        .get(start..)
        .and_then(|scores| scores.get(..queries))
        .ok_or_else(missing)
}

fn bootstrap_tuple(summary: &Summary) -> Bootstrap {
    (summary.low, summary.high, summary.non_positive, summary.non_negative)
}

#[expect(clippy::cast_precision_loss, reason = "fewer than 2^28 queries")]
fn means(scores: &[f64], queries: usize) -> Vec<f64> {
    let rows = scores.chunks_exact(queries);
    rows.map(|row| exact_sum(row.iter().copied()) / queries as f64)
        .collect()
}

fn as_tuple(row: &sweep::Row) -> Row {
    let description = &row.description;
    (
        (
            description.effect,
            description.deviation,
            description.wins,
            description.ties,
            description.losses,
        ),
        bootstrap_tuple(&row.summary),
        row.sign_flip
            .map(|flips| (flips.as_extreme, flips.assignments, flips.exact)),
        row.max_t.map(|max_t| (max_t.as_extreme, max_t.low, max_t.high)),
    )
}

/// Two-sided probability of a Student's t of at least this magnitude.
#[pyfunction]
pub fn student_two_sided(statistic: f64, freedom: f64) -> f64 {
    student_t::two_sided(statistic, freedom)
}

/// The value of Student's t below which lies `probability`.
#[pyfunction]
pub fn student_quantile(probability: f64, freedom: f64) -> f64 {
    student_t::quantile(probability, freedom)
}
