//! Reading, checking and publishing BEIR datasets.

mod calls;
pub mod check;
pub mod digest;
pub mod judgments;
pub mod provenance;
pub mod publish;
pub mod record;
pub(crate) mod retry;
pub mod source;
pub mod write;
