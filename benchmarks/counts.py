"""Count the instructions of the Rust kernels on fixed input and compare them with the recorded figures.

Unlike a time, a count hardly depends on the machine's load. It does depend on the compiler: after a new one, or after
a change that is meant to change a count, record the figures with ``--record`` and say why in the commit.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

RECORDED = Path(__file__).with_suffix(".json")
TOLERANCE = 0.03
NOTHING = "nothing"


def count_instructions(program: Path, kernel: str) -> int:
    """Run one kernel under callgrind and return the instructions that it executed."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(program), kernel]
    child = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - our own program
    collected = re.search(r"Collected : (\d+)", child.stderr)
    if collected is None:
        sys.exit(f"callgrind printed no count for {kernel}:\n{child.stderr}")
    return int(collected[1])


def main() -> None:
    """Count, print, and exit with 1 where a count lies outside the tolerance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=Path, help="the built example `kernels`")
    parser.add_argument("--record", action="store_true", help="write the counts as the recorded figures")
    arguments = parser.parse_args()
    listed = subprocess.run([arguments.program], check=True, capture_output=True, text=True)  # noqa: S603 - as above
    start = count_instructions(arguments.program, NOTHING)
    counts = {name: count_instructions(arguments.program, name) - start for name in listed.stdout.split()}
    if arguments.record:
        RECORDED.write_text(json.dumps(counts, indent=2) + "\n", encoding="utf-8")
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    outside = []
    print(f"{'instructions':20}{'counted':>14}{'recorded':>14}{'change':>9}")
    for name, counted in counts.items():
        change = counted / recorded[name] - 1 if name in recorded else float("nan")
        print(f"{name:20}{counted:14,}{recorded.get(name, 0):14,}{change:+9.2%}")
        if not abs(change) <= TOLERANCE:
            outside.append(name)
    if outside:
        sys.exit(f"more than {TOLERANCE:.0%} from the recorded figure, or without one: {', '.join(outside)}")


if __name__ == "__main__":
    main()
