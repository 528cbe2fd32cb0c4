//! One line of `corpus.jsonl` or `queries.jsonl`: strict JSON, of which three strings are read and the rest is checked.

pub mod classify;
pub mod scan;
pub mod string;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use string::{RawString, checked_string};

/// What stands between title and text.
pub const TITLE_SEPARATOR: &str = "\n\n";

/// The value of a field that is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Field<'a> {
    /// The object has no such key.
    #[default]
    Absent,
    /// A value that is not a string.
    NotString,
    /// A string.
    Text(RawString<'a>),
}

/// The fields that are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record<'a> {
    /// `_id`
    pub id: Field<'a>,
    /// `title`
    pub title: Field<'a>,
    /// `text`
    pub text: Field<'a>,
}

/// Why a line is no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The line is not UTF-8.
    #[error("not valid UTF-8 (byte {at} of the line)")]
    Utf8 {
        /// Byte of the line, from 1.
        at: usize,
    },
    /// The line is not JSON.
    #[error("{what} (byte {at} of the line)")]
    Syntax {
        /// What is wrong.
        what: &'static str,
        /// Byte of the line, from 1.
        at: usize,
    },
    /// The line is JSON, but no object.
    #[error("each line must be a JSON object")]
    NotAnObject,
    /// A field that is read stands twice in the object.
    #[error("the field '{0}' stands twice in one object")]
    Twice(&'static str),
    /// An escape stands for half of a surrogate pair.
    #[error("an escaped lone surrogate, which no UTF-8 text can hold (byte {at} of the line)")]
    Surrogate {
        /// Byte of the line, from 1.
        at: usize,
    },
}

impl<'a> Field<'a> {
    /// The string, or none.
    #[must_use]
    #[inline]
    pub fn text(self) -> Option<RawString<'a>> {
        match self {
            Field::Text(text) => Some(text),
            Field::Absent | Field::NotString => None,
        }
    }
}

impl Record<'_> {
    /// Length in characters of the document's text, zero where it has none, and a lower bound of its length in bytes.
    #[must_use]
    #[inline]
    pub fn document_length(&self) -> (usize, usize) {
        let length = |field: &Field<'_>| {
            field.text().map_or((0, 0), |text| {
                let text = text.strip();
                (text.characters(), text.least_bytes())
            })
        };
        let (title, text) = (length(&self.title), length(&self.text));
        if title.0 == 0 {
            text
        } else {
            (
                title.0 + TITLE_SEPARATOR.len() + text.0,
                title.1 + TITLE_SEPARATOR.len() + text.1,
            )
        }
    }

    /// The document's text: the stripped title, a blank line and the stripped text, or the stripped text alone.
    ///
    /// Borrowed where there is neither a title nor an escape.
    ///
    /// ```
    /// use groundkit_core::beir::record::scan::parse_line;
    /// let record = parse_line(br#"{"_id": "d1", "title": " T ", "text": "a\u00e9\n"}"#).unwrap().unwrap();
    /// assert_eq!(record.document_text(), "T\n\na\u{e9}");
    /// ```
    #[must_use]
    pub fn document_text(&self) -> Cow<'_, str> {
        match (self.title.text().map(RawString::strip), self.text.text()) {
            (None, Some(text)) => text.strip().decode(),
            (Some(title), Some(text)) if title.is_empty() => text.strip().decode(),
            (title, text) => {
                let mut document = Vec::new();
                if let Some(title) = title.filter(|title| !title.is_empty()) {
                    title.decode_into(&mut document);
                    document.extend_from_slice(TITLE_SEPARATOR.as_bytes());
                }
                if let Some(text) = text {
                    document.reserve(text.raw.len());
                    text.strip().decode_into(&mut document);
                }
                Cow::Owned(checked_string(document))
            }
        }
    }
}
