"""The page about refusals has a section for every kind of problem, with its cause, an example and the remedy."""

import re
from pathlib import Path
from typing import get_args

from groundkit.evals.beir.problem import REFUSALS_PAGE, BeirProblem, ProblemKind

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = (REPOSITORY / REFUSALS_PAGE).read_text(encoding="utf-8")


def sections() -> dict[str, str]:
    parts = re.split(r"^### (\w+)\n", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_kind_has_a_section_and_no_section_is_of_another() -> None:
    assert list(sections()) == list(get_args(ProblemKind))


def test_every_section_says_cause_example_and_remedy() -> None:
    for kind, section in sections().items():
        assert re.findall(r"^\*\*(\w+)\.\*\* \S", section, flags=re.MULTILINE) == ["Cause", "Example", "Remedy"], kind


def test_the_native_code_knows_no_other_kinds() -> None:
    source = REPOSITORY / "rust" / "core" / "src" / "beir" / "check" / "problem.rs"
    kinds = re.findall(r'^    \w+ = "(\w+)",$', source.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(kinds) > 20
    assert set(kinds) <= set(get_args(ProblemKind))


def test_a_problem_names_its_section() -> None:
    problem = BeirProblem(kind="empty_query", file="queries.jsonl", line=3, message="queries.jsonl line 3: empty")
    assert problem.page == "docs/refusals.md#empty_query"
