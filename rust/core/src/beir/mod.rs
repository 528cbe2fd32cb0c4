//! Reading, checking and publishing BEIR datasets.

pub mod check;
pub mod digest;
pub mod output;
pub mod record;
pub(crate) mod retry;
pub mod source;
