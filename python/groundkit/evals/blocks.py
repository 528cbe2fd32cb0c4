"""The pieces of a sweep: comparisons over one set of queries, run here or elsewhere, and kept for a later run."""

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from groundkit import __version__
from groundkit.errors import EvalError
from groundkit.evals.progress import SweepProgress

if TYPE_CHECKING:
    from array import array
    from functools import partial

    from groundkit import _native

__all__ = ["Block", "Compared", "Comparison", "run_blocks"]


class Comparison(NamedTuple):
    """What is known of a row before anything is computed."""

    dataset: str
    metric: str
    baseline: str
    candidate: str
    baseline_missing: int
    candidate_missing: int
    family: str


class Block(NamedTuple):
    """Comparisons over one set of queries of one dataset: all that a worker needs."""

    query_count: int
    scores: "array[float]"
    pairs: list[tuple[int, int, int]]
    family_levels: list[float]
    family_shares: list[int]
    comparisons: list[Comparison]


Compared = tuple["list[_native.Row]", list[float]]
"""Rows of a block as the kernel gives them, and the mean of each row of scores."""


def run_blocks(
    blocks: list[Block],
    compare: "partial[Compared]",
    executor: Executor | None,
    resume: str | os.PathLike[str] | None,
    watch: Callable[[SweepProgress], object],
) -> list[Compared]:
    """Run ``compare`` on every block that is not kept in ``resume``; the results in the order of the blocks."""
    kept = None if resume is None else _Kept(Path(resume), compare)
    results: dict[int, Compared] = {}

    def finish(number: int, result: Compared) -> None:
        results[number] = result
        dataset = blocks[number].comparisons[0].dataset
        watch(SweepProgress(dataset=dataset, sets_done=len(results), sets_total=len(blocks)))

    watch(SweepProgress(dataset=None, sets_done=0, sets_total=len(blocks)))
    for number, block in enumerate(blocks):
        found = None if kept is None else kept.find(block)
        if found is not None:
            finish(number, found)
    pending = [number for number in range(len(blocks)) if number not in results]
    for number, result in _compare(blocks, pending, compare, executor):
        if kept is not None:
            kept.keep(blocks[number], result)
        finish(number, result)
    return [results[number] for number in range(len(blocks))]


def _compare(
    blocks: list[Block], pending: list[int], compare: "partial[Compared]", executor: Executor | None
) -> Iterator[tuple[int, Compared]]:
    """Yield number and result of the pending blocks as they are finished."""
    if executor is None:
        yield from ((number, compare(blocks[number])) for number in pending)
        return
    futures = {executor.submit(compare, blocks[number]): number for number in pending}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        for future in futures:
            future.cancel()


class _Kept:
    """A directory of finished blocks, each in a file whose name says of what it is the result."""

    def __init__(self, directory: Path, compare: "partial[Compared]") -> None:
        self._directory = directory
        # Threads change no bit of a result.
        self._settings = {
            name: sorted(value) if isinstance(value, frozenset) else value
            for name, value in compare.keywords["settings"]._asdict().items()
            if name != "threads"
        }
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EvalError(f"cannot keep results in {str(directory)!r}: {error.strerror or error}") from error

    def _path(self, block: Block) -> Path:
        described = [__version__, self._settings, block.query_count, block.pairs, block.family_levels]
        digest = hashlib.sha256(json.dumps(described).encode())
        digest.update(block.scores.tobytes())
        slug = re.sub("[^a-z0-9]+", "-", block.comparisons[0].dataset.lower())[:40]
        return self._directory / f"{slug}-{digest.hexdigest()[:32]}.json"

    def find(self, block: Block) -> Compared | None:
        try:
            text = self._path(block).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise EvalError(f"cannot read {str(self._path(block))!r}: {error.strerror or error}") from error
        rows, means = json.loads(text)
        return [tuple(None if part is None else tuple(part) for part in row) for row in rows], means  # type: ignore[misc]

    def keep(self, block: Block, result: Compared) -> None:
        path = self._path(block)
        try:
            handle, name = tempfile.mkstemp(dir=self._directory, prefix=".", suffix=".json")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    json.dump(result, file)
                # A run that is killed leaves no half file under the name that the next one looks for.
                Path(name).replace(path)
            except BaseException:
                with contextlib.suppress(OSError):
                    Path(name).unlink()
                raise
        except OSError as error:
            raise EvalError(f"cannot keep results in {str(path)!r}: {error.strerror or error}") from error
