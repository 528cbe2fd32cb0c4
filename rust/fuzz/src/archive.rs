//! No archive or packed file, however damaged, gets past its checks, and every refusal is fit to be shown.

use std::path::Path;

use groundkit_core::beir::digest::HashName;
use groundkit_core::beir::source::dataset::Dataset;
use groundkit_core::beir::source::lines::{Region, read};
use groundkit_core::error::Error;
use groundkit_core::stop::Stop;

/// Take `data` after its first byte as a file; the byte says what its name claims.
///
/// # Panics
/// When two readings differ, or a message is not fit to be shown.
pub fn check(data: &[u8]) {
    let Some((&kind, content)) = data.split_first() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let name = ["d.zip", "corpus.jsonl.gz", "corpus.jsonl.zst", "corpus.jsonl"][usize::from(kind % 4)];
    let path = directory.path().join(name);
    std::fs::write(&path, content).expect("a temporary file");
    let dataset = if kind % 4 == 0 {
        path.as_path()
    } else {
        directory.path()
    };
    for file in ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"] {
        let (one, two) = (read_all(dataset, file, 1), read_all(dataset, file, 2));
        match (&one, &two) {
            (Ok(one), Ok(two)) => assert!(one == two),
            (Err(one), Err(two)) => assert_eq!(one.to_string(), two.to_string()),
            _ => panic!("one thread and two differ: {one:?}, {two:?}"),
        }
        if let Err(error) = one {
            let message = error.to_string();
            assert!(message.starts_with("cannot read BEIR file "), "{message}");
            assert!(
                message.len() < 2_000 && !message.chars().any(char::is_control),
                "{message:?}"
            );
        }
    }
}

fn read_all(dataset: &Path, file: &str, threads: usize) -> Result<(u64, String), Error> {
    let dataset = Dataset::open(dataset, &Stop::default())?;
    dataset.splits()?;
    let source = dataset.source(file)?;
    let mut length = 0;
    let mut add = |bytes: u64| {
        length += bytes;
        Ok(())
    };
    let count = |region: Region<'_>| region.bytes.len() as u64;
    let found = read(&source, threads, Some(HashName::Blake3), &count, &mut add)?;
    assert!(length <= found.size && found.size <= length + 3);
    Ok((found.size, found.hash.map_or_else(String::new, |hash| hash.to_string())))
}
