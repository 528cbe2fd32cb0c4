"""Time `adapt_beir_dataset` beside a bare loop that creates, writes and closes as many files of the same size.

Every run writes into a fresh parent directory, and all are deleted at the very end: ext4 passes over the inodes that
were freed in the last minutes one by one, so a run after a deletion would measure that. The bare loop is the Rust
example `bare_files`; the plain adapter reads whole files, resolves every path and writes with `write_text`.

Usage: python benchmarks/adapt.py BARE_FILES [--docs N] [--rounds N] [--dir D ...] [--json FILE]
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import measure
from generate import write_dataset

ADAPT = (
    "import sys, measure; from time import perf_counter; from pathlib import Path; import adapt; "
    "from groundkit.evals import beir; source, output = map(Path, sys.argv[2:]); "
    "run = adapt.ADAPTERS[sys.argv[1]]; start = perf_counter(); "
    "run(source, output); print(perf_counter() - start, measure.peak_resident())"
)


def adapt_with_groundkit(source: Path, output: Path) -> None:
    """Adapt with the package."""
    from groundkit.evals.beir import adapt_beir_dataset

    adapt_beir_dataset(source, output)


def adapt_plainly(source: Path, output: Path) -> None:
    """Adapt with whole files in memory, and with a resolved path for every document."""
    corpus = output / "corpus"
    corpus.mkdir(parents=True)
    root = output.resolve()
    texts: dict[str, str] = {}
    for line in (source / "corpus.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        title, body = record.get("title", "").strip(), record["text"].strip()
        texts[record["_id"]] = f"{title}\n\n{body}" if title else body
    for name, text in sorted(texts.items()):
        path = (corpus / f"{name}.txt").resolve()
        if not path.is_relative_to(root):
            sys.exit(f"{path} lies outside")
        path.write_text(text, encoding="utf-8", newline="\n")
    lines = (source / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    queries = {record["_id"]: record["text"].strip() for record in map(json.loads, lines)}
    relevant: dict[str, list[str]] = {}
    for line in (source / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query_id, name, _ = line.split("\t")
        relevant.setdefault(query_id, []).append(name)
    with (output / "judgments.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        for query_id, names in sorted(relevant.items()):
            gold = [{"doc": f"{name}.txt", "quote": texts[name]} for name in sorted(names)]
            row = {"query_id": query_id, "query": queries[query_id], "category": "normal", "gold": gold}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


ADAPTERS: dict[str, Callable[[Path, Path], None]] = {"groundkit": adapt_with_groundkit, "plain Python": adapt_plainly}


def compare(directory: Path, bare_files: Path, docs: int, rounds: int) -> dict[str, dict[str, float]]:
    """Run all in turn on one file system and print their times as multiples of the bare loop's."""
    top = Path(tempfile.mkdtemp(prefix="groundkit-bench-", dir=directory))
    try:
        source = write_dataset(top / "source", docs=docs, profile="passages", queries=min(7_000, docs // 10))
        size = (source / "corpus.jsonl").stat().st_size
        seconds: dict[str, list[float]] = {}
        peaks: dict[str, float] = {}
        for number in range(rounds):
            parent = top / str(number)
            parent.mkdir()
            # The mean size of a text: a line less what surrounds the text in it.
            bytes_each = str(max(1, size // docs - len('{"_id": "123456", "title": "", "text": ""}\n')))
            printed = measure.run(str(bare_files), str(parent / "bare"), str(docs), bytes_each)
            seconds.setdefault("bare loop", []).append(float(printed))
            for name, threads in [("groundkit", None), ("groundkit", "1"), ("plain Python", None)]:
                label = name if threads is None else f"{name}, one thread"
                if name == "plain Python" and number > 0:
                    continue
                environment = {} if threads is None else {"RAYON_NUM_THREADS": threads}
                printed = measure.in_child(ADAPT, name, str(source), str(parent / label), **environment)
                took, peak = map(float, printed.split())
                seconds.setdefault(label, []).append(took)
                peaks[label] = peak
    finally:
        shutil.rmtree(top)
    bare = statistics.median(seconds["bare loop"])
    print(f"\n{docs:,} passages into {directory}: median seconds, microseconds a file, times the bare loop, peak MB")
    report = {}
    for name, taken in seconds.items():
        median = statistics.median(taken)
        report[name] = {"median_s": median, "least_s": min(taken), "most_s": max(taken), "ratio": median / bare}
        each = f"{median:8.2f}{1e6 * median / docs:8.2f}{median / bare:8.2f}"
        print(f"{name:24}{each}{peaks[name]:8.0f}" if name in peaks else f"{name:24}{each}")
    return report


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0] if __doc__ else None)
    parser.add_argument("bare_files", type=Path, help="the built example `bare_files`")
    parser.add_argument("--docs", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--dir", type=Path, action="append", help="where to write; more than once for more (/dev/shm, .)"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    arguments = parser.parse_args()
    os.environ.pop("RAYON_NUM_THREADS", None)
    environment = measure.describe_environment("groundkit")
    measure.print_environment(environment)
    directories = arguments.dir or [Path("/dev/shm"), Path.cwd()]  # noqa: S108 - a directory of its own is made in it
    places = {
        str(place): compare(place, arguments.bare_files.resolve(), arguments.docs, arguments.rounds)
        for place in directories
    }
    measure.write_json(arguments.json, {"environment": environment, "docs": arguments.docs, "places": places})


if __name__ == "__main__":
    main()
