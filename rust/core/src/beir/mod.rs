//! Reading, checking and publishing BEIR datasets.

pub mod identifier;
pub mod ids;
pub mod inspect;
pub mod lanes;
pub mod lines;
pub mod mapping;
pub mod problem;
pub mod qrels;
pub mod record;
pub mod source;
pub mod text;
