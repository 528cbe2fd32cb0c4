//! The qrels reader takes and refuses the same rows as a plain reading of the rules.

use std::collections::BTreeMap;

use groundkit_core::beir::check::problem::Kind;
use groundkit_core::beir::check::qrels::{Accepts, HEADER, Qrels, Strings};
use groundkit_core::beir::source::file::Source;
use groundkit_core::text::is_space;

/// Take `data` as a qrels file.
///
/// # Panics
/// When rows or problems are not those that the rules give.
pub fn check(data: &[u8]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(directory.path().join("test.tsv"), data).expect("a temporary file");
    let source = Source::open(directory.path(), "test.tsv").expect("the file is there");
    let (qrels, content) = Qrels::read(&source, Accepts::default(), None).expect("the file is sound");
    let (queries, documents) = (strings(&qrels.queries), strings(&qrels.documents));
    let ids = queries
        .into_iter()
        .zip(documents)
        .map(|(query, document)| (query.to_owned(), document.to_owned()));
    let found: Vec<_> = qrels
        .lines
        .iter()
        .copied()
        .zip(ids)
        .zip(qrels.grades.iter().copied())
        .collect();
    let (rows, problems) = read_plainly(data);
    assert_eq!(found, rows);
    assert_eq!(qrels.problems.counts().collect::<BTreeMap<_, _>>(), problems);
    assert_eq!(content.size, data.len() as u64);
}

fn strings(column: &Strings) -> Vec<&str> {
    let range = |pair: &[i64]| usize::try_from(pair[0]).ok().zip(usize::try_from(pair[1]).ok());
    let string = |(start, end): (usize, usize)| std::str::from_utf8(&column.bytes[start..end]).ok();
    column
        .offsets
        .windows(2)
        .map(|pair| range(pair).and_then(string).expect("UTF-8 inside the buffer"))
        .collect()
}

type Row = ((u64, (String, String)), i64);

fn read_plainly(data: &[u8]) -> (Vec<Row>, BTreeMap<Kind, u64>) {
    let mut rows = Vec::new();
    let mut problems = BTreeMap::new();
    let mut refuse = |kind| *problems.entry(kind).or_insert(0) += 1;
    let mut has_header = false;
    let data = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data);
    for (number, line) in (1..).zip(data.split(|&byte| byte == b'\n')) {
        let Ok(line) = std::str::from_utf8(line) else {
            refuse(Kind::NotUtf8);
            continue;
        };
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.trim_matches(is_space).is_empty() {
            continue;
        }
        if !has_header {
            has_header = true;
            if line != HEADER {
                refuse(Kind::QrelsHeader);
            }
            continue;
        }
        let [query, document, score] = line.split('\t').collect::<Vec<_>>()[..] else {
            refuse(Kind::QrelsRow);
            continue;
        };
        if !is_safe(query) {
            refuse(Kind::UnsafeQueryId);
        }
        if !is_safe(document) {
            refuse(Kind::UnsafeDocumentId);
        }
        match score.parse() {
            Ok(grade) if !score.starts_with('+') => {
                rows.push(((number, (query.to_owned(), document.to_owned())), grade));
            }
            _ => refuse(Kind::QrelsScore),
        }
    }
    if !has_header {
        refuse(Kind::QrelsHeader);
    }
    (rows, problems)
}

fn is_safe(id: &str) -> bool {
    id.starts_with(|first: char| first.is_ascii_alphanumeric())
        && id
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || "._-".contains(character))
}
