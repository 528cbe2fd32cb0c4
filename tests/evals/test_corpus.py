"""Judgments: what is accepted, and what a refusal says."""

import gc
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from groundkit.errors import EvalError
from groundkit.evals.corpus import GoldSpan, Judgment, load_judgments
from pydantic import ValidationError


def row(query_id: str = "q1", **fields: object) -> dict[str, object]:
    return {
        "query_id": query_id,
        "query": "what is B?",
        "category": "normal",
        "gold": [{"doc": "d1.txt", "quote": "B"}],
    } | fields


def write(path: Path, *rows: dict[str, object]) -> Path:
    file = path / "judgments.jsonl"
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    file.write_text("".join(lines), encoding="utf-8", newline="\n")
    return file


def test_judgments_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, row("a"), row("a-1"), row("b", notes="checked"))
    assert [judgment.query_id for judgment in load_judgments(file)] == ["a", "a-1", "b"]
    assert load_judgments(os.fspath(file))[2].notes == "checked"


def test_a_record_ends_at_a_line_feed_only(tmp_path: Path) -> None:
    text = "a\u2028b\u0085c\x1ed"
    file = write(tmp_path, row("a", query=text), row("b"))
    assert load_judgments(file)[0].query == text


def test_blank_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    file = tmp_path / "judgments.jsonl"
    file.write_bytes(b"\n \t\r\n" + json.dumps(row()).encode() + b"\r\n{bad\n")
    with pytest.raises(EvalError, match=r"judgments\.jsonl:4: invalid judgment: Invalid JSON"):
        load_judgments(file)


@pytest.mark.parametrize("ids", [("b", "a"), ("a", "a"), ("a", "b", "a"), ("a1", "a-1")])
def test_ids_must_ascend_strictly(tmp_path: Path, ids: tuple[str, ...]) -> None:
    with pytest.raises(EvalError, match=rf"judgments\.jsonl:{len(ids)}: query id '{ids[-1]}' stands"):
        load_judgments(write(tmp_path, *map(row, ids)))


@pytest.mark.parametrize("query_id", ["", "Q1", "a_b", "-a", "a-", "a--b", "a\n", "é"])
def test_a_query_id_is_kebab_case(query_id: str) -> None:
    with pytest.raises(ValidationError):
        Judgment.model_validate(row(query_id))


@pytest.mark.parametrize("doc", ["", "  ", "/etc/x", "a/../b", "..", "C:x", "c:/x", "a\\b", "a\0b"])
def test_a_document_path_stays_within_the_corpus(doc: str) -> None:
    with pytest.raises(ValidationError):
        GoldSpan(doc=doc, quote="x")


@pytest.mark.parametrize("doc", ["a.txt", "a/b.txt", "a..b", "...", ".hidden"])
def test_any_other_relative_path_is_a_document(doc: str) -> None:
    assert GoldSpan(doc=doc, quote="x").doc == doc


SPAN = {"doc": "d", "quote": "x"}


@pytest.mark.parametrize(
    "fields",
    [
        {"category": "no_answer"},
        {"category": "normal", "gold": []},
        {"category": "adversarial", "gold": []},
        {"category": "ambiguous", "gold": [SPAN]},
        {"category": "other"},
        {"query": ""},
        {"gold": [{"doc": "d", "quote": ""}]},
        {"extra": 1},
    ],
)
def test_category_and_gold_must_agree(tmp_path: Path, fields: dict[str, Any]) -> None:
    with pytest.raises(EvalError, match=r"judgments\.jsonl:1: invalid judgment"):
        load_judgments(write(tmp_path, row(**fields)))


def test_no_answer_and_ambiguous_judgments_are_accepted(tmp_path: Path) -> None:
    file = write(tmp_path, row("a", category="no_answer", gold=[]), row("b", category="ambiguous", gold=[SPAN, SPAN]))
    assert [len(judgment.gold) for judgment in load_judgments(file)] == [0, 2]


def test_invalid_utf_8_names_the_line(tmp_path: Path) -> None:
    file = write(tmp_path, row("a"))
    file.write_bytes(file.read_bytes() + b'{"query_id": "caf\xe9"}\n')
    with pytest.raises(EvalError, match=r"judgments\.jsonl:2"):
        load_judgments(file)


def test_a_byte_order_mark_is_refused_by_name(tmp_path: Path) -> None:
    file = write(tmp_path, row("a"))
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    with pytest.raises(EvalError, match=r"judgments\.jsonl:1: .*byte order mark"):
        load_judgments(file)


def test_a_lone_surrogate_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "judgments.jsonl"
    file.write_bytes(b'{"query_id": "a", "query": "\\ud800", "category": "no_answer"}\n')
    with pytest.raises(EvalError, match=r"judgments\.jsonl:1: invalid judgment: Invalid JSON"):
        load_judgments(file)


def test_a_file_that_cannot_be_read_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "absent", tmp_path, tmp_path / "fifo", Path("nul\0byte"), Path("\ud800")):
        with pytest.raises(EvalError, match="cannot read judgments file"):
            load_judgments(path)


@pytest.fixture
def _collector() -> Iterator[None]:
    was_enabled = gc.isenabled()
    yield
    (gc.enable if was_enabled else gc.disable)()


@pytest.mark.usefixtures("_collector")
@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("ids", [("a", "b"), ("b", "a")], ids=["read", "refused"])
def test_the_garbage_collector_is_as_it_was(tmp_path: Path, ids: tuple[str, ...], *, enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    try:
        load_judgments(write(tmp_path, *map(row, ids)))
    except EvalError:
        assert ids == ("b", "a")
    assert gc.isenabled() is enabled


@pytest.mark.usefixtures("_collector")
def test_no_garbage_is_collected_while_judgments_are_made(tmp_path: Path) -> None:
    file = write(tmp_path, *(row(f"q{number:05}") for number in range(10_000)))
    collections: list[str] = []

    def count(phase: str, _info: dict[str, int]) -> None:
        collections.append(phase)

    gc.enable()
    gc.callbacks.append(count)
    try:
        assert len(load_judgments(file)) == 10_000
    finally:
        gc.callbacks.remove(count)
    # One may come right before and one right after.
    assert collections.count("start") <= 2
