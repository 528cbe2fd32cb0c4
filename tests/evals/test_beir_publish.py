"""Whatever system call fails, the output is as it was or complete, and the next run succeeds."""

import errno
import json
import os
import platform
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest
from groundkit.evals.beir import adapt_beir_dataset

# No other document or row is as long, so a filter can tell the write of this one.
LENGTH = 54_321

# Numbers of system calls: x86-64, aarch64 (asm/unistd.h of Linux).
CALLS = {
    "mkdirat": (258, 34),
    "openat": (257, 56),
    "write": (1, 64),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "flock": (73, 32),
    "fchmod": (91, 52),
    "fsync": (74, 82),
    "syncfs": (306, 267),
}


class Fault(NamedTuple):
    """Let a system call fail, where one of its arguments (its number, mask) is a value."""

    call: str
    error: int
    argument: int = 0
    mask: int = 0
    value: int = 0


FAULTS = [
    Fault("mkdirat", errno.ENOSPC),
    Fault("openat", errno.ENOSPC, 2, os.O_EXCL, os.O_EXCL),
    Fault("write", errno.EIO, 2, 0xFFFF_FFFF, LENGTH),
    Fault("write", errno.ENOSPC, 2, 0xFFFF_FFFF, LENGTH),
    Fault("renameat", errno.EIO),
    Fault("renameat2", errno.EIO),
    Fault("flock", errno.ENOLCK),
    Fault("fchmod", errno.EPERM),
    Fault("syncfs", errno.EIO),
    Fault("fsync", errno.EIO),
]

# seccomp(2) lets the kernel itself return the error, to libc's callers and to those that do without it.
CHILD = textwrap.dedent("""
    import ctypes, json, struct, sys
    from groundkit.errors import EvalError
    from groundkit.evals.beir import adapt_beir_dataset
    import polars
    source, outputs, number, error, index, mask, value = json.loads(sys.argv[1])
    LOAD, AND, EQUAL, RETURN = 0x20, 0x54, 0x15, 0x06
    program = [
        (LOAD, 0, 0, 0), (EQUAL, 0, 4, number),
        (LOAD, 0, 0, 16 + 8 * index), (AND, 0, 0, mask), (EQUAL, 0, 1, value),
        (RETURN, 0, 0, 0x0005_0000 | error), (RETURN, 0, 0, 0x7FFF_0000),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    filter = Program(len(program), ctypes.addressof(code))
    assert libc.prctl(22, 2, ctypes.byref(filter), 0, 0) == 0, ctypes.get_errno()
    for output in outputs:
        try:
            adapt_beir_dataset(source, output, durable=True)
        except EvalError as refusal:
            print(json.dumps(str(refusal)))
        else:
            print("null")
""")


def write_source(directory: Path) -> Path:
    (directory / "qrels").mkdir(parents=True)
    texts = {f"d{number}": f"text {number}" for number in range(20)} | {"long": "x" * LENGTH}
    rows = [json.dumps({"_id": name, "title": "", "text": text}) for name, text in texts.items()]
    (directory / "corpus.jsonl").write_text("\n".join(rows), encoding="utf-8")
    (directory / "queries.jsonl").write_text('{"_id": "q1", "text": "what?"}', encoding="utf-8")
    (directory / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n", encoding="utf-8")
    return directory


def files_of(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.skipif(sys.platform != "linux", reason="seccomp, by which the calls fail, is Linux's")
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.call}-{errno.errorcode[fault.error]}")
def test_a_failing_system_call_leaves_the_output_as_it_was_or_complete(tmp_path: Path, fault: Fault) -> None:
    source = write_source(tmp_path / "source")
    old = {"notes": b"mine", "judgments.jsonl": b"old"}
    states: dict[str, dict[str, bytes]] = {"absent": {}, "empty": {}, "holds files": old}
    for state, before in states.items():
        (tmp_path / state).mkdir()
        if state != "absent":
            (tmp_path / state / "output").mkdir()
        for name, content in before.items():
            (tmp_path / state / "output" / name).write_bytes(content)
    adapt_beir_dataset(source, tmp_path / "undisturbed")
    number = CALLS[fault.call][platform.machine() == "aarch64"]
    # Where the mask is 0, every call of that name fails.
    setting = [str(source), [str(tmp_path / state / "output") for state in states], number, *fault[1:]]
    command = [sys.executable, "-c", CHILD, json.dumps(setting)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    refusals = [json.loads(line) for line in result.stdout.splitlines()]
    assert any(refusals), "no call was made to fail"
    for (state, before), refusal in zip(states.items(), refusals, strict=True):
        output = tmp_path / state / "output"
        assert not [path for path in output.parent.rglob("*") if path.name.endswith(".groundkit-staging")]
        # A failing fsync comes after all has appeared, and says only that a power loss may undo it.
        if refusal and fault.call != "fsync":
            assert os.strerror(fault.error) in refusal
            assert files_of(output) == before
            assert [path.name for path in output.parent.iterdir()] == ([] if state == "absent" else ["output"])
            adapt_beir_dataset(source, output)
        assert files_of(output) == before | files_of(tmp_path / "undisturbed")
