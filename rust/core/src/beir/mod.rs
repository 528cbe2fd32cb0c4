//! Reading, checking and publishing BEIR datasets.

mod calls;
pub mod digest;
pub mod identifier;
pub mod ids;
pub mod inspect;
pub mod judgments;
pub mod mapping;
pub mod policy;
pub mod problem;
pub mod provenance;
pub mod publish;
pub mod qrels;
pub mod record;
pub(crate) mod retry;
pub mod source;
pub mod space;
pub mod write;
