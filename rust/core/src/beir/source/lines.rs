//! Reading a file once, in blocks, on several threads: whole lines go to a parser, its results come back in file order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use blake3::hazmat::{ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use memchr::{memchr, memrchr};
use sha2::{Digest as _, Sha256};

use super::decode::Decoder;
use super::file::Source;
use crate::beir::digest::{Digest, HashName};
use crate::error::Error;
use crate::parallel;

/// Bytes of a block: a power of two, as the BLAKE3 tree needs, and small enough for the second-level cache.
const BLOCK: usize = 1 << 18;

/// Longest line that is read, in bytes: it is in memory as a whole, and parsing it cannot be interrupted. The longest
/// documents of BEIR have some megabytes.
pub const LINE_LIMIT: usize = 1 << 27;

/// How many blocks a thread may be ahead of the merging of results; bounds the memory of waiting results.
const LEAD: u64 = 8;

/// How often a waiting thread looks whether it is to go on.
const PATIENCE: Duration = Duration::from_millis(20);

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Whole lines of a file, each with its line feed except perhaps the last of the file.
#[derive(Clone, Copy, Debug)]
pub struct Region<'a> {
    /// The bytes of the lines.
    pub bytes: &'a [u8],
    /// Where they start in the file.
    pub offset: u64,
}

/// What a file holds, as a whole: the same for two people who have it packed in different ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// Hash of all bytes, where one was asked for.
    pub hash: Option<Digest>,
    /// How many bytes there are.
    pub size: u64,
}

/// Read `source` once on up to `threads` threads and return what its content is, all in all.
///
/// A packed source is unpacked on one thread at a time, while the others parse. `parse` sees every line exactly once,
/// whichever thread gets it; `merge` sees the results in file order, one call at a time, so that nothing depends on the
/// number of threads. The `hash` is taken on the way. A byte order mark at the start of the file is left out.
/// The stop of `source` ends it.
///
/// # Errors
/// [`Error::Unreadable`] for a failing read and for a line longer than [`LINE_LIMIT`], [`Error::Changed`] when the
/// file is not what it was when it was opened, [`Error::Interrupted`], and what `merge` returns.
pub fn read<R: Send>(
    source: &Source,
    threads: usize,
    hash: Option<HashName>,
    parse: &(impl Fn(Region<'_>) -> R + Sync),
    merge: &mut (impl FnMut(R) -> Result<(), Error> + Send),
) -> Result<Content, Error> {
    let supply = match source.packing() {
        None => Supply::Direct {
            ticket: AtomicU64::new(0),
            blocks: source.identity().size.div_ceil(BLOCK as u64),
        },
        Some(packing) => Supply::Unpacked(Mutex::new(Unpacked {
            decoder: Decoder::new(source.name(), packing.unpack()?),
            taken: 0,
            size: 0,
            ended: false,
        })),
    };
    let reading = Reading {
        source,
        supply,
        hash,
        ended: AtomicBool::new(false),
        advanced: Condvar::new(),
        queue: Mutex::new(Queue {
            next: 0,
            waiting: BTreeMap::new(),
            failure: None,
        }),
        order: Mutex::new(Order {
            carry: Vec::new(),
            carry_offset: 0,
            hash: hash.map(Running::new),
            merge,
        }),
        parse,
    };
    // Threads that cannot be started are not needed: the calling one does all that others leave.
    parallel::run(threads.min(reading.supply.parallelism()), |thread| {
        reading.work();
        if thread == 0 {
            let blocks = reading.supply.taken();
            reading.wait_while(|queue| queue.next < blocks);
        }
    });
    let queue = reading.queue.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(failure) = queue.failure {
        return Err(failure);
    }
    let order = reading.order.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !order.carry.is_empty() {
        let region = Region {
            bytes: &order.carry,
            offset: order.carry_offset,
        };
        (order.merge)(parse(region))?;
    }
    source.verify_unchanged()?;
    Ok(Content {
        hash: order.hash.map(Running::finish),
        size: match reading.supply {
            Supply::Direct { .. } => source.identity().size,
            Supply::Unpacked(unpacked) => lock(&unpacked).size,
        },
    })
}

struct Reading<'a, P, M, R> {
    source: &'a Source,
    supply: Supply,
    hash: Option<HashName>,
    /// Set when a thread failed or panicked.
    ended: AtomicBool,
    /// Signalled when `queue.next` or `ended` changes.
    advanced: Condvar,
    queue: Mutex<Queue<R>>,
    /// Held by the thread that merges; the others hand their blocks to it and go on.
    order: Mutex<Order<'a, M>>,
    parse: &'a P,
}

/// Where blocks come from.
enum Supply {
    /// The file itself, read anywhere.
    Direct {
        /// The next block that nobody has taken.
        ticket: AtomicU64,
        blocks: u64,
    },
    /// A decoder, which one thread drives while others parse what came out of it before.
    Unpacked(Mutex<Unpacked>),
}

struct Unpacked {
    decoder: Decoder,
    taken: u64,
    size: u64,
    ended: bool,
}

impl Supply {
    /// How many threads can have a block at once.
    fn parallelism(&self) -> usize {
        match self {
            Self::Direct { blocks, .. } => usize::try_from(*blocks).unwrap_or(usize::MAX),
            Self::Unpacked(_) => usize::MAX,
        }
    }

    /// How many blocks there are, once every one of them is taken.
    fn taken(&self) -> u64 {
        match self {
            Self::Direct { blocks, .. } => *blocks,
            Self::Unpacked(unpacked) => lock(unpacked).taken,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The blocks that are parsed and not merged.
struct Queue<R> {
    /// The block to merge next.
    next: u64,
    waiting: BTreeMap<u64, Block<R>>,
    failure: Option<Error>,
}

/// What is done in file order.
struct Order<'a, M> {
    /// The start of a line that goes on in the next block.
    carry: Vec<u8>,
    carry_offset: u64,
    hash: Option<Running>,
    merge: &'a mut M,
}

/// A block whose inner lines are parsed.
struct Block<R> {
    offset: u64,
    /// The end of a line that an earlier block started; the whole block where it has no line feed.
    head: Vec<u8>,
    /// Whether a line ends in this block; what follows `head`, if so.
    rest: Option<Rest<R>>,
    hashed: Option<Hashed>,
}

/// What a block adds to the hash of the file.
enum Hashed {
    Blake3 {
        subtree: ChainingValue,
        /// What the hash of the file is, if no block follows this one.
        whole: Option<blake3::Hash>,
    },
    /// The bytes themselves: SHA-256 takes all of them in order.
    Sha256(Vec<u8>),
}

impl Hashed {
    /// Hash block `number`, or take its bytes out of `buffer`.
    fn new(name: HashName, number: u64, buffer: &mut Vec<u8>) -> Self {
        match name {
            HashName::Blake3 => {
                let mut hasher = blake3::Hasher::new();
                hasher.set_input_offset(number * BLOCK as u64).update(buffer);
                Self::Blake3 {
                    subtree: hasher.finalize_non_root(),
                    whole: (number == 0).then(|| hasher.finalize()),
                }
            }
            HashName::Sha256 => Self::Sha256(std::mem::take(buffer)),
        }
    }
}

struct Rest<R> {
    /// What the lines gave that lie inside as a whole.
    inner: Option<R>,
    tail: Vec<u8>,
    tail_offset: u64,
}

impl<P, M, R> Reading<'_, P, M, R>
where
    R: Send,
    P: Fn(Region<'_>) -> R + Sync,
    M: FnMut(R) -> Result<(), Error> + Send,
{
    fn work(&self) {
        /// Lets nobody wait for a thread that panicked.
        struct Alarm<'a>(&'a AtomicBool);
        impl Drop for Alarm<'_> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    self.0.store(true, Ordering::Relaxed);
                }
            }
        }
        let _alarm = Alarm(&self.ended);
        let mut buffer = Vec::new();
        loop {
            match self.take(&mut buffer) {
                Ok(Some(number)) => self.deliver(number, self.parse_block(number, &mut buffer)),
                Ok(None) => return,
                Err(error) => {
                    self.end(error);
                    return;
                }
            }
        }
    }

    /// Fill `buffer` with the next block that nobody has taken. Returns its number, or nothing at the end.
    fn take(&self, buffer: &mut Vec<u8>) -> Result<Option<u64>, Error> {
        // A packed source is not read for every block.
        self.source.stop().check()?;
        match &self.supply {
            Supply::Direct { ticket, blocks } => {
                let number = ticket.fetch_add(1, Ordering::Relaxed);
                if number >= *blocks || !self.may_start(number) {
                    return Ok(None);
                }
                let offset = number * BLOCK as u64;
                let length = (self.source.identity().size - offset).min(BLOCK as u64);
                buffer.resize(usize::try_from(length).unwrap_or(BLOCK), 0);
                self.source.read_at(buffer, offset)?;
                Ok(Some(number))
            }
            Supply::Unpacked(unpacked) => {
                let mut unpacked = lock(unpacked);
                let number = unpacked.taken;
                if unpacked.ended || !self.may_start(number) {
                    return Ok(None);
                }
                buffer.resize(BLOCK, 0);
                let length = unpacked.decoder.fill(buffer)?;
                buffer.truncate(length);
                unpacked.size += length as u64;
                unpacked.ended = length < BLOCK;
                if length == 0 {
                    return Ok(None);
                }
                unpacked.taken += 1;
                Ok(Some(number))
            }
        }
    }

    /// Wait until block `number` may be read; false when the reading has ended instead.
    fn may_start(&self, number: u64) -> bool {
        self.wait_while(|queue| number >= queue.next + LEAD);
        !self.ended.load(Ordering::Relaxed)
    }

    /// Wait while `condition` holds and nothing ended the reading.
    fn wait_while(&self, condition: impl Fn(&Queue<R>) -> bool) {
        let mut queue = lock(&self.queue);
        while condition(&queue) && !self.ended.load(Ordering::Relaxed) {
            queue = self
                .advanced
                .wait_timeout(queue, PATIENCE)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            if self.source.stop().is_requested() {
                drop(queue);
                self.end(Error::Interrupted);
                return;
            }
        }
    }

    fn end(&self, failure: Error) {
        lock(&self.queue).failure.get_or_insert(failure);
        self.ended.store(true, Ordering::Relaxed);
        self.advanced.notify_all();
    }

    fn parse_block(&self, number: u64, buffer: &mut Vec<u8>) -> Block<R> {
        let offset = number * BLOCK as u64;
        let marked = if offset == 0 && buffer.starts_with(BYTE_ORDER_MARK) {
            BYTE_ORDER_MARK.len()
        } else {
            0
        };
        let (head, rest) = self.parse_lines(offset, marked, buffer);
        Block {
            offset: offset + marked as u64,
            head,
            rest,
            hashed: self.hash.map(|name| Hashed::new(name, number, buffer)),
        }
    }

    /// Parse the lines that lie inside a block as a whole. Returns what belongs to a line of an earlier block, and the
    /// rest where a line ends.
    fn parse_lines(&self, offset: u64, marked: usize, bytes: &[u8]) -> (Vec<u8>, Option<Rest<R>>) {
        let first = if offset == 0 {
            Some(marked)
        } else {
            memchr(b'\n', bytes).map(|position| position + 1)
        };
        let last = memrchr(b'\n', bytes).map(|position| position + 1);
        let (Some(first), Some(last)) = (first, last) else {
            return (bytes[marked..].to_vec(), None);
        };
        let inner = (first < last).then(|| {
            (self.parse)(Region {
                bytes: &bytes[first..last],
                offset: offset + first as u64,
            })
        });
        let rest = Rest {
            inner,
            tail: bytes[last..].to_vec(),
            tail_offset: offset + last as u64,
        };
        (bytes[marked..first].to_vec(), Some(rest))
    }

    /// Queue a block, and merge all that can be merged unless another thread is about that.
    fn deliver(&self, number: u64, block: Block<R>) {
        let mut queue = lock(&self.queue);
        queue.waiting.insert(number, block);
        // The thread that has `order` lets go of it while it holds `queue`, so that it has seen every block whose thread
        // came too late for `order`.
        let mut order = match self.order.try_lock() {
            Ok(order) => order,
            Err(TryLockError::Poisoned(order)) => order.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        loop {
            let next = queue.next;
            let Some(block) = queue.waiting.remove(&next) else {
                return;
            };
            drop(queue);
            if let Err(failure) = self.merge_block(&mut order, block) {
                self.end(failure);
                return;
            }
            queue = lock(&self.queue);
            queue.next += 1;
            self.advanced.notify_all();
        }
    }

    fn merge_block(&self, order: &mut Order<'_, M>, block: Block<R>) -> Result<(), Error> {
        if let (Some(hash), Some(hashed)) = (&mut order.hash, block.hashed) {
            hash.push(hashed);
        }
        if order.carry.is_empty() {
            order.carry_offset = block.offset;
        }
        if order.carry.len() + block.head.len() > LINE_LIMIT {
            return Err(Error::Unreadable {
                file: self.source.name().to_owned(),
                reason: format!(
                    "the line that starts at byte {} is longer than 128 MiB",
                    order.carry_offset
                ),
            });
        }
        order.carry.extend_from_slice(&block.head);
        if let Some(rest) = block.rest {
            if !order.carry.is_empty() {
                let parsed = (self.parse)(Region {
                    bytes: &order.carry,
                    offset: order.carry_offset,
                });
                (order.merge)(parsed)?;
            }
            if let Some(inner) = rest.inner {
                (order.merge)(inner)?;
            }
            order.carry = rest.tail;
            order.carry_offset = rest.tail_offset;
        }
        Ok(())
    }
}

/// The hash of the blocks so far.
enum Running {
    Blake3(Tree),
    Sha256(Sha256),
}

impl Running {
    fn new(name: HashName) -> Self {
        match name {
            HashName::Blake3 => Self::Blake3(Tree::default()),
            HashName::Sha256 => Self::Sha256(Sha256::new()),
        }
    }

    fn push(&mut self, block: Hashed) {
        match (self, block) {
            (Self::Blake3(tree), Hashed::Blake3 { subtree, whole }) => {
                tree.push(subtree);
                tree.whole = tree.whole.or(whole);
            }
            (Self::Sha256(hasher), Hashed::Sha256(bytes)) => hasher.update(&bytes),
            _ => unreachable!("all blocks are hashed alike"),
        }
    }

    fn finish(self) -> Digest {
        match self {
            Self::Blake3(tree) => tree.root().into(),
            Self::Sha256(hasher) => hasher.into(),
        }
    }
}

/// The BLAKE3 tree over equal blocks, of which only the last may be shorter.
#[derive(Default)]
struct Tree {
    /// Roots of the complete subtrees so far, the largest first.
    stack: Vec<ChainingValue>,
    pushed: u64,
    /// The hash of the file, if the first block is all of it.
    whole: Option<blake3::Hash>,
}

impl Tree {
    fn push(&mut self, subtree: ChainingValue) {
        // As many subtrees as bits in the count of blocks; the last pair waits, since it may be the root.
        while self.stack.len() > self.pushed.count_ones() as usize {
            let (right, left) = (self.stack.pop(), self.stack.pop());
            if let (Some(left), Some(right)) = (left, right) {
                self.stack.push(merge_subtrees_non_root(&left, &right, Mode::Hash));
            }
        }
        self.stack.push(subtree);
        self.pushed += 1;
    }

    fn root(mut self) -> blake3::Hash {
        while let (Some(right), Some(left)) = (self.stack.pop(), self.stack.pop()) {
            if self.stack.is_empty() {
                return merge_subtrees_root(&left, &right, Mode::Hash);
            }
            self.stack.push(merge_subtrees_non_root(&left, &right, Mode::Hash));
        }
        self.whole.unwrap_or_else(|| blake3::hash(b""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::Stop;
    use std::io::Write;

    /// Every line of `content` with its number and the hash, read on `threads` threads.
    fn lines_of(content: &[u8], threads: usize, hash: Option<HashName>) -> (Vec<Vec<u8>>, Option<Digest>) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::File::create(directory.path().join("f"))
            .unwrap()
            .write_all(content)
            .unwrap();
        let source = Source::open(directory.path(), "f").unwrap();
        let mut lines = Vec::new();
        let mut next_offset = None;
        let parse = |region: Region<'_>| {
            let lines: Vec<_> = region
                .bytes
                .split_inclusive(|&byte| byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect();
            (region.offset, region.bytes.len() as u64, lines)
        };
        let found = read(&source, threads, hash, &parse, &mut |(offset, length, more)| {
            assert_eq!(offset, next_offset.unwrap_or(offset));
            next_offset = Some(offset + length);
            lines.extend(more);
            Ok(())
        })
        .unwrap();
        assert_eq!(found.size, content.len() as u64);
        (lines, found.hash)
    }

    fn check(content: &[u8]) {
        let text = content.strip_prefix(BYTE_ORDER_MARK).unwrap_or(content);
        let expected: Vec<_> = text
            .split_inclusive(|&byte| byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        for (threads, name) in [1, 2, 5]
            .into_iter()
            .flat_map(|threads| [None, Some(HashName::Blake3), Some(HashName::Sha256)].map(|name| (threads, name)))
        {
            let (lines, hash) = lines_of(content, threads, name);
            assert_eq!(hash, name.map(|name| name.of(&[content])));
            assert!(lines == expected, "{} lines, expected {}", lines.len(), expected.len());
        }
    }

    #[test]
    fn every_line_comes_once_and_in_order_whatever_the_blocks_cut() {
        let line = |length: usize| [vec![b'x'; length], vec![b'\n']].concat();
        check(b"");
        check(b"\n");
        check(b"a");
        check(b"a\n\nb");
        check(&line(BLOCK - 1));
        check(&line(BLOCK));
        check(&line(BLOCK - 2));
        check(&[line(BLOCK - 1), line(BLOCK - 1), b"end".to_vec()].concat());
        check(&[line(3 * BLOCK + 17), line(5), line(2 * BLOCK)].concat());
        check(
            &(0..40_000)
                .flat_map(|number: usize| line(number * 7919 % 113))
                .collect::<Vec<_>>(),
        );
        for blocks in 1..12 {
            check(&vec![b'\n'; blocks * BLOCK + blocks % 2]);
        }
    }

    #[test]
    fn a_byte_order_mark_is_left_out_at_the_start_only() {
        check(b"\xef\xbb\xbf");
        check(b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n");
        check(&[BYTE_ORDER_MARK, &vec![b'x'; 2 * BLOCK]].concat());
    }

    #[test]
    fn a_file_that_shrinks_or_grows_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        for after in [1, 200_000, 2_000_000] {
            std::fs::write(&path, vec![b'\n'; 1_000_000]).unwrap();
            let source = Source::open(directory.path(), "f").unwrap();
            std::fs::write(&path, vec![b'\n'; after]).unwrap();
            let outcome = read(&source, 2, Some(HashName::Sha256), &|_| (), &mut |()| Ok(()));
            assert!(matches!(outcome, Err(Error::Changed { .. })), "{outcome:?}");
        }
    }

    #[test]
    fn an_interruption_ends_the_reading() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("f"), vec![b'\n'; 64 * BLOCK]).unwrap();
        let stop = Stop::default();
        let source = Source::open(directory.path(), "f").unwrap().stopped_by(&stop);
        let parse = |_: Region<'_>| stop.request();
        for threads in [1, 2, 5] {
            let outcome = read(&source, threads, None, &parse, &mut |()| Ok(()));
            assert!(matches!(outcome, Err(Error::Interrupted)), "{outcome:?}");
        }
    }

    #[test]
    fn a_failing_merge_ends_the_reading() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("f"), vec![b'\n'; 64 * BLOCK]).unwrap();
        let source = Source::open(directory.path(), "f").unwrap();
        let outcome = read(&source, 2, None, &|_| (), &mut |()| Err(source.changed("content")));
        assert!(
            matches!(outcome, Err(Error::Changed { what: "content", .. })),
            "{outcome:?}"
        );
    }
}
