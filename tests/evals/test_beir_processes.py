"""Datasets in worker processes, in many threads at once, and where the system refuses threads."""

import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from datasets import REAL_IDS, write_real_ids, write_small_dataset
from groundkit.errors import EvalError
from groundkit.evals.beir import BeirPolicy, adapt_beir_dataset, inspect_beir_dataset
from groundkit.evals.corpus import load_judgments
from groundkit.evals.id_map import load_id_map
from groundkit.evals.provenance import AdaptationRecord, verify_adaptation

PERMISSIVE = BeirPolicy(document_ids="map", query_ids="map", min_relevance=1)

# What a user writes for many sets. A worker that hangs is ended by the alarm, which shows in its status.
POOL = """
import multiprocessing, os, signal, sys
from groundkit.errors import EvalError
from groundkit.evals.beir import BeirPolicy, adapt_beir_dataset, inspect_beir_dataset

def adapt(source):
    signal.alarm(120)
    try:
        report = adapt_beir_dataset(source, source + ".adapted", policy=BeirPolicy(document_ids="map", query_ids="map", min_relevance=1))
        return f"{report.document_count} documents"
    except EvalError as error:
        return str(error)

def adapt_all(method):
    with multiprocessing.get_context(method).Pool(2) as pool:
        return pool.map(adapt, sys.argv[1:])
"""  # noqa: E501


def run(code: str, *arguments: str | Path) -> list[str]:
    command = [sys.executable, "-W", "ignore", "-c", POOL + textwrap.dedent(code), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, timeout=300)
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [write_real_ids(tmp_path_factory.mktemp("real") / name, name) for name in REAL_IDS]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_forked_workers_adapt_many_sets_where_their_parent_adapted_none(tmp_path: Path) -> None:
    sources = [write_small_dataset(tmp_path / str(number), number + 2) for number in range(6)]
    assert run('print(*adapt_all("fork"), sep="\\n")', *sources) == [f"{number + 2} documents" for number in range(6)]
    for source in sources:
        verify_adaptation(f"{source}.adapted")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_forked_workers_refuse_where_their_parent_did_and_the_way_that_they_name_works(tmp_path: Path) -> None:
    sources = [write_small_dataset(tmp_path / str(number)) for number in range(2)]
    lines = run('inspect_beir_dataset(sys.argv[1])\nprint(*adapt_all("fork"), sep="\\n")', *sources)
    assert len(lines) == 2
    assert all("multiprocessing.get_context('spawn')" in line for line in lines)
    assert not list(tmp_path.glob("*.adapted"))
    script = tmp_path / "script.py"
    body = (
        'if __name__ == "__main__":\n    inspect_beir_dataset(sys.argv[1])\n    print(*adapt_all("spawn"), sep="\\n")\n'
    )
    script.write_text(POOL + body)
    command = [sys.executable, str(script), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, timeout=300)
    assert done.stdout.splitlines() == ["3 documents", "3 documents"]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit on processes")
@pytest.mark.parametrize("used_before", [False, True], ids=["unused", "used"])
def test_without_threads_a_set_is_inspected_or_refused(*, used_before: bool) -> None:
    source = Path(__file__).resolve().parents[2] / "examples" / "beir-small"
    (line,) = run(
        f"""
        import ctypes, resource, groundkit.evals.beir.qrels
        if {used_before}:
            inspect_beir_dataset(sys.argv[1])
        if os.getuid() == 0:
            os.setresuid(65534, 65534, 65534)
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        try:
            print(inspect_beir_dataset(sys.argv[1]).document_count)
        except EvalError as error:
            print(error)
        """,
        source,
    )
    assert line == "40" if used_before else line.startswith("polars panicked: ")


def test_many_threads_get_what_one_gets(sources: list[Path], tmp_path: Path) -> None:
    def adapt(number: int) -> tuple[AdaptationRecord, int, dict[str, float]]:
        source, output = sources[number % len(sources)], tmp_path / str(number)
        assert inspect_beir_dataset(source, policy=PERMISSIVE).admissible
        adapt_beir_dataset(source, output, policy=PERMISSIVE)
        judgments = load_judgments(output / "judgments.jsonl")
        scores = dict.fromkeys((judgment.query_id for judgment in judgments), 0.5)
        return verify_adaptation(output), len(judgments), load_id_map(output).scores_to_source(scores)

    alone = [adapt(number) for number in range(len(sources))]
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(adapt, range(len(sources), 5 * len(sources))))
    assert together == alone * 4


def test_of_many_threads_that_adapt_into_one_output_one_succeeds(tmp_path: Path) -> None:
    source, output = write_small_dataset(tmp_path / "source"), tmp_path / "output"

    def adapt(_: int) -> str:
        try:
            return str(adapt_beir_dataset(source, output).document_count)
        except EvalError as error:
            return str(error)

    with ThreadPoolExecutor(8) as threads:
        said = list(threads.map(adapt, range(16)))
    assert said.count("3") == 1
    assert all(str(output) in line for line in said if line != "3")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["output", "source"]
    assert verify_adaptation(output).counts["document_count"] == 3
