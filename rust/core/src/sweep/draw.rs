//! The resamples, drawn chunk by chunk and shared among threads.

use std::sync::{Mutex, PoisonError};

use super::Settings;
use super::weights::{CHUNK, Chunk, Scheme, Source, Weights};
use crate::bootstrap::mersenne::Mark;
use crate::error::Error;
use crate::parallel;
use crate::stop::Stop;

/// Weights made at a time at least, so that threads hardly ever wait for each other's drawing.
const WEIGHTS_AT_A_TIME: usize = 1 << 15;

/// What is left of drawing all chunks.
pub struct Drawn {
    /// The sums, over all threads, of the counts that were kept.
    pub counts: Vec<usize>,
    /// Chunks that were drawn at a time.
    pub chunks_at_a_time: usize,
    /// Where the stream of indices stood each time.
    pub marks: Vec<Mark>,
}

/// Draw one chunk of resamples after the other and hand it to `work` with the chunk's item.
///
/// `work` keeps counts, and each thread has a scratch space beside them.
pub fn for_each_chunk<T: Send>(
    scheme: Scheme,
    queries: usize,
    items: impl Iterator<Item = T> + Send,
    settings: Settings<'_>,
    stop: &Stop,
    work: impl Fn(&mut Vec<usize>, &mut Vec<[i32; CHUNK]>, Chunk<'_>, T) + Sync,
) -> Result<Drawn, Error> {
    let numbers_a_chunk = CHUNK * scheme.numbers(queries);
    let chunks_at_a_time = WEIGHTS_AT_A_TIME.div_ceil(CHUNK * queries);
    // The random numbers come one after the other, whoever takes them; all that follows is each thread's own.
    let source = Mutex::new((
        Source::new(scheme, settings.seed, queries, settings.level),
        items.enumerate(),
        Vec::new(),
    ));
    let counts = parallel::run(settings.threads, |_| {
        let (mut taken, mut numbers) = (Vec::new(), Vec::new());
        let mut weights = Weights::new(queries, settings.level);
        let (mut counts, mut scratch) = (Vec::new(), Vec::new());
        while !stop.is_requested() {
            {
                let mut source = source.lock().unwrap_or_else(PoisonError::into_inner);
                let (stream, items, marks) = &mut *source;
                taken.extend(items.take(chunks_at_a_time));
                if taken.is_empty() {
                    break;
                }
                marks.extend(stream.mark());
                stream.read(taken.len() * numbers_a_chunk, &mut numbers);
            }
            for (place, (number, item)) in taken.drain(..).enumerate() {
                let chunk = Chunk {
                    scheme,
                    number,
                    numbers: &numbers[place * numbers_a_chunk..],
                    weights: &mut weights,
                };
                work(&mut counts, &mut scratch, chunk, item);
            }
        }
        counts
    });
    stop.check()?;
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
        marks: source.into_inner().unwrap_or_else(PoisonError::into_inner).2,
    })
}
