//! Writing an adapted dataset, all or nothing, and telling later whether it is still the same.

pub mod adapt;
pub mod capacity;
pub mod fingerprint;
pub mod judgments;
pub mod layout;
pub mod staging;
pub(crate) mod system_calls;
