//! What an output holds, and where.

/// What a published output holds, in the order of publication: judgments come last, since they name the documents.
pub const CORPUS: &str = "corpus";
/// See [`CORPUS`].
pub const JUDGMENTS: &str = "judgments.jsonl";

/// The names of mapped identifiers.
pub const ID_MAP: &str = "id-map.parquet";
/// What the dataset was made of.
pub const PROVENANCE: &str = "adaptation.json";

/// The files that a run replaces, or removes where it writes none: they tell about another corpus.
pub const FILES: [&str; 3] = [JUDGMENTS, ID_MAP, PROVENANCE];

/// Where documents stand below `corpus`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// All in one directory.
    #[default]
    Flat,
    /// In 256 directories, by the first byte of the BLAKE3 hash of the name.
    Sharded,
}
