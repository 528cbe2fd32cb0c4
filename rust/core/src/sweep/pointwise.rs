//! The percentile interval and the tail counts of each comparison.

use super::Settings;
use super::deltas::Deltas;
use super::draw::{Drawn, for_each_chunk};
use super::matmul::{Matrix, multiply};
use super::max_t::{self, MaxTMethod};
use super::order_statistics::{Tails, Window};
use super::weights::{self, CHUNK, Scheme};
use crate::bootstrap::mersenne::Draws;
use crate::bootstrap::summary::{Position, Summary};
use crate::bootstrap::{self, bootstrap_means, reserve, to_f64};
use crate::error::Error;
use crate::parallel;
use crate::simd::{Kernel, Simd};
use crate::stop::Stop;

/// Comparisons whose sums are gathered together, so that whole cache lines are read.
const SURVEYED: usize = 8;

/// One resample of one comparison whose rounded sum decides nothing, so that the exact one must.
struct Undecided {
    resample: usize,
    comparison: usize,
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
    undecided: Vec<Undecided>,
}

/// The percentile interval and the tail counts of each of `comparisons`, and what the max-T method needs on the way.
pub fn bootstrap_together(
    comparisons: &[&Deltas],
    numbers: &[usize],
    max_t: &mut MaxTMethod,
    settings: Settings<'_>,
    stop: &Stop,
) -> Result<Vec<Summary>, Error> {
    let queries = comparisons[0].values.len();
    let chunks = settings.resamples.div_ceil(CHUNK);
    let matrix = Matrix::new(comparisons.iter().copied(), queries);
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
        stop,
        |counts, _, chunk, (sums, maxima)| {
            multiply(chunk.fill(), &matrix.pairs, sums, settings.level);
            max_t::follow(statistics, sums, maxima, counts, settings.level);
        },
    )?;
    max_t.leave(&group, numbers, &drawn.counts);

    let ends = Position::of_interval(settings.resamples, settings.confidence_level);
    let tiles = comparisons.len().div_ceil(SURVEYED);
    let surveys = parallel::map(tiles, settings.threads, stop, |tile| {
        let members = tile * SURVEYED..comparisons.len().min((tile + 1) * SURVEYED);
        let mut by_comparison = vec![Vec::with_capacity(chunks * CHUNK); members.len()];
        for row in sums.chunks_exact(matrix.width) {
            for (gathered, sums) in by_comparison.iter_mut().zip(&row[members.clone()]) {
                gathered.extend_from_slice(sums);
            }
        }
        let mut tails = Tails::default();
        let found = members.zip(by_comparison).map(|(comparison, sums)| {
            let sums = &sums[..settings.resamples];
            settings.level.run(TakeSurvey {
                sums,
                comparison,
                slack: comparisons[comparison].slack,
                ends,
                tails: &mut tails,
            })
        });
        Ok(found.collect::<Vec<_>>())
    })?;
    drop(sums);
    let mut surveys: Vec<Survey> = surveys.into_iter().flatten().collect();
    let mut undecided: Vec<Undecided> = surveys
        .iter_mut()
        .flat_map(|survey| survey.undecided.drain(..))
        .collect();
    add_up_exactly(&mut undecided, comparisons, &drawn, settings, stop)?;
    undecided.sort_unstable_by_key(|one| one.comparison);
    let mut undecided = undecided.as_slice();
    Ok(surveys
        .iter()
        .zip(comparisons)
        .enumerate()
        .map(|(number, (survey, deltas))| {
            let own;
            (own, undecided) = undecided.split_at(undecided.partition_point(|one| one.comparison <= number));
            summarise(survey, deltas, own, ends)
        })
        .collect())
}

/// The percentile interval and the tail counts of one comparison, from exact sums alone.
pub fn bootstrap_alone(deltas: &Deltas, settings: Settings<'_>, stop: &Stop) -> Result<Summary, Error> {
    let alone = bootstrap::Settings {
        resamples: settings.resamples,
        seed: settings.seed,
        threads: settings.threads,
        level: settings.level,
    };
    let means = bootstrap_means(&deltas.values, alone, stop)?;
    bootstrap::summarise(means, settings.confidence_level, stop)
}

/// Surveys the rounded sums of one comparison.
struct TakeSurvey<'a> {
    sums: &'a [i32],
    comparison: usize,
    slack: i32,
    ends: [Position; 2],
    tails: &'a mut Tails,
}

impl Kernel for TakeSurvey<'_> {
    type Output = Survey;
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> Survey {
        survey(self.sums, self.comparison, self.slack, self.ends, self.tails)
    }
}

#[inline(always)]
fn survey(sums: &[i32], comparison: usize, slack: i32, ends: [Position; 2], tails: &mut Tails) -> Survey {
    let ends = Window::around(sums, ends, slack, tails);
    let negative = sums.iter().map(|&sum| u32::from(sum < -slack)).sum::<u32>() as usize;
    let positive = sums.iter().map(|&sum| u32::from(sum > slack)).sum::<u32>() as usize;
    let mut undecided = Vec::new();
    if slack > 0 {
        let wanted = |sum: i32| ends[0].holds(sum) || ends[1].holds(sum) || (-slack <= sum && sum <= slack);
        for (chunk, sums) in sums.chunks(64).enumerate() {
            // Hardly any sum is wanted, so most chunks are passed over by vector comparisons.
            if sums.iter().fold(false, |any, &sum| any | wanted(sum)) {
                let numbered = sums.iter().enumerate().filter(|&(_, &sum)| wanted(sum));
                undecided.extend(numbered.map(|(within, &rounded)| Undecided {
                    resample: 64 * chunk + within,
                    comparison,
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
        undecided,
    }
}

/// Draw the resamples of the undecided once more and add up their deltas.
fn add_up_exactly(
    undecided: &mut [Undecided],
    comparisons: &[&Deltas],
    drawn: &Drawn,
    settings: Settings<'_>,
    stop: &Stop,
) -> Result<(), Error> {
    let queries = comparisons[0].values.len();
    undecided.sort_unstable_by_key(|one| one.resample);
    let span = CHUNK * drawn.chunks_at_a_time;
    let together: Vec<&[Undecided]> = undecided
        .chunk_by(|one, other| one.resample / span == other.resample / span)
        .collect();
    let sums = parallel::map(together.len(), settings.threads, stop, |number| {
        let undecided = together[number];
        let first = undecided[0].resample / span * span;
        let last = undecided[undecided.len() - 1].resample;
        let mut stream = Draws::new(settings.seed, queries, settings.level);
        stream.return_to(&drawn.marks[first / span]);
        let mut indices = Vec::new();
        stream.read((last + 1 - first) * queries, &mut indices);
        let mut sums = Vec::with_capacity(undecided.len());
        let mut counts = vec![0; queries];
        for same in undecided.chunk_by(|one, other| one.resample == other.resample) {
            weights::count_draws(&indices[(same[0].resample - first) * queries..][..queries], &mut counts);
            sums.extend(same.iter().map(|one| {
                let deltas = comparisons[one.comparison];
                deltas
                    .planes
                    .weighted_sum(&deltas.values, counts.iter().copied().map(i32::from))
            }));
        }
        Ok(sums)
    })?;
    for (one, sum) in undecided.iter_mut().zip(sums.into_iter().flatten()) {
        one.sum = sum;
    }
    Ok(())
}

fn summarise(survey: &Survey, deltas: &Deltas, undecided: &[Undecided], ends: [Position; 2]) -> Summary {
    let queries = to_f64(deltas.values.len());
    let near_zero = |beyond: fn(f64) -> bool| {
        if deltas.slack == 0 {
            return survey.near_zero;
        }
        let near = undecided.iter().filter(|one| one.rounded.abs() <= deltas.slack);
        near.filter(|one| beyond(one.sum)).count()
    };
    let end = |window: Window, position: Position| {
        if deltas.slack == 0 {
            // The rounding is exact, and the window is no wider than the two order statistics.
            let mean = |sum: i32| f64::from(sum) * deltas.unit / deltas.magnification / queries;
            return position.interpolate(mean(window.low), mean(window.high));
        }
        let mut sums: Vec<f64> = undecided
            .iter()
            .filter(|one| window.holds(one.rounded))
            .map(|one| one.sum)
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
