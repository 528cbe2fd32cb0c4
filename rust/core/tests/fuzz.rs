//! Replays the kept inputs of the fuzz targets, so that what a fuzzer once found stays found without one.

#![allow(missing_docs, reason = "a test binary has no public items")]

use std::path::Path;

#[path = "../../fuzz/src/lib.rs"]
#[allow(clippy::missing_panics_doc, reason = "these are checks, and panic when they fail")]
mod targets;

fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz/corpus")
        .join(target);
    let mut inputs: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty());
    for input in inputs {
        let data = std::fs::read(&input).unwrap();
        // The harness prints what a check says; this line tells which input it was.
        println!("{}", input.display());
        check(&data);
    }
}

#[test]
fn the_record_scanner_agrees_with_another_parser() {
    replay("record", targets::record::check);
}

#[test]
fn the_qrels_reader_agrees_with_the_plain_rules() {
    replay("qrels", targets::qrels::check);
}

#[test]
fn lines_come_once_and_in_order() {
    replay("lines", targets::lines::check);
}

#[test]
fn archives_are_read_or_refused() {
    replay("archive", targets::archive::check);
}
