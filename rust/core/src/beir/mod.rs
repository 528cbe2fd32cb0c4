//! Reading, checking and publishing BEIR datasets.

pub mod archive;
mod calls;
pub mod dataset;
pub mod decode;
pub mod digest;
pub mod identifier;
pub mod ids;
pub mod inspect;
pub mod judgments;
pub mod lanes;
pub mod lines;
pub mod mapping;
pub mod policy;
pub mod problem;
pub mod provenance;
pub mod publish;
pub mod qrels;
pub mod record;
mod retry;
pub mod source;
pub mod space;
pub mod write;
