"""Interleaved timing, peak memory of children and a description of the machine, for the benchmarks beside it."""

import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path

Run = Callable[[], object]


def interleave(
    runs: Mapping[str, Run], repeats: int, fewest: int = 3, seconds_each: float = 10.0
) -> dict[str, list[float]]:
    """Time every run in turn, round after round, so that a change of the machine's load meets them all.

    Args:
        runs: What to time, by name. Each is called once before the first round, unless a call takes over a second.
        repeats: Rounds.
        fewest: Rounds that even a slow run takes part in.
        seconds_each: A run that has used as much time leaves after its fewest rounds.

    Returns:
        The wall times of each run, in seconds.
    """
    times: dict[str, list[float]] = {name: [] for name in runs}
    generator = random.Random(7)
    for round_number in range(repeats + 1):
        # In a new order every round: a scheduler makes whoever comes after a long run pay for its time.
        for name in generator.sample(list(runs), len(runs)):
            taken = times[name]
            if len(taken) >= fewest and sum(taken) > seconds_each:
                continue
            start = time.perf_counter()
            runs[name]()
            elapsed = time.perf_counter() - start
            if round_number > 0 or elapsed > 1.0:
                taken.append(elapsed)
    return times


def describe(times: list[float]) -> dict[str, float | int]:
    """Give median, quartiles, least and most of wall times in seconds, in milliseconds."""
    quartiles = statistics.quantiles(times, n=4, method="inclusive") if len(times) > 1 else [times[0]] * 3
    return {
        "repeats": len(times),
        "median_ms": 1e3 * statistics.median(times),
        "lower_quartile_ms": 1e3 * quartiles[0],
        "upper_quartile_ms": 1e3 * quartiles[2],
        "least_ms": 1e3 * min(times),
        "most_ms": 1e3 * max(times),
    }


def in_child(code: str, *arguments: str, **environment: str) -> str:
    """Run Python code in a new interpreter, the folder of this file on its path, and return what it prints."""
    path = {"PYTHONPATH": str(Path(__file__).parent)}
    return run(sys.executable, "-c", code, *arguments, environment=path | environment)


def run(*command: str, environment: Mapping[str, str] | None = None) -> str:
    """Run a command, with more variables in its environment, and return what it prints."""
    variables = {**os.environ, **(environment or {})}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=variables).stdout.strip()  # noqa: S603 - us


def peak_resident() -> float:
    """Return the highest resident memory that this process has had since it began its program, in MB."""
    # Not getrusage: its maximum outlives exec, so a child would report its parent's.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6


def describe_environment(*packages: str) -> dict[str, object]:
    """Describe machine, interpreter and the versions of packages (absent ones are left out)."""
    versions = {}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    models = [
        line.split(":", 1)[1].strip()
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        if line.startswith("model name")
    ]
    return {
        "system": platform.platform(),
        "processor": models[0] if models else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "versions": versions,
    }


def print_environment(environment: Mapping[str, object]) -> None:
    """Print what `describe_environment` found, a line an entry."""
    for name, value in environment.items():
        shown = ", ".join(f"{key} {entry}" for key, entry in value.items()) if isinstance(value, dict) else value
        print(f"{name}: {shown}")


def write_json(path: Path | None, report: Mapping[str, object]) -> None:
    """Write a report where a path is given."""
    if path is not None:
        path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
