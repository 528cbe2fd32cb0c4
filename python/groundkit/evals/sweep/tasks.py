"""The tasks of a sweep, run here or elsewhere, and their results, kept for a later run."""

import contextlib
import functools
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, as_completed
from pathlib import Path

from groundkit import __version__, _native
from groundkit.errors import EvalError
from groundkit.evals.arguments import encode_seed
from groundkit.evals.progress import SweepProgress
from groundkit.evals.quoting import quote
from groundkit.evals.sweep.plan import Settings, Task

__all__ = ["TaskResult", "run_tasks"]

TaskResult = tuple["list[_native.Row]", list[float]]
"""The rows of a task as the kernel gives them, and the mean of each row of scores."""


def run_tasks(
    tasks: list[Task],
    settings: Settings,
    executor: Executor | None,
    resume: str | os.PathLike[str] | None,
    watch: Callable[[SweepProgress], object],
) -> list[TaskResult]:
    """Run the tasks whose results are not kept in ``resume``.

    Args:
        tasks: The tasks.
        settings: The settings of the sweep.
        executor: Where to run them; by default here.
        resume: Directory of kept results.
        watch: What to call with the progress.

    Returns:
        The results in the order of the tasks.

    Raises:
        EvalError: Scores are not finite, or a result cannot be read or kept.
    """
    kept = None if resume is None else _KeptResults(Path(resume), settings)
    results: dict[int, TaskResult] = {}

    def finish(number: int, result: TaskResult) -> None:
        results[number] = result
        dataset = tasks[number].comparisons[0].dataset
        watch(SweepProgress(dataset=dataset, sets_done=len(results), sets_total=len(tasks)))

    watch(SweepProgress(dataset=None, sets_done=0, sets_total=len(tasks)))
    for number, task in enumerate(tasks):
        found = None if kept is None else kept.find(task)
        if found is not None:
            finish(number, found)
    pending = [number for number in range(len(tasks)) if number not in results]
    for number, result in _run_pending(tasks, pending, settings, executor):
        if kept is not None:
            kept.keep(tasks[number], result)
        finish(number, result)
    return [results[number] for number in range(len(tasks))]


def _run_pending(
    tasks: list[Task], pending: list[int], settings: Settings, executor: Executor | None
) -> Iterator[tuple[int, TaskResult]]:
    """Yield number and result of the pending tasks as they are finished."""
    if executor is None:
        yield from ((number, _run_task(tasks[number], settings)) for number in pending)
        return
    run = functools.partial(_run_task, settings=settings)
    futures = {executor.submit(run, tasks[number]): number for number in pending}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        for future in futures:
            future.cancel()


def _run_task(task: Task, settings: Settings) -> TaskResult:
    rows, means, failed = _native.compare_rows(
        task.scores,
        task.query_count,
        task.pairs,
        resamples=settings.resamples,
        seed=encode_seed(settings.seed),
        confidence_level=settings.confidence_level,
        sign_flip="sign_flip" in settings.tests,
        family_levels=task.family_levels if "max_t" in settings.tests else [],
        threads=settings.threads,
    )
    if failed is not None:
        comparison = task.comparisons[failed]
        raise EvalError(
            f"scores must be finite, and so must a sum of {task.query_count} deltas: those of "
            f"{quote(comparison.baseline)} or {quote(comparison.candidate)} in {quote(comparison.metric)} on dataset "
            f"{quote(comparison.dataset)} are not"
        )
    return rows, means


class _KeptResults:
    """A directory of results, each in a file whose name says what it is the result of."""

    def __init__(self, directory: Path, settings: Settings) -> None:
        self._directory = directory
        # Threads change no bit of a result.
        self._settings = {
            name: sorted(value) if isinstance(value, frozenset) else value
            for name, value in settings._asdict().items()
            if name != "threads"
        }
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EvalError(f"cannot keep results in {quote(str(directory))}: {error.strerror or error}") from error

    def _path(self, task: Task) -> Path:
        described = [__version__, self._settings, task.query_count, task.pairs, task.family_levels]
        digest = hashlib.sha256(json.dumps(described).encode())
        digest.update(task.scores.tobytes())
        slug = re.sub("[^a-z0-9]+", "-", task.comparisons[0].dataset.lower())[:40]
        return self._directory / f"{slug}-{digest.hexdigest()[:32]}.json"

    def find(self, task: Task) -> TaskResult | None:
        try:
            text = self._path(task).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise EvalError(f"cannot read {quote(str(self._path(task)))}: {error.strerror or error}") from error
        rows, means = json.loads(text)
        return [tuple(None if part is None else tuple(part) for part in row) for row in rows], means  # type: ignore[misc]

    def keep(self, task: Task, result: TaskResult) -> None:
        path = self._path(task)
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
            raise EvalError(f"cannot keep results in {quote(str(path))}: {error.strerror or error}") from error
