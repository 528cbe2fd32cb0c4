//! Reading and checking a corpus, from the limit that `read` sets to the whole of it: `cargo bench --bench corpus`.
//!
//! Throughput is of the bytes of the file, which lies in the page cache.

use std::fs::File;
use std::hint::black_box;
use std::io::Write as _;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::LazyLock;

use divan::counter::BytesCount;
use divan::{Bencher, Divan};
use groundkit_core::beir::check::id_table::{Hashing, IdTable, push};
use groundkit_core::beir::check::judged::Judged;
use groundkit_core::beir::check::naming::{Policy, Role};
use groundkit_core::beir::check::records::check;
use groundkit_core::beir::record::scan::scan_lines;
use groundkit_core::beir::source::file::Source;
use groundkit_core::simd::{Kernel, Level, Simd};

/// As large as the blocks that the reader takes.
const BLOCK: usize = 1 << 18;
const THREADS: [usize; 2] = [1, 2];
const IDS: usize = 500_000;

#[derive(Clone, Copy, Debug)]
enum Profile {
    /// Numeric ids, no titles, 350 characters, nothing escaped.
    Passages,
    /// Titles, 1,500 characters, some of them escaped or beyond ASCII.
    Articles,
}

const PROFILES: [Profile; 2] = [Profile::Passages, Profile::Articles];

impl Profile {
    fn line(self, number: usize) -> String {
        let words = ["alpha ", "of ", "retrieval ", "is ", "ranking ", "with ", "evidence, "];
        let plain = |first: usize| -> String {
            (0..60 + number % 17)
                .map(|word| words[(first + number * 31 + word * word) % words.len()])
                .collect()
        };
        if let Self::Articles = self {
            let escaped = r#"The \"claim\"\n\tNa\u00efve caf\u00e9 \u2013 \u6771\u4eac. "#;
            let raw = r#"The \"claim\"\n\tNaïve café – 東京. "#;
            let text = [&plain(0), raw, &plain(1), escaped, &plain(2), raw, &plain(3)].concat();
            return format!("{{\"_id\": \"alpha_{number:x}\", \"title\": \"alpha of\", \"text\": \"{text}\"}}\n");
        }
        let text = plain(0);
        format!("{{\"_id\": \"{number}\", \"title\": \"\", \"text\": \"{text}\"}}\n")
    }
}

/// A corpus of some 200 MB.
struct Corpus {
    directory: tempfile::TempDir,
    size: usize,
}

impl Corpus {
    fn new(profile: Profile) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut file = File::create(directory.path().join("corpus.jsonl")).expect("a file");
        let (mut size, mut number) = (0, 0);
        while size < 200_000_000 {
            let lines: String = (number..number + 1_000).map(|number| profile.line(number)).collect();
            file.write_all(lines.as_bytes()).expect("room for the corpus");
            (size, number) = (size + lines.len(), number + 1_000);
        }
        Self { directory, size }
    }

    fn of(profile: Profile) -> &'static Self {
        static PASSAGES: LazyLock<Corpus> = LazyLock::new(|| Corpus::new(Profile::Passages));
        static ARTICLES: LazyLock<Corpus> = LazyLock::new(|| Corpus::new(Profile::Articles));
        match profile {
            Profile::Passages => &PASSAGES,
            Profile::Articles => &ARTICLES,
        }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn source(&self) -> Source {
        Source::open(self.path(), "corpus.jsonl").expect("the corpus")
    }
}

/// Hand the blocks of the file to `work`, on several threads.
fn blocks(corpus: &Corpus, threads: usize, work: impl Fn(&[u8]) + Sync) {
    let file = File::open(corpus.path().join("corpus.jsonl")).expect("the corpus");
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (file, work) = (&file, &work);
            scope.spawn(move || {
                let mut buffer = vec![0; BLOCK];
                for offset in (thread * BLOCK..corpus.size).step_by(threads * BLOCK) {
                    let length = BLOCK.min(corpus.size - offset);
                    file.read_exact_at(&mut buffer[..length], offset as u64)
                        .expect("a block");
                    work(&buffer[..length]);
                }
            });
        }
    });
}

#[divan::bench(consts = THREADS)]
fn limit_of_read<const COUNT: usize>(bencher: Bencher<'_, '_>) {
    let corpus = Corpus::of(Profile::Passages);
    bencher.counter(BytesCount::new(corpus.size)).bench_local(|| {
        blocks(corpus, COUNT, |block| {
            black_box(block);
        });
    });
}

#[divan::bench(consts = THREADS)]
fn limit_of_read_and_hash<const COUNT: usize>(bencher: Bencher<'_, '_>) {
    let corpus = Corpus::of(Profile::Passages);
    bencher.counter(BytesCount::new(corpus.size)).bench_local(|| {
        blocks(corpus, COUNT, |block| {
            black_box(blake3::hash(block));
        });
    });
}

fn profiles_and_levels() -> impl Iterator<Item = (Profile, Level)> {
    let levels = |profile| Level::available().into_iter().map(move |level| (profile, level));
    PROFILES.into_iter().flat_map(levels)
}

#[divan::bench(args = profiles_and_levels())]
fn parse_in_cache(bencher: Bencher<'_, '_>, (profile, level): (Profile, Level)) {
    struct Parse<'a>(&'a [u8]);
    impl Kernel for Parse<'_> {
        type Output = u64;
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> u64 {
            scan_lines(simd, self.0, |_, _, record| {
                black_box(record.expect("a sound record").document_length());
            })
        }
    }
    let lines: Vec<String> = (0..).map(|number| profile.line(number)).take(BLOCK / 2_000).collect();
    let lines = lines.concat().into_bytes();
    bencher
        .counter(BytesCount::of_slice(&lines))
        .bench_local(|| level.run(Parse(&lines)));
}

#[divan::bench]
fn insert_ids(bencher: Bencher<'_, '_>) {
    let hashing = Hashing::default();
    let (mut hashes, mut arena) = (Vec::new(), Vec::new());
    for number in 0..IDS {
        let id = number.to_string();
        hashes.push(hashing.fold(id.as_bytes()));
        push(&mut arena, id.as_bytes());
    }
    bencher.counter(IDS).bench_local(|| {
        let mut table = IdTable::default();
        table.insert_all(&hashes, &arena, |_, _, _| unreachable!("every identifier is new"));
        table
    });
}

#[divan::bench(args = PROFILES, consts = THREADS)]
fn check_corpus<const COUNT: usize>(bencher: Bencher<'_, '_>, profile: Profile) {
    let corpus = Corpus::of(profile);
    let judged = Judged::new([]);
    bencher.counter(BytesCount::new(corpus.size)).bench_local(|| {
        let checked = check(
            corpus.source(),
            Role::Documents,
            &judged,
            Policy::default(),
            None,
            COUNT,
        );
        assert!(checked.is_ok_and(|checked| checked.problems.is_empty()));
    });
}

fn main() {
    Divan::from_args().sample_count(9).main();
}
