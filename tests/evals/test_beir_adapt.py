"""Adapting: the files are those of the plain-Python reference, and a refusal leaves nothing behind."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import reference
from datasets import Row, write_dataset, write_real_ids, write_small_dataset
from groundkit.errors import EvalError
from groundkit.evals.beir import adapt_beir_dataset, inspect_beir_dataset
from groundkit.evals.corpus import load_judgments
from groundkit.evals.provenance import verify_adaptation
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def files_of(root: Path) -> dict[str, bytes]:
    """Read every file below a directory, links and empty directories too; the record is not the reference's."""
    found: dict[str, bytes] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name.endswith("adaptation.json"):
            continue
        if path.is_symlink():
            found[name] = b"link to " + os.fsencode(path.readlink())
        elif path.is_file():
            found[name] = path.read_bytes()
        elif not list(path.iterdir()):
            found[name + "/"] = b""
    return found


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


document_ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,6}", fullmatch=True).filter(
    lambda name: (
        name.split(".")[0].lower() not in {"con", "prn", "aux", "nul"}
        and not (len(name.split(".")[0]) == 4 and name[:3].lower() in {"com", "lpt"})
    )
)
query_ids = st.from_regex(r"[a-z0-9]{1,3}(-[a-z0-9]{1,3}){0,2}", fullmatch=True)
texts = st.text(st.characters(codec="utf-8"), max_size=30) | st.text(' \t\n\r\x1c\u00a0\u2028"\\é', max_size=6)


@st.composite
def datasets(draw: st.DrawFn) -> tuple[list[Row], list[Row], list[tuple[str, str, int]]]:
    documents = draw(st.lists(document_ids, min_size=1, max_size=8, unique_by=str.lower))
    corpus: list[Row] = []
    for document_id in documents:
        title, text = draw(texts), draw(texts)
        if not (title.strip() or text.strip()):
            text = "x"
        row: Row = {"title": title, "text": text, "metadata": draw(st.sampled_from([{}, {"a": [1.5, None]}]))}
        corpus.append({"_id": document_id} | row if draw(st.booleans()) else row | {"_id": document_id})
    names = draw(st.lists(query_ids, min_size=1, max_size=5, unique=True))
    queries = [{"_id": name, "text": draw(texts.filter(str.strip))} for name in names]
    pairs = draw(
        st.dictionaries(
            st.tuples(st.sampled_from(names), st.sampled_from(documents)), st.integers(0, 1), min_size=1, max_size=12
        ).filter(lambda pairs: 1 in pairs.values())
    )
    return corpus, queries, [(query, document, grade) for (query, document), grade in pairs.items()]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(dataset=datasets(), ends=st.sampled_from([b"\n", b"\r\n"]), marked=st.booleans(), again=st.booleans())
def test_the_output_is_byte_for_byte_that_of_the_reference(
    dataset: tuple[list[Row], list[Row], list[tuple[str, str, int]]],
    ends: bytes,
    marked: bool,
    again: bool,
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        corpus, queries, qrels = dataset
        source = write_dataset(Path(directory) / "source", corpus, queries, qrels * (1 + again))
        for path in source.rglob("*.*"):
            content = path.read_bytes().replace(b"\n", ends)
            path.write_bytes((b"\xef\xbb\xbf" if marked else b"") + content)
        output = Path(directory) / "output"
        report = adapt_beir_dataset(source, output)
        expected = reference.adapt_beir_dataset(source)
        assert files_of(output) == expected
        judgments = load_judgments(output / "judgments.jsonl")
        assert report.query_count == len(judgments)
        assert report.relevance_pair_count == sum(len(judgment.gold) for judgment in judgments)
        assert report.document_count == len(corpus)
        assert report.total_characters == sum(
            len(content.decode()) for name, content in expected.items() if name.startswith("corpus/")
        )
        assert list(Path(directory).iterdir()) in ([source, output], [output, source])


@pytest.mark.parametrize("name", ["scifact", "arguana"])
def test_sets_with_real_ids_adapt_as_the_reference_does(tmp_path: Path, name: str) -> None:
    source = write_real_ids(tmp_path / "source", name)
    adapt_beir_dataset(source, tmp_path / "output")
    assert files_of(tmp_path / "output") == reference.adapt_beir_dataset(source)


REASONS = {
    "nfcorpus": ["not admissible as groundkit judgment ids", "binary qrels only", 'query_ids="map"', "min_relevance"],
    "trec-covid": ["binary qrels only", "min_relevance"],
    "webis-touche2020": ["unsafe BEIR document id", "binary qrels only", 'document_ids="map"', "min_relevance"],
    "fever": ["unsafe BEIR document id", 'document_ids="map"'],
    "dbpedia-entity": [
        "unsafe BEIR document id",
        "collide when case is folded",
        "not admissible as groundkit judgment ids",
        "binary qrels only",
    ],
}


@pytest.mark.parametrize("name", REASONS)
def test_sets_with_real_ids_are_refused_with_every_reason_at_once(tmp_path: Path, name: str) -> None:
    source = write_real_ids(tmp_path / "source", name)
    with pytest.raises(EvalError, match="nothing was written") as caught:
        adapt_beir_dataset(source, tmp_path / "output")
    message = str(caught.value)
    assert [reason for reason in REASONS[name] if reason not in message] == []
    assert len(message.splitlines()) <= 20
    assert caught.value.problem_count >= len(caught.value.problems) > 0
    assert not (tmp_path / "output").exists()
    assert inspect_beir_dataset(source).problem_count == caught.value.problem_count


def test_other_files_of_the_output_stay_and_old_judgments_are_replaced(tmp_path: Path) -> None:
    source, output = write_small_dataset(tmp_path / "source"), tmp_path / "output"
    output.mkdir()
    (output / "notes").write_text("mine")
    (output / "judgments.jsonl").write_text("old")
    adapt_beir_dataset(source, output)
    assert files_of(output) == {"notes": b"mine"} | reference.adapt_beir_dataset(source)


def test_a_dataset_may_be_adapted_into_its_own_directory(tmp_path: Path) -> None:
    source = write_small_dataset(tmp_path / "source")
    before = files_of(source)
    adapt_beir_dataset(source, source)
    assert files_of(source) == before | reference.adapt_beir_dataset(source)


def test_problems_of_dataset_and_output_are_told_at_once(tmp_path: Path) -> None:
    source, output = write_small_dataset(tmp_path / "source"), tmp_path / "output"
    (source / "queries.jsonl").unlink()
    (output / "corpus").mkdir(parents=True)
    (output / "corpus" / "old.txt").write_text("old")
    before = files_of(output)
    with pytest.raises(EvalError, match=r"(?s)already contains.*cannot read BEIR file") as caught:
        adapt_beir_dataset(source, output)
    assert {problem.kind for problem in caught.value.problems} == {"output", "unreadable_file"}
    assert files_of(output) == before


@pytest.mark.parametrize("part", ["corpus", "judgments.jsonl"])
def test_a_planted_link_is_refused_and_not_followed(tmp_path: Path, part: str) -> None:
    source, output, elsewhere = write_small_dataset(tmp_path / "source"), tmp_path / "output", tmp_path / "elsewhere"
    output.mkdir()
    elsewhere.mkdir()
    (output / part).symlink_to(elsewhere)
    with pytest.raises(EvalError, match="symbolic link"):
        adapt_beir_dataset(source, output)
    assert files_of(elsewhere) == {}
    assert files_of(output) == {part: b"link to " + os.fsencode(elsewhere)}


@pytest.mark.parametrize("holds_files", [False, True])
def test_a_link_at_the_staging_name_is_refused_and_not_followed(tmp_path: Path, holds_files: bool) -> None:
    source, output, elsewhere = write_small_dataset(tmp_path / "source"), tmp_path / "output", tmp_path / "elsewhere"
    elsewhere.mkdir()
    staging = tmp_path / ".output.groundkit-staging"
    if holds_files:
        output.mkdir()
        (output / "notes").write_text("mine")
        staging = output / ".groundkit-staging"
    staging.symlink_to(elsewhere)
    with pytest.raises(EvalError, match="symbolic link"):
        adapt_beir_dataset(source, output)
    assert files_of(elsewhere) == {}
    assert staging.is_symlink()


def test_a_linked_parent_is_the_callers_choice(tmp_path: Path) -> None:
    source, real = write_small_dataset(tmp_path / "source"), tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    report = adapt_beir_dataset(source, tmp_path / "link" / "output")
    assert report.output_dir == str(real / "output")
    assert files_of(real / "output") == reference.adapt_beir_dataset(source)


@contextmanager
def swapping(path: Path, target: Path) -> Iterator[None]:
    """Replace a path by a link to a directory elsewhere, again and again, as long as the context lasts."""
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            try:
                if path.is_symlink():
                    path.unlink()
                else:
                    path.rename(path.with_name(path.name + "-aside"))
                    path.symlink_to(target)
            except OSError:
                shutil.rmtree(path.with_name(path.name + "-aside"), ignore_errors=True)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize(
    "victim", ["parent/output", "parent/output/corpus", "parent/output/judgments.jsonl", "parent", "staging"]
)
def test_links_swapped_in_during_a_run_lead_nowhere(tmp_path: Path, victim: str) -> None:
    source, elsewhere, parent = (
        write_small_dataset(tmp_path / "source", 100),
        tmp_path / "elsewhere",
        tmp_path / "parent",
    )
    elsewhere.mkdir()
    path = parent / ".output.groundkit-staging" if victim == "staging" else tmp_path / victim
    with swapping(path, elsewhere):
        for _ in range(20):
            try:
                (parent / "output").mkdir(parents=True, exist_ok=True)
                adapt_beir_dataset(source, parent / "output")
            except (EvalError, OSError):
                continue
    # The caller's own choice of path may resolve to the link before the run; below it, nothing is followed.
    assert not any(name.startswith("d") for name in names_in(elsewhere))
    assert not (elsewhere / "new").exists()


CHILD = textwrap.dedent("""
    import sys
    from groundkit.evals.beir import adapt_beir_dataset
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        adapt_beir_dataset(sys.argv[1], sys.argv[2])
    except KeyboardInterrupt:
        print("interrupted", flush=True)
""")


@contextmanager
def child(source: Path, output: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a run in a process of its own that is about to adapt."""
    command = [sys.executable, "-c", CHILD, str(source), str(output)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.stdin.write("go\n")
        process.stdin.flush()
        yield process


@pytest.mark.parametrize("holds_files", [False, True])
@pytest.mark.parametrize(
    ("documents", "seconds", "kills"),
    [
        (500, 0.06, 8),
        pytest.param(500, 0.06, 100, marks=pytest.mark.slow),
        pytest.param(20_000, 0.6, 100, marks=pytest.mark.slow),
    ],
)
def test_a_run_killed_at_any_instant_leaves_the_output_as_it_was_or_complete(
    tmp_path: Path, holds_files: bool, documents: int, seconds: float, kills: int
) -> None:
    source = write_small_dataset(tmp_path / "source", documents)
    complete = reference.adapt_beir_dataset(source)
    before = {"notes": b"mine", "judgments.jsonl": b"old"} if holds_files else {}
    delays = random.Random(7)
    for number in range(kills):
        output = tmp_path / f"run{number}" / "output"
        output.parent.mkdir()
        if holds_files:
            output.mkdir()
            for name, content in before.items():
                (output / name).write_bytes(content)
        with child(source, output) as process:
            time.sleep(delays.uniform(0.0, seconds))
            process.kill()
        left = {name: content for name, content in files_of(output).items() if not name.startswith(".groundkit-")}
        unjudged = {name: content for name, content in (before | complete).items() if name != "judgments.jsonl"}
        permitted = [before, before | complete] + ([unjudged, {"notes": b"mine"}] if holds_files else [])
        assert left in permitted, sorted(left)[:5]
        if left != before | complete:
            adapt_beir_dataset(source, output)
        assert {k: v for k, v in files_of(output).items() if not k.startswith(".groundkit-")} == before | complete
        if left != before | complete:
            assert names_in(output.parent) == ["output"]
        verify_adaptation(output)
        shutil.rmtree(output.parent)


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    source = write_small_dataset(tmp_path / "source", 30_000)
    with child(source, tmp_path / "output") as process:
        while not any(path.name.startswith(".output") for path in tmp_path.iterdir()):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        assert process.stdout.readline() == "interrupted\n"
    assert process.returncode == 0
    assert names_in(tmp_path) == ["source"]


def test_two_runs_into_one_output_exclude_each_other(tmp_path: Path) -> None:
    source = write_small_dataset(tmp_path / "source", 20_000)
    with child(source, tmp_path / "output") as process:
        while not any(path.name.startswith(".output") for path in tmp_path.iterdir()):
            assert process.poll() is None
        with pytest.raises(EvalError, match="another adaptation"):
            adapt_beir_dataset(source, tmp_path / "output")
    assert process.returncode == 0
    assert files_of(tmp_path / "output") == reference.adapt_beir_dataset(source)


def rewrite(path: Path) -> None:
    """Change one byte and nothing that the file system tells."""
    before = path.stat()
    content = path.read_bytes()
    path.write_bytes(content[:-4] + bytes([content[-4] ^ 1]) + content[-3:])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace(path: Path) -> None:
    copy = path.with_name("copy")
    shutil.copy2(path, copy)
    copy.replace(path)


CHANGES: list[Callable[[Path], object]] = [
    rewrite,
    lambda path: path.write_bytes(path.read_bytes()[:-10]),
    lambda path: path.write_bytes(path.read_bytes() + b"\n"),
    os.utime,
]


@pytest.mark.parametrize("file", ["corpus.jsonl", "queries.jsonl"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_source_that_changes_after_the_check_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, change: Callable[[Path], object]
) -> None:
    source = write_small_dataset(tmp_path / "source")

    def change_after_the_check(*_arguments: object, **_options: object) -> list[str]:
        change(source / file)
        return []

    monkeypatch.setattr("groundkit.evals.beir.adapt.find_obstacles", change_after_the_check)
    with pytest.raises(EvalError, match="changed"):
        adapt_beir_dataset(source, tmp_path / "output")
    assert names_in(tmp_path) == ["source"]


@pytest.mark.root
def test_a_full_disk_leaves_the_output_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, disk = write_small_dataset(tmp_path / "source", 3_000), tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=False)  # noqa: S607
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        for output in (disk / "output", disk):
            with pytest.raises(EvalError, match=r"needs at least 12288000 bytes .* 1048576 free") as caught:
                adapt_beir_dataset(source, output)
            assert caught.value.problems[0].kind == "output"
            assert names_in(disk) == []
            # The space may also go after the check.
            monkeypatch.setattr("groundkit.evals.beir.adapt.find_obstacles", lambda *_, **__: [])
            with pytest.raises(EvalError, match="No space left on device"):
                adapt_beir_dataset(source, output)
            assert names_in(disk) == []
            monkeypatch.undo()
    finally:
        subprocess.run(["umount", str(disk)], check=True)  # noqa: S607


@pytest.mark.parametrize("path", ["nul\0byte", "\ud800", "a" * 300, "a/" * 2100])
def test_an_impossible_path_is_refused(tmp_path: Path, path: str) -> None:
    source = write_small_dataset(tmp_path / "source")
    with pytest.raises(EvalError):
        adapt_beir_dataset(source, tmp_path / path)
    with pytest.raises(EvalError):
        adapt_beir_dataset(tmp_path / path, tmp_path / "output")


@pytest.mark.parametrize("path", [None, 3, b"bytes", ["x"]])
def test_a_path_of_another_type_is_a_type_error(tmp_path: Path, path: Any) -> None:
    with pytest.raises(TypeError):
        adapt_beir_dataset(tmp_path, path)
    with pytest.raises(TypeError):
        adapt_beir_dataset(path, tmp_path / "output")


def test_the_longest_output_name_works(tmp_path: Path) -> None:
    source, output = write_small_dataset(tmp_path / "source"), tmp_path / ("o" * 255)
    adapt_beir_dataset(source, output)
    assert files_of(output) == reference.adapt_beir_dataset(source)
