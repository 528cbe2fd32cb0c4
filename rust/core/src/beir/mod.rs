//! Reading, checking and publishing BEIR datasets.

pub mod identifier;
pub mod lanes;
pub mod lines;
pub mod mapping;
pub mod record;
pub mod source;
pub mod text;
