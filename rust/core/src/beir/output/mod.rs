//! Writing an adapted dataset, all or nothing, and telling later whether it is still the same.

pub mod adapt;
pub mod capacity;
pub mod fingerprint;
pub mod handle;
mod journal;
pub mod judgments;
pub mod layout;
pub mod obstacles;
pub mod staging;
mod system_calls;
