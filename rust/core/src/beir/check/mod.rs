//! What a dataset holds and what is wrong with it.

pub mod id_table;
pub mod identifier;
pub mod judged;
pub mod mapping;
pub mod naming;
pub mod problem;
pub mod qrels;
pub mod records;
pub mod space;
