"""How far a long run is: plain events for programs, a bar for people."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, TypeAlias

from groundkit.errors import EvalError
from groundkit.evals.model import FrozenModel

if TYPE_CHECKING:
    from rich.progress import Progress

Phase: TypeAlias = Literal["qrels", "corpus", "queries", "output", "verification"]

# What the native functions call: bytes done, bytes in all, documents done.
Watch: TypeAlias = Callable[[int, int, int], None]

# Gives what a native function calls during a phase of so many documents; `None` where nobody knows how many.
Report: TypeAlias = Callable[[Phase, int | None], Watch | None]

_TITLES: dict[Phase, str] = {
    "qrels": "Reading qrels",
    "corpus": "Checking corpus",
    "queries": "Checking queries",
    "output": "Writing documents",
    "verification": "Verifying output",
}


class BeirProgress(FrozenModel):
    """How far a run is; each phase starts with an event that has nothing done and ends with one that has all done.

    Attributes:
        phase: What is going on: the qrels, the corpus and the queries are read and checked, then the output is written;
            `verify_adaptation` has the one phase `verification`.
        bytes_done: Bytes read from the disk in this phase.
        bytes_total: Bytes that this phase reads.
        documents_done: Documents read from the corpus so far, written, or verified; 0 for qrels and queries.
        documents_total: Documents that this phase writes or verifies; `None` where their number is not known yet.
    """

    phase: Phase
    bytes_done: int
    bytes_total: int
    documents_done: int
    documents_total: int | None


class SweepProgress(FrozenModel):
    """How far a sweep is; there is one event when it begins and one after each set of queries.

    Attributes:
        dataset: Dataset of the set of queries that is finished; `None` at the beginning.
        sets_done: Sets of queries that are finished.
        sets_total: Sets of queries in all: one a dataset, unless systems or metrics have different queries.
    """

    dataset: str | None
    sets_done: int
    sets_total: int


SweepProgressOption: TypeAlias = bool | Callable[[SweepProgress], object] | None
ProgressOption: TypeAlias = bool | Callable[[BeirProgress], object] | None


@contextmanager
def open_progress(progress: ProgressOption) -> Iterator[Report]:
    """Open the bar, or make events for the callable, until the run ends in whichever way.

    Args:
        progress: `True` for a bar on a terminal or in a notebook, a callable for events, else nothing.

    Yields:
        What each phase asks for the function to call while it works.

    Raises:
        EvalError: `progress` is `True` and rich, which draws the bar, is not installed.
    """
    if callable(progress):
        try:
            yield lambda phase, documents: _make_events(progress, phase, documents)
        except _RefusedError as refused:
            raise refused.error from refused.error.__cause__
    elif progress:
        with _open_bar() as bar:
            yield lambda phase, documents: _draw(bar, phase, documents)
    else:
        yield lambda _phase, _documents: None


class _RefusedError(Exception):
    """Carries an `EvalError` of a callable past those who would take it for one about the dataset."""

    def __init__(self, error: EvalError) -> None:
        super().__init__(str(error))
        self.error = error


def _make_events(callback: Callable[[BeirProgress], object], phase: Phase, documents_total: int | None) -> Watch:
    def watch(bytes_done: int, bytes_total: int, documents_done: int) -> None:
        event = BeirProgress(
            phase=phase,
            bytes_done=bytes_done,
            bytes_total=bytes_total,
            documents_done=documents_done,
            documents_total=documents_total,
        )
        try:
            callback(event)
        except EvalError as error:
            raise _RefusedError(error) from None

    return watch


@contextmanager
def open_sweep_progress(progress: SweepProgressOption) -> Iterator[Callable[[SweepProgress], object]]:
    """Open the bar of a sweep, or hand on the callable, until the sweep ends in whichever way.

    Args:
        progress: `True` for a bar on a terminal or in a notebook, a callable for events, else nothing.

    Yields:
        What to call with every event.

    Raises:
        EvalError: `progress` is `True` and rich, which draws the bar, is not installed.
    """
    if callable(progress):
        yield progress
    elif progress:
        with _open_bar(counts=True) as bar:
            task = bar.add_task("Comparing systems", total=None)
            yield lambda event: bar.update(task, completed=event.sets_done, total=event.sets_total)
    else:
        yield lambda _event: None


def _open_bar(*, counts: bool = False) -> "Progress":
    try:
        from rich import progress as columns  # noqa: PLC0415 - only who asks for a bar needs it
        from rich.console import Console  # noqa: PLC0415
    except ImportError as error:
        raise EvalError(
            "progress=True draws its bar with the package rich, which is not installed; "
            "pip install 'groundkit-evals[progress]', or pass a callable"
        ) from error
    console = Console(stderr=True)
    measured: list[columns.ProgressColumn] = [columns.MofNCompleteColumn()]
    if not counts:
        documents = columns.TextColumn("{task.fields[documents]}")
        measured = [columns.DownloadColumn(), columns.TransferSpeedColumn(), documents]
    return columns.Progress(
        columns.TextColumn("{task.description}"),
        columns.BarColumn(),
        *measured,
        columns.TimeRemainingColumn(),
        console=console,
        # Files and pipes get nothing, not even the last state.
        disable=not (console.is_terminal or console.is_jupyter),
    )


def _draw(bar: "Progress", phase: Phase, documents_total: int | None) -> Watch:
    task = bar.add_task(_TITLES[phase], total=None, documents="")

    def watch(bytes_done: int, bytes_total: int, documents_done: int) -> None:
        if documents_total is not None:
            documents = f"{documents_done:,}/{documents_total:,} documents"
        else:
            documents = f"{documents_done:,} documents" if documents_done else ""
        bar.update(task, completed=bytes_done, total=bytes_total, documents=documents)

    return watch
