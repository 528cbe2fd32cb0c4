//! Many comparisons over one set of queries, from one stream of resamples.
//!
//! A resample is a vector of weights, one a query: how often it was drawn (bootstrap), or the sign of its delta
//! (sign-flip test). The sums of all comparisons are the product of these vectors with the matrix of the deltas. It is
//! computed in 16-bit integers, exactly, of rounded deltas; where the rounding could matter for a result (near an
//! interval end, near zero, near the observed sum) the exact sum of that resample is computed and decides. Every result
//! is therefore that of exact sums, on every machine and with any number of threads.

mod deltas;
mod draw;
mod matmul;
mod max_t;
mod order_statistics;
mod pointwise;
mod sign_flip;
mod stratified;
pub mod student_t;
mod weights;

pub use deltas::Description;
pub use max_t::MaxT;
pub use sign_flip::{EXACT_QUERIES, SignFlip};
pub use stratified::{Stratum, stratified};

use crate::bootstrap::summary::Summary;
use crate::error::Error;
use crate::parallel;
use crate::simd::Level;
use crate::stop::Stop;
use deltas::Deltas;
use matmul::TILE;
use max_t::MaxTMethod;
use pointwise::{bootstrap_alone, bootstrap_together};
use sign_flip::flip_signs;

/// Bytes that the sums of the comparisons worked on at a time may take, whatever the number of resamples.
const GROUP_BYTES: usize = 16 << 20;

/// How a sweep is run; threads and level change no bit of it.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// Number of resamples, and of random sign assignments; at least one.
    pub resamples: usize,
    /// Absolute value of the seed, as little-endian 32-bit words.
    pub seed: &'a [u32],
    /// Nominal coverage of the percentile intervals.
    pub confidence_level: f64,
    /// Whether to run the sign-flip test.
    pub sign_flip: bool,
    /// Nominal simultaneous coverage of each family, where the max-T method is wanted; indexed by family.
    pub family_levels: &'a [f64],
    /// Most threads to use.
    pub threads: usize,
    /// Vector instructions to use.
    pub level: Level,
}

/// Two systems to compare.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    /// Scores of the baseline, one a query.
    pub baseline: &'a [f64],
    /// Scores of the candidate on the same queries.
    pub candidate: &'a [f64],
    /// Family for the max-T method.
    pub family: usize,
}

/// What is said of one comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// What the deltas say without resampling.
    pub description: Description,
    /// The percentile interval and the tail counts.
    pub summary: Summary,
    /// The sign-flip test, where it was asked for.
    pub sign_flip: Option<SignFlip>,
    /// The max-T method, where it was asked for.
    pub max_t: Option<MaxT>,
}

/// Run every comparison; all of them are over the same, at least one, fewer than 2^28 queries.
///
/// # Errors
///
/// [`Error::NotFinite`] for scores that cannot be compared, [`Error::Interrupted`] when the stop is requested,
/// [`Error::OutOfMemory`] when the sums do not fit.
pub fn sweep(comparisons: &[Comparison<'_>], settings: Settings<'_>, stop: &Stop) -> Result<Vec<Row>, Error> {
    let prepared = parallel::map(comparisons.len(), settings.threads, stop, |number| {
        let Comparison {
            baseline, candidate, ..
        } = comparisons[number];
        Deltas::new(baseline, candidate).ok_or(Error::NotFinite { comparison: number })
    })?;
    let mut max_t = MaxTMethod::new(comparisons, &prepared, settings);
    let mut summaries: Vec<(usize, Summary)> = Vec::with_capacity(prepared.len());
    let sum_bytes = settings.resamples.saturating_mul(size_of::<i32>());
    let group = (GROUP_BYTES / sum_bytes).max(TILE) / TILE * TILE;
    for numbers in max_t.order().chunks(group) {
        let members: Vec<&Deltas> = numbers.iter().map(|&number| &prepared[number]).collect();
        let mut of_group = bootstrap_together(&members, numbers, &mut max_t, settings, stop)?;
        for (summary, deltas) in of_group.iter_mut().zip(members) {
            if deltas.magnification > 1.0 {
                // The mean of a sum so small may be zero where the sum is not.
                *summary = bootstrap_alone(deltas, settings, stop)?;
            }
        }
        summaries.extend(numbers.iter().copied().zip(of_group));
    }
    summaries.sort_unstable_by_key(|&(number, _)| number);
    let sign_flips = if settings.sign_flip {
        flip_signs(&prepared, settings, stop)?
    } else {
        Vec::new()
    };
    let simultaneous = max_t.finish(&prepared);
    let rows = prepared.iter().zip(summaries).enumerate();
    Ok(rows
        .map(|(number, (deltas, (_, summary)))| Row {
            description: deltas.description,
            summary,
            sign_flip: sign_flips.get(number).copied(),
            max_t: simultaneous.get(number).copied(),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::{self, paired_bootstrap};
    use proptest::collection::vec;
    use proptest::prelude::*;

    const SETTINGS: Settings<'_> = Settings {
        resamples: 100,
        seed: &[7],
        confidence_level: 0.95,
        sign_flip: true,
        family_levels: &[0.95, 0.9],
        threads: 1,
        level: Level::Portable,
    };

    fn compare(columns: &[(Vec<f64>, Vec<f64>)], settings: Settings<'_>) -> Vec<Row> {
        let comparisons: Vec<Comparison<'_>> = columns
            .iter()
            .enumerate()
            .map(|(number, (baseline, candidate))| Comparison {
                baseline,
                candidate,
                family: number % 2,
            })
            .collect();
        sweep(&comparisons, settings, &Stop::default()).unwrap()
    }

    fn alone(baseline: &[f64], candidate: &[f64], settings: Settings<'_>) -> Summary {
        let bootstrap = bootstrap::Settings {
            resamples: settings.resamples,
            seed: settings.seed,
            threads: 1,
            level: settings.level,
        };
        paired_bootstrap(
            baseline,
            candidate,
            bootstrap,
            settings.confidence_level,
            &Stop::default(),
        )
        .unwrap()
        .summary
    }

    /// Scores of the kinds that metrics have, and of kinds that they do not.
    fn score() -> impl Strategy<Value = BoxedStrategy<f64>> {
        prop_oneof![
            Just((0..2).prop_map(f64::from).boxed()),
            Just((1..9).prop_map(|rank| 1.0 / f64::from(rank)).boxed()),
            Just((0.0..1.0).boxed()),
            Just(any::<f64>().prop_filter("finite", |x| x.abs() < 1e300).boxed()),
            Just((-3..3).prop_map(|steps| f64::from(steps) * 5e-324).boxed()),
            Just(Just(0.25).boxed()),
        ]
    }

    fn columns(queries: std::ops::Range<usize>) -> impl Strategy<Value = Vec<(Vec<f64>, Vec<f64>)>> {
        (queries, vec(score(), 1..12)).prop_flat_map(|(queries, scores)| {
            scores
                .into_iter()
                .map(|score| (vec(score.clone(), queries), vec(score, queries)))
                .collect::<Vec<_>>()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn every_comparison_equals_the_one_made_alone(
            columns in columns(1..120),
            resamples in prop_oneof![1_usize..200, 2_500_usize..2_600],
            confidence_level in 0.05..0.999,
        ) {
            let settings = Settings { resamples, confidence_level, ..SETTINGS };
            for (row, (baseline, candidate)) in compare(&columns, settings).iter().zip(&columns) {
                prop_assert_eq!(row.summary, alone(baseline, candidate, settings));
            }
        }

        #[test]
        fn threads_and_levels_change_no_bit(columns in columns(1..70), resamples in 1_usize..500) {
            let settings = Settings { resamples, ..SETTINGS };
            let expected = compare(&columns, settings);
            for level in Level::available() {
                for threads in [1, 3] {
                    prop_assert_eq!(&compare(&columns, Settings { threads, level, ..settings }), &expected);
                }
            }
        }
    }

    #[test]
    fn comparisons_that_do_not_fit_in_one_group_are_the_same() {
        let columns: Vec<_> = (0..11)
            .map(|number| {
                let score = |query: u32| f64::from((query * 7_919 + number * 104_729) % 1_009) / 1_009.0;
                ((0..7).map(score).collect(), (7..14).map(score).collect())
            })
            .collect();
        // Four columns of so many sums fill a group.
        let settings = Settings {
            resamples: GROUP_BYTES / size_of::<i32>() / 4,
            level: Level::best(),
            threads: 2,
            sign_flip: false,
            ..SETTINGS
        };
        let rows = compare(&columns, settings);
        for (row, (baseline, candidate)) in rows.iter().zip(&columns) {
            assert_eq!(row.summary, alone(baseline, candidate, settings));
        }
        // The families do not depend on which other comparisons there are.
        let first: Vec<_> = columns.iter().step_by(2).cloned().collect();
        let alone: Vec<Comparison<'_>> = first
            .iter()
            .map(|(baseline, candidate)| Comparison {
                baseline,
                candidate,
                family: 0,
            })
            .collect();
        let alone = sweep(&alone, settings, &Stop::default()).unwrap();
        let together: Vec<_> = rows.into_iter().step_by(2).collect();
        assert_eq!(alone, together);
    }

    #[test]
    fn a_sweep_ends_when_it_is_asked_to() {
        let column: (Vec<f64>, Vec<f64>) = ((0..1_000).map(f64::from).collect(), vec![0.3; 1_000]);
        let comparison = Comparison {
            baseline: &column.0,
            candidate: &column.1,
            family: 0,
        };
        for threads in [1, 2] {
            let settings = Settings {
                resamples: 1_000_000,
                threads,
                ..SETTINGS
            };
            let stop = Stop::default();
            stop.request();
            assert_eq!(sweep(&[comparison], settings, &stop), Err(Error::Interrupted));
        }
    }

    #[test]
    fn scores_that_cannot_be_compared_are_named() {
        let scores = (vec![0.0, 0.5], vec![1.0, f64::NAN], vec![f64::MAX, 0.0]);
        let against = |candidate| Comparison {
            baseline: &scores.0,
            candidate,
            family: 0,
        };
        for (comparisons, number) in [
            ([against(&scores.0), against(&scores.1)], 1),
            ([against(&scores.2), against(&scores.0)], 0),
        ] {
            assert_eq!(
                sweep(&comparisons, SETTINGS, &Stop::default()),
                Err(Error::NotFinite { comparison: number })
            );
        }
    }
}
