"""The examples, run as a reader runs them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
SMALL = REPOSITORY / "examples" / "beir-small"


def demonstrate(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    script = REPOSITORY / "examples" / "demo.py"
    command = [sys.executable, "-W", "error", script, *arguments]
    environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False, env=environment)


def test_the_demo_prints_the_same_comparison_every_time() -> None:
    first = demonstrate(SMALL)
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.startswith("Adapted 40 documents, 25 queries and 32 relevant pairs\n")
    assert "nDCG@10  0.7045    0.7228     +0.0183" in first.stdout
    assert demonstrate(SMALL).stdout == first.stdout


def test_the_demo_keeps_the_adapted_dataset_in_a_path_with_spaces(tmp_path: Path) -> None:
    source, output = tmp_path / "a dataset", tmp_path / "its adaptation"
    shutil.copytree(SMALL, source)
    (source / "qrels" / "test.tsv").rename(source / "qrels" / "dev.tsv")
    assert demonstrate(source, "--split", "dev", "--output", output).returncode == 0
    assert len(list((output / "corpus").iterdir())) == 40


def test_the_demo_says_why_it_refuses_a_dataset(tmp_path: Path) -> None:
    source = tmp_path / "graded"
    shutil.copytree(SMALL, source)
    with (source / "qrels" / "test.tsv").open("a", encoding="utf-8") as qrels:
        qrels.write("q01\tsmoker\t2\n")
    refused = demonstrate(source)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "qrels/test.tsv line 34: binary qrels only" in refused.stderr
    assert "Traceback" not in refused.stderr
