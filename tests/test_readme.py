"""The README shows code that runs and output that is real."""

import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def run(*arguments: str | Path) -> str:
    command = [sys.executable, "-W", "error", "-X", "utf8", *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True, cwd=REPOSITORY).stdout


def test_the_code_is_that_of_the_quickstart_and_prints_what_is_shown() -> None:
    code = blocks("python")
    assert len(code) == 2
    imports = {line for block in code for line in block.splitlines() if line.startswith(("from ", "import "))}
    quickstart = (REPOSITORY / "examples" / "quickstart.py").read_text(encoding="utf-8")
    assert imports <= set(quickstart.splitlines())
    for block in code:
        body = "".join(line for line in block.splitlines(keepends=True) if not line.startswith(("from ", "import ")))
        assert body.strip() in quickstart
    assert run("examples/quickstart.py") == "".join(blocks("text"))


def test_each_block_of_code_runs_by_itself() -> None:
    for code, output in zip(blocks("python"), blocks("text"), strict=True):
        assert run("-c", code) == output


def test_the_output_of_the_demo_is_real() -> None:
    (shown,) = [block for block in blocks("console") if block.startswith("$ make demo\n")]
    printed = run("examples/demo.py", "examples/beir-small")
    assert shown.splitlines() == ["$ make demo", *(line.rstrip() for line in printed.splitlines())]
