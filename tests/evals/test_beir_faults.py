"""Whatever system call fails, and wherever a run is killed, the output is as it was or complete.

A supervised child makes the calls, and every single one of them is made to fail, or is where the child is killed.
"""

import errno
import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from datasets import write_files
from groundkit.evals.beir import BeirPolicy, adapt_beir_dataset
from system_calls import Act, Call, Child, Fault, Outcome, child

pytestmark = pytest.mark.supervision

# Calls that change what is on the disk; a kill between two others is the same as one before the next of these.
CHANGING = {"mkdirat", "write", "unlinkat", "renameat", "renameat2", "fsync", "syncfs", "fchmod", "fchown"}
MOVING = {"renameat", "renameat2"}

QUERIES = '{"_id": "q1", "text": "what?"}\n{"_id": "q2", "text": "why?"}\n'
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\tD_2\t1\nq2\td1\t1\n"
OPTIONS: dict[str, Any] = {"durable": True, "policy": {"document_ids": "map"}}

OLD = {"notes": b"mine", "judgments.jsonl": b"old", "id-map.parquet": b"old", "adaptation.json": b"old"}


class State(NamedTuple):
    """What is there before a run: the output below a directory, and files in it; `None` where there is no output."""

    output: str
    files: dict[str, bytes] | None


STATES = {
    "absent": State("deep/er/output", None),
    "empty": State("output", {}),
    "holds files": State("output", OLD),
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a dataset that is plain, packed and mapped."""
    corpus = '{"_id": "d1", "title": "T", "text": "one"}\n{"_id": "D_2", "text": "two"}\n'
    return write_files(tmp_path_factory.mktemp("source"), corpus, QUERIES, QRELS)


@pytest.fixture(scope="module")
def supervised() -> Iterator[Child]:
    """Start a child for all runs that are not killed."""
    with child() as running:
        yield running


class Run:
    """One run into a directory of its own, and what must be true of it afterwards."""

    def __init__(self, source: Path, directory: Path, state: State) -> None:
        """Make what is there before the run."""
        self.source, self.directory, self.state = source, directory, state
        self.output = directory / state.output
        directory.mkdir()
        if state.files is not None:
            self.output.mkdir()
            for name, content in state.files.items():
                (self.output / name).write_bytes(content)
        self.before = tree(directory)

    def check_refused(self) -> None:
        """Nothing was changed, and a plain run repairs whatever is there."""
        assert tree(self.directory) == self.before
        self.check_repaired()

    def check_repaired(self) -> None:
        """A plain run succeeds, and leaves nothing but its output."""
        adapt(self.source, self.output)
        self.check_complete()
        assert not staging_in(self.directory)

    def check_complete(self) -> None:
        """All is there that an undisturbed run writes, and what was there and stays."""
        kept = {"notes": b"mine"} if self.state.files else {}
        assert adapted_in(self.output) == adapted_from(self.source) | kept

    def check_as_before_or_complete(self) -> None:
        """Check what a killed run may leave; hidden staging directories do not count until the next run."""
        if "corpus" in adapted_in(self.output) and "judgments.jsonl" in adapted_in(self.output):
            self.check_complete()
        else:
            # Between two renames files of the old output are aside; the next run puts them back or finishes.
            self.check_repaired()


def adapted_in(output: Path) -> dict[str, bytes | None]:
    """Read an output, and leave out what the next run clears."""
    return {name: content for name, content in tree(output).items() if not name.startswith(".groundkit-staging")}


@cache
def adapted_from(source: Path) -> dict[str, bytes | None]:
    """Read what an undisturbed run writes."""
    with TemporaryDirectory() as directory:
        adapt(source, Path(directory) / "output")
        return tree(Path(directory) / "output")


def adapt(source: Path, output: Path) -> None:
    """Adapt without a supervisor, as the next user does."""
    adapt_beir_dataset(source, output, policy=BeirPolicy(document_ids="map"))


def tree(root: Path) -> dict[str, bytes | None]:
    """Read everything below a directory."""
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in root.rglob("*")}


def staging_in(root: Path) -> list[str]:
    """List the staging directories below a directory."""
    return [name for name in tree(root) if name.endswith(".groundkit-staging")]


def fails_at(number: int, fault: Fault) -> Act:
    """Let one call fail."""
    return lambda call: fault if call.number == number else None


def calls_of(supervised: Child, source: Path, directory: Path, state: State) -> list[Call]:
    """List the calls of an undisturbed run."""
    run = Run(source, directory / "undisturbed", state)
    outcome = supervised.adapt(source, run.output, **OPTIONS)
    assert outcome.error is None
    run.check_complete()
    assert not staging_in(run.directory)
    return outcome.calls


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EACCES])
@pytest.mark.parametrize("state", STATES)
def test_a_call_that_fails_leaves_the_output_as_it_was_or_complete(
    supervised: Child, source: Path, tmp_path: Path, state: str, error: int
) -> None:
    refused = 0
    for call in calls_of(supervised, source, tmp_path, STATES[state]):
        run = Run(source, tmp_path / str(call.number), STATES[state])
        outcome = supervised.adapt(source, run.output, fails_at(call.number, Fault(error)), **OPTIONS)
        where = f"{call.name}, call {call.number}: {outcome.error}"
        try:
            if outcome.error is None:
                run.check_complete()
            elif call.name == "fsync":
                # All has appeared by then, and only the disk did not confirm it.
                assert os.strerror(error) in outcome.error
                run.check_complete()
            else:
                assert os.strerror(error) in outcome.error
                run.check_refused()
                refused += 1
        except Exception as failure:
            raise AssertionError(where) from failure
        shutil.rmtree(run.directory)
    assert refused > 30


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("fault", [Fault(errno.EINTR), Fault(short=True)], ids=["EINTR", "short"])
def test_a_call_that_is_interrupted_or_cut_short_is_made_again(
    supervised: Child, source: Path, tmp_path: Path, state: str, fault: Fault
) -> None:
    for call in calls_of(supervised, source, tmp_path, STATES[state]):
        if fault.short and call.name not in {"read", "pread64", "write"}:
            continue
        run = Run(source, tmp_path / str(call.number), STATES[state])
        outcome = supervised.adapt(source, run.output, fails_at(call.number, fault), **OPTIONS)
        assert outcome.error is None, f"{call.name}, call {call.number}"
        run.check_complete()
        assert not staging_in(run.directory), f"{call.name}, call {call.number}"
        shutil.rmtree(run.directory)


def test_what_cannot_be_undone_is_undone_by_the_next_run(supervised: Child, source: Path, tmp_path: Path) -> None:
    state = STATES["holds files"]
    calls = calls_of(supervised, source, tmp_path, state)
    moves = [call.number for call in calls if call.name in MOVING]
    number = 0
    for move in moves:
        later, more = move, True
        while more:
            later += 1

            def act(call: Call, move: int = move, later: int = later) -> Fault | None:
                return Fault(errno.EIO) if call.number in {move, later} else None

            run = Run(source, tmp_path / str(number), state)
            outcome = supervised.adapt(source, run.output, act, **OPTIONS)
            assert outcome.error is not None
            more = len(outcome.calls) > later
            run.check_repaired()
            shutil.rmtree(run.directory)
            number += 1
    assert number > 5 * len(moves)


@pytest.mark.parametrize("state", STATES)
def test_a_run_killed_before_any_change_leaves_the_output_as_it_was_or_complete(
    supervised: Child, source: Path, tmp_path: Path, state: str
) -> None:
    for call in calls_of(supervised, source, tmp_path, STATES[state]):
        if call.name in CHANGING:
            run = Run(source, tmp_path / str(call.number), STATES[state])
            outcome = kill_at(source, run, {}, call.number)
            assert outcome.killed
            run.check_as_before_or_complete()


@pytest.mark.slow
def test_a_run_killed_while_it_undoes_is_undone_by_the_next(supervised: Child, source: Path, tmp_path: Path) -> None:
    state = STATES["holds files"]
    moves = [call.number for call in calls_of(supervised, source, tmp_path, state) if call.name in MOVING]
    number = 0
    for move in moves:
        later, killed = move, True
        while killed:
            later += 1
            run = Run(source, tmp_path / str(number), state)
            killed = kill_at(source, run, {move: Fault(errno.EIO)}, later).killed
            run.check_as_before_or_complete()
            number += 1
    assert number > 5 * len(moves)


def kill_at(source: Path, run: Run, faults: dict[int, Fault], number: int) -> Outcome:
    """Run in a child of its own, which is killed before a call."""
    with child() as victim:

        def act(call: Call) -> Fault | None:
            if call.number == number:
                victim.kill()
            return faults.get(call.number)

        return victim.adapt(source, run.output, act, **OPTIONS)
