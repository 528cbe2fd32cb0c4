//! The paired bootstrap: `CPython`'s index stream, exact sums and the summary of the bootstrap means.

pub mod exact_sum;
pub mod mersenne;
mod prefetch;
pub mod summary;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use exact_sum::{Planes, Superaccumulator, exact_sum, round_one, round_two};
use mersenne::Draws;
use prefetch::Batches;
use summary::Summary;

use crate::error::Error;
use crate::simd::{Kernel, Level, Simd};
use crate::stop::Stop;

/// Draws below which a second thread costs more than it saves: starting it takes as long as some 100,000 draws.
const SHARED_FROM: u64 = 2_000_000;
/// Means whose order statistics take so long to find that the stop must be looked at meanwhile.
const LONG_SUMMARY: usize = 1 << 22;
/// Time between two looks at the stop meanwhile.
const STOP_INTERVAL: Duration = Duration::from_millis(20);

/// How a bootstrap is run; none of it changes a bit of the result but `seed`.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// Number of resamples, at least one.
    pub resamples: usize,
    /// Absolute value of the seed, as little-endian 32-bit words.
    pub seed: &'a [u32],
    /// Most threads to use; more than two do not help.
    pub threads: usize,
    /// Vector instructions to use.
    pub level: Level,
}

/// The outcome of one comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Mean of the deltas.
    pub effect: f64,
    /// What the means of the resamples say.
    pub summary: Summary,
}

/// Compare scores paired by position (at least one, fewer than 2^32).
///
/// # Errors
///
/// [`Error::NotFinite`] for scores that cannot be compared, [`Error::Interrupted`] when the stop is requested,
/// [`Error::OutOfMemory`] when the means do not fit.
pub fn paired_bootstrap(
    baseline: &[f64],
    candidate: &[f64],
    settings: Settings<'_>,
    confidence_level: f64,
    stop: &Stop,
) -> Result<Comparison, Error> {
    let deltas = paired_deltas(baseline, candidate).ok_or(Error::NotFinite { comparison: 0 })?;
    Ok(Comparison {
        summary: summarise(bootstrap_means(&deltas, settings, stop)?, confidence_level, stop)?,
        effect: exact_sum(deltas.iter().copied()) / to_f64(deltas.len()),
    })
}

/// Summarise the means; where that takes long, another thread does it while this one looks at the stop.
pub(crate) fn summarise(mut means: Vec<f64>, confidence_level: f64, stop: &Stop) -> Result<Summary, Error> {
    if means.len() < LONG_SUMMARY {
        return Ok(Summary::new(&mut means, confidence_level));
    }
    let (work, taken) = mpsc::channel::<Vec<f64>>();
    let (done, result) = mpsc::channel();
    // Not joined: when stopped, it ends on its own and gives its memory back.
    let spawned = thread::Builder::new().spawn(move || {
        let summary = taken.recv().map(|mut means| Summary::new(&mut means, confidence_level));
        summary.map(|summary| done.send(summary))
    });
    drop(spawned);
    // Where the system gives no thread, nobody is there to take the work.
    if let Err(mpsc::SendError(mut means)) = work.send(means) {
        return Ok(Summary::new(&mut means, confidence_level));
    }
    loop {
        match result.recv_timeout(STOP_INTERVAL) {
            Ok(summary) => return Ok(summary),
            Err(_) => stop.check()?,
        }
    }
}

/// The means of all resamples of the deltas, in the order of the stream.
///
/// # Errors
///
/// [`Error::Interrupted`] and [`Error::OutOfMemory`], as for [`paired_bootstrap`].
pub fn bootstrap_means(deltas: &[f64], settings: Settings<'_>, stop: &Stop) -> Result<Vec<f64>, Error> {
    match Planes::new(deltas) {
        Planes::One { table, low } => plane_means(&table, settings, stop, |sum| round_one(sum, low)),
        Planes::Two { table, low, split } => plane_means(&table, settings, stop, |sum| round_two(sum, low, split)),
        Planes::Wide => wide_means(deltas, settings, stop),
    }
}

fn plane_means<const PLANES: usize>(
    table: &[[i64; PLANES]],
    settings: Settings<'_>,
    stop: &Stop,
    round: impl Fn([i64; PLANES]) -> f64,
) -> Result<Vec<f64>, Error> {
    let count = to_f64(table.len());
    let mut means = reserve(settings.resamples)?;
    let (mut sum, mut added) = ([0; PLANES], 0);
    draw(table.len(), settings, stop, |indices| {
        for (sum, part) in sum
            .iter_mut()
            .zip(settings.level.at_most_256_bits().run(AddUp { table, indices }))
        {
            *sum += part;
        }
        added += indices.len();
        if added == table.len() {
            means.push(round(sum) / count);
            (sum, added) = ([0; PLANES], 0);
        }
    })?;
    Ok(means)
}

/// Adds up the table entries at the indices: four independent sums, so that no addition waits for the one before.
struct AddUp<'a, const PLANES: usize> {
    table: &'a [[i64; PLANES]],
    indices: &'a [u32],
}

impl<const PLANES: usize> Kernel for AddUp<'_, PLANES> {
    type Output = [i64; PLANES];
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> [i64; PLANES] {
        let Self { table, indices } = self;
        // One look at the largest index, many at a time, is a third of the cost of one look at each.
        let largest = indices.iter().fold(0, |largest, &index| index.max(largest));
        assert!((largest as usize) < table.len(), "an index lies outside the table");
        let mut sums = [[0_i64; PLANES]; 4];
        let (fours, rest) = indices.as_chunks::<4>();
        for four in fours {
            for (sum, &index) in sums.iter_mut().zip(four) {
                // SAFETY: no index is larger than `largest`, which lies in the table.
                let entry = unsafe { table.get_unchecked(index as usize) };
                for (sum, &value) in sum.iter_mut().zip(entry) {
                    *sum += value;
                }
            }
        }
        for &index in rest {
            for (sum, &value) in sums[0].iter_mut().zip(&table[index as usize]) {
                *sum += value;
            }
        }
        std::array::from_fn(|plane| sums.iter().map(|sum| sum[plane]).sum())
    }
}

fn wide_means(deltas: &[f64], settings: Settings<'_>, stop: &Stop) -> Result<Vec<f64>, Error> {
    let count = to_f64(deltas.len());
    // One accumulator serves one resample after the other, so the draws come on one thread and in their order.
    let mut draws = Draws::new(settings.seed, deltas.len(), settings.level);
    let mut means = reserve(settings.resamples)?;
    for _ in 0..settings.resamples {
        stop.check()?;
        let mut sum = Superaccumulator::default();
        let mut left = deltas.len();
        while left > 0 {
            let indices = draws.take(left);
            for &index in indices {
                sum.add(deltas[index as usize]);
            }
            left -= indices.len();
            stop.check()?;
        }
        means.push(sum.round() / count);
    }
    Ok(means)
}

/// Candidate minus baseline, query by query; `None` where a delta is not finite or a sum of as many could be none.
///
/// The largest sum that any resample can have must be finite, so that no mean depends on the order of additions.
#[must_use]
pub fn paired_deltas(baseline: &[f64], candidate: &[f64]) -> Option<Vec<f64>> {
    let pairs = baseline.iter().zip(candidate);
    let deltas: Vec<f64> = pairs.map(|(before, after)| after - before).collect();
    let largest = deltas.iter().fold(0.0_f64, |largest, delta| largest.max(delta.abs()));
    let finite = deltas.iter().all(|delta| delta.is_finite()) && (largest * to_f64(deltas.len())).is_finite();
    finite.then_some(deltas)
}

/// A number of queries or resamples as a float.
#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
#[must_use]
pub(crate) fn to_f64(number: usize) -> f64 {
    number as f64
}

/// An empty vector with room for `length` elements.
pub(crate) fn reserve<T>(length: usize) -> Result<Vec<T>, Error> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(length).map_err(|_| Error::OutOfMemory)?;
    Ok(vector)
}

/// Draw `resamples * count` indices below `count` and hand them to `sink` in order, in pieces that lie within one
/// resample.
fn draw(count: usize, settings: Settings<'_>, stop: &Stop, mut sink: impl FnMut(&[u32])) -> Result<(), Error> {
    let mut left = (count as u64)
        .checked_mul(settings.resamples as u64)
        .ok_or(Error::OutOfMemory)?;
    let threads = if left < SHARED_FROM { 1 } else { settings.threads };
    let mut batches = Batches::new(Draws::new(settings.seed, count, settings.level), threads);
    let mut within = 0;
    while left > 0 {
        stop.check()?;
        batches.next(|indices| {
            let mut indices = &indices[..indices.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            left -= indices.len() as u64;
            while !indices.is_empty() {
                let (piece, rest) = indices.split_at(indices.len().min(count - within));
                sink(piece);
                within = if piece.len() == count - within {
                    0
                } else {
                    within + piece.len()
                };
                indices = rest;
            }
        });
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "test values are small enough")]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// The algorithm as it is written down: draw, add up exactly, divide.
    fn plain_means(deltas: &[f64], resamples: usize, seed: &[u32]) -> Vec<f64> {
        let mut draws = Draws::new(seed, deltas.len(), Level::Portable);
        (0..resamples)
            .map(|_| exact_sum((0..deltas.len()).map(|_| deltas[draws.take(1)[0] as usize])) / deltas.len() as f64)
            .collect()
    }

    fn means(deltas: &[f64], resamples: usize, seed: &[u32], threads: usize, level: Level) -> Vec<f64> {
        bootstrap_means(
            deltas,
            Settings {
                resamples,
                seed,
                threads,
                level,
            },
            &Stop::default(),
        )
        .unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_level_makes_the_means_of_the_plain_algorithm(
            deltas in vec(prop_oneof![-1.0..1.0, Just(0.0), any::<f64>().prop_filter("finite", |x| x.abs() < 1e300)], 1..400),
            seed in vec(any::<u32>(), 0..4),
            resamples in 1_usize..60,
        ) {
            let plain = plain_means(&deltas, resamples, &seed);
            for level in Level::available() {
                prop_assert_eq!(&means(&deltas, resamples, &seed, 1, level), &plain);
            }
        }
    }

    #[test]
    fn threads_never_change_a_bit() {
        let score = |i: u32| f64::from(i.wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 24) - 0.5;
        for count in [1, 49, 300, 4_097] {
            let deltas: Vec<f64> = (0..count).map(score).collect();
            let resamples = 2_500_000 / deltas.len();
            let one = means(&deltas, resamples, &[7], 1, Level::best());
            for threads in [2, 3, 5] {
                assert_eq!(means(&deltas, resamples, &[7], threads, Level::best()), one);
            }
        }
    }

    #[test]
    fn a_long_summary_is_that_of_one_thread_and_ends_when_asked_to() {
        let score = |i: u32| f64::from(i.wrapping_mul(2_654_435_761)) - 2e9;
        let means: Vec<f64> = (0..1 << 22).map(score).collect();
        assert!(means.len() >= LONG_SUMMARY);
        let plain = Summary::new(&mut means.clone(), 0.95);
        assert_eq!(summarise(means.clone(), 0.95, &Stop::default()), Ok(plain));
        assert_eq!(summarise(means, 0.95, &requested()), Err(Error::Interrupted));
    }

    fn requested() -> Stop {
        let stop = Stop::default();
        stop.request();
        stop
    }

    #[test]
    fn a_bootstrap_ends_when_it_is_asked_to() {
        for deltas in [vec![0.25; 100], vec![1e300, 1e-300]] {
            for threads in [1, 2] {
                let settings = Settings {
                    resamples: 100_000_000,
                    seed: &[7],
                    threads,
                    level: Level::best(),
                };
                assert_eq!(
                    bootstrap_means(&deltas, settings, &requested()),
                    Err(Error::Interrupted)
                );
            }
        }
    }
}
