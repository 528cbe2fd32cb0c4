"""Where tests write, and which need more than every machine gives."""

import os
import tempfile
from functools import cache
from pathlib import Path

import pytest

# Many small files are written: a memory file system takes them faster than a disk that has just deleted as many.
_MEMORY = Path("/dev/shm")  # noqa: S108 - every test makes a directory of its own in it
if os.access(_MEMORY, os.W_OK):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))
    tempfile.tempdir = str(_MEMORY)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what this machine does not allow, and say what it would take."""
    if item.get_closest_marker("root") and (not hasattr(os, "geteuid") or os.geteuid() != 0):
        pytest.skip("needs root, which may mount a file system")
    if item.get_closest_marker("supervision") and not _can_supervise():
        pytest.skip(
            "needs Linux 5.6 in a container that allows seccomp and ptrace, so that system calls can be made to fail"
        )


@cache
def _can_supervise() -> bool:
    try:
        from system_calls import can_supervise  # noqa: PLC0415 - needs modules that only Linux has
    except ImportError:
        return False
    return can_supervise()
