//! Every line comes once and in order, on any number of threads, from a plain file and from packed ones.

use std::io::Write;
use std::path::Path;

use groundkit_core::beir::digest::HashName;
use groundkit_core::beir::source::dataset::Dataset;
use groundkit_core::beir::source::lines::{Region, read};
use groundkit_core::stop::Stop;

/// Bytes of a file long enough for several blocks of the reader.
const LONG: usize = 700_000;

/// Take `data` after its first byte as the file; the byte says whether to repeat it and how it is packed.
///
/// # Panics
/// When lines or the hash are not those of the file.
pub fn check(data: &[u8]) {
    let Some((&kind, content)) = data.split_first() else {
        return;
    };
    let content = if kind & 4 == 0 || content.is_empty() {
        content.to_vec()
    } else {
        content.repeat(LONG.div_ceil(content.len()))
    };
    // The first bytes of some formats are refused in a plain file.
    let plain = matches!(kind % 4, 0 | 3);
    if plain && groundkit_core::beir::source::decode::recognise(&content[..content.len().min(64)]).is_some() {
        return;
    }
    let (name, bytes) = match kind % 4 {
        1 => ("corpus.jsonl.gz", gzip(&content)),
        2 => (
            "corpus.jsonl.zst",
            zstd::encode_all(content.as_slice(), 1).expect("memory is enough"),
        ),
        _ => ("corpus.jsonl", content.clone()),
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(directory.path().join(name), bytes).expect("a temporary file");
    let text = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&content);
    for threads in 1..=3 {
        for hash in HashName::ALL {
            let (found, digest) = read_all(directory.path(), threads, hash);
            assert!(found == text);
            assert_eq!(digest, hash.of(&[&content]).to_string());
        }
    }
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).expect("memory is enough");
    encoder.finish().expect("memory is enough")
}

fn read_all(directory: &Path, threads: usize, hash: HashName) -> (Vec<u8>, String) {
    let source = Dataset::open(directory, &Stop::default())
        .and_then(|dataset| dataset.source("corpus.jsonl"))
        .expect("the file is there");
    let mut content = Vec::new();
    let copy = |region: Region<'_>| (region.offset, region.bytes.to_vec());
    let mut add = |(offset, lines): (u64, Vec<u8>)| {
        assert!(
            content.is_empty() || content.ends_with(b"\n"),
            "a region starts inside a line"
        );
        assert!(offset >= content.len() as u64);
        content.extend_from_slice(&lines);
        Ok(())
    };
    let found = read(&source, threads, Some(hash), &copy, &mut add).expect("the file is sound");
    (content, found.hash.expect("a hash was asked for").to_string())
}
