//! What is wrong with a dataset: kinds, positions and words.

use std::collections::BTreeMap;

use crate::beir::record::Fault;

/// How many problems of one kind are kept for each file; all of them are counted.
pub const KEPT: usize = 100;

macro_rules! kinds {
    ($($(#[$documentation:meta])* $kind:ident = $name:literal,)*) => {
        /// What a problem is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Kind {
            $($(#[$documentation])* $kind,)*
        }

        impl Kind {
            /// The name by which programs know the kind.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    /// A line is not UTF-8.
    NotUtf8 = "not_utf8",
    /// A line is not JSON.
    InvalidJson = "invalid_json",
    /// A line is JSON, but no object.
    NotAnObject = "not_an_object",
    /// A field that is read stands twice in a row.
    RepeatedField = "repeated_field",
    /// An escape stands for half of a surrogate pair.
    LoneSurrogate = "lone_surrogate",
    /// `_id` is absent, empty or no string.
    MissingId = "missing_id",
    /// `title` is no string.
    TitleNotString = "title_not_string",
    /// `text` of a document is no string.
    TextNotString = "text_not_string",
    /// `text` of a query is absent, empty or no string.
    MissingText = "missing_text",
    /// A document id is outside the safe class.
    UnsafeDocumentId = "unsafe_document_id",
    /// A query id is outside the safe class.
    UnsafeQueryId = "unsafe_query_id",
    /// A document's file name would be too long.
    LongDocumentId = "long_document_id",
    /// A document id names a device on Windows.
    DeviceDocumentId = "device_document_id",
    /// Two documents have one id.
    DuplicateDocumentId = "duplicate_document_id",
    /// Two queries have one id.
    DuplicateQueryId = "duplicate_query_id",
    /// Two document ids differ in case only.
    CollidingDocumentIds = "colliding_document_ids",
    /// A document has neither title nor text.
    EmptyDocument = "empty_document",
    /// A query is white space only.
    EmptyQuery = "empty_query",
    /// A judged query's id cannot be the id of a judgment.
    InadmissibleQueryId = "inadmissible_query_id",
    /// The first line of the qrels is not the header.
    QrelsHeader = "qrels_header",
    /// A qrels row has not three fields.
    QrelsRow = "qrels_row",
    /// A grade is no integer of 64 bits.
    QrelsScore = "qrels_score",
}

/// One thing that is wrong in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What it is about.
    pub kind: Kind,
    /// The line of the file, from 1.
    pub line: u64,
    /// The identifier or value that it is about, or what the parser says.
    pub subject: String,
    /// The other identifier and its line, of two that clash.
    pub other: Option<(String, u64)>,
}

impl Problem {
    /// The message for people; `file` is relative to the dataset.
    #[must_use]
    pub fn message(&self, file: &str) -> String {
        let Self { line, subject, .. } = self;
        let quoted = || crate::text::quote(subject);
        let (other, other_line) = match &self.other {
            Some((other, line)) => (crate::text::quote(other), *line),
            None => (String::new(), 0),
        };
        let what = match self.kind {
            Kind::InvalidJson => return format!("invalid JSON in {file} line {line}: {subject}"),
            Kind::NotUtf8 | Kind::NotAnObject | Kind::RepeatedField | Kind::LoneSurrogate => subject.clone(),
            Kind::MissingId => "requires non-empty string field '_id'".to_owned(),
            Kind::TitleNotString => "field 'title' must be a string when present".to_owned(),
            Kind::TextNotString => "field 'text' must be a string when present".to_owned(),
            Kind::MissingText => "requires non-empty string field 'text'".to_owned(),
            Kind::UnsafeDocumentId => format!("unsafe BEIR document id {}", quoted()),
            Kind::UnsafeQueryId => format!("unsafe BEIR query id {}", quoted()),
            Kind::LongDocumentId => {
                format!(
                    "document id {} exceeds the filename limit of 255 bytes with '.txt'",
                    quoted()
                )
            }
            Kind::DeviceDocumentId => format!("document id {} is a reserved Windows device name", quoted()),
            Kind::DuplicateDocumentId => {
                format!("duplicate BEIR document id {}, first on line {other_line}", quoted())
            }
            Kind::DuplicateQueryId => format!("duplicate BEIR query id {}, first on line {other_line}", quoted()),
            Kind::CollidingDocumentIds => {
                format!(
                    "document ids {} and {other} (line {other_line}) collide when case is folded",
                    quoted()
                )
            }
            Kind::EmptyDocument => format!("BEIR document {} has no title or text", quoted()),
            Kind::EmptyQuery => format!("BEIR query {} is empty", quoted()),
            Kind::InadmissibleQueryId => {
                format!(
                    "BEIR query ids like {} are not admissible as groundkit judgment ids",
                    quoted()
                )
            }
            Kind::QrelsHeader => {
                "unexpected or missing BEIR qrels header; expected 'query-id<TAB>corpus-id<TAB>score'".to_owned()
            }
            Kind::QrelsRow => format!("invalid BEIR qrels row: {subject}"),
            Kind::QrelsScore => format!("invalid integer relevance score {}", quoted()),
        };
        format!("{file} line {line}: {what}")
    }
}

/// The problems of one file: the first [`KEPT`] of each kind, and how many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    kinds: BTreeMap<Kind, (u64, Vec<Problem>)>,
}

impl Problems {
    /// Count a problem; `problem` is only made when it is kept.
    pub fn add(&mut self, kind: Kind, line: u64, problem: impl FnOnce() -> (String, Option<(String, u64)>)) {
        let (count, kept) = self.kinds.entry(kind).or_default();
        *count += 1;
        if kept.len() < KEPT {
            let (subject, other) = problem();
            kept.push(Problem {
                kind,
                line,
                subject,
                other,
            });
        }
    }

    /// Count a fault of a line.
    pub fn add_fault(&mut self, fault: &Fault, line: u64) {
        let kind = match fault {
            Fault::Utf8 { .. } => Kind::NotUtf8,
            Fault::Syntax { .. } => Kind::InvalidJson,
            Fault::NotAnObject => Kind::NotAnObject,
            Fault::Twice(_) => Kind::RepeatedField,
            Fault::Surrogate { .. } => Kind::LoneSurrogate,
        };
        self.add(kind, line, || (fault.to_string(), None));
    }

    /// Take over the problems of the lines that follow the first `lines_before`.
    pub fn append(&mut self, later: Self, lines_before: u64) {
        for (kind, (count, problems)) in later.kinds {
            let (total, kept) = self.kinds.entry(kind).or_default();
            *total += count;
            let room = KEPT - kept.len();
            kept.extend(problems.into_iter().take(room).map(|problem| Problem {
                line: problem.line + lines_before,
                ..problem
            }));
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// How many there are of each kind.
    pub fn counts(&self) -> impl Iterator<Item = (Kind, u64)> + '_ {
        self.kinds.iter().map(|(&kind, &(count, _))| (kind, count))
    }

    /// Those that are kept, kind by kind, in file order within a kind.
    pub fn kept(&self) -> impl Iterator<Item = &Problem> + '_ {
        self.kinds.values().flat_map(|(_, kept)| kept)
    }

    /// Those that are kept, to be completed.
    pub fn kept_mut(&mut self) -> impl Iterator<Item = &mut Problem> + '_ {
        self.kinds.values_mut().flat_map(|(_, kept)| kept)
    }
}
