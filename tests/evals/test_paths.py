"""Paths of every kind: what is no regular file is never waited for, and what is no path is refused."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from groundkit.errors import EvalError
from groundkit.evals.beir import adapt_beir_dataset, inspect_beir_dataset
from groundkit.evals.corpus import load_judgments
from groundkit.evals.id_map import IdMap, load_id_map
from groundkit.evals.provenance import read_adaptation, verify_adaptation
from groundkit.evals.schema import load_report

pytestmark = pytest.mark.skipif(os.name == "nt", reason="named pipes and undecodable names are those of POSIX")

SOURCE = Path(__file__).resolve().parents[2] / "examples" / "beir-small"


@pytest.fixture(autouse=True)
def _fail_instead_of_waiting() -> Iterator[None]:
    """End a test that waits for a writer, which would never end by itself."""

    def stop(*_: object) -> NoReturn:
        pytest.fail("waited for a writer of a named pipe")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def translate(path: str) -> int:
    return IdMap({}, {}).translate_run_file(path, Path(path).with_name("translated"), to_source=True)


def adapt_to(path: str) -> object:
    return adapt_beir_dataset(SOURCE, path)


# Each with the name of the small file that it reads in a directory; the others are given the file itself.
READERS = [
    pytest.param(load_judgments, "judgments.jsonl", id="load_judgments"),
    pytest.param(load_report, "report.json", id="load_report"),
    pytest.param(translate, "adapted.run", id="translate_run_file"),
    pytest.param(lambda path: load_id_map(Path(path).parent), "id-map.parquet", id="load_id_map"),
    pytest.param(lambda path: read_adaptation(Path(path).parent), "adaptation.json", id="read_adaptation"),
    pytest.param(lambda path: verify_adaptation(Path(path).parent), "adaptation.json", id="verify_adaptation"),
]


@pytest.mark.parametrize(("read", "name"), READERS)
def test_a_named_pipe_without_a_writer_is_refused(tmp_path: Path, read: Callable[[str], object], name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(EvalError, match=rf"cannot read .*{name}': not a regular file"):
        read(str(tmp_path / name))


@pytest.mark.parametrize(("read", "name"), READERS)
def test_a_directory_in_the_place_of_a_file_is_refused(
    tmp_path: Path, read: Callable[[str], object], name: str
) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(EvalError, match=rf"cannot read .*{name}': Is a directory"):
        read(str(tmp_path / name))


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_named_pipe_is_no_file_of_a_dataset(tmp_path: Path, name: str) -> None:
    for file in SOURCE.rglob("*"):
        if file.is_file():
            target = tmp_path / file.relative_to(SOURCE)
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(file.read_bytes())
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    (problem,) = [problem for problem in inspect_beir_dataset(tmp_path).problems if problem.kind == "unreadable_file"]
    assert "regular file" in problem.message
    with pytest.raises(EvalError, match="neither a directory nor a zip archive"):
        inspect_beir_dataset(tmp_path / name)


@pytest.mark.parametrize("name", ["judgments.jsonl", "corpus/smoker.txt"])
def test_a_named_pipe_in_an_output_differs_from_what_was_written(tmp_path: Path, name: str) -> None:
    adapt_beir_dataset(SOURCE, tmp_path)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(EvalError, match="is not what was written"):
        verify_adaptation(tmp_path)


@pytest.mark.parametrize("path", ["a\0b", "a\ud800b"], ids=["NUL", "surrogate"])
@pytest.mark.parametrize(
    "call",
    [
        inspect_beir_dataset,
        adapt_to,
        load_judgments,
        load_report,
        translate,
        load_id_map,
        read_adaptation,
        verify_adaptation,
    ],
    ids=lambda call: call.__name__,
)
def test_what_cannot_be_a_path_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[[str], object], path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EvalError, match=r"cannot (read|resolve) .*a\\(x00|ud800)b"):
        call(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems take Unicode names only")
def test_names_that_are_not_unicode_are_read_and_written(tmp_path: Path) -> None:
    source, output = (tmp_path / os.fsdecode(name) for name in (b"caf\xe9", b"adapt\xe9"))
    source.symlink_to(SOURCE)
    report = adapt_beir_dataset(source, output)
    assert load_judgments(report.judgments_path)
    assert verify_adaptation(output).counts["document_count"] == report.document_count


@pytest.mark.parametrize("threads", [0, -2, -(10**30)])
def test_a_number_of_threads_that_is_none_is_refused(tmp_path: Path, threads: int) -> None:
    adapt_beir_dataset(SOURCE, tmp_path)
    with pytest.raises(EvalError, match="threads must be positive, or -1 for all cores"):
        verify_adaptation(tmp_path, threads=threads)


@pytest.mark.parametrize("threads", [None, -1, 1, 10**30])
def test_any_number_of_threads_verifies_the_same(tmp_path: Path, threads: int | None) -> None:
    adapt_beir_dataset(SOURCE, tmp_path)
    assert verify_adaptation(tmp_path, threads=threads) == read_adaptation(tmp_path)
