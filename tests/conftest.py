"""Fixtures that more than one test file uses."""

import os
import tempfile
from pathlib import Path

import pytest

# Many small files are written: a memory file system takes them faster than a disk that has just deleted as many.
_MEMORY = Path("/dev/shm")  # noqa: S108 - every test makes a directory of its own in it
if os.access(_MEMORY, os.W_OK):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))
    tempfile.tempdir = str(_MEMORY)


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of real data beside the repository, which a clone need not have."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not (folder / "data").is_dir():
        pytest.skip("the shared data is not here")
    return folder
