//! The paired bootstrap: `CPython`'s index stream, exact sums and the summary of the bootstrap means.

pub mod level;
pub mod mersenne;
pub mod sum;
pub mod summary;

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

use level::Level;
use mersenne::Draws;
use sum::{Planes, Superaccumulator, round_one, round_two};
use summary::Summary;

/// Draws below which a second thread costs more than it saves.
const SHARED_FROM: u64 = 500_000;
/// Draws between two questions whether to stop: about 20 ms of work.
const DRAWS_A_QUESTION: usize = 10_000_000;

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
    /// Most threads to use.
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
    let mut means = bootstrap_means(deltas, settings, interrupted)?;
    Ok(Summary::new(&mut means, confidence_level))
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
    let mut sums: Vec<[AtomicI64; PLANES]> = reserve(settings.resamples)?;
    sums.resize_with(settings.resamples, || [const { AtomicI64::new(0) }; PLANES]);
    let mut means = reserve(settings.resamples)?;
    draw(table.len(), settings, interrupted, &|resample, indices, whole| {
        let part = add_up(table, indices);
        for (sum, part) in sums[resample].iter().zip(part) {
            // The draws of one resample may lie in two batches, and these on two threads; integers add up to the same.
            if whole {
                sum.store(part, Ordering::Relaxed);
            } else {
                sum.fetch_add(part, Ordering::Relaxed);
            }
        }
    })?;
    let count = table.len() as f64;
    means.extend(
        sums.into_iter()
            .map(|sum| round(sum.map(AtomicI64::into_inner)) / count),
    );
    Ok(means)
}

/// Add table entries with four independent sums, so that no addition waits for the one before.
#[inline]
fn add_up<const PLANES: usize>(table: &[[i64; PLANES]], indices: &[u32]) -> [i64; PLANES] {
    let mut sums = [[0_i64; PLANES]; 4];
    let (fours, rest) = indices.as_chunks::<4>();
    for four in fours {
        for (sum, &index) in sums.iter_mut().zip(four) {
            let entry = &table[index as usize];
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

/// Draw `resamples * count` indices below `count` and hand them to `sink` in pieces that lie within one resample:
/// its number, the indices and whether they are all of it.
///
/// Every thread generates the whole stream of state words, which is cheap, but tempers, rejects and sums only every
/// other batch, which is not. How many draws a batch accepts is known before they are summed, so the threads pass
/// on only that number.
fn draw<S: Fn(usize, &[u32], bool) + Sync>(
    count: usize,
    settings: Settings<'_>,
    interrupted: &mut dyn FnMut() -> bool,
    sink: &S,
) -> Result<(), Error> {
    let total = (count as u64)
        .checked_mul(settings.resamples as u64)
        .ok_or(Error::OutOfMemory)?;
    let threads = if total < SHARED_FROM {
        1
    } else {
        settings.threads.max(1)
    };
    let relay = Relay::default();
    std::thread::scope(|scope| {
        for thread in 1..threads {
            let relay = &relay;
            scope.spawn(move || draw_batches(thread, threads, count, total, settings, relay, &mut || false, sink));
        }
        draw_batches(0, threads, count, total, settings, &relay, interrupted, sink);
    });
    if relay.stopped.load(Ordering::Relaxed) {
        Err(Error::Interrupted)
    } else {
        Ok(())
    }
}

#[expect(
    clippy::too_many_arguments,
    reason = "what one thread needs to know, and nothing of it is shared elsewhere"
)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "resample numbers and positions within one fit a usize"
)]
fn draw_batches<S: Fn(usize, &[u32], bool)>(
    thread: usize,
    threads: usize,
    count: usize,
    total: u64,
    settings: Settings<'_>,
    relay: &Relay,
    interrupted: &mut dyn FnMut() -> bool,
    sink: &S,
) {
    let mut draws = Draws::new(settings.seed, count, settings.level);
    let mut since_question = 0;
    for batch in 0.. {
        if batch % threads != thread {
            draws.skip_batch();
            continue;
        }
        let mut indices = draws.next_batch();
        let Some(start) = relay.pass(batch, indices.len() as u64) else {
            return;
        };
        if start >= total {
            return;
        }
        indices = &indices[..indices.len().min(usize::try_from(total - start).unwrap_or(usize::MAX))];
        since_question += indices.len();
        let (mut resample, mut within) = ((start / count as u64) as usize, (start % count as u64) as usize);
        while !indices.is_empty() {
            let (piece, rest) = indices.split_at(indices.len().min(count - within));
            sink(resample, piece, piece.len() == count);
            (resample, within, indices) = (resample + 1, 0, rest);
        }
        if since_question >= DRAWS_A_QUESTION {
            since_question = 0;
            if interrupted() {
                relay.stopped.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// Passes the number of draws before a batch from thread to thread, in the order of the batches.
#[derive(Default)]
struct Relay {
    turn: AtomicUsize,
    drawn: AtomicU64,
    stopped: AtomicBool,
}

impl Relay {
    /// Wait for the turn of `batch`, add its draws and return how many lie before it; `None` when stopped.
    fn pass(&self, batch: usize, draws: u64) -> Option<u64> {
        let mut waits = 0_u32;
        while self.turn.load(Ordering::Acquire) != batch {
            if self.stopped.load(Ordering::Relaxed) {
                return None;
            }
            waits += 1;
            // The other thread is at most one batch behind, unless it does not run at all.
            if waits < 1_000 {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        if self.stopped.load(Ordering::Relaxed) {
            return None;
        }
        let before = self.drawn.load(Ordering::Relaxed);
        self.drawn.store(before + draws, Ordering::Relaxed);
        self.turn.store(batch + 1, Ordering::Release);
        Some(before)
    }
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "test values are small enough")]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use sum::exact_sum;

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
            let resamples = 1_200_000 / deltas.len();
            let one = means(&deltas, resamples, &[7], 1, Level::best());
            for threads in [2, 3, 5] {
                assert_eq!(means(&deltas, resamples, &[7], threads, Level::best()), one);
            }
        }
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
