//! Publication: all or nothing, whatever is there and wherever a run was killed.

#![cfg(unix)]
#![allow(missing_docs, reason = "a test binary has no public items")]

use std::fs;
use std::path::{Path, PathBuf};

use groundkit_core::beir::check::judged::Judged;
use groundkit_core::beir::check::naming::{Policy, Role};
use groundkit_core::beir::check::records::{CheckedFile, check};
use groundkit_core::beir::check::space::Space;
use groundkit_core::beir::output::adapt::{Adaptation, Pair, WrittenOutput};
use groundkit_core::beir::output::handle::{Destination, write_file};
use groundkit_core::beir::output::layout::Layout;
use groundkit_core::beir::output::obstacles::find_obstacles;
use groundkit_core::beir::output::staging::Staging;
use groundkit_core::beir::source::file::Source;
use groundkit_core::error::Error;
use groundkit_core::stop::Stop;

const QUERIES: &str = "{\"_id\":\"q1\",\"text\":\" what is B? \"}\n";

struct Dataset {
    directory: tempfile::TempDir,
    corpus: CheckedFile,
    queries: CheckedFile,
}

fn dataset(documents: &[(&str, &str)]) -> Dataset {
    let directory = tempfile::tempdir().unwrap();
    let lines = documents
        .iter()
        .map(|(id, text)| format!("{{\"_id\":\"{id}\",\"text\":\"{text}\"}}\n"));
    fs::write(directory.path().join("corpus.jsonl"), lines.collect::<String>()).unwrap();
    fs::write(directory.path().join("queries.jsonl"), QUERIES).unwrap();
    let checked = |name, role, id: &str| {
        let source = Source::open(directory.path(), name).unwrap();
        check(
            source,
            role,
            &Judged::new([(id.as_bytes(), true)]),
            Policy::default(),
            None,
            1,
        )
        .unwrap()
    };
    let (corpus, queries) = (
        checked("corpus.jsonl", Role::Documents, "d1"),
        checked("queries.jsonl", Role::Queries, "q1"),
    );
    Dataset {
        directory,
        corpus,
        queries,
    }
}

fn publish(dataset: &Dataset, output: &Path) -> Result<(), Error> {
    write(dataset, output)?.publish(b"{}\n")
}

fn write(dataset: &Dataset, output: &Path) -> Result<WrittenOutput, Error> {
    let pairs = [Pair {
        query: "q1",
        query_name: "q1",
        document: "d1",
        document_name: "d1",
    }];
    let Dataset { corpus, queries, .. } = dataset;
    let adaptation = Adaptation {
        corpus,
        queries,
        pairs: &pairs,
        layout: Layout::Flat,
        files: &[],
        threads: 2,
        durable: false,
    };
    adaptation.write(Destination::new(output.to_owned()))
}

/// Every path below `root` with its content, directories without.
fn tree(root: &Path) -> Vec<(PathBuf, Option<String>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).into_iter().flatten() {
        let path = entry.unwrap().path();
        let content = fs::read_to_string(&path).ok();
        found.push((path.strip_prefix(root).unwrap().to_owned(), content));
        found.extend(
            tree(&path)
                .into_iter()
                .map(|(inner, content)| (path.strip_prefix(root).unwrap().join(inner), content)),
        );
    }
    found.sort();
    found
}

const ROW: &str = "{\"query_id\": \"q1\", \"query\": \"what is B?\", \"category\": \"normal\", \
                   \"gold\": [{\"doc\": \"d1.txt\", \"quote\": \"B\"}]}\n";

fn expected() -> Vec<(PathBuf, Option<String>)> {
    vec![
        ("adaptation.json".into(), Some("{}\n".into())),
        ("corpus".into(), None),
        ("corpus/d1.txt".into(), Some("B".into())),
        ("corpus/d2.txt".into(), Some("C".into())),
        ("judgments.jsonl".into(), Some(ROW.into())),
    ]
}

#[test]
fn an_absent_output_appears_whole_and_nothing_else_does() {
    let dataset = dataset(&[("d1", "B"), ("d2", "C")]);
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    publish(&dataset, &root.join("deep/er/out")).unwrap();
    assert_eq!(tree(&root.join("deep/er/out")), expected());
    assert_eq!(fs::read_dir(root.join("deep/er")).unwrap().count(), 1);
}

#[test]
fn an_empty_directory_is_replaced_and_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    let dataset = dataset(&[("d1", "B"), ("d2", "C")]);
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().canonicalize().unwrap().join("out");
    fs::create_dir(&output).unwrap();
    fs::set_permissions(&output, fs::Permissions::from_mode(0o711)).unwrap();
    publish(&dataset, &output).unwrap();
    assert_eq!(tree(&output), expected());
    assert_eq!(fs::metadata(&output).unwrap().permissions().mode() & 0o777, 0o711);
}

#[test]
fn what_is_written_and_not_published_is_removed() {
    let dataset = dataset(&[("d1", "B"), ("d2", "C")]);
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let written = write(&dataset, &root.join("deep/out")).unwrap();
    assert_eq!(written.fingerprint().corpus.documents, 2);
    assert!(root.join("deep/.out.groundkit-staging/new/judgments.jsonl").exists());
    drop(written);
    assert_eq!(tree(&root), []);
}

#[test]
fn other_files_stay_and_old_judgments_are_replaced() {
    let dataset = dataset(&[("d1", "B"), ("d2", "C")]);
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().canonicalize().unwrap();
    fs::write(output.join("README"), "mine").unwrap();
    fs::write(output.join("judgments.jsonl"), "old").unwrap();
    fs::create_dir(output.join("corpus")).unwrap();
    publish(&dataset, &output).unwrap();
    let mut all = vec![("README".into(), Some("mine".into()))];
    all.extend(expected());
    assert_eq!(tree(&output), all);
}

#[test]
fn a_failing_run_leaves_everything_as_it_was() {
    let dataset = dataset(&[("d1", "B"), ("d2", "C")]);
    let path = dataset.directory.path().join("corpus.jsonl");
    fs::write(&path, fs::read_to_string(&path).unwrap().replace('C', "D")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    assert!(matches!(
        publish(&dataset, &root.join("a/b")),
        Err(Error::Changed { .. })
    ));
    assert_eq!(tree(&root), []);
    fs::write(root.join("judgments.jsonl"), "old").unwrap();
    assert!(matches!(publish(&dataset, &root), Err(Error::Changed { .. })));
    assert_eq!(tree(&root), [("judgments.jsonl".into(), Some("old".into()))]);
}

#[test]
fn no_run_begins_while_another_holds_the_output() {
    let dataset = dataset(&[("d1", "B"), ("d2", "C")]);
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    for output in [root.join("out"), root.clone()] {
        fs::write(root.join("other"), "").unwrap();
        let held = Staging::begin(Destination::new(output.clone()), &Stop::default()).unwrap();
        let refusal = publish(&dataset, &output).unwrap_err().to_string();
        assert!(refusal.contains("another adaptation"), "{refusal}");
        drop(held);
        publish(&dataset, &output).unwrap();
    }
}

#[test]
fn an_interrupted_run_clears_up_unless_it_is_asked_a_second_time() {
    let dataset = dataset(&[("d1", "B"), ("d2", "C")]);
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let stage = |stop: &Stop| {
        let staging = Staging::begin(Destination::new(root.join("out")), stop);
        staging.inspect(|staging| write_file(staging.new_output(), "file", b"").unwrap())
    };
    let stop = Stop::default();
    let begun = stage(&stop).unwrap();
    stop.request();
    drop(begun);
    assert_eq!(tree(&root), []);

    let stop = Stop::default();
    let begun = stage(&stop).unwrap();
    stop.request();
    stop.request();
    drop(begun);
    assert!(root.join(".out.groundkit-staging/new/file").exists());
    // Neither does a run that is to end clear up after another one.
    assert!(matches!(stage(&stop), Err(Error::Interrupted)));
    publish(&dataset, &root.join("out")).unwrap();
    assert_eq!(tree(&root.join("out")), expected());
    assert!(!root.join(".out.groundkit-staging").exists());
}

#[test]
fn a_run_that_found_the_output_absent_excludes_one_that_finds_files_in_it() {
    let dataset = dataset(&[("d1", "B")]);
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().canonicalize().unwrap().join("out");
    let held = Staging::begin(Destination::new(output.clone()), &Stop::default()).unwrap();
    fs::create_dir(&output).unwrap();
    fs::write(output.join("other"), "").unwrap();
    assert!(
        publish(&dataset, &output)
            .unwrap_err()
            .to_string()
            .contains("another adaptation")
    );
    drop(held);
    publish(&dataset, &output).unwrap();
}

#[test]
fn what_groundkit_did_not_make_is_never_removed() {
    let dataset = dataset(&[("d1", "B"), ("d2", "C")]);
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let staging = root.join(".out.groundkit-staging");
    let elsewhere = root.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &staging).unwrap();
    assert!(
        publish(&dataset, &root.join("out"))
            .unwrap_err()
            .to_string()
            .contains("symbolic link")
    );
    fs::remove_file(&staging).unwrap();
    fs::write(&staging, "mine").unwrap();
    assert!(
        publish(&dataset, &root.join("out"))
            .unwrap_err()
            .to_string()
            .contains("is a file where the staging directory belongs")
    );
    fs::remove_file(&staging).unwrap();
    fs::create_dir(&staging).unwrap();
    fs::write(staging.join("mine"), "mine").unwrap();
    assert!(
        publish(&dataset, &root.join("out"))
            .unwrap_err()
            .to_string()
            .contains("without a journal")
    );
    assert_eq!(fs::read_to_string(staging.join("mine")).unwrap(), "mine");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    assert!(!root.join("out").exists());
}

#[test]
fn what_a_killed_run_left_is_cleared() {
    let dataset = dataset(&[("d1", "B"), ("d2", "C")]);
    for journal in ["", "groundkit st", "groundkit staging 1\n"] {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let staging = root.join(".out.groundkit-staging");
        fs::create_dir_all(staging.join("new/corpus")).unwrap();
        fs::write(staging.join("new/corpus/d9.txt"), "half").unwrap();
        fs::write(staging.join("journal"), journal).unwrap();
        publish(&dataset, &root.join("out")).unwrap();
        assert_eq!(tree(&root.join("out")), expected());
        assert!(!staging.exists());
    }
}

/// Stop publishing into a directory that holds files after each of its steps, as a kill would.
#[test]
fn a_publication_killed_between_any_two_renames_is_undone_or_complete() {
    use std::os::unix::fs::MetadataExt;
    for steps in 0..=3 {
        let dataset = dataset(&[("d1", "B"), ("d2", "C")]);
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().canonicalize().unwrap();
        fs::write(output.join("judgments.jsonl"), "old").unwrap();
        let staging = output.join(".groundkit-staging");
        fs::create_dir_all(staging.join("new/corpus")).unwrap();
        fs::write(staging.join("new/corpus/d9.txt"), "X").unwrap();
        fs::write(staging.join("new/judgments.jsonl"), "new").unwrap();
        let part = |name: &str| {
            let metadata = fs::metadata(staging.join("new").join(name)).unwrap();
            format!("{} {} {name}\n", metadata.dev(), metadata.ino())
        };
        let journal = format!("groundkit staging 1\n{}{}", part("corpus"), part("judgments.jsonl"));
        fs::write(staging.join("journal"), journal).unwrap();
        let renames = [
            (output.join("judgments.jsonl"), staging.join("old-judgments.jsonl")),
            (staging.join("new/corpus"), output.join("corpus")),
            (staging.join("new/judgments.jsonl"), output.join("judgments.jsonl")),
        ];
        for (from, to) in &renames[..steps] {
            fs::rename(from, to).unwrap();
        }
        let obstacles = find_obstacles(
            &Destination::new(output.clone()),
            &Space::default(),
            Layout::Flat,
            &Stop::default(),
        )
        .unwrap();
        if steps == 3 {
            assert!(obstacles[0].contains("already contains"), "{obstacles:?}");
            drop(Staging::begin(Destination::new(output.clone()), &Stop::default()).unwrap());
            assert_eq!(fs::read_to_string(output.join("judgments.jsonl")).unwrap(), "new");
            assert!(output.join("corpus/d9.txt").exists());
            assert!(!staging.exists());
        } else {
            assert_eq!(obstacles, Vec::<String>::new());
            drop(Staging::begin(Destination::new(output.clone()), &Stop::default()).unwrap());
            assert_eq!(tree(&output), [("judgments.jsonl".into(), Some("old".into()))]);
            publish(&dataset, &output).unwrap();
            assert_eq!(tree(&output), expected());
        }
    }
}

#[test]
fn obstacles_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let obstacles = |path: &Path| {
        find_obstacles(
            &Destination::new(path.to_owned()),
            &Space::default(),
            Layout::Flat,
            &Stop::default(),
        )
        .unwrap()
        .join("; ")
    };
    assert_eq!(obstacles(&root.join("absent/too")), "");
    fs::write(root.join("file"), "").unwrap();
    assert!(obstacles(&root.join("file")).contains("is not a directory"));
    assert!(obstacles(&root.join("file/below")).contains("is not a directory"));
    std::os::unix::fs::symlink(&root, root.join("corpus")).unwrap();
    std::os::unix::fs::symlink(root.join("file"), root.join("judgments.jsonl")).unwrap();
    let both = obstacles(&root);
    assert_eq!(both.matches("symbolic link").count(), 2, "{both}");
    assert!(obstacles(&root.join("corpus")).contains("resolves outside"));
    fs::remove_file(root.join("corpus")).unwrap();
    fs::remove_file(root.join("judgments.jsonl")).unwrap();
    fs::write(root.join("corpus"), "").unwrap();
    fs::create_dir(root.join("judgments.jsonl")).unwrap();
    let both = obstacles(&root);
    assert!(
        both.contains("is not a directory") && both.contains("is not a regular file"),
        "{both}"
    );
    fs::remove_file(root.join("corpus")).unwrap();
    fs::create_dir(root.join("corpus")).unwrap();
    fs::write(root.join("corpus/old.txt"), "").unwrap();
    assert!(obstacles(&root).contains("already contains 1 entry, such as 'old.txt'"));
}
