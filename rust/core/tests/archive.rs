//! Datasets in zip archives and packed files: the same content as plain files, and nothing that a hostile file gets by.

#![allow(missing_docs, reason = "a test binary has no public items")]

use std::io::Write;
use std::path::Path;

use groundkit_core::beir::digest::{Digest, HashName};
use groundkit_core::beir::source::dataset::Dataset;
use groundkit_core::beir::source::file::Source;
use groundkit_core::beir::source::lines::{self, Region};
use groundkit_core::error::Error;
use groundkit_core::stop::Stop;
use proptest::prelude::*;
use rawzip::path::EntryPath;
use rawzip::{CompressionMethod, ZipArchiveWriter};

const METHODS: [CompressionMethod; 3] = [
    CompressionMethod::STORE,
    CompressionMethod::DEFLATE,
    CompressionMethod::ZSTD,
];

/// What a member is made of.
#[derive(Clone)]
struct Member<'a> {
    name: &'a str,
    content: &'a [u8],
    method: CompressionMethod,
    mode: u32,
    encrypted: bool,
}

fn member<'a>(name: &'a str, content: &'a [u8]) -> Member<'a> {
    Member {
        name,
        content,
        method: CompressionMethod::DEFLATE,
        mode: 0o100_644,
        encrypted: false,
    }
}

fn compress(content: &[u8], method: CompressionMethod) -> Vec<u8> {
    match method {
        CompressionMethod::DEFLATE => {
            let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        }
        CompressionMethod::ZSTD => zstd::encode_all(content, 1).unwrap(),
        _ => content.to_vec(),
    }
}

fn zip(members: &[Member<'_>]) -> Vec<u8> {
    let mut archive = ZipArchiveWriter::new(Vec::new());
    for member in members {
        let (mut entry, config) = archive
            .new_file(EntryPath::verbatim(member.name.as_bytes()))
            .compression_method(member.method)
            .unix_permissions(member.mode)
            .encrypted(member.encrypted)
            .start()
            .unwrap();
        let mut content = config.wrap(std::io::sink());
        content.write_all(member.content).unwrap();
        let (_, descriptor) = content.finish().unwrap();
        entry.write_all(&compress(member.content, member.method)).unwrap();
        entry.finish(descriptor).unwrap();
    }
    archive.finish().unwrap()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// The content of `source` and its hash, read on `threads` threads.
fn content_of(source: &Source, threads: usize, hash: HashName) -> Result<(Vec<u8>, Digest), Error> {
    let mut content = Vec::new();
    let mut add = |bytes: Vec<u8>| {
        content.extend_from_slice(&bytes);
        Ok(())
    };
    let copy = |region: Region<'_>| region.bytes.to_vec();
    let found = lines::read(source, threads, Some(hash), &copy, &mut add)?;
    Ok((content, found.hash.expect("a hash was asked for")))
}

fn read(path: &Path, name: &str) -> Result<Vec<u8>, Error> {
    Ok(content_of(
        &Dataset::open(path, &Stop::default())?.source(name)?,
        2,
        HashName::Blake3,
    )?
    .0)
}

/// The content of member `scifact/corpus.jsonl` of an archive with these bytes.
fn read_archive(archive: &[u8]) -> Result<Vec<u8>, Error> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("scifact.zip");
    std::fs::write(&path, archive).unwrap();
    read(&path, "corpus.jsonl")
}

fn refusal(archive: &[u8]) -> String {
    let message = read_archive(archive).unwrap_err().to_string();
    assert!(message.starts_with("cannot read BEIR file scifact.zip"), "{message}");
    message
}

const CORPUS: &[u8] = b"{\"_id\": \"d1\", \"text\": \"one\"}\n{\"_id\": \"d2\", \"text\": \"two\"}\n";

#[test]
fn a_member_of_any_method_is_read_on_any_number_of_threads() {
    let content: Vec<u8> = (0..300_000)
        .flat_map(|number: u32| format!("{number}\n").into_bytes())
        .collect();
    let directory = tempfile::tempdir().unwrap();
    for method in METHODS {
        let path = directory.path().join("d.zip");
        std::fs::write(
            &path,
            zip(&[Member {
                method,
                ..member("d/corpus.jsonl", &content)
            }]),
        )
        .unwrap();
        let source = Dataset::open(&path, &Stop::default())
            .unwrap()
            .source("corpus.jsonl")
            .unwrap();
        assert_eq!(source.name(), "d.zip:d/corpus.jsonl");
        for threads in [1, 2, 5] {
            for hash in HashName::ALL {
                let (found, digest) = content_of(&source, threads, hash).unwrap();
                assert!(found == content);
                assert_eq!(digest, hash.of(&[&content]));
            }
        }
    }
}

#[test]
fn the_dataset_may_lie_at_the_top_or_in_one_folder() {
    for folder in ["", "scifact/"] {
        let name = format!("{folder}corpus.jsonl");
        let decoy = format!("{folder}more/than/corpus.jsonl");
        assert_eq!(
            read_archive(&zip(&[member(&decoy, b"x"), member(&name, CORPUS)])).unwrap(),
            CORPUS
        );
    }
    let message = refusal(&zip(&[member("a/b/corpus.jsonl", CORPUS), member("README", b"")]));
    assert!(
        message.contains("its members are 'README', 'a/b/corpus.jsonl'"),
        "{message}"
    );
    let message = refusal(&zip(&[
        member("a/corpus.jsonl", CORPUS),
        member("b/queries.jsonl", CORPUS),
    ]));
    assert!(message.contains("more than one dataset, in 'a/', 'b/'"), "{message}");
}

#[test]
fn hidden_files_and_resource_forks_are_ignored() {
    let archive = zip(&[
        member("scifact/corpus.jsonl", CORPUS),
        member("__MACOSX/scifact/._corpus.jsonl", b"x"),
        member("__MACOSX/corpus.jsonl", b"x"),
        member(".cache/corpus.jsonl", b"x"),
        member("scifact/.DS_Store", b"x"),
        Member {
            mode: 0o120_777,
            ..member("scifact/.link", b"/etc/passwd")
        },
    ]);
    assert_eq!(read_archive(&archive).unwrap(), CORPUS);
}

#[test]
fn splits_are_listed_whatever_they_are_packed_in() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("d.zip");
    let members = [
        "corpus.jsonl",
        "qrels/train.tsv.gz",
        "qrels/test.tsv",
        "qrels/README",
        "qrels/.x.tsv",
    ];
    std::fs::write(&path, zip(&members.map(|name| member(name, b"")))).unwrap();
    assert_eq!(
        Dataset::open(&path, &Stop::default()).unwrap().splits().unwrap(),
        ["test", "train"]
    );
    std::fs::create_dir(directory.path().join("qrels")).unwrap();
    for name in ["dev.tsv.zst", "test.tsv.gz", "notes.txt"] {
        std::fs::write(directory.path().join("qrels").join(name), b"").unwrap();
    }
    assert_eq!(
        Dataset::open(directory.path(), &Stop::default())
            .unwrap()
            .splits()
            .unwrap(),
        ["dev", "test"]
    );
    assert!(
        Dataset::open(&directory.path().join("absent"), &Stop::default())
            .unwrap()
            .splits()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_member_may_itself_be_packed() {
    let archive = zip(&[member("scifact/corpus.jsonl.gz", &gzip(CORPUS))]);
    assert_eq!(read_archive(&archive).unwrap(), CORPUS);
    let message = refusal(&zip(&[member("scifact/corpus.jsonl.gz", CORPUS)]));
    assert!(
        message.contains("scifact.zip:scifact/corpus.jsonl.gz: it is no gzip data: it begins with"),
        "{message}"
    );
}

#[test]
fn an_unsafe_name_anywhere_is_refused() {
    let names = [
        "/etc/passwd",
        "../corpus.jsonl",
        "scifact/../../x",
        "scifact/..",
        "C:/x",
        "c:x",
        "scifact\\corpus.jsonl",
        "scifact//x",
        "./x",
        "scifact/./x",
        "x\u{1b}[31m",
        "x\0",
        "__MACOSX/../../x",
        "../",
    ];
    for name in names {
        let message = refusal(&zip(&[member("scifact/corpus.jsonl", CORPUS), member(name, b"x")]));
        assert!(message.contains("unsafe member name"), "{name:?}: {message}");
        assert!(!message.contains('\u{1b}'));
    }
}

#[test]
fn members_with_one_name_are_refused_also_when_only_case_differs() {
    for other in ["scifact/corpus.jsonl", "scifact/Corpus.JSONL", "SCIFACT/corpus.jsonl"] {
        let message = refusal(&zip(&[member("scifact/corpus.jsonl", CORPUS), member(other, CORPUS)]));
        assert!(
            message.contains("'scifact/corpus.jsonl'") && message.contains(other),
            "{message}"
        );
    }
}

#[test]
fn links_devices_and_encrypted_members_are_refused() {
    let corpus = member("scifact/corpus.jsonl", CORPUS);
    let with = |odd: Member<'_>| refusal(&zip(&[corpus.clone(), odd]));
    assert!(
        with(Member {
            mode: 0o120_777,
            ..member("x", b"/etc/passwd")
        })
        .contains("'x' is a symbolic link")
    );
    assert!(
        with(Member {
            mode: 0o010_644,
            ..member("x", b"")
        })
        .contains("'x' is no regular file")
    );
    assert!(
        with(Member {
            encrypted: true,
            ..member("x", b"")
        })
        .contains("'x' is encrypted")
    );
}

#[test]
fn an_unknown_method_is_named() {
    let method = CompressionMethod::LZMA;
    let message = refusal(&zip(&[Member {
        method,
        ..member("corpus.jsonl", CORPUS)
    }]));
    assert!(message.contains("compressed with method 14"), "{message}");
}

#[test]
fn a_page_saved_as_an_archive_is_refused_quoting_its_first_bytes() {
    let message = refusal(b"<html><body>Too many requests</body></html>");
    assert!(
        message.contains("it is no zip archive with members but an HTML page: it begins with \"<html>"),
        "{message}"
    );
    assert!(refusal(b"").contains("it is empty"));
    assert!(refusal(&zip(&[])).contains("but an empty zip archive"));
}

#[test]
fn bytes_after_the_archive_are_refused() {
    let message = refusal(&[zip(&[member("corpus.jsonl", CORPUS)]), b"more".to_vec()].concat());
    assert!(message.contains("4 bytes follow the end of the archive"), "{message}");
}

/// Replace the bytes at the first place where `old` stands.
fn patch(archive: &mut [u8], old: &[u8], new: &[u8]) {
    let at = archive.windows(old.len()).position(|window| window == old).unwrap();
    archive[at..at + new.len()].copy_from_slice(new);
}

#[test]
fn an_archive_that_contradicts_itself_is_refused() {
    let archive = zip(&[member("corpus.jsonl", CORPUS)]);
    let crc = crc32fast::hash(CORPUS).to_le_bytes();
    let altered = |change: &dyn Fn(&mut [u8])| {
        let mut altered = archive.clone();
        change(&mut altered);
        refusal(&altered)
    };
    let message = altered(&|bytes| patch(bytes, b"corpus.jsonl", b"corpvs.jsonl"));
    assert!(message.contains("the name in its local header disagrees"), "{message}");
    let message = altered(&|bytes| bytes[8] = 0);
    assert!(
        message.contains("the method in its local header disagrees"),
        "{message}"
    );
    let message = altered(&|bytes| bytes[6] ^= 8);
    assert!(message.contains("the flags in its local header disagree"), "{message}");
    let message = altered(&|bytes| bytes[14..18].copy_from_slice(b"\x01\x02\x03\x04"));
    assert!(
        message.contains("CRC-32 checksum in its local header disagrees"),
        "{message}"
    );
    let message = altered(&|bytes| patch(bytes, &crc, b"\x01\x02\x03\x04"));
    assert!(message.contains("its data descriptor disagrees"), "{message}");
}

#[test]
fn a_wrong_checksum_is_named() {
    let mut archive = zip(&[Member {
        method: CompressionMethod::STORE,
        ..member("corpus.jsonl", CORPUS)
    }]);
    patch(&mut archive, b"one", b"two");
    let message = refusal(&archive);
    assert!(message.contains("its CRC-32 checksum is"), "{message}");
}

#[test]
fn a_member_expands_no_further_than_its_size() {
    let content = vec![b'\n'; 50_000_000];
    let mut archive = zip(&[member("corpus.jsonl", &content)]);
    let size = u32::try_from(content.len()).unwrap().to_le_bytes();
    for _ in 0..2 {
        patch(&mut archive, &size, &1000_u32.to_le_bytes());
    }
    let message = refusal(&archive);
    assert!(message.contains("expands beyond the 1000 bytes"), "{message}");
}

#[test]
fn packed_files_are_read_like_plain_ones() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(
        path("corpus.jsonl.gz"),
        [gzip(&CORPUS[..9]), gzip(&CORPUS[9..])].concat(),
    )
    .unwrap();
    std::fs::write(path("queries.jsonl.zst"), zstd::encode_all(CORPUS, 1).unwrap()).unwrap();
    assert_eq!(read(directory.path(), "corpus.jsonl").unwrap(), CORPUS);
    assert_eq!(read(directory.path(), "queries.jsonl").unwrap(), CORPUS);
    std::fs::write(path("queries.jsonl"), CORPUS).unwrap();
    assert_eq!(
        read(directory.path(), "queries.jsonl").unwrap_err().to_string(),
        "cannot read BEIR file queries.jsonl: both queries.jsonl and queries.jsonl.zst are there; keep one of them"
    );
    std::fs::rename(path("corpus.jsonl.gz"), path("corpus.jsonl")).unwrap();
    let message = read(directory.path(), "corpus.jsonl").unwrap_err().to_string();
    assert!(
        message.contains("corpus.jsonl: it holds gzip data, not text: it begins with \"\\x1f\\x8b"),
        "{message}"
    );
}

#[test]
fn a_packed_file_that_changes_while_it_is_read_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("corpus.jsonl.gz");
    std::fs::write(&path, gzip(CORPUS)).unwrap();
    let source = Dataset::open(directory.path(), &Stop::default())
        .unwrap()
        .source("corpus.jsonl")
        .unwrap();
    std::fs::File::options()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(&gzip(CORPUS))
        .unwrap();
    assert!(matches!(
        content_of(&source, 2, HashName::Blake3),
        Err(Error::Changed { .. })
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_changed_byte_never_yields_other_content(
        method in prop::sample::select(METHODS.to_vec()), at in any::<prop::sample::Index>(), flip in 1_u8..,
    ) {
        let mut archive = zip(&[Member { method, ..member("scifact/corpus.jsonl", CORPUS) }]);
        let at = at.index(archive.len());
        archive[at] ^= flip;
        if let Ok(content) = read_archive(&archive) {
            prop_assert_eq!(content, CORPUS);
        }
    }

    #[test]
    fn an_archive_cut_anywhere_is_refused(
        method in prop::sample::select(METHODS.to_vec()), cut in any::<prop::sample::Index>(),
    ) {
        let archive = zip(&[Member { method, ..member("scifact/corpus.jsonl", CORPUS) }]);
        refusal(&archive[..cut.index(archive.len())]);
    }
}
