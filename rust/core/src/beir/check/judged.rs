//! The identifiers that the qrels name, found among millions of others.

use std::collections::HashMap;

use foldhash::quality::RandomState;

use super::id_table::{FoldedHash, Hashing};

/// The identifiers that the qrels name, in the caller's order.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    pub(super) hashing: Hashing,
    positions: HashMap<Box<[u8]>, u32, RandomState>,
    pub(super) relevant: Vec<bool>,
    /// One bit for each hash, to pass over most other identifiers without a look-up.
    filter: Vec<u64>,
}

impl Judged {
    /// Collect distinct identifiers, each with whether a relevant row names it.
    #[must_use]
    pub fn new<'a>(judged: impl IntoIterator<Item = (&'a [u8], bool)>) -> Self {
        let mut positions = HashMap::<Box<[u8]>, u32, RandomState>::default();
        let mut relevant = Vec::new();
        for (id, is_relevant) in judged {
            positions.insert(id.into(), u32::try_from(relevant.len()).unwrap_or(u32::MAX));
            relevant.push(is_relevant);
        }
        let hashing = Hashing::default();
        // Sixteen bits an identifier: one look-up in sixteen is for nothing.
        let mut filter = vec![
            0;
            if positions.is_empty() {
                0
            } else {
                (positions.len() / 4).next_power_of_two()
            }
        ];
        for id in positions.keys() {
            let bit = hashing.fold(id).filter_bit(filter.len());
            filter[bit / 64] |= 1 << (bit % 64);
        }
        Self {
            hashing,
            positions,
            relevant,
            filter,
        }
    }

    /// How many identifiers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.relevant.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.relevant.is_empty()
    }

    #[inline]
    pub(super) fn position(&self, hash: FoldedHash, id: &[u8]) -> Option<u32> {
        if self.filter.is_empty() {
            return None;
        }
        let bit = hash.filter_bit(self.filter.len());
        if self.filter[bit / 64] >> (bit % 64) & 1 == 0 {
            return None;
        }
        self.positions.get(id).copied()
    }
}
