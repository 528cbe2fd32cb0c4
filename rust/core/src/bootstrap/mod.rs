//! The paired bootstrap: `CPython`'s index stream, exact sums and the summary of the bootstrap means.

pub mod exact_sum;
pub mod mersenne;
mod prefetch;
pub mod summary;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use exact_sum::{Planes, Superaccumulator, round_one, round_two};
use mersenne::Draws;
use prefetch::Batches;
use summary::Summary;

use crate::simd::{Kernel, Level, Simd};

/// Draws below which a second thread costs more than it saves: starting it takes as long as some 100,000 draws.
const SHARED_FROM: u64 = 2_000_000;
/// Draws between two questions whether to stop: about 20 ms of work.
const DRAWS_A_QUESTION: usize = 10_000_000;
/// What clearing and rounding a superaccumulator costs, in draws.
const ROUNDING_IN_DRAWS: usize = 200;
/// Means whose order statistics take so long to find that the caller must be asked meanwhile.
const LONG_SUMMARY: usize = 1 << 22;
/// Time between two questions meanwhile.
const SUMMARY_QUESTION: Duration = Duration::from_millis(20);

/// Why a bootstrap did not finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The caller asked it to stop.
    #[error("interrupted")]
    Interrupted,
    /// The means of so many resamples do not fit in memory.
    #[error("not enough memory for the means of the resamples")]
    OutOfMemory,
}

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

/// Resample `deltas` (at least one, fewer than 2^32, finite, their number times the largest magnitude finite too) and
/// summarise the means of the resamples.
///
/// `interrupted` is asked on the calling thread every few milliseconds; `true` ends the work.
///
/// # Errors
///
/// [`Error::Interrupted`] when asked to stop, [`Error::OutOfMemory`] when the means do not fit.
pub fn paired_bootstrap(
    deltas: &[f64],
    settings: Settings<'_>,
    confidence_level: f64,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<Summary, Error> {
    let means = bootstrap_means(deltas, settings, interrupted)?;
    summarise(means, confidence_level, interrupted)
}

/// Summarise the means; where that takes long, another thread does it while this one asks whether to stop.
fn summarise(
    mut means: Vec<f64>,
    confidence_level: f64,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<Summary, Error> {
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
        match result.recv_timeout(SUMMARY_QUESTION) {
            Ok(summary) => return Ok(summary),
            Err(_) if interrupted() => return Err(Error::Interrupted),
            Err(_) => {}
        }
    }
}

/// The means of all resamples, in the order of the stream.
///
/// # Errors
///
/// As [`paired_bootstrap`].
pub fn bootstrap_means(
    deltas: &[f64],
    settings: Settings<'_>,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<Vec<f64>, Error> {
    match Planes::new(deltas) {
        Planes::One { table, low } => plane_means(&table, settings, interrupted, |sum| round_one(sum, low)),
        Planes::Two { table, low, split } => {
            plane_means(&table, settings, interrupted, |sum| round_two(sum, low, split))
        }
        Planes::Wide => wide_means(deltas, settings, interrupted),
    }
}

#[expect(clippy::cast_precision_loss, reason = "fewer than 2^32 deltas")]
fn plane_means<const PLANES: usize>(
    table: &[[i64; PLANES]],
    settings: Settings<'_>,
    interrupted: &mut dyn FnMut() -> bool,
    round: impl Fn([i64; PLANES]) -> f64,
) -> Result<Vec<f64>, Error> {
    let count = table.len() as f64;
    let mut means = reserve(settings.resamples)?;
    let (mut sum, mut added) = ([0; PLANES], 0);
    draw(table.len(), settings, interrupted, |indices| {
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

#[expect(clippy::cast_precision_loss, reason = "fewer than 2^32 deltas")]
fn wide_means(
    deltas: &[f64],
    settings: Settings<'_>,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<Vec<f64>, Error> {
    let count = deltas.len() as f64;
    // One accumulator serves one resample after the other, so the draws come on one thread and in their order.
    let mut draws = Draws::new(settings.seed, deltas.len(), settings.level);
    let mut means = reserve(settings.resamples)?;
    let mut since_question = 0;
    for _ in 0..settings.resamples {
        let mut sum = Superaccumulator::default();
        let mut left = deltas.len();
        while left > 0 {
            let indices = draws.take(left);
            for &index in indices {
                sum.add(deltas[index as usize]);
            }
            left -= indices.len();
            since_question += indices.len();
            if since_question >= DRAWS_A_QUESTION {
                since_question = 0;
                if interrupted() {
                    return Err(Error::Interrupted);
                }
            }
        }
        since_question += ROUNDING_IN_DRAWS;
        means.push(sum.round() / count);
    }
    Ok(means)
}

/// An empty vector with room for `length` elements.
pub(crate) fn reserve<T>(length: usize) -> Result<Vec<T>, Error> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(length).map_err(|_| Error::OutOfMemory)?;
    Ok(vector)
}

/// Draw `resamples * count` indices below `count` and hand them to `sink` in order, in pieces that lie within one
/// resample.
fn draw(
    count: usize,
    settings: Settings<'_>,
    interrupted: &mut dyn FnMut() -> bool,
    mut sink: impl FnMut(&[u32]),
) -> Result<(), Error> {
    let mut left = (count as u64)
        .checked_mul(settings.resamples as u64)
        .ok_or(Error::OutOfMemory)?;
    let threads = if left < SHARED_FROM { 1 } else { settings.threads };
    let mut batches = Batches::new(Draws::new(settings.seed, count, settings.level), threads);
    let (mut within, mut since_question) = (0, 0);
    while left > 0 {
        batches.next(|indices| {
            let mut indices = &indices[..indices.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            left -= indices.len() as u64;
            since_question += indices.len();
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
        if since_question >= DRAWS_A_QUESTION {
            since_question = 0;
            if interrupted() {
                return Err(Error::Interrupted);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "test values are small enough")]
mod tests {
    use super::*;
    use exact_sum::exact_sum;
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
            &mut || false,
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
        assert_eq!(summarise(means.clone(), 0.95, &mut || false), Ok(plain));
        assert_eq!(summarise(means, 0.95, &mut || true), Err(Error::Interrupted));
    }

    #[test]
    fn few_draws_a_resample_do_not_delay_a_question() {
        // Two deltas too far apart for planes: rounding the sums is most of the work.
        let settings = Settings {
            resamples: 200_000,
            seed: &[7],
            threads: 1,
            level: Level::best(),
        };
        let mut questions = 0;
        let mut count = || {
            questions += 1;
            false
        };
        bootstrap_means(&[1e300, 1e-300], settings, &mut count).unwrap();
        assert!(questions >= 3, "asked {questions} times");
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
                    bootstrap_means(&deltas, settings, &mut || true),
                    Err(Error::Interrupted)
                );
            }
        }
    }
}
