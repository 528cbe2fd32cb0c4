//! The two kernels of groundkit: a deterministic paired bootstrap and a streaming, checking reader of BEIR dumps.
//!
//! Nothing here knows Python. Plain data goes in (buffers, paths, numbers) and plain data comes out.

pub mod beir;
pub mod bootstrap;
pub mod error;
pub mod parallel;
pub mod simd;
pub mod stop;
pub mod sweep;
pub mod text;
