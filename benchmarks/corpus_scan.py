"""Compare `inspect_beir_dataset` with other ways to read the same corpus, in one run.

Peers: polars' streaming scan of the three columns that are read (it knows no line numbers and accepts bad input), and a
plain-Python reader of whole files (`read_text`, `json.loads`). Every measurement is a process of its own, so that peak
memory is that of one reader; rounds are interleaved, so that drift meets all of them alike.

Usage: python benchmarks/corpus_scan.py [--docs N] [--profile passages|articles] [--rounds N] [--dir D] [--json FILE]
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from generate import write_dataset


def read_with_groundkit(source: Path) -> int:
    """Inspect the dataset; returns the number of documents."""
    from groundkit.evals.beir import inspect_beir_dataset

    inspection = inspect_beir_dataset(source)
    if not inspection.admissible:
        raise SystemExit(inspection.problems[0].message)
    return inspection.document_count


def read_with_polars(source: Path) -> int:
    """Scan the three columns in a streaming query that needs all of their values."""
    import polars as pl

    columns = ("_id", "title", "text")
    frame = pl.scan_ndjson(source / "corpus.jsonl", schema=dict.fromkeys(columns, pl.String))
    lengths = [pl.col(column).str.len_bytes().sum().alias(column) for column in columns]
    return int(frame.select(pl.len(), *lengths).collect(engine="streaming")["len"][0])


def read_with_python(source: Path) -> int:
    """Read the whole file and parse it line by line."""
    texts: dict[str, str] = {}
    for line in (source / "corpus.jsonl").read_text(encoding="utf-8").split("\n"):
        if not line.strip():
            continue
        record = json.loads(line)
        title, body = record.get("title", "").strip(), record.get("text", "").strip()
        if record["_id"] in texts:
            raise SystemExit("a duplicate")
        texts[record["_id"]] = f"{title}\n\n{body}" if title else body
    return len(texts)


READERS: dict[str, Callable[[Path], int]] = {
    "groundkit": read_with_groundkit,
    "polars": read_with_polars,
    "python": read_with_python,
}


def measure_here(reader: str, source: Path, repeats: int) -> None:
    """Read `repeats` times and print seconds and peak memory as JSON; the first time warms up and does not count."""
    READERS[reader](source)
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        READERS[reader](source)
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": seconds, "peak_bytes": peak_resident()}))


def peak_resident() -> int:
    """Return the highest resident memory of this process in bytes (Linux)."""
    # Not getrusage: its maximum outlives exec, so that a child would report its parent's.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def measure(reader: str, source: Path, repeats: int) -> dict[str, Any]:
    """Measure a reader in a process of its own."""
    command = [sys.executable, __file__, "--measure", reader, "--dir", str(source), "--rounds", str(repeats)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - this script
    measured: dict[str, Any] = json.loads(result.stdout)
    return measured


def compare(source: Path, small: Path, rounds: int) -> dict[str, Any]:
    """Measure all readers in turn, `rounds` times."""
    size = (source / "corpus.jsonl").stat().st_size
    base = measure("groundkit", small, 1)["peak_bytes"]
    seconds: dict[str, list[float]] = {reader: [] for reader in READERS}
    peaks: dict[str, int] = dict.fromkeys(READERS, 0)
    for number in range(rounds):
        for reader in READERS:
            # The slowest need no statistics.
            if reader == "python" and number:
                continue
            measured = measure(reader, source, 1)
            seconds[reader] += measured["seconds"]
            peaks[reader] = max(peaks[reader], measured["peak_bytes"])
    ours = statistics.median(seconds["groundkit"])
    return {
        "corpus_bytes": size,
        "environment": {
            "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "machine": platform.machine(),
            "python": platform.python_version(),
            "groundkit": version("groundkit"),
            "polars": version("polars"),
        },
        "peak_bytes_on_ten_documents": base,
        "readers": {
            reader: {
                "median_seconds": statistics.median(values),
                "lowest_seconds": min(values),
                "highest_seconds": max(values),
                "megabytes_per_second": size / 1e6 / statistics.median(values),
                "times_groundkit": statistics.median(values) / ours,
                "peak_bytes": peaks[reader],
            }
            for reader, values in seconds.items()
        },
    }


def print_table(title: str, result: dict[str, Any]) -> None:
    """Print a table for people."""
    print(f"\n{title}: {result['corpus_bytes'] / 1e6:,.0f} MB, {result['environment']}")
    print(f"{'reader':>10} {'MB/s':>7} {'seconds (lowest to highest)':>32} {'time':>7} {'peak MB':>8}")
    for reader, values in result["readers"].items():
        spread = f"{values['median_seconds']:.3f} ({values['lowest_seconds']:.3f} to {values['highest_seconds']:.3f})"
        speed, times = values["megabytes_per_second"], values["times_groundkit"]
        print(f"{reader:>10} {speed:>7,.0f} {spread:>32} {times:>6.1f}x {values['peak_bytes'] / 1e6:>8,.0f}")
    above = result["readers"]["groundkit"]["peak_bytes"] - result["peak_bytes_on_ten_documents"]
    print(f"groundkit's peak is {above / 1e6:,.0f} MB above its peak on ten documents")


def main() -> None:
    """Make the data, measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=int, default=300_000)
    parser.add_argument("--profile", choices=("passages", "articles"), action="append")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dir", type=Path, help="where the data goes; a memory filesystem leaves the disk out")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parser.add_argument("--measure", choices=tuple(READERS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure_here(arguments.measure, arguments.dir, arguments.rounds)
        return
    results = {}
    for profile in arguments.profile or ("passages", "articles"):
        with tempfile.TemporaryDirectory(dir=arguments.dir) as directory:
            source = write_dataset(Path(directory) / "source", docs=arguments.docs, profile=profile)
            small = write_dataset(Path(directory) / "small", docs=10, profile=profile, queries=5)
            results[profile] = compare(source, small, arguments.rounds)
        print_table(profile, results[profile])
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
