//! What the fuzz targets assert, one module a target.

pub mod archive;
pub mod lines;
pub mod qrels;
pub mod record;
