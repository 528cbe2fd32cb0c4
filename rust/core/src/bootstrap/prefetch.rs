//! A second thread that draws ahead of the calling one, which never waits for it longer than a batch takes.
//!
//! The calling thread goes through the batches in order. Of every few it draws the first itself, and the others too
//! where the second thread has not got there: on a machine whose other cores are busy, the work takes as long as on one
//! thread. The second thread passes over the others' batches by moving its state on, which is cheap; the calling thread takes
//! over the state with each batch.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use super::mersenne::{Batch, Draws};

/// The first of as many batches is the calling thread's own, since it also adds up all of them.
const PERIOD: usize = 3;
/// How many batches the second thread may be ahead; their indices stay in the second-level cache.
const SLOTS: usize = 6;
/// A second thread that has been overtaken as often has no core to run on, and ends: some 10 ms of work.
const MOST_OVERTAKEN: usize = 2_000;
/// Looks at a batch that is being drawn: about as long as drawing it takes.
const LOOKS: u32 = 200;

/// The batches of a stream, in order.
pub struct Batches {
    draws: Draws,
    next: usize,
    shared: Option<Arc<Shared>>,
    /// Whether the second thread has lately been in time, so that it is worth looking twice.
    in_time: bool,
}

/// What the two threads share.
#[derive(Default)]
struct Shared {
    slots: [Slot; SLOTS],
    /// The batch that the calling thread is at.
    reached: AtomicUsize,
    ended: AtomicBool,
}

#[derive(Default)]
struct Slot {
    /// One more than the number of the batch in it.
    filled: AtomicUsize,
    batch: Mutex<Batch>,
}

impl Batches {
    /// The batches of `draws`, with a second thread where `threads` allows one and the system gives one.
    pub fn new(draws: Draws, threads: usize) -> Self {
        let shared = (threads > 1).then(Arc::<Shared>::default).filter(|shared| {
            let (draws, shared) = (draws.clone(), Arc::clone(shared));
            // Not joined: a thread that does not run at the moment would be waited for.
            thread::Builder::new().spawn(move || shared.fill(draws)).is_ok()
        });
        Self {
            draws,
            next: 0,
            shared,
            in_time: false,
        }
    }

    /// Hand the next batch to `sink`.
    pub fn next(&mut self, sink: impl FnOnce(&[u32])) {
        let number = self.next;
        self.next += 1;
        if let Some(shared) = &self.shared {
            shared.reached.store(number, Ordering::Release);
            if !number.is_multiple_of(PERIOD)
                && shared.wait_for(number, &mut self.in_time)
                && let Ok(batch) = shared.slots[number % SLOTS].batch.try_lock()
            {
                self.draws.continue_after(&batch);
                return sink(batch.indices());
            }
        }
        sink(self.draws.next_batch());
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.ended.store(true, Ordering::Relaxed);
        }
    }
}

impl Shared {
    /// Look for the batch; more than once only where the thread that draws it was in time before.
    fn wait_for(&self, number: usize, in_time: &mut bool) -> bool {
        let looks = if *in_time { LOOKS } else { 1 };
        *in_time = (0..looks).any(|look| {
            if look > 0 {
                std::hint::spin_loop();
            }
            self.slots[number % SLOTS].filled.load(Ordering::Acquire) == number + 1
        });
        *in_time
    }

    /// Draw ahead until the end.
    fn fill(&self, mut draws: Draws) {
        // Batches that the calling thread overtook, less those drawn in time.
        let mut overtaken = 0_usize;
        for number in 0.. {
            let mut waits = 0_u32;
            // The batch that lies in this slot must have been passed.
            while number >= self.reached.load(Ordering::Acquire) + SLOTS {
                if self.ended.load(Ordering::Relaxed) {
                    return;
                }
                waits += 1;
                if waits < LOOKS {
                    std::hint::spin_loop();
                } else {
                    thread::yield_now();
                }
            }
            if self.ended.load(Ordering::Relaxed) {
                return;
            }
            if number.is_multiple_of(PERIOD) {
                draws.skip_batch();
                continue;
            }
            if number <= self.reached.load(Ordering::Relaxed) {
                overtaken += 1;
                if overtaken > MOST_OVERTAKEN {
                    return;
                }
                draws.skip_batch();
                continue;
            }
            overtaken = overtaken.saturating_sub(1);
            let slot = &self.slots[number % SLOTS];
            if let Ok(mut batch) = slot.batch.lock() {
                draws.fill_batch(&mut batch);
            }
            slot.filled.store(number + 1, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Level;

    #[test]
    fn the_batches_are_those_of_one_thread() {
        let draws = Draws::new(&[7], 300, Level::best());
        let (mut alone, mut shared) = (Batches::new(draws.clone(), 1), Batches::new(draws, 2));
        for _ in 0..2_000 {
            alone.next(|expected| shared.next(|batch| assert_eq!(batch, expected)));
        }
    }

    #[test]
    fn a_batch_that_is_not_there_is_drawn_by_the_caller() {
        let draws = Draws::new(&[7], 300, Level::best());
        let mut alone = Batches::new(draws.clone(), 1);
        let mut waiting = Batches::new(draws, 1);
        waiting.shared = Some(Arc::default());
        for _ in 0..50 {
            alone.next(|expected| waiting.next(|batch| assert_eq!(batch, expected)));
        }
    }
}
