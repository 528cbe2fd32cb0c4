//! Run one kernel on fixed input, for counting its instructions: `kernels NAME`, or `kernels` for the names.

use std::hint::black_box;

use groundkit_core::beir::check::id_table::{Hashing, IdTable, push};
use groundkit_core::beir::record::scan::parse_line;
use groundkit_core::bootstrap::{Settings, bootstrap_means};
use groundkit_core::simd::Level;
use groundkit_core::stop::Stop;

const QUERIES: u32 = 300;
const RESAMPLES: usize = 3_000;
const RECORDS: u32 = 3_000;
const IDS: u32 = 60_000;

fn main() {
    let levels = Level::available();
    let Some(name) = std::env::args().nth(1) else {
        for level in levels {
            println!("bootstrap-{}", level.name());
        }
        println!("records\nids");
        return;
    };
    match name.as_str() {
        "records" => parse_records(),
        "ids" => insert_ids(),
        // The start of the program, which is taken off the others.
        "nothing" => {}
        _ => {
            let level = levels
                .into_iter()
                .find(|level| name == format!("bootstrap-{}", level.name()));
            bootstrap(level.expect("a level of this machine"));
        }
    }
}

fn bootstrap(level: Level) {
    let score = |i: u32| f64::from(i.wrapping_mul(2_654_435_761)) / f64::from(u32::MAX);
    let deltas: Vec<f64> = (0..QUERIES)
        .map(|i| score(i) * 0.63 - score(i + QUERIES) / 3.0)
        .collect();
    let settings = Settings {
        resamples: RESAMPLES,
        seed: &[7],
        threads: 1,
        level,
    };
    black_box(bootstrap_means(&deltas, settings, &Stop::default()).expect("enough memory"));
}

fn parse_records() {
    let text = "A plain sentence as most are, then one with \\\"quotes\\\" and caf\u{e9}s. ".repeat(5);
    for number in 0..RECORDS {
        let line = format!("{{\"_id\": \"{number}\", \"title\": \"\", \"text\": \"{text}\", \"metadata\": {{}}}}");
        assert!(black_box(parse_line(line.as_bytes())).is_ok());
    }
}

fn insert_ids() {
    let (hashing, mut table) = (Hashing::default(), IdTable::default());
    let (mut hashes, mut arena) = (Vec::new(), Vec::new());
    for number in 0..IDS {
        let id = number.to_string();
        hashes.push(hashing.fold(id.as_bytes()));
        push(&mut arena, id.as_bytes());
    }
    table.insert_all(&hashes, &arena, |_, _, _| unreachable!("every identifier is new"));
    black_box(&table);
}
