"""Ctrl-C ends a long reading, whatever the file holds that is being read."""

import gzip
import signal
import struct
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from datasets import QRELS, QUERIES, write_files
from groundkit.evals.beir import inspect_beir_dataset

CHILD = textwrap.dedent("""
    import sys
    from groundkit.evals.beir import inspect_beir_dataset
    def report(event):
        if event.phase == "corpus" and event.bytes_done:
            print("reading", flush=True)
    try:
        inspect_beir_dataset(sys.argv[1], progress=report)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    else:
        print("done", flush=True)
""")


def gzip_bomb(directory: Path) -> Path:
    """Little to read, and minutes of unpacking."""
    member = gzip.compress(b"\n" * 20_000_000)
    (write_files(directory, corpus=None) / "corpus.jsonl.gz").write_bytes(member * 3_000)
    return directory


def empty_members(directory: Path) -> Path:
    """Much to read, and nothing comes out of it."""
    with (write_files(directory, corpus=None) / "corpus.jsonl.gz").open("wb") as file:
        members = gzip.compress(b"") * 100_000
        for _ in range(100):
            file.write(members)
    return directory


def empty_blocks(directory: Path) -> Path:
    """A zip member of empty deflate blocks, again and again."""
    directory.mkdir()
    blocks = b"\x00\x00\x00\xff\xff" * 100_000
    name = b"corpus.jsonl"
    count = 400
    size = count * len(blocks) + 5
    with zipfile.ZipFile(directory / "rest.zip", "w") as archive:
        archive.writestr("queries.jsonl", QUERIES)
        archive.writestr("qrels/test.tsv", QRELS)
    rest = (directory / "rest.zip").read_bytes()
    with zipfile.ZipFile(directory / "rest.zip") as archive:
        entries_at = archive.start_dir
    entries, count_before = rest[entries_at:-22], 2
    # A local header, the data, the entries of the others and one more, the end of the directory.
    header = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, 0, size, 0, len(name), 0)
    source = directory / "source.zip"
    with source.open("wb") as file:
        file.write(rest[:entries_at])
        file.write(b"PK\x03\x04" + header + name)
        for _ in range(count):
            file.write(blocks)
        file.write(b"\x01\x00\x00\xff\xff")
        start = file.tell()
        entry = b"PK\x01\x02" + struct.pack("<H", 20) + header + struct.pack("<HHHII", 0, 0, 0, 0, entries_at) + name
        file.write(entries + entry)
        total = count_before + 1
        file.write(b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, total, total, file.tell() - start, start, 0))
    return source


@pytest.mark.parametrize("make", [gzip_bomb, empty_members, empty_blocks])
def test_ctrl_c_ends_a_reading_whatever_is_read(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    source = make(tmp_path / "dataset")
    command = [sys.executable, "-c", CHILD, str(source)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "reading\n"
        process.send_signal(signal.SIGINT)
        printed = process.stdout.read().replace("reading\n", "")
    assert printed == "interrupted\n"
    assert process.returncode == 0


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    source = write_files(tmp_path, corpus=None)
    with (source / "corpus.jsonl").open("wb") as file:
        file.write(b"{")
        file.truncate((1 << 27) + 2)
    problem = inspect_beir_dataset(source).problems[0]
    assert problem.kind == "unreadable_file"
    assert problem.message == (
        "cannot read BEIR file corpus.jsonl: the line that starts at byte 0 is longer than 128 MiB"
    )
