"""The use of polars in forked processes, and where the system refuses threads.

polars keeps its threads for the life of a process. They do not survive a fork, and the first operation in the child
would wait for them for ever. Where no thread can be started, polars panics, which `except Exception` does not catch.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from groundkit.errors import EvalError

__all__ = ["using_polars"]

# As Linux shows them, cut to fifteen characters.
_POLARS_THREAD = re.compile(r"polars-\d+|tokio-rt-worker|async-executor-.*")


class _Fork:
    """What is known of the last fork that led to this process."""

    polars_runs = False
    polars_lost_threads = False


def _look_for_threads() -> None:
    _Fork.polars_runs = "polars" in sys.modules and _has_polars_threads()


def _has_polars_threads() -> bool:
    try:
        threads = list(Path("/proc/self/task").iterdir())
    except OSError:
        # Other systems do not tell. Importing polars starts none of the threads that are waited for, using it does.
        return True
    for thread in threads:
        try:
            name = (thread / "comm").read_text(errors="replace").rstrip("\n")
        except OSError:  # it has ended
            continue
        if _POLARS_THREAD.fullmatch(name):
            return True
    return False


def _remember_in_child() -> None:
    _Fork.polars_lost_threads |= _Fork.polars_runs


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_look_for_threads, after_in_child=_remember_in_child)


@contextmanager
def using_polars() -> Iterator[None]:
    """Enclose the use of polars, so that it neither hangs nor panics.

    Raises:
        EvalError: This process was forked after polars had started its threads, or polars panicked.
    """
    if _Fork.polars_lost_threads:
        raise EvalError(
            "polars would hang in this process: it was forked after polars had started its threads, and threads do not "
            "survive a fork; start worker processes with the method spawn or forkserver, such as "
            "multiprocessing.get_context('spawn').Pool()"
        )
    try:
        yield
    except BaseException as error:
        if not _is_panic(error):
            raise
        raise EvalError(
            f"polars panicked: {error}; it needs threads, so allow this process more of them (ulimit -u, or the limit "
            "of the container)"
        ) from None


def _is_panic(error: BaseException) -> bool:
    """Recognise a panic of any extension in Rust: each has a class of its own, which cannot be imported."""
    return type(error).__name__ == "PanicException" and not isinstance(error, Exception)
