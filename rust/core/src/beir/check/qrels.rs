//! The rows of a qrels file, checked one by one; what they say together is for a query engine.

use super::identifier::is_safe;
use super::problem::{Kind, Problems};
use crate::beir::digest::HashName;
use crate::beir::source::file::Source;
use crate::beir::source::lines::{Content, Region, read};
use crate::error::Error;
use crate::text::is_space;

/// The first line of every qrels file.
pub const HEADER: &str = "query-id\tcorpus-id\tscore";

/// Strings in one buffer; string `i` is `bytes[offsets[i]..offsets[i + 1]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strings {
    /// All strings, one after the other.
    pub bytes: Vec<u8>,
    /// Where each starts, and where the last ends.
    pub offsets: Vec<i64>,
}

impl Default for Strings {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            offsets: vec![0],
        }
    }
}

impl Strings {
    fn push(&mut self, string: &str) {
        self.bytes.extend_from_slice(string.as_bytes());
        self.offsets.push(i64::try_from(self.bytes.len()).unwrap_or(i64::MAX));
    }
}

/// The well-formed rows of a qrels file, as columns, and the problems of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Qrels {
    /// Line of each row, from 1.
    pub lines: Vec<u64>,
    /// Query id of each row.
    pub queries: Strings,
    /// Document id of each row.
    pub documents: Strings,
    /// Grade of each row.
    pub grades: Vec<i64>,
    /// What is wrong.
    pub problems: Problems,
    /// Whether identifiers outside the safe class are taken.
    accepts: Accepts,
    seen_lines: u64,
    seen_header: bool,
}

/// Which identifiers outside the safe class are taken, since they get another name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepts {
    /// Document ids.
    pub documents: bool,
    /// Query ids.
    pub queries: bool,
}

impl Qrels {
    /// Read and check all rows of `source`. Returns them with size and hash of the file.
    ///
    /// # Errors
    /// As [`read`].
    pub fn read(source: &Source, accepts: Accepts, hash: Option<HashName>) -> Result<(Self, Content), Error> {
        let mut qrels = Self {
            accepts,
            ..Self::default()
        };
        // Rows depend on the header before them, so that they are taken in order; these files are small.
        let copy = |region: Region<'_>| region.bytes.to_vec();
        let mut add = |lines: Vec<u8>| {
            qrels.add_lines(&lines);
            Ok(())
        };
        let content = read(source, 1, hash, &copy, &mut add)?;
        if !qrels.seen_header {
            qrels.problems.add(Kind::QrelsHeader, 1, || (String::new(), None));
        }
        Ok((qrels, content))
    }

    fn add_lines(&mut self, lines: &[u8]) {
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            self.seen_lines += 1;
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            match simdutf8::compat::from_utf8(line) {
                Err(error) => {
                    let message = format!("not valid UTF-8 (byte {} of the line)", error.valid_up_to() + 1);
                    self.problems.add(Kind::NotUtf8, self.seen_lines, || (message, None));
                }
                Ok(line) if line.chars().all(is_space) => {}
                Ok(line) => self.add_row(line),
            }
        }
    }

    fn add_row(&mut self, row: &str) {
        let line = self.seen_lines;
        if !self.seen_header {
            self.seen_header = true;
            if row != HEADER {
                self.problems.add(Kind::QrelsHeader, line, || (String::new(), None));
            }
            return;
        }
        let mut fields = row.split('\t');
        let (Some(query), Some(document), Some(score), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            let found = row.split('\t').count();
            self.problems.add(Kind::QrelsRow, line, || {
                (format!("expected three tab-separated fields, found {found}"), None)
            });
            return;
        };
        let is_taken = |id: &str, accepts_any: bool| is_safe(id.as_bytes()) || (accepts_any && !id.is_empty());
        if !is_taken(query, self.accepts.queries) {
            self.problems
                .add(Kind::UnsafeQueryId, line, || (query.to_owned(), None));
        }
        if !is_taken(document, self.accepts.documents) {
            self.problems
                .add(Kind::UnsafeDocumentId, line, || (document.to_owned(), None));
        }
        let Some(grade) = parse_grade(score) else {
            self.problems.add(Kind::QrelsScore, line, || (score.to_owned(), None));
            return;
        };
        self.lines.push(line);
        self.queries.push(query);
        self.documents.push(document);
        self.grades.push(grade);
    }
}

/// Parse `-?[0-9]+` within 64 bits.
fn parse_grade(score: &str) -> Option<i64> {
    let digits = score.strip_prefix('-').unwrap_or(score);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    score.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn qrels_of(content: &[u8]) -> Qrels {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("test.tsv"), content).unwrap();
        let source = Source::open(directory.path(), "test.tsv").unwrap();
        Qrels::read(&source, Accepts::default(), None).unwrap().0
    }

    fn problems(content: &str) -> Vec<(Kind, u64)> {
        qrels_of(format!("{HEADER}\n{content}").as_bytes())
            .problems
            .kept()
            .map(|problem| (problem.kind, problem.line))
            .collect()
    }

    fn rows(qrels: &Qrels) -> Vec<(u64, &str, &str, i64)> {
        let string = |strings: &'_ Strings, row: usize| {
            let range = |position: usize| usize::try_from(strings.offsets[position]).unwrap();
            range(row)..range(row + 1)
        };
        (0..qrels.lines.len())
            .map(|row| {
                let query = std::str::from_utf8(&qrels.queries.bytes[string(&qrels.queries, row)]).unwrap();
                let document = std::str::from_utf8(&qrels.documents.bytes[string(&qrels.documents, row)]).unwrap();
                (qrels.lines[row], query, document, qrels.grades[row])
            })
            .collect()
    }

    #[test]
    fn rows_keep_their_lines_whatever_the_line_ends() {
        let qrels = qrels_of(format!("\u{feff}\r\n{HEADER}\r\n\n \t\u{2028}\r\nq1\td1\t1\r\nq2\td2\t-07").as_bytes());
        assert_eq!(rows(&qrels), [(5, "q1", "d1", 1), (6, "q2", "d2", -7)]);
        assert!(qrels.problems.is_empty());
    }

    #[test]
    fn a_quotation_mark_is_text() {
        assert_eq!(problems("q1\t\"d1\t1\nq1\td1\t1\n"), [(Kind::UnsafeDocumentId, 2)]);
    }

    #[test]
    fn a_row_has_three_fields() {
        assert_eq!(
            problems("q1\td1\nq1\td1\t1\t\nq1 d1 1\n"),
            [(Kind::QrelsRow, 2), (Kind::QrelsRow, 3), (Kind::QrelsRow, 4)]
        );
    }

    #[test]
    fn a_grade_is_an_integer_of_64_bits() {
        for score in [
            "",
            "-",
            "1.0",
            "+1",
            " 1",
            "1 ",
            "١",
            "0x1",
            "1e3",
            "9223372036854775808",
            "--1",
        ] {
            assert_eq!(
                problems(&format!("q1\td1\t{score}\n")),
                [(Kind::QrelsScore, 2)],
                "{score:?}"
            );
        }
        for score in ["0", "-0", "007", "9223372036854775807", "-9223372036854775808"] {
            assert_eq!(problems(&format!("q1\td1\t{score}\n")), [], "{score:?}");
        }
    }

    #[test]
    fn the_header_comes_first() {
        for content in [
            "",
            "\n\n",
            "q1\td1\t1\n",
            "query-id\tcorpus-id\n",
            "QUERY-ID\tcorpus-id\tscore\n",
        ] {
            let qrels = qrels_of(content.as_bytes());
            assert_eq!(
                qrels.problems.counts().collect::<Vec<_>>(),
                [(Kind::QrelsHeader, 1)],
                "{content:?}"
            );
        }
    }

    #[test]
    fn a_line_that_is_not_utf8_is_named() {
        let qrels = qrels_of([HEADER.as_bytes(), b"\nq1\td\xe9\t1\nq1\td1\t1\n"].concat().as_slice());
        assert_eq!(
            qrels
                .problems
                .kept()
                .map(|problem| (problem.kind, problem.line))
                .collect::<Vec<_>>(),
            [(Kind::NotUtf8, 2)]
        );
        assert_eq!(rows(&qrels), [(3, "q1", "d1", 1)]);
    }

    proptest! {
        #[test]
        fn well_formed_rows_come_back(expected in prop::collection::vec(("[a-z0-9]{1,9}", "[A-Z0-9._-]{1,9}", any::<i64>()), 0..50)) {
            let content = expected.iter().fold(format!("{HEADER}\n"), |content, (query, document, grade)| {
                content + &format!("{query}\t{document}\t{grade}\n")
            });
            let qrels = qrels_of(content.as_bytes());
            let found: Vec<_> = rows(&qrels).into_iter().map(|(_, query, document, grade)| (query.to_owned(), document.to_owned(), grade)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
