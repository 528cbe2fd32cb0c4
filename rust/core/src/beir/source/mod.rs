//! Files of a dataset, opened and identified, unpacked, and cut into lines on several threads.

pub mod archive;
pub mod dataset;
pub mod decode;
pub mod file;
pub mod lines;
