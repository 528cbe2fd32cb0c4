//! Many comparisons over one set of queries, from one stream of resamples.
//!
//! A resample is a vector of weights, one a query: how often it was drawn (bootstrap), or the sign of its delta
//! (sign-flip test). The sums of all comparisons are the product of these vectors with the matrix of the deltas. It is
//! computed in 16-bit integers, exactly, of rounded deltas; where the rounding could matter for a result (near an
//! interval end, near zero, near the observed sum) the exact sum of that resample is computed and decides. Every result
//! is therefore that of exact sums, on every machine and with any number of threads.

pub mod deltas;
pub mod matmul;
mod max_t;
pub mod order_statistics;
mod parallel;
pub mod stratified;
pub mod student_t;
pub mod weights;

use std::sync::Mutex;

use crate::bootstrap::mersenne::{Draws, Mark};
use crate::bootstrap::summary::{Position, Summary};
use crate::bootstrap::{self, Error as Stop, reserve};
use crate::simd::{Kernel, Level, Simd};
use deltas::{Column, Description, count};
use matmul::{TILE, multiply};
use max_t::MaxTMethod;
use order_statistics::{Tails, Window};
use weights::{CHUNK, Chunk, Scheme, Source, Weights};

/// Most queries for which every assignment of signs is tried: 2^15 of them.
pub const EXACT_QUERIES: usize = 16;
/// Comparisons whose sums are gathered together, so that whole cache lines are read.
const SURVEYED: usize = 8;
/// Weights made at a time at least, so that threads hardly ever wait for each other's drawing.
const WEIGHTS_AT_A_TIME: usize = 1 << 15;
/// Bytes that the sums of the comparisons worked on at a time may take, whatever the number of resamples.
const GROUP_BYTES: usize = 16 << 20;

/// Why a sweep did not finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Stopped, or out of memory.
    #[error(transparent)]
    Stop(#[from] Stop),
    /// The deltas of the comparison of this number, or their sums, are not finite.
    #[error("comparison {0} is not finite")]
    NotFinite(usize),
}

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

/// The step-down max-T method of Westfall and Young.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MaxT {
    /// Resamples whose largest statistic, over this comparison and the less extreme ones, reaches this one's.
    pub as_extreme: usize,
    /// Lower end of the simultaneous interval.
    pub low: f64,
    /// Upper end of the simultaneous interval.
    pub high: f64,
}

/// Run every comparison; all of them are over the same, at least one, fewer than 2^28 queries.
///
/// `interrupted` is asked on the calling thread every few milliseconds; `true` ends the work.
///
/// # Errors
///
/// [`Error::Stop`] when asked to stop, [`Error::NotFinite`] for scores that cannot be compared.
pub fn sweep(
    comparisons: &[Comparison<'_>],
    settings: Settings<'_>,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<Vec<Row>, Error> {
    let prepared = parallel::map(comparisons.len(), settings.threads, interrupted, |number| {
        let comparison = comparisons[number];
        Column::new(comparison.baseline, comparison.candidate).ok_or(number)
    })?;
    let columns = prepared
        .into_iter()
        .collect::<Result<Vec<_>, _>>()
        .map_err(Error::NotFinite)?;
    let mut max_t = MaxTMethod::new(comparisons, &columns, settings);
    let mut summaries: Vec<(usize, Summary)> = Vec::with_capacity(columns.len());
    let sum_bytes = settings.resamples.saturating_mul(size_of::<i32>());
    let group = (GROUP_BYTES / sum_bytes).max(TILE) / TILE * TILE;
    for numbers in max_t.order().chunks(group) {
        let members: Vec<&Column> = numbers.iter().map(|&number| &columns[number]).collect();
        let mut found = bootstrap_together(&members, numbers, &mut max_t, settings, interrupted)?;
        for (summary, column) in found.iter_mut().zip(members) {
            if column.lift > 1.0 {
                // The mean of a sum so small may be zero where the sum is not.
                *summary = bootstrap_alone(column, settings, interrupted)?;
            }
        }
        summaries.extend(numbers.iter().copied().zip(found));
    }
    summaries.sort_unstable_by_key(|&(number, _)| number);
    let mut sign_flips = Vec::new();
    if settings.sign_flip {
        sign_flips = flip_signs(&columns, settings, interrupted)?;
    }
    let simultaneous = max_t.finish(&columns);
    let rows = columns.iter().zip(summaries).enumerate();
    Ok(rows
        .map(|(number, (column, (_, summary)))| Row {
            description: column.description,
            summary,
            sign_flip: sign_flips.get(number).copied(),
            max_t: simultaneous.get(number).copied(),
        })
        .collect())
}

/// The packed deltas of several comparisons, one after the other, filled up with zeros to whole tiles.
struct Matrix {
    width: usize,
    pairs: Vec<i32>,
}

impl Matrix {
    fn new<'a>(columns: impl ExactSizeIterator<Item = &'a Column>, queries: usize) -> Self {
        let width = columns.len().next_multiple_of(TILE);
        let mut pairs = Vec::with_capacity(width * queries.div_ceil(2));
        for column in columns {
            pairs.extend_from_slice(&column.pairs);
        }
        pairs.resize(width * queries.div_ceil(2), 0);
        Self { width, pairs }
    }
}

/// One resample of one comparison whose exact sum matters.
struct Candidate {
    resample: usize,
    column: usize,
    rounded: i32,
    sum: f64,
}

/// What the rounded sums of one comparison say: the windows of the two interval ends, and the sums surely beyond zero.
struct Survey {
    ends: [Window; 2],
    negative: usize,
    /// Sums of which that is not sure; those that are zero where the rounding is exact.
    near_zero: usize,
    positive: usize,
    candidates: Vec<Candidate>,
}

/// The percentile interval and the tail counts of each of `columns`, and what the max-T method needs on the way.
fn bootstrap_together(
    columns: &[&Column],
    numbers: &[usize],
    max_t: &mut MaxTMethod,
    settings: Settings<'_>,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<Vec<Summary>, Stop> {
    let queries = columns[0].deltas.len();
    let chunks = settings.resamples.div_ceil(CHUNK);
    let matrix = Matrix::new(columns.iter().copied(), queries);
    let mut sums: Vec<[i32; CHUNK]> = reserve(chunks * matrix.width)?;
    sums.resize(chunks * matrix.width, [0; CHUNK]);
    let mut group = max_t.enter(numbers)?;
    let statistics = &group.statistics;
    let items = sums
        .chunks_exact_mut(matrix.width)
        .zip(group.maxima.chunks_exact_mut(group.families));
    let drawn = for_each_chunk(
        Scheme::Counts,
        queries,
        items,
        settings,
        interrupted,
        |counts, _, chunk, (sums, maxima)| {
            multiply(chunk.fill(), &matrix.pairs, sums, settings.level);
            max_t::follow(statistics, sums, maxima, counts, settings.level);
        },
    )?;
    max_t.leave(&group, numbers, &drawn.counts);

    let ends = Position::of_interval(settings.resamples, settings.confidence_level);
    let tiles = columns.len().div_ceil(SURVEYED);
    let surveys = parallel::map(tiles, settings.threads, interrupted, |tile| {
        let members = tile * SURVEYED..columns.len().min((tile + 1) * SURVEYED);
        let mut of_columns = vec![Vec::with_capacity(chunks * CHUNK); members.len()];
        for row in sums.chunks_exact(matrix.width) {
            for (of_column, sums) in of_columns.iter_mut().zip(&row[members.clone()]) {
                of_column.extend_from_slice(sums);
            }
        }
        let mut tails = Tails::default();
        let found = members.zip(of_columns).map(|(column, sums)| {
            let sums = &sums[..settings.resamples];
            settings.level.run(TakeSurvey {
                sums,
                column,
                slack: columns[column].slack,
                ends,
                tails: &mut tails,
            })
        });
        found.collect::<Vec<_>>()
    })?;
    drop(sums);
    let mut surveys: Vec<Survey> = surveys.into_iter().flatten().collect();
    let mut candidates: Vec<Candidate> = surveys
        .iter_mut()
        .flat_map(|survey| survey.candidates.drain(..))
        .collect();
    add_up_exactly(&mut candidates, columns, &drawn, settings, interrupted)?;
    candidates.sort_unstable_by_key(|candidate| candidate.column);
    let mut candidates = candidates.as_slice();
    Ok(surveys
        .iter()
        .zip(columns)
        .enumerate()
        .map(|(number, (survey, column))| {
            let own;
            (own, candidates) = candidates.split_at(candidates.partition_point(|candidate| candidate.column <= number));
            summarise(survey, column, own, ends)
        })
        .collect())
}

fn bootstrap_alone(
    column: &Column,
    settings: Settings<'_>,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<Summary, Stop> {
    let alone = bootstrap::Settings {
        resamples: settings.resamples,
        seed: settings.seed,
        threads: settings.threads,
        level: settings.level,
    };
    bootstrap::paired_bootstrap(&column.deltas, alone, settings.confidence_level, interrupted)
}

/// Surveys the rounded sums of one comparison.
struct TakeSurvey<'a> {
    sums: &'a [i32],
    column: usize,
    slack: i32,
    ends: [Position; 2],
    tails: &'a mut Tails,
}

impl Kernel for TakeSurvey<'_> {
    type Output = Survey;
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> Survey {
        survey(self.sums, self.column, self.slack, self.ends, self.tails)
    }
}

#[inline(always)]
fn survey(sums: &[i32], column: usize, slack: i32, ends: [Position; 2], tails: &mut Tails) -> Survey {
    let ends = Window::around(sums, ends, slack, tails);
    let negative = sums.iter().map(|&sum| u32::from(sum < -slack)).sum::<u32>() as usize;
    let positive = sums.iter().map(|&sum| u32::from(sum > slack)).sum::<u32>() as usize;
    let mut candidates = Vec::new();
    if slack > 0 {
        let wanted = |sum: i32| ends[0].holds(sum) || ends[1].holds(sum) || (-slack <= sum && sum <= slack);
        for (chunk, sums) in sums.chunks(64).enumerate() {
            // Hardly any sum is wanted, so most chunks are passed over by vector comparisons.
            if sums.iter().fold(false, |any, &sum| any | wanted(sum)) {
                let numbered = sums.iter().enumerate().filter(|&(_, &sum)| wanted(sum));
                candidates.extend(numbered.map(|(within, &rounded)| Candidate {
                    resample: 64 * chunk + within,
                    column,
                    rounded,
                    sum: 0.0,
                }));
            }
        }
    }
    Survey {
        ends,
        negative,
        near_zero: sums.len() - negative - positive,
        positive,
        candidates,
    }
}

/// Draw the resamples of the candidates once more and add up their deltas.
fn add_up_exactly(
    candidates: &mut [Candidate],
    columns: &[&Column],
    drawn: &Drawn,
    settings: Settings<'_>,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<(), Stop> {
    let queries = columns[0].deltas.len();
    candidates.sort_unstable_by_key(|candidate| candidate.resample);
    let span = CHUNK * drawn.chunks_at_a_time;
    let together: Vec<&[Candidate]> = candidates
        .chunk_by(|one, other| one.resample / span == other.resample / span)
        .collect();
    let sums = parallel::map(together.len(), settings.threads, interrupted, |number| {
        let candidates = together[number];
        let first = candidates[0].resample / span * span;
        let last = candidates[candidates.len() - 1].resample;
        let mut stream = Draws::new(settings.seed, queries, settings.level);
        stream.return_to(&drawn.marks[first / span]);
        let mut indices = Vec::new();
        stream.read((last + 1 - first) * queries, &mut indices);
        let mut sums = Vec::with_capacity(candidates.len());
        let mut counts = vec![0; queries];
        for same in candidates.chunk_by(|one, other| one.resample == other.resample) {
            weights::count(&indices[(same[0].resample - first) * queries..][..queries], &mut counts);
            sums.extend(same.iter().map(|candidate| {
                let column = columns[candidate.column];
                column
                    .planes
                    .weighted_sum(&column.deltas, counts.iter().copied().map(i32::from))
            }));
        }
        sums
    })?;
    for (candidate, sum) in candidates.iter_mut().zip(sums.into_iter().flatten()) {
        candidate.sum = sum;
    }
    Ok(())
}

fn summarise(survey: &Survey, column: &Column, candidates: &[Candidate], ends: [Position; 2]) -> Summary {
    let queries = count(column.deltas.len());
    let near_zero = |beyond: fn(f64) -> bool| {
        if column.slack == 0 {
            return survey.near_zero;
        }
        let near = candidates
            .iter()
            .filter(|candidate| candidate.rounded.abs() <= column.slack);
        near.filter(|candidate| beyond(candidate.sum)).count()
    };
    let end = |window: Window, position: Position| {
        if column.slack == 0 {
            // The rounding is exact, and the window is no wider than the two order statistics.
            let mean = |sum: i32| f64::from(sum) * column.unit / column.lift / queries;
            return position.interpolate(mean(window.low), mean(window.high));
        }
        let mut sums: Vec<f64> = candidates
            .iter()
            .filter(|candidate| window.holds(candidate.rounded))
            .map(|candidate| candidate.sum)
            .collect();
        sums.sort_unstable_by(f64::total_cmp);
        let at = |rank: usize| sums[(rank - window.below).min(sums.len() - 1)] / queries;
        position.interpolate(at(position.lower), at(position.lower + 1))
    };
    Summary {
        low: end(survey.ends[0], ends[0]),
        high: end(survey.ends[1], ends[1]),
        non_positive: survey.negative + near_zero(|sum| sum <= 0.0),
        non_negative: survey.positive + near_zero(|sum| sum >= 0.0),
    }
}

/// The sign-flip test of each comparison.
fn flip_signs(
    columns: &[Column],
    settings: Settings<'_>,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<Vec<SignFlip>, Stop> {
    let queries = columns[0].deltas.len();
    let exact = queries <= EXACT_QUERIES;
    let (scheme, assignments) = if exact {
        (Scheme::EverySign, 1 << (queries - 1))
    } else {
        (Scheme::RandomSigns, settings.resamples)
    };
    let matrix = Matrix::new(columns.iter(), queries);
    let limits: Vec<Extreme> = columns.iter().map(Extreme::new).collect();
    let items = 0..assignments.div_ceil(CHUNK);
    let drawn = for_each_chunk(
        scheme,
        queries,
        items,
        settings,
        interrupted,
        |counts, sums, chunk, number| {
            let weights = chunk.fill();
            sums.clear();
            sums.resize(matrix.width, [0; CHUNK]);
            multiply(weights, &matrix.pairs, sums, settings.level);
            counts.resize(columns.len(), 0);
            let used = CHUNK.min(assignments - number * CHUNK);
            for (((sums, limit), column), total) in sums.iter().zip(&limits).zip(columns).zip(counts) {
                for (within, sum) in sums[..used].iter().map(|sum| sum.abs()).enumerate() {
                    *total += usize::from(
                        sum > limit.surely
                            || sum >= limit.possibly && limit.reached(column, weights.of_resample(within)),
                    );
                }
            }
        },
    )?;
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
struct Extreme {
    /// Exact magnitude, less the tolerance for ties.
    observed: f64,
    /// A rounded magnitude above this reaches the observed one.
    surely: i32,
    /// A rounded magnitude below this does not.
    possibly: i32,
}

impl Extreme {
    fn new(column: &Column) -> Self {
        let queries = column.deltas.len();
        let sum = column
            .planes
            .weighted_sum(&column.deltas, std::iter::repeat_n(1, queries));
        let tolerance = column.tolerance * column.lift / column.unit;
        #[expect(clippy::cast_possible_truncation, reason = "a cast saturates, which is as good")]
        let slack = column
            .slack
            .saturating_mul(2)
            .saturating_add(tolerance.ceil() as i32)
            .saturating_add(1);
        let rounded = column.sum.abs();
        Self {
            observed: sum.abs() - column.tolerance,
            surely: rounded.saturating_add(slack),
            possibly: rounded.saturating_sub(slack),
        }
    }

    fn reached(&self, column: &Column, signs: impl Iterator<Item = i32>) -> bool {
        column.planes.weighted_sum(&column.deltas, signs).abs() >= self.observed
    }
}

/// What is left of drawing all chunks.
struct Drawn {
    /// The sums, over all threads, of the counts that were kept.
    counts: Vec<usize>,
    /// Chunks that were drawn at a time.
    chunks_at_a_time: usize,
    /// Where the stream of indices stood each time.
    marks: Vec<Mark>,
}

/// Draw one chunk of resamples after the other and hand it to `work` with the chunk's item.
///
/// `work` keeps counts, and each thread has a scratch space beside them.
fn for_each_chunk<T: Send>(
    scheme: Scheme,
    queries: usize,
    items: impl Iterator<Item = T> + Send,
    settings: Settings<'_>,
    interrupted: &mut dyn FnMut() -> bool,
    work: impl Fn(&mut Vec<usize>, &mut Vec<[i32; CHUNK]>, Chunk<'_>, T) + Sync,
) -> Result<Drawn, Stop> {
    let numbers_a_chunk = CHUNK * scheme.numbers(queries);
    let chunks_at_a_time = WEIGHTS_AT_A_TIME.div_ceil(CHUNK * queries);
    // The random numbers come one after the other, whoever takes them; all that follows is each thread's own.
    let source = Mutex::new((
        Source::new(scheme, settings.seed, queries, settings.level),
        items.enumerate(),
        Vec::new(),
    ));
    let counts = parallel::work(
        settings.threads,
        interrupted,
        || {
            let weights = Weights::new(queries, settings.level);
            (Vec::new(), Vec::new(), weights, Vec::new(), Vec::new())
        },
        |(taken, numbers, weights, counts, scratch)| {
            let Ok(mut source) = source.lock() else { return false };
            let (stream, items, marks) = &mut *source;
            taken.extend(items.take(chunks_at_a_time));
            if taken.is_empty() {
                return false;
            }
            marks.extend(stream.mark());
            stream.read(taken.len() * numbers_a_chunk, numbers);
            drop(source);
            for (place, (number, item)) in taken.drain(..).enumerate() {
                let chunk = Chunk {
                    scheme,
                    number,
                    numbers: &numbers[place * numbers_a_chunk..],
                    weights,
                };
                work(counts, scratch, chunk, item);
            }
            true
        },
        |(_, _, _, counts, _)| counts,
    )?;
    let mut total = Vec::new();
    for counts in counts {
        total.resize(counts.len().max(total.len()), 0);
        for (total, count) in total.iter_mut().zip(counts) {
            *total += count;
        }
    }
    Ok(Drawn {
        counts: total,
        chunks_at_a_time,
        marks: source.into_inner().map(|(_, _, marks)| marks).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::paired_bootstrap;
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
        sweep(&comparisons, settings, &mut || false).unwrap()
    }

    fn alone(baseline: &[f64], candidate: &[f64], settings: Settings<'_>) -> Summary {
        let deltas: Vec<f64> = baseline
            .iter()
            .zip(candidate)
            .map(|(before, after)| after - before)
            .collect();
        let bootstrap = bootstrap::Settings {
            resamples: settings.resamples,
            seed: settings.seed,
            threads: 1,
            level: settings.level,
        };
        paired_bootstrap(&deltas, bootstrap, settings.confidence_level, &mut || false).unwrap()
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
        let alone = sweep(&alone, settings, &mut || false).unwrap();
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
            assert_eq!(
                sweep(&[comparison], settings, &mut || true),
                Err(Error::Stop(Stop::Interrupted))
            );
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
                sweep(&comparisons, SETTINGS, &mut || false),
                Err(Error::NotFinite(number))
            );
        }
    }
}
