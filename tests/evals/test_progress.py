"""Progress: what programs are told, what people see, and how a run ends that nobody wants to go on."""

import gzip
import io
import itertools
import random
import sys
from pathlib import Path

import pytest
from datasets import write_files
from groundkit.errors import EvalError
from groundkit.evals.beir import adapt_beir_dataset, inspect_beir_dataset
from groundkit.evals.progress import BeirProgress, open_progress
from groundkit.evals.provenance import verify_adaptation


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_files(tmp_path)


def test_a_callable_is_told_of_every_phase_until_it_is_done(dataset: Path) -> None:
    events: list[BeirProgress] = []
    inspect_beir_dataset(dataset, progress=events.append)
    phases = [list(group) for _, group in itertools.groupby(events, key=lambda event: event.phase)]
    assert all(phase[0].bytes_done == 0 for phase in phases)
    last = [phase[-1] for phase in phases]
    assert [event.phase for event in last] == ["qrels", "corpus", "queries"]
    for event, name in zip(last, ("qrels/test.tsv", "corpus.jsonl", "queries.jsonl"), strict=True):
        assert event.bytes_done == event.bytes_total == (dataset / name).stat().st_size
        assert event.documents_total is None
    assert [event.documents_done for event in last] == [0, 1, 0]


def test_documents_are_counted_while_they_are_read(dataset: Path) -> None:
    # Unpacking so much takes several times as long as it takes until the next report.
    text = random.Random(1).randbytes(1_000).hex()
    rows = "".join(f'{{"_id": "d{number}", "text": "{number}{text}"}}\n' for number in range(100_000))
    (dataset / "corpus.jsonl").unlink()
    (dataset / "corpus.jsonl.gz").write_bytes(gzip.compress(rows.encode(), 1))
    events: list[BeirProgress] = []
    inspect_beir_dataset(dataset, progress=events.append)
    counts = [event.documents_done for event in events if event.phase == "corpus"]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, 100_000)
    assert any(0 < count < 100_000 for count in counts)


def test_a_verification_counts_documents_and_bytes(dataset: Path) -> None:
    output = dataset / "adapted"
    adapt_beir_dataset(dataset, output)
    events: list[BeirProgress] = []
    record = verify_adaptation(output, progress=events.append)
    total = record.corpus.bytes + sum(file.bytes for file in record.files.values())
    assert {(event.phase, event.bytes_total, event.documents_total) for event in events} == {("verification", total, 1)}
    done = [(event.bytes_done, event.documents_done) for event in events]
    assert done == sorted(done)
    assert (done[0], done[-1]) == ((0, 0), (total, 1))


def test_an_exception_of_the_callable_ends_a_verification(dataset: Path) -> None:
    adapt_beir_dataset(dataset, dataset / "adapted")

    def stop(event: BeirProgress) -> None:
        if event.documents_done:
            raise KeyError

    with pytest.raises(KeyError):
        verify_adaptation(dataset / "adapted", progress=stop)


@pytest.mark.parametrize("phase", ["qrels", "corpus", "output", "verification"])
def test_an_error_of_the_callable_is_not_taken_for_one_of_the_dataset(dataset: Path, phase: str) -> None:
    enough = EvalError("enough")

    def stop(event: BeirProgress) -> None:
        if event.phase == phase and event.bytes_done == event.bytes_total:
            raise enough

    with pytest.raises(EvalError) as caught:  # noqa: PT012 - one of the two raises
        adapt_beir_dataset(dataset, dataset / "adapted", progress=stop)
        verify_adaptation(dataset / "adapted", progress=stop)
    assert caught.value is enough


def test_an_adaptation_counts_the_documents_it_writes(dataset: Path) -> None:
    events: list[BeirProgress] = []
    adapt_beir_dataset(dataset, dataset / "adapted", progress=events.append)
    last = events[-1]
    assert (last.phase, last.documents_done, last.documents_total) == ("output", 1, 1)
    assert last.bytes_done == last.bytes_total > 0


def test_an_exception_when_documents_are_to_be_written_leaves_nothing(dataset: Path) -> None:
    def stop(event: BeirProgress) -> None:
        if event.phase == "output":
            raise KeyError

    before = sorted(dataset.iterdir())
    with pytest.raises(KeyError):
        adapt_beir_dataset(dataset, dataset / "adapted", progress=stop)
    assert sorted(dataset.iterdir()) == before


def test_an_exception_of_the_callable_ends_the_run_and_passes_through(dataset: Path) -> None:
    class Enough(Exception):  # noqa: N818 - it is no error
        pass

    def stop(event: BeirProgress) -> None:
        assert event.phase == "qrels"
        raise Enough

    with pytest.raises(Enough):
        inspect_beir_dataset(dataset, progress=stop)


def test_a_bar_is_drawn_on_a_terminal(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    inspect_beir_dataset(dataset, progress=True)
    assert "Checking corpus" in terminal.getvalue()
    size = (dataset / "corpus.jsonl").stat().st_size
    assert f"{size}/{size} bytes" in terminal.getvalue()
    assert "1 documents" in terminal.getvalue()


def test_a_bar_is_drawn_of_a_verification(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapt_beir_dataset(dataset, dataset / "adapted")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    verify_adaptation(dataset / "adapted", progress=True)
    assert "Verifying output" in terminal.getvalue()
    assert "1/1 documents" in terminal.getvalue()


def test_nothing_is_written_where_there_is_no_terminal(dataset: Path, capfd: pytest.CaptureFixture[str]) -> None:
    inspect_beir_dataset(dataset, progress=True)
    assert capfd.readouterr() == ("", "")


def test_a_bar_without_rich_is_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    with pytest.raises(EvalError, match=r"groundkit-evals\[progress\]"), open_progress(progress=True):
        pass
