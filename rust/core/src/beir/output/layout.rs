//! What an output holds, and where.

/// The directory of the documents.
pub const CORPUS: &str = "corpus";
/// The judgments; published last, since they name the documents.
pub const JUDGMENTS: &str = "judgments.jsonl";
/// The names of mapped identifiers.
pub const ID_MAP: &str = "id-map.parquet";
/// The record of what the dataset was made of.
pub const RECORD: &str = "adaptation.json";

/// The files that a run replaces, or removes where it writes none: they are about another corpus.
pub const FILES: [&str; 3] = [JUDGMENTS, ID_MAP, RECORD];

/// What the name of a staging directory ends with; all of it where it is inside the output.
pub const STAGING_SUFFIX: &str = ".groundkit-staging";

/// How documents are laid out below [`CORPUS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// All in one directory.
    #[default]
    Flat,
    /// In 256 directories, by the first byte of the BLAKE3 hash of the name.
    Sharded,
}
