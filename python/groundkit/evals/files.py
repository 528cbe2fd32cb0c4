"""Reading small files whole, with refusals that name the file."""

import os
import stat
from pathlib import Path

from pydantic import ValidationError

from groundkit.errors import EvalError

__all__ = ["describe_first_fault", "read_regular_file"]


def read_regular_file(path: str | os.PathLike[str], what: str) -> bytes:
    """Read a regular file, and wait for nothing else.

    Args:
        path: The file.
        what: What it is meant to be, for the message, such as ``judgments file``.

    Returns:
        Its bytes.

    Raises:
        EvalError: It is absent, unreadable or no regular file.
    """
    try:
        # Without O_NONBLOCK, opening a FIFO would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise EvalError(f"cannot read {what} {str(Path(path))!r}: not a regular file")
            with os.fdopen(descriptor, "rb", closefd=False) as handle:
                return handle.read()
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        # A ValueError is a path with a NUL in it or one that the file system's encoding cannot express.
        raise EvalError(f"cannot read {what} {str(Path(path))!r}: {error}") from error


def describe_first_fault(error: ValidationError) -> str:
    """Say which field is wrong and how, and how many more are.

    Args:
        error: What pydantic found.

    Returns:
        One line, without the input.
    """
    first, *others = error.errors(include_url=False, include_input=False)
    where = ".".join(map(str, first["loc"]))
    more = f" (and {len(others)} more)" if others else ""
    return f"{where}: {first['msg']}{more}" if where else f"{first['msg']}{more}"
