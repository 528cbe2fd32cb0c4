"""polars in forked children and without threads: an error that says what to do, never a hang or a panic."""

import subprocess
import sys
import textwrap

import pytest
from groundkit.errors import EvalError
from groundkit.evals.fork import using_polars

# A child that hangs is ended by the alarm, which shows in its status.
FORK = """
import os, signal, sys
from groundkit.errors import EvalError
from groundkit.evals.sweep import compare_systems
import polars as pl

rows = [(s, "m", f"q{q}", (q * f % 7) / 7) for s, f in (("a", 2), ("b", 3)) for q in range(30)]
frame = pl.DataFrame(rows, schema=["system", "metric", "query_id", "score"], orient="row")

def compare():
    try:
        return f"effect {compare_systems(frame).rows[0].effect:.3f}"
    except EvalError as error:
        return str(error)

def compare_in_child():
    sys.stdout.flush()
    if (pid := os.fork()) == 0:
        signal.alarm(60)
        print(compare(), flush=True)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""


def run(code: str) -> list[str]:
    command = [sys.executable, "-W", "ignore", "-c", FORK + textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout.splitlines()


def test_a_frame_is_refused_in_a_child_that_lost_the_threads_of_polars() -> None:
    first, second, third = run("print(compare())\ncompare_in_child()\nprint(compare())")
    assert first == third
    assert first.startswith("effect ")
    assert "spawn or forkserver" in second


def test_a_grandchild_is_refused_too() -> None:
    lines = run(
        """
        compare()
        if (pid := os.fork()) == 0:
            compare_in_child()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        """
    )
    assert ["spawn or forkserver" in line for line in lines] == [True]


def test_a_frame_is_compared_in_a_child_where_its_parent_did_not_use_polars() -> None:
    child, parent = run("compare_in_child()\nprint(compare())")
    assert child == parent
    assert child.startswith("effect ")


def test_mappings_are_compared_in_any_child() -> None:
    (line,) = run(
        """
        compare()
        frame = {s: {"m": {f"q{q}": q * f / 7 for q in range(30)}} for s, f in (("a", 2), ("b", 3))}
        compare_in_child()
        """
    )
    assert line.startswith("effect ")


def test_a_panic_of_polars_is_an_error() -> None:
    (line,) = run(
        """
        import resource
        if os.getuid() == 0:
            os.setresuid(65534, 65534, 65534)
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        print(compare())
        """
    )
    assert line.startswith("polars panicked: ")
    assert "allow this process more" in line


def test_other_exceptions_pass_through() -> None:
    with pytest.raises(KeyboardInterrupt), using_polars():
        raise KeyboardInterrupt
    with pytest.raises(EvalError, match="of the caller"), using_polars():
        raise EvalError("of the caller")
