//! What is done, on request, about identifiers and documents that the strict rules refuse.

use std::borrow::Cow;
use std::collections::HashSet;

use foldhash::quality::RandomState;

use super::identifier::{check_document_id, is_judgment_id};
use super::mapping::adapted_id;

/// What the records of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `corpus.jsonl`
    Documents,
    /// `queries.jsonl`
    Queries,
}

/// Exceptions from the strict rules; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Give identifiers that are not admissible another name.
    pub map_ids: bool,
    /// Leave out documents without title and text, unless they are judged relevant.
    pub drop_empty: bool,
}

/// The name of every identifier of a file in the adapted dataset.
#[derive(Clone, Debug)]
pub struct Naming {
    role: Role,
    map_ids: bool,
    /// Admissible identifiers that would share a file, or a name that was given, with another.
    colliding: HashSet<Box<str>, RandomState>,
}

impl Naming {
    /// Names that are the identifiers, or with `map_ids` those that are admissible.
    #[must_use]
    pub fn new(role: Role, map_ids: bool) -> Self {
        Self {
            role,
            map_ids,
            colliding: HashSet::default(),
        }
    }

    /// Give an admissible identifier another name all the same; `false` where it has one already.
    pub fn add_colliding(&mut self, id: &str) -> bool {
        self.is_admissible(id) && self.colliding.insert(id.into())
    }

    /// Whether the rules take an identifier as it is.
    #[must_use]
    pub fn is_admissible(&self, id: &str) -> bool {
        match self.role {
            Role::Documents => check_document_id(id.as_bytes()).is_ok(),
            Role::Queries => is_judgment_id(id.as_bytes()),
        }
    }

    /// Whether the name of an identifier is another one.
    #[must_use]
    pub fn is_mapped(&self, id: &str) -> bool {
        self.map_ids && (!self.is_admissible(id) || self.colliding.contains(id))
    }

    /// The name of an identifier.
    #[must_use]
    pub fn name<'a>(&self, id: &'a str) -> Cow<'a, str> {
        if self.is_mapped(id) {
            Cow::Owned(adapted_id(id))
        } else {
            Cow::Borrowed(id)
        }
    }
}
