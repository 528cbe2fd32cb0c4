//! Checking `corpus.jsonl` and `queries.jsonl` in one pass, and reading again what was checked.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

use super::id_table::{self, FoldedHash, Hashing, IdTable, Insertion};
use super::identifier::{Inadmissible, check_document_id, is_judgment_id, is_safe};
use super::judged::Judged;
use super::mapping::{NAME_LIMIT, adapted_id, looks_adapted};
use super::naming::{Naming, Policy, Role};
use super::problem::{Kind, Problems};
use super::space::Space;
use crate::beir::digest::HashName;
use crate::beir::record::classify::best_level;
use crate::beir::record::scan::scan_lines;
use crate::beir::record::string::RawString;
use crate::beir::record::{Field, Record};
use crate::beir::source::file::Source;
use crate::beir::source::lines::{Content, Region, read};
use crate::error::Error;
use crate::simd::{Kernel, Simd};

/// A file that was read once, whole.
#[derive(Debug)]
pub struct CheckedFile {
    /// The open file.
    pub source: Source,
    /// What its records are.
    pub role: Role,
    /// Size and hash of what it holds.
    pub content: Content,
    /// Records with an identifier that are kept.
    pub records: u64,
    /// Documents left out for want of title and text.
    pub dropped: u64,
    /// What was asked for.
    pub policy: Policy,
    /// The names of identifiers in the adapted dataset.
    pub naming: Naming,
    /// The identifiers that have another name, sorted by code point.
    pub mapped: Vec<Box<str>>,
    /// Characters of all texts as they are written.
    pub characters: u64,
    /// The space that all texts take.
    pub space: Space,
    /// The line of the first record of each judged identifier, in the order of [`Judged`].
    pub judged_lines: Vec<Option<u64>>,
    /// What is wrong.
    pub problems: Problems,
    visited: AtomicU64,
}

/// What the lines of one region gave.
#[derive(Default)]
struct RegionSummary {
    lines: u64,
    records: u64,
    /// Identifiers of the documents left out, and how many they are.
    dropped: Vec<Box<str>>,
    dropped_count: u64,
    /// Whether an identifier could be the name that another one gets.
    looks_adapted: bool,
    characters: u64,
    space: Space,
    /// Hash and line of each identifier; the identifiers themselves stand in `arena`.
    hashes: Vec<FoldedHash>,
    id_lines: Vec<u32>,
    arena: Vec<u8>,
    judged: Vec<(u32, u64)>,
    problems: Problems,
}

struct Examine<'a> {
    role: Role,
    policy: Policy,
    judged: &'a Judged,
    region: Region<'a>,
}

impl Kernel for Examine<'_> {
    type Output = RegionSummary;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> RegionSummary {
        let mut found = RegionSummary::default();
        found.lines = scan_lines(simd, self.region.bytes, |number, _, outcome| match outcome {
            Err(fault) => found.problems.add_fault(&fault, number + 1),
            Ok(record) => self.add_record(&record, number + 1, &mut found),
        });
        found
    }
}

impl Examine<'_> {
    #[inline(always)]
    fn add_record(&self, record: &Record<'_>, line: u64, found: &mut RegionSummary) {
        let Some(id) = record.id.text().filter(|id| !id.is_empty()) else {
            found.problems.add(Kind::MissingId, line, || (String::new(), None));
            return;
        };
        let id = id.bytes();
        let id = id.as_ref();
        let hash = self.judged.hashing.fold(id);
        let judged = self.judged.position(hash, id);
        let is_relevant = judged.is_some_and(|position| self.judged.relevant[position as usize]);
        let mut is_dropped = false;
        let subject = || (String::from_utf8_lossy(id).into_owned(), None);
        match self.role {
            Role::Documents => {
                if self.policy.map_ids {
                    found.looks_adapted |= looks_adapted(id);
                } else if let Err(broken) = check_document_id(id) {
                    let kind = match broken {
                        Inadmissible::Unsafe => Kind::UnsafeDocumentId,
                        Inadmissible::TooLong => Kind::LongDocumentId,
                        Inadmissible::Device => Kind::DeviceDocumentId,
                    };
                    found.problems.add(kind, line, subject);
                }
                let mut is_text = true;
                for (field, kind) in [(record.title, Kind::TitleNotString), (record.text, Kind::TextNotString)] {
                    if field == Field::NotString {
                        is_text = false;
                        found.problems.add(kind, line, || (String::new(), None));
                    }
                }
                let (characters, bytes) = record.document_length();
                if characters > 0 {
                    let is_renamed = self.policy.map_ids && check_document_id(id).is_err();
                    let name = if is_renamed { id.len().min(NAME_LIMIT) } else { id.len() };
                    found.space.add(bytes, name);
                }
                if characters == 0 && is_text {
                    if self.policy.drop_empty && !is_relevant {
                        is_dropped = true;
                    } else {
                        found.problems.add(Kind::EmptyDocument, line, subject);
                    }
                }
                found.characters += characters as u64;
            }
            Role::Queries => {
                if self.policy.map_ids {
                    found.looks_adapted |= looks_adapted(id);
                } else if !is_safe(id) {
                    found.problems.add(Kind::UnsafeQueryId, line, subject);
                } else if is_relevant && !is_judgment_id(id) {
                    found.problems.add(Kind::InadmissibleQueryId, line, subject);
                }
                match record.text.text().filter(|text| !text.is_empty()) {
                    None => found.problems.add(Kind::MissingText, line, || (String::new(), None)),
                    Some(text) => {
                        let characters = text.strip().characters();
                        if characters == 0 {
                            found.problems.add(Kind::EmptyQuery, line, subject);
                        }
                        found.characters += characters as u64;
                    }
                }
            }
        }
        if is_dropped {
            found.dropped_count += 1;
            if self.policy.map_ids {
                found.dropped.push(String::from_utf8_lossy(id).into());
            }
        } else {
            found.records += 1;
        }
        found.hashes.push(hash);
        // A region is a block or a line, so that it has no more lines than a block has bytes.
        found.id_lines.push(u32::try_from(line).unwrap_or(u32::MAX));
        id_table::push(&mut found.arena, id);
        if let Some(position) = judged {
            found.judged.push((position, line));
        }
    }
}

/// The sum of the regions so far, in file order.
struct FileSummary {
    role: Role,
    found: RegionSummary,
    table: IdTable,
    judged_lines: Vec<Option<u64>>,
    naming: Naming,
    map_ids: bool,
}

impl FileSummary {
    fn add(&mut self, more: RegionSummary) {
        let lines_before = self.found.lines;
        self.found.lines += more.lines;
        self.found.records += more.records;
        self.found.dropped.extend(more.dropped);
        self.found.dropped_count += more.dropped_count;
        self.found.looks_adapted |= more.looks_adapted;
        self.found.characters += more.characters;
        self.found.space.append(more.space);
        self.found.problems.append(more.problems, lines_before);
        for (position, line) in more.judged {
            self.judged_lines[position as usize].get_or_insert(line + lines_before);
        }
        let problems = &mut self.found.problems;
        self.table.insert_all(&more.hashes, &more.arena, |position, id, found| {
            let (kind, first) = match (found, self.role) {
                (Insertion::New, _) | (Insertion::Collision(_), Role::Queries) => return,
                (Insertion::Duplicate, Role::Documents) => (Kind::DuplicateDocumentId, id),
                (Insertion::Duplicate, Role::Queries) => (Kind::DuplicateQueryId, id),
                (Insertion::Collision(first), Role::Documents) if self.map_ids => {
                    // Both get another name; where they are not admissible, they have one already.
                    for id in [id, first] {
                        self.naming.add_colliding(&String::from_utf8_lossy(id));
                    }
                    return;
                }
                (Insertion::Collision(first), Role::Documents) => (Kind::CollidingDocumentIds, first),
            };
            let text = |id: &[u8]| String::from_utf8_lossy(id).into_owned();
            let line = lines_before + u64::from(more.id_lines[position]);
            // The line of the first one is looked up at the end.
            problems.add(kind, line, || (text(id), Some((text(first), 0))));
        });
    }
}

impl FileSummary {
    /// List the identifiers that get another name, those too that are spelled like a name that one of them gets.
    fn list_mapped(&mut self, hashing: &Hashing) -> Vec<Box<str>> {
        let text = |id: &[u8]| Box::<str>::from(String::from_utf8_lossy(id));
        if self.found.looks_adapted {
            let mut named: Vec<_> = self
                .table
                .iter()
                .map(text)
                .filter(|id| self.naming.is_mapped(id))
                .collect();
            while let Some(id) = named.pop() {
                let name = adapted_id(&id);
                if let Some(other) = self.table.find(hashing.fold(name.as_bytes()), name.as_bytes())
                    && self.naming.add_colliding(&String::from_utf8_lossy(other))
                {
                    named.push(text(other));
                }
            }
        }
        let dropped: HashSet<&str> = self.found.dropped.iter().map(AsRef::as_ref).collect();
        let mut mapped: Vec<Box<str>> = Vec::new();
        for id in self.table.iter().map(String::from_utf8_lossy) {
            if self.naming.is_mapped(&id) && !dropped.contains(id.as_ref()) {
                mapped.push(id.into());
            }
        }
        mapped.sort_unstable();
        mapped
    }
}

/// Read `source` once on up to `threads` threads, check every line and take the `hash`.
///
/// Only where a hash was taken, a second reading notices that the content changed and size and time did not.
///
/// # Errors
/// As [`read`]; what is wrong with the content is in [`CheckedFile::problems`] instead.
pub fn check(
    source: Source,
    role: Role,
    judged: &Judged,
    policy: Policy,
    hash: Option<HashName>,
    threads: usize,
) -> Result<CheckedFile, Error> {
    let level = best_level();
    let mut sum = FileSummary {
        role,
        found: RegionSummary::default(),
        table: IdTable::default(),
        judged_lines: vec![None; judged.len()],
        naming: Naming::new(role, policy.map_ids),
        map_ids: policy.map_ids,
    };
    let parse = |region: Region<'_>| {
        level.run(Examine {
            role,
            policy,
            judged,
            region,
        })
    };
    let mut merge = |found| {
        sum.add(found);
        let records = sum.found.records + sum.found.dropped_count;
        source.records_checked().store(records, Ordering::Relaxed);
        Ok(())
    };
    let content = read(&source, threads, hash, &parse, &mut merge)?;
    let mapped = if policy.map_ids {
        sum.list_mapped(&judged.hashing)
    } else {
        Vec::new()
    };
    let mut problems = sum.found.problems;
    let firsts: HashSet<String> = problems
        .kept()
        .filter_map(|problem| problem.other.as_ref())
        .map(|(first, _)| first.clone())
        .collect();
    if !firsts.is_empty() {
        drop(sum.table);
        let lines = find_lines(&source, &firsts, threads)?;
        for problem in problems.kept_mut() {
            if let Some((first, line)) = &mut problem.other {
                *line = lines.get(first).copied().unwrap_or(0);
            }
        }
    }
    Ok(CheckedFile {
        source,
        role,
        content,
        records: sum.found.records,
        dropped: sum.found.dropped_count,
        policy,
        naming: sum.naming,
        mapped,
        characters: sum.found.characters,
        space: sum.found.space,
        judged_lines: sum.judged_lines,
        problems,
        visited: AtomicU64::new(0),
    })
}

/// Find the first line of each of `ids`.
fn find_lines(source: &Source, ids: &HashSet<String>, threads: usize) -> Result<HashMap<String, u64>, Error> {
    let parse = |region: Region<'_>| {
        let mut found = Vec::new();
        let lines = each_record(region, |number, _, record| {
            if let Some(id) = record.id.text().map(RawString::decode)
                && let Some(id) = ids.get(id.as_ref())
            {
                found.push((id, number + 1));
            }
        });
        (lines, found)
    };
    let mut firsts = HashMap::new();
    let mut lines_before = 0;
    let mut merge = |(lines, found): (u64, Vec<(&String, u64)>)| {
        for (id, line) in found {
            firsts.entry(id.clone()).or_insert(line + lines_before);
        }
        lines_before += lines;
        Ok(())
    };
    read(source, threads, None, &parse, &mut merge)?;
    Ok(firsts)
}

/// Visit every record of `region`, passing over lines that are none. Returns the number of lines.
fn each_record<'a>(region: Region<'a>, visit: impl FnMut(u64, &'a [u8], Record<'a>)) -> u64 {
    struct Visit<'a, V>(Region<'a>, V);
    impl<'a, V: FnMut(u64, &'a [u8], Record<'a>)> Kernel for Visit<'a, V> {
        type Output = u64;
        #[inline(always)]
        fn run<S: Simd>(mut self, simd: S) -> u64 {
            scan_lines(simd, self.0.bytes, |number, line, outcome| {
                if let Ok(record) = outcome {
                    self.1(number, line, record);
                }
            })
        }
    }
    best_level().run(Visit(region, visit))
}

/// A document as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordText<'a> {
    /// `_id` as the corpus spells it.
    pub id: Cow<'a, str>,
    /// Title, blank line and text; empty where it has neither.
    pub text: Cow<'a, str>,
}

impl CheckedFile {
    /// How many documents [`CheckedFile::for_each_record`] has visited so far, in all calls.
    #[must_use]
    pub fn visited(&self) -> u64 {
        self.visited.load(Ordering::Relaxed)
    }

    /// Read the whole file again, visit every document, and prove that every byte is the one that was checked.
    ///
    /// Documents come in file order on one thread; on more, `visit` is called from all of them, in any order. What
    /// was done with the documents is good only if this returns `Ok`.
    ///
    /// # Errors
    /// [`Error::Changed`] when a byte, the size, the inode or the modification time differs, what `visit` returns, and
    /// as [`read`].
    pub fn for_each_record(
        &self,
        threads: usize,
        visit: &(impl Fn(RecordText<'_>) -> Result<(), Error> + Sync),
    ) -> Result<(), Error> {
        let parse = |region: Region<'_>| {
            let mut outcome = Ok(());
            let mut visited = 0;
            each_record(region, |_, _, record| {
                if outcome.is_ok()
                    && let Some(id) = record.id.text()
                {
                    visited += 1;
                    let text = match self.role {
                        Role::Documents => record.document_text(),
                        Role::Queries => record
                            .text
                            .text()
                            .map_or(Cow::Borrowed(""), |text| text.strip().decode()),
                    };
                    let document = RecordText { id: id.decode(), text };
                    // A file system may take a while for each.
                    outcome = self.source.stop().check().and_then(|()| visit(document));
                }
            });
            self.visited.fetch_add(visited, Ordering::Relaxed);
            outcome
        };
        let hash = self.content.hash.map(|digest| digest.name());
        let content = read(&self.source, threads, hash, &parse, &mut |outcome| outcome)?;
        if content == self.content {
            Ok(())
        } else {
            Err(self.source.changed("content"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beir::source::file::Source;

    fn check_content(
        content: &[u8],
        role: Role,
        judged: &[(&str, bool)],
        threads: usize,
    ) -> (CheckedFile, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("f.jsonl"), content).unwrap();
        let source = Source::open(directory.path(), "f.jsonl").unwrap();
        let judged = Judged::new(judged.iter().map(|&(id, relevant)| (id.as_bytes(), relevant)));
        (
            check(
                source,
                role,
                &judged,
                Policy::default(),
                Some(HashName::Blake3),
                threads,
            )
            .unwrap(),
            directory,
        )
    }

    fn messages(content: &str, role: Role) -> Vec<String> {
        let judged = [("Bad_Id", true), ("Fine_Id", false)];
        let (checked, _directory) = check_content(content.as_bytes(), role, &judged, 2);
        checked
            .problems
            .kept()
            .map(|problem| problem.message("f.jsonl"))
            .collect()
    }

    #[test]
    fn duplicates_and_collisions_name_both_lines() {
        let content = "\n{\"_id\":\"Abc\",\"text\":\"a\"}\n{\"_id\":\"d\",\"text\":\"a\"}\n{\"_id\":\"abC\",\"text\":\"a\"}\n{\"_id\":\"d\",\"text\":\"a\"}\n";
        assert_eq!(
            messages(content, Role::Documents),
            [
                "f.jsonl line 5: duplicate BEIR document id 'd', first on line 3",
                "f.jsonl line 4: document ids 'abC' and 'Abc' (line 2) collide when case is folded",
            ]
        );
        assert_eq!(
            messages(content, Role::Queries),
            ["f.jsonl line 5: duplicate BEIR query id 'd', first on line 3"]
        );
    }

    #[test]
    fn a_query_needs_the_judgment_pattern_only_with_a_relevant_row() {
        let content = "{\"_id\":\"Bad_Id\",\"text\":\"a\"}\n{\"_id\":\"Fine_Id\",\"text\":\"a\"}\n{\"_id\":\"Other_Id\",\"text\":\"a\"}\n";
        assert_eq!(
            messages(content, Role::Queries),
            ["f.jsonl line 1: BEIR query ids like 'Bad_Id' are not admissible as groundkit judgment ids"]
        );
    }

    #[test]
    fn the_title_of_a_query_is_not_read() {
        assert!(messages("{\"_id\":\"q\",\"text\":\"a\",\"title\":null}\n", Role::Queries).is_empty());
        assert_eq!(
            messages(
                "{\"_id\":\"q\",\"text\":\"a\",\"title\":1,\"title\":2}\n",
                Role::Queries
            )
            .len(),
            1
        );
    }

    #[test]
    fn the_lines_of_judged_records_are_kept() {
        let content = "{\"_id\":\"x\",\"text\":\"a\"}\r\n{\"title\":\"T\",\"_id\":\"d\\u0031\",\"text\":\" b\\n\"}";
        let (checked, _directory) = check_content(
            content.as_bytes(),
            Role::Documents,
            &[("absent", true), ("d1", true)],
            1,
        );
        assert_eq!(checked.judged_lines, [None, Some(2)]);
    }

    /// A corpus of every kind of trouble, larger than several blocks.
    fn troubled_corpus() -> Vec<u8> {
        let mut content = Vec::new();
        for number in 0..30_000_u32 {
            let line = match number % 97 {
                1 => "{broken".to_owned(),
                2 => String::new(),
                3 => format!("{{\"_id\": \"D{}\", \"text\": \"collides\"}}", number - 3),
                4 => format!("{{\"_id\": \"d{}\", \"text\": \"again\"}}", number - 4),
                5 => format!("{{\"_id\": \"../{number}\", \"text\": \"unsafe\"}}"),
                6 => format!("{{\"_id\": \"d{number}\", \"text\": \"\\ud800\"}}"),
                _ => format!(
                    "{{\"_id\": \"d{number}\", \"title\": \"na\u{ef}ve\", \"text\": \"{}\"}}",
                    "word ".repeat(number as usize % 50)
                ),
            };
            content.extend_from_slice(line.as_bytes());
            content.push(b'\n');
        }
        content
    }

    #[test]
    fn nothing_depends_on_the_number_of_threads() {
        let content = troubled_corpus();
        let judged = [("d0", true), ("d29999", true), ("D97", false), ("nowhere", true)];
        let (one, _one) = check_content(&content, Role::Documents, &judged, 1);
        assert!(one.problems.counts().count() >= 5);
        for threads in [2, 3, 8] {
            let (more, _more) = check_content(&content, Role::Documents, &judged, threads);
            assert_eq!(more.content, one.content);
            assert_eq!((more.records, more.characters), (one.records, one.characters));
            assert_eq!(more.judged_lines, one.judged_lines);
            assert_eq!(more.problems, one.problems);
        }
    }

    #[test]
    fn the_second_reading_sees_the_same_documents() {
        let (checked, directory) = check_content(&troubled_corpus(), Role::Documents, &[], 2);
        let characters = std::sync::atomic::AtomicU64::new(0);
        let visit = |document: RecordText<'_>| {
            let count = document.text.chars().count() as u64;
            characters.fetch_add(count, std::sync::atomic::Ordering::Relaxed);
            Ok(())
        };
        checked.for_each_record(2, &visit).unwrap();
        assert_eq!(characters.into_inner(), checked.characters);

        // The same size and the same times, one byte differs.
        let path = directory.path().join("f.jsonl");
        let times = std::fs::metadata(&path).unwrap();
        let times = std::fs::FileTimes::new().set_modified(times.modified().unwrap());
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"z", 1_000_000).unwrap();
        file.set_times(times).unwrap();
        let outcome = checked.for_each_record(2, &|_| Ok(()));
        assert!(
            matches!(outcome, Err(Error::Changed { what: "content", .. })),
            "{outcome:?}"
        );
    }
}
