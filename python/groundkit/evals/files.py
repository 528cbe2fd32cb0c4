"""Reading small files whole, with refusals that name the file."""

import os
import stat

from pydantic import ValidationError

from groundkit.errors import EvalError
from groundkit.evals.quoting import quote_path

__all__ = ["describe_first_fault", "describe_reason", "read_regular_file"]


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
        # Without O_NONBLOCK, opening a named pipe waits for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise EvalError(f"cannot read {what} {quote_path(path)}: not a regular file")
            return file.read()
    # A ValueError is a path with a NUL in it, or one that the file system's encoding cannot express.
    except (OSError, ValueError) as error:
        raise EvalError(f"cannot read {what} {quote_path(path)}: {describe_reason(error)}") from error


def describe_reason(error: Exception) -> str:
    """Say why the system refuses a path, without the number of the error and without the path."""
    return getattr(error, "strerror", None) or str(error)


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
