//! Reading, checking and publishing BEIR datasets.

pub mod mapping;
