"""Inspecting: counts are those of plain Python, and every problem of a dataset is found with its line."""

import json
import os
import shutil
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from datasets import CORPUS, HEADER, QRELS, QUERIES, Row, write_files, write_real_ids
from groundkit.errors import EvalError
from groundkit.evals.beir import BeirInspection, inspect_beir_dataset
from groundkit.evals.beir import qrels as tables
from groundkit.evals.beir.refusal import make_refusal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def found(inspection: BeirInspection) -> list[tuple[str, str, int | None]]:
    return [(problem.kind, problem.file, problem.line) for problem in inspection.problems]


# One row each: what stands after the sound first line of a file, and what is found there.
@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        ('{"_id":"d2","te', "invalid_json", "invalid JSON in corpus.jsonl line 2: the line ends inside a string"),
        ('{"_id":"d2","text":"\\x"}', "invalid_json", "invalid JSON in corpus.jsonl line 2: an unknown escape"),
        ("[1]", "not_an_object", "corpus.jsonl line 2: each line must be a JSON object"),
        ('{"_id":"d2","text":"a","text":"a"}', "repeated_field", "the field 'text' stands twice in one object"),
        ('{"_id":"d2","text":"\\udc00"}', "lone_surrogate", "an escaped lone surrogate"),
        ('{"_id":"d2","text":"a","meta":"\\udc00"}', "lone_surrogate", "an escaped lone surrogate"),
        ('{"text":"a"}', "missing_id", "requires non-empty string field '_id'"),
        ('{"_id":"","text":"a"}', "missing_id", "requires non-empty string field '_id'"),
        ('{"_id":null,"text":"a"}', "missing_id", "requires non-empty string field '_id'"),
        ('{"_id":"d2","title":null,"text":"a"}', "title_not_string", "field 'title' must be a string when present"),
        ('{"_id":"d2","text":["a"]}', "text_not_string", "field 'text' must be a string when present"),
        ('{"_id":"d/2","text":"a"}', "unsafe_document_id", "unsafe BEIR document id 'd/2'"),
        ('{"_id":"d2\\n","text":"a"}', "unsafe_document_id", r"unsafe BEIR document id 'd2\n'"),
        ('{"_id":"' + "d" * 252 + '","text":"a"}', "long_document_id", "exceeds the filename limit of 255 bytes"),
        ('{"_id":"Lpt1.x","text":"a"}', "device_document_id", "'Lpt1.x' is a reserved Windows device name"),
        ('{"_id":"d1","text":"a"}', "duplicate_document_id", "duplicate BEIR document id 'd1', first on line 1"),
        ('{"_id":"D1","text":"a"}', "colliding_document_ids", "'D1' and 'd1' (line 1) collide when case is folded"),
        ('{"_id":"d2"}', "empty_document", "BEIR document 'd2' has no title or text"),
        ('{"_id":"d2","title":"\u3000","text":"\\u001f"}', "empty_document", "BEIR document 'd2' has no title or text"),
    ],
)
def test_a_bad_document_is_found_with_its_line(tmp_path: Path, line: str, kind: str, message: str) -> None:
    inspection = inspect_beir_dataset(write_files(tmp_path, corpus=f"{CORPUS}{line}\n"))
    assert found(inspection) == [(kind, "corpus.jsonl", 2)]
    assert "corpus.jsonl line 2" in inspection.problems[0].message
    assert message in inspection.problems[0].message


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        ('{"_id":"q2"}', "missing_text", "requires non-empty string field 'text'"),
        ('{"_id":"q2","text":""}', "missing_text", "requires non-empty string field 'text'"),
        ('{"_id":"q2","text":7}', "missing_text", "requires non-empty string field 'text'"),
        ('{"_id":"q2","text":" \\n"}', "empty_query", "BEIR query 'q2' is empty"),
        ('{"_id":"q 2","text":"a"}', "unsafe_query_id", "unsafe BEIR query id 'q 2'"),
        ('{"_id":"q1","text":"a"}', "duplicate_query_id", "duplicate BEIR query id 'q1', first on line 1"),
    ],
)
def test_a_bad_query_is_found_with_its_line(tmp_path: Path, line: str, kind: str, message: str) -> None:
    inspection = inspect_beir_dataset(write_files(tmp_path, queries=f"{QUERIES}\n{line}\n"))
    assert found(inspection) == [(kind, "queries.jsonl", 3)]
    assert message in inspection.problems[0].message


@pytest.mark.parametrize("line", ['{"_id":"Q1","text":"a"}', '{"_id":"Q_2","text":"a","title":null}'])
def test_a_query_without_judgments_needs_no_judgment_id(tmp_path: Path, line: str) -> None:
    assert inspect_beir_dataset(write_files(tmp_path, queries=f"{QUERIES}{line}\n")).admissible


@pytest.mark.parametrize(
    ("row", "kind", "message"),
    [
        ("q1\td1", "qrels_row", "invalid BEIR qrels row: expected three tab-separated fields, found 2"),
        ("q1 d1 1", "qrels_row", "invalid BEIR qrels row: expected three tab-separated fields, found 1"),
        ("q1\td1\t1.0", "qrels_score", "invalid integer relevance score '1.0'"),
        ("q1\td1\t2", "conflicting_grades", "have grade 2 here and grade 1 on line 2"),
        ("q1\td2\t0\t", "qrels_row", "found 4"),
        ("q1\tdX\t1", "missing_document", "BEIR qrels reference missing documents: 'dX'"),
        ("qX\td1\t1", "missing_query", "BEIR qrels reference missing queries: 'qX'"),
        ('q1\t"d1\t0', "unsafe_document_id", "unsafe BEIR document id '\"d1'"),
        ("q/1\td1\t0", "unsafe_query_id", "unsafe BEIR query id 'q/1'"),
        ("q1\tdX\t-2", "graded_relevance", "binary qrels only, found grade -2; BeirPolicy.min_relevance"),
    ],
)
def test_a_bad_qrels_row_is_found_with_its_line(tmp_path: Path, row: str, kind: str, message: str) -> None:
    inspection = inspect_beir_dataset(write_files(tmp_path, qrels=f"{QRELS}\n{row}\n"))
    assert (kind, "qrels/test.tsv", 4) in found(inspection)
    assert any(message in problem.message for problem in inspection.problems)


def test_a_row_that_is_not_relevant_may_name_what_is_absent(tmp_path: Path) -> None:
    inspection = inspect_beir_dataset(write_files(tmp_path, qrels=f"{QRELS}q1\tdX\t0\nqX\td1\t0\n"))
    assert inspection.admissible
    assert (inspection.unknown_document_count, inspection.unknown_query_count) == (1, 1)


def test_a_pair_that_stands_twice_with_one_grade_counts_once(tmp_path: Path) -> None:
    inspection = inspect_beir_dataset(write_files(tmp_path, qrels=f"{QRELS}q1\td1\t1\n"))
    assert inspection.admissible
    assert (inspection.qrels_row_count, inspection.relevance_pair_count) == (2, 1)


def test_every_problem_of_every_file_is_found_at_once(tmp_path: Path) -> None:
    source = write_files(tmp_path, corpus="{\n", queries='{"_id":"q1","text":" "}\n', qrels=f"{HEADER}q1\td1\t2\n")
    assert found(inspect_beir_dataset(source)) == [
        ("invalid_json", "corpus.jsonl", 1),
        ("empty_query", "queries.jsonl", 1),
        ("graded_relevance", "qrels/test.tsv", 2),
        ("missing_document", "qrels/test.tsv", 2),
    ]


def test_no_kind_of_problem_is_crowded_out_by_another(tmp_path: Path) -> None:
    corpus = "{\n" * 5_000 + '{"_id":"d1","text":"a"}\n{"_id":"d2","text":" "}\n'
    inspection = inspect_beir_dataset(write_files(tmp_path, corpus=corpus))
    assert inspection.problem_counts == {"empty_document": 1, "invalid_json": 5_000}
    assert inspection.problem_count == 5_001
    assert len(inspection.problems) == 100
    assert found(inspection)[-2:] == [("invalid_json", "corpus.jsonl", 99), ("empty_document", "corpus.jsonl", 5_002)]


def test_a_refusal_is_a_screenful_with_a_count_and_a_remedy(tmp_path: Path) -> None:
    corpus = CORPUS + "".join(f'{{"_id":"d {number}","text":"a"}}\n' for number in range(1_500)) + "{\n"
    inspection = inspect_beir_dataset(write_files(tmp_path, corpus=corpus))
    error = make_refusal(inspection)
    lines = str(error).splitlines()
    assert "is refused for 1,501 problems" in lines[0]
    assert lines[1] == "  corpus.jsonl line 2: unsafe BEIR document id 'd 0'"
    assert "invalid JSON in corpus.jsonl line 1502" in lines[10]
    assert lines[11] == "  ... and 1,491 more"
    assert 'document_ids="map"' in lines[12]
    assert lines[13] == "Causes and remedies: docs/refusals.md #unsafe_document_id #invalid_json"
    assert (len(lines), error.problem_count, error.problems) == (14, 1_501, inspection.problems)


def test_dropping_unknown_documents_is_advised_only_where_the_whole_corpus_was_read(tmp_path: Path) -> None:
    whole = inspect_beir_dataset(write_files(tmp_path, qrels=f"{QRELS}q1\td2\t1\n"))
    assert whole.problems[0].message.endswith("'d2' is not in corpus.jsonl")
    assert 'unknown_documents="drop"' in str(make_refusal(whole))
    corpus = f'{CORPUS}{{"id": "d2", "text": "B"}}\nd2\n'
    partial = inspect_beir_dataset(write_files(tmp_path, corpus=corpus, qrels=f"{QRELS}q1\td2\t1\n"))
    assert partial.problems[-1].message.endswith("'d2' is not in corpus.jsonl, where 2 rows could not be read")
    assert "unknown_documents" not in str(make_refusal(partial))


def test_no_message_carries_control_characters_or_endless_identifiers(tmp_path: Path) -> None:
    hostile = "\\u001b[2J\\r\\n\u202e" + "x" * 100_000
    source = write_files(
        tmp_path, corpus=f'{CORPUS}{{"_id":"{hostile}","text":"a"}}\n', qrels=f"{QRELS}q1\t\x1b[2J\t1\n"
    )
    message = str(make_refusal(inspect_beir_dataset(source)))
    assert all(character.isprintable() or character == "\n" for character in message)
    assert len(message) < 2_000


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
@pytest.mark.parametrize("kind", ["absent", "directory", "pipe", "device", "loop"])
def test_what_is_no_readable_file_is_a_problem_and_never_waited_for(tmp_path: Path, name: str, kind: str) -> None:
    path = write_files(tmp_path) / name
    path.unlink()
    match kind:
        case "directory":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "loop":
            path.symlink_to(path)
    inspection = inspect_beir_dataset(tmp_path)
    assert [problem.kind for problem in inspection.problems] == ["unreadable_file"]
    assert f"cannot read BEIR file {name}" in inspection.problems[0].message


def test_an_absent_split_lists_those_that_are_there(tmp_path: Path) -> None:
    source = write_files(tmp_path)
    shutil.copy(source / "qrels/test.tsv", source / "qrels/dev.tsv")
    (problem,) = inspect_beir_dataset(source, split="train").problems
    assert problem.message.endswith("qrels/train.tsv: No such file or directory; splits present: 'dev', 'test'")


@pytest.mark.parametrize("split", ["", "../test", ".test", "te st", "test\n", "tést", "a/b", "-test"])
def test_an_unsafe_split_is_refused(tmp_path: Path, split: str) -> None:
    with pytest.raises(EvalError, match="unsafe BEIR split"):
        inspect_beir_dataset(write_files(tmp_path), split=split)


@pytest.mark.parametrize("name", ["absent", "nul\0", "loop", "x" * 5_000])
def test_a_source_that_is_not_there_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(EvalError, match="cannot read BEIR source"):
        inspect_beir_dataset(tmp_path / name)


def test_a_source_of_another_type_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        inspect_beir_dataset(7)  # type: ignore[arg-type]


texts = st.text(st.characters(codec="utf-8"), max_size=40) | st.text(
    ' \t\n\r\x1c\u0085\u00a0\u2028\u200b"\\é😀', max_size=9
)


@st.composite
def corpora(draw: st.DrawFn) -> list[Row]:
    rows: list[Row] = []
    for number in range(draw(st.integers(1, 8))):
        row: Row = {"text": draw(texts), "metadata": draw(st.recursive(st.none() | texts, st.lists, max_leaves=4))}
        if draw(st.booleans()):
            row["title"] = draw(texts)
        rows.append({"_id": f"d{number}"} | row if draw(st.booleans()) else row | {"_id": f"d{number}"})
    return rows


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=corpora(), is_ascii=st.booleans(), ends=st.sampled_from(["\n", "\r\n", "\n \u2028\n"]), marked=st.booleans()
)
def test_counts_are_those_of_plain_python(
    tmp_path: Path, rows: list[Row], *, is_ascii: bool, ends: str, marked: bool
) -> None:
    corpus = "".join(json.dumps(row, ensure_ascii=is_ascii) + ends for row in rows)
    inspection = inspect_beir_dataset(
        write_files(tmp_path, corpus="\ufeff" * marked + corpus, qrels=f"{HEADER}q1\td0\t1\n")
    )
    characters, empty = 0, 0
    for row in rows:
        title, text = row.get("title", "").strip(), row["text"].strip()
        document = f"{title}\n\n{text}" if title else text
        characters += len(document)
        empty += not document
    assert inspection.document_count == len(rows)
    assert inspection.total_characters == characters
    assert inspection.problem_counts == ({"empty_document": empty} if empty else {})


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["q1", "q2", "q10"]), st.sampled_from(["d", "e", "D"]), st.integers(-1, 2)),
        max_size=12,
    )
)
def test_relations_of_qrels_are_those_of_plain_python(rows: list[tuple[str, str, int]]) -> None:
    frame = pl.DataFrame(
        [(line, *row) for line, row in enumerate(rows, start=2)], schema=tables.no_rows().schema, orient="row"
    )
    first: dict[tuple[str, str], tuple[int, int]] = {}
    conflicts: dict[tuple[str, str], tuple[int, int, int, int]] = {}
    relevant: set[tuple[str, str]] = set()
    for line, (query, document, grade) in enumerate(rows, start=2):
        first_line, first_grade = first.setdefault((query, document), (line, grade))
        if grade != first_grade:
            conflicts.setdefault((query, document), (line, grade, first_line, first_grade))
        if grade >= 1:
            relevant.add((query, document))
    distinct = tables.distinct_pairs(frame)
    assert set(distinct.select("query", "document", "grade").rows()) == set(rows)
    columns = ["query", "document", "line", "grade", "first_line", "first_grade"]
    found_conflicts = tables.find_conflicts(distinct).sort("line").select(columns).rows()
    assert found_conflicts == [
        pair + conflict for pair, conflict in sorted(conflicts.items(), key=lambda item: item[1])
    ]
    assert sorted(tables.select_relevant(frame).rows()) == sorted(relevant)
    assert tables.count_grades(distinct) == dict(sorted(Counter(grade for *_, grade in set(rows)).items()))
    listed = tables.list_identifiers(frame, "document").rows()
    assert sorted(row[0] for row in listed) == sorted({document for _, document, _ in rows})
    assert listed == sorted(listed, key=lambda row: (not row[1], row[2]))
    for identifier, is_relevant, line in listed:
        grades = [(number, grade) for number, (_, document, grade) in enumerate(rows, 2) if document == identifier]
        lines = [number for number, grade in grades if grade >= 1]
        assert (is_relevant, line) == (bool(lines), lines[0] if lines else grades[0][0])


@pytest.mark.parametrize("name", ["scifact", "arguana"])
def test_a_set_with_plain_real_ids_is_admissible(tmp_path: Path, name: str) -> None:
    assert inspect_beir_dataset(write_real_ids(tmp_path, name)).admissible


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("nfcorpus", {"inadmissible_query_id", "graded_relevance"}),
        ("trec-covid", {"graded_relevance"}),
        ("webis-touche2020", {"graded_relevance", "unsafe_document_id"}),
        ("fever", {"unsafe_document_id"}),
        ("dbpedia-entity", {"inadmissible_query_id", "graded_relevance", "unsafe_document_id"}),
    ],
)
def test_a_set_with_real_ids_is_refused_for_every_reason(tmp_path: Path, name: str, kinds: set[str]) -> None:
    inspection = inspect_beir_dataset(write_real_ids(tmp_path, name))
    assert kinds <= inspection.problem_counts.keys()
    assert inspection.problem_counts.keys() == {problem.kind for problem in inspection.problems}
