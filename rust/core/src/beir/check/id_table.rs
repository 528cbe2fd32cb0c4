//! All identifiers of a file, held exactly: duplicates and case collisions are found when an identifier comes in.
//!
//! Identifiers are packed in one arena (length, bytes). An open-addressing table over 64-bit slots points into it: 24
//! bits of the hash, 40 bits of offset. The table is split into 256 parts by eight further bits of the hash; each part
//! grows by itself, so that growing never holds the whole table twice.

use std::hash::BuildHasher;

use foldhash::quality::RandomState;

const PARTS: usize = 256;
const TAG_BITS: u32 = 24;
const OFFSET_BITS: u32 = 40;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;
const FIRST_SLOTS: usize = 16;

/// Identifiers whose slots are looked up before the first of them is inserted, so that their cache misses overlap.
const BATCH: usize = 16;

/// A hash of an identifier that is the same for all spellings that differ in ASCII case only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldedHash(u32);

impl FoldedHash {
    /// A bit of a filter of `words` 64-bit words, a power of two.
    pub(super) fn filter_bit(self, words: usize) -> usize {
        self.0 as usize & (words * 64 - 1)
    }
}

/// Makes the hashes of one table; seeded afresh, so that no input can be made to collide.
#[derive(Clone, Debug, Default)]
pub struct Hashing(RandomState);

impl Hashing {
    /// Hash `id` without regard to ASCII case.
    #[must_use]
    #[inline]
    pub fn fold(&self, id: &[u8]) -> FoldedHash {
        let length = id.len();
        // Two words that overlap hold all bytes of a short identifier; with its length, they tell it from all others.
        let hash = match (id.first_chunk(), id.last_chunk(), id.first_chunk(), id.last_chunk()) {
            (Some(&first), Some(&last), _, _) if length <= 16 => {
                self.hash_words(u64::from_le_bytes(first), u64::from_le_bytes(last), length)
            }
            (None, None, Some(&first), Some(&last)) => self.hash_words(
                u32::from_le_bytes(first).into(),
                u32::from_le_bytes(last).into(),
                length,
            ),
            (None, None, _, _) => {
                let word = id.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
                self.hash_words(word, 0, length)
            }
            _ => self.0.hash_one(id.to_ascii_lowercase().as_slice()),
        };
        FoldedHash((hash >> 32) as u32)
    }

    #[inline]
    fn hash_words(&self, first: u64, last: u64, length: usize) -> u64 {
        self.0.hash_one((lowercase(first), lowercase(last), length))
    }
}

/// Make the ASCII letters among eight bytes lower case.
#[inline]
fn lowercase(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * ONES;
    let low = word & !HIGH;
    // Bit 7 of each byte: at least 'A', above 'Z'; no carry leaves a byte.
    let from_a = low + ONES * (0x80 - 0x41);
    let above_z = low + ONES * (0x7f - 0x5a);
    let is_letter = (from_a ^ above_z) & !word & HIGH;
    word | is_letter >> 2
}

/// What inserting an identifier found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insertion<'a> {
    /// No identifier like it so far.
    New,
    /// The same identifier is there already.
    Duplicate,
    /// It differs from this one, the first of its spellings, in ASCII case only.
    Collision(&'a [u8]),
}

/// The identifiers seen so far.
#[derive(Debug)]
pub struct IdTable {
    arena: Vec<u8>,
    parts: Vec<Part>,
    /// Further spellings of an identifier that is in the table, by their exact bytes.
    ///
    /// In the table they would all start at one slot, and many of them would make it slow.
    spellings: std::collections::HashSet<Box<[u8]>, RandomState>,
}

#[derive(Debug, Default)]
struct Part {
    slots: Vec<u64>,
    used: usize,
}

impl Default for IdTable {
    fn default() -> Self {
        Self {
            // Offset zero means an empty slot.
            arena: vec![0],
            parts: std::iter::repeat_with(Part::default).take(PARTS).collect(),
            spellings: std::collections::HashSet::default(),
        }
    }
}

impl IdTable {
    /// Insert the identifiers that stand one after the other in `arena`, as [`push`] packs them.
    ///
    /// `report` is called for every one that is not new, with its position, itself and what was found.
    pub fn insert_all<'a>(
        &mut self,
        hashes: &[FoldedHash],
        arena: &'a [u8],
        mut report: impl FnMut(usize, &'a [u8], Insertion<'_>),
    ) {
        let base = self.arena.len();
        self.arena.extend_from_slice(arena);
        let mut rest = arena;
        for (batch, hashes) in hashes.chunks(BATCH).enumerate() {
            self.touch(hashes);
            for (position, &hash) in hashes.iter().enumerate() {
                let offset = base + (arena.len() - rest.len());
                let (id, after) = split(rest);
                rest = after;
                match self.insert(hash, id, offset) {
                    Insertion::New => {}
                    found => report(batch * BATCH + position, id, found),
                }
            }
        }
    }

    /// Look at the first slots of `hashes`, which brings them into the cache.
    #[inline]
    fn touch(&self, hashes: &[FoldedHash]) {
        let seen = hashes.iter().fold(0, |seen, &hash| {
            let slots = &self.parts[part_of(hash)].slots;
            seen | slots
                .get(tag_of(hash) & slots.len().wrapping_sub(1))
                .copied()
                .unwrap_or(0)
        });
        std::hint::black_box(seen);
    }

    /// Insert `id`, whose hash is `hash` and which stands in the arena at `offset`.
    #[inline]
    fn insert(&mut self, hash: FoldedHash, id: &[u8], offset: usize) -> Insertion<'_> {
        let tag = tag_of(hash);
        let part = &mut self.parts[part_of(hash)];
        if part.used * 4 >= part.slots.len() * 3 {
            part.grow();
        }
        let mask = part.slots.len() - 1;
        let mut position = tag & mask;
        loop {
            let slot = part.slots[position];
            if slot == 0 {
                part.slots[position] = (tag as u64) << OFFSET_BITS | offset as u64;
                part.used += 1;
                return Insertion::New;
            }
            if slot >> OFFSET_BITS == tag as u64 {
                let (first, _) = split(&self.arena[usize::try_from(slot & OFFSET_MASK).unwrap_or(usize::MAX)..]);
                if first == id {
                    return Insertion::Duplicate;
                }
                if first.eq_ignore_ascii_case(id) {
                    let is_new = self.spellings.insert(id.into());
                    return if is_new {
                        Insertion::Collision(first)
                    } else {
                        Insertion::Duplicate
                    };
                }
            }
            position = (position + 1) & mask;
        }
    }
}

impl IdTable {
    /// Whether an identifier is there, in any ASCII case; returns it as it is spelled there.
    #[must_use]
    pub fn find(&self, hash: FoldedHash, id: &[u8]) -> Option<&[u8]> {
        let slots = &self.parts[part_of(hash)].slots;
        let mask = slots.len().checked_sub(1)?;
        let tag = tag_of(hash);
        let mut position = tag & mask;
        while slots[position] != 0 {
            if slots[position] >> OFFSET_BITS == tag as u64 {
                let offset = usize::try_from(slots[position] & OFFSET_MASK).unwrap_or(usize::MAX);
                let (first, _) = split(&self.arena[offset..]);
                if first.eq_ignore_ascii_case(id) {
                    return Some(first);
                }
            }
            position = (position + 1) & mask;
        }
        None
    }

    /// All identifiers, in the order in which they came in.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> + '_ {
        let mut rest = &self.arena[1..];
        std::iter::from_fn(move || {
            let (id, after) = (!rest.is_empty()).then(|| split(rest))?;
            rest = after;
            Some(id)
        })
    }
}

impl Part {
    #[cold]
    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(FIRST_SLOTS);
        let mut slots = vec![0; size];
        for &slot in self.slots.iter().filter(|&&slot| slot != 0) {
            let mut position = usize::try_from(slot >> OFFSET_BITS).unwrap_or(0) & (size - 1);
            while slots[position] != 0 {
                position = (position + 1) & (size - 1);
            }
            slots[position] = slot;
        }
        self.slots = slots;
    }
}

fn part_of(hash: FoldedHash) -> usize {
    (hash.0 >> TAG_BITS) as usize
}

fn tag_of(hash: FoldedHash) -> usize {
    (hash.0 & ((1 << TAG_BITS) - 1)) as usize
}

/// Append an identifier to an arena: its length as LEB128, then its bytes.
#[inline]
pub fn push(arena: &mut Vec<u8>, id: &[u8]) {
    let mut length = id.len();
    while length >= 0x80 {
        #[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
        arena.push(length as u8 | 0x80);
        length >>= 7;
    }
    #[expect(clippy::cast_possible_truncation, reason = "below 0x80")]
    arena.push(length as u8);
    arena.extend_from_slice(id);
}

/// Take the identifier at the start of an arena; returns it and what follows.
#[must_use]
#[inline]
pub fn split(arena: &[u8]) -> (&[u8], &[u8]) {
    let mut length = 0;
    let mut position = 0;
    loop {
        let byte = arena[position];
        length |= usize::from(byte & 0x7f) << (7 * position);
        position += 1;
        if byte < 0x80 {
            return arena[position..].split_at(length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// Insert `ids` and compare every outcome with that of two hash maps.
    fn check<'a>(ids: impl IntoIterator<Item = &'a [u8]>) {
        let hashing = Hashing::default();
        let mut table = IdTable::default();
        let mut exact = std::collections::HashSet::new();
        let mut folded: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
        for id in ids {
            let mut packed = Vec::new();
            push(&mut packed, id);
            let mut outcome = (Insertion::New, Vec::new());
            table.insert_all(&[hashing.fold(id)], &packed, |_, _, found| match found {
                Insertion::Collision(first) => outcome = (Insertion::Collision(b""), first.to_vec()),
                Insertion::New | Insertion::Duplicate => outcome.0 = Insertion::Duplicate,
            });
            let first = folded.entry(id.to_ascii_lowercase()).or_insert_with(|| id.to_vec());
            let expected = if !exact.insert(id.to_vec()) {
                (Insertion::Duplicate, Vec::new())
            } else if first == id {
                (Insertion::New, Vec::new())
            } else {
                (Insertion::Collision(b""), first.clone())
            };
            assert_eq!(outcome, expected, "{}", String::from_utf8_lossy(id));
        }
    }

    #[test]
    fn many_identifiers_are_held_exactly() {
        let ids: Vec<_> = (0..200_000_u32)
            .map(|number| format!("{}", number.wrapping_mul(2_654_435_761) % 150_000))
            .collect();
        check(ids.iter().map(String::as_bytes));
    }

    #[test]
    fn long_identifiers_are_held_exactly() {
        let ids: Vec<_> = [0, 1, 32, 33, 127, 128, 16_383, 16_384, 100_000]
            .map(|length| vec![b'x'; length])
            .into();
        check(ids.iter().chain(&ids).map(Vec::as_slice));
    }

    #[test]
    fn many_spellings_of_one_identifier_stay_cheap() {
        let ids: Vec<Vec<u8>> = (0..1_u32 << 17)
            .map(|bits| {
                (0..17)
                    .map(|bit| if bits >> bit & 1 == 1 { b'A' } else { b'a' })
                    .collect()
            })
            .collect();
        check(ids.iter().chain(&ids).map(Vec::as_slice));
    }

    proptest! {
        #[test]
        fn a_hash_depends_on_the_folded_bytes_alone(id in prop::collection::vec(any::<u8>(), 0..40)) {
            let hashing = Hashing::default();
            prop_assert_eq!(hashing.fold(&id), hashing.fold(&id.to_ascii_uppercase()));
            prop_assert_eq!(hashing.fold(&id), hashing.fold(&id.to_ascii_lowercase()));
            let word: [u8; 8] = std::array::from_fn(|position| id.get(position).copied().unwrap_or(0));
            prop_assert_eq!(lowercase(u64::from_le_bytes(word)).to_le_bytes(), word.map(|byte| byte.to_ascii_lowercase()));
        }

        #[test]
        fn identifiers_that_meet_often_are_held_exactly(ids in prop::collection::vec("[aAbB]{0,3}|[aA]{40,41}", 0..200)) {
            check(ids.iter().map(String::as_bytes));
        }
    }
}
