//! The one error of the core crate: what ended the work, and where.

use std::io;

/// Why a piece of work ended without a result.
///
/// Bad *content* is not an error here but a [`Problem`](crate::beir::check::problem::Problem), so that all of it is found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller asked for an end.
    #[error("interrupted")]
    Interrupted,
    /// What the result, or the way to it, needs does not fit in memory.
    #[error("not enough memory")]
    OutOfMemory,
    /// The scores of a comparison are not finite, or so large that a sum of their deltas may not be.
    #[error("the scores of comparison {comparison} are not finite, or too large to add up")]
    NotFinite {
        /// Its number, from 0.
        comparison: usize,
    },
    /// A source file is absent, no regular file, or cannot be read.
    #[error("cannot read BEIR file {file}: {reason}")]
    Unreadable {
        /// Name relative to the dataset, such as `corpus.jsonl`.
        file: String,
        /// What the operating system or the reader says.
        reason: String,
    },
    /// A source file is not what it was when it was opened or checked.
    #[error("BEIR file {file} changed while it was in use ({what}); run again when nothing writes to it")]
    Changed {
        /// Name relative to the dataset, such as `corpus.jsonl`.
        file: String,
        /// The property that differs.
        what: &'static str,
    },
    /// The output cannot be written.
    #[error("{message}")]
    Output {
        /// Which path, what is wrong with it and what to do.
        message: String,
    },
}

impl Error {
    /// Say what is wrong with a path of the output.
    #[must_use]
    pub fn output(path: &std::path::Path, what: &str) -> Self {
        let path = crate::text::quote(&path.to_string_lossy());
        Self::Output {
            message: format!("output {path} {what}"),
        }
    }

    /// Wrap what the operating system says about reading `file`.
    #[must_use]
    pub fn unreadable(file: &str, error: &io::Error) -> Self {
        let mut reason = error.to_string();
        if let Some(number) = reason.find(" (os error ") {
            reason.truncate(number);
        }
        Self::Unreadable {
            file: file.to_owned(),
            reason,
        }
    }
}
