"""Policies: what the strict rules refuse is done as asked for, and counted."""

import re
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from datasets import REAL_IDS, read_real_ids, write_dataset
from groundkit.errors import EvalError
from groundkit.evals.beir import BeirPolicy, adapt_beir_dataset, inspect_beir_dataset
from groundkit.evals.corpus import load_judgments
from groundkit.evals.id_map import load_id_map
from hypothesis import given, settings
from hypothesis import strategies as st

PERMISSIVE = BeirPolicy(
    document_ids="map", query_ids="map", min_relevance=1, empty_documents="drop", unknown_documents="drop"
)
JUDGMENT_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def documents_of(output: Path) -> dict[str, str]:
    """Read the documents by the ids of the source."""
    texts = {path.name.removesuffix(".txt"): path.read_text() for path in output.rglob("*.txt")}
    return load_id_map(output).run_to_source({"": texts})[""]


def adapted_names(output: Path) -> list[str]:
    return sorted(path.name.removesuffix(".txt") for path in output.rglob("*.txt"))


@pytest.mark.parametrize("name", REAL_IDS)
def test_every_set_with_real_ids_adapts_under_one_permissive_policy(tmp_path: Path, name: str) -> None:
    rows = read_real_ids(name)
    every_document = sorted({document for _, document, _ in rows})
    # One judged document is absent and one that is judged irrelevant only, if there is one, is empty.
    absent = every_document[0]
    positive = {document for _, document, grade in rows if grade >= 1}
    empty = next((document for document in every_document[1:] if document not in positive), None)
    corpus = {document: f"About {document}." for document in every_document if document != absent}
    if empty:
        corpus[empty] = ""
    queries = {query: f"What is {query}?" for query, _, _ in rows}
    source = write_dataset(tmp_path / "source", corpus, queries, rows)

    report = adapt_beir_dataset(source, tmp_path / "output", policy=PERMISSIVE)

    pairs = {(query, document) for query, document, grade in rows if grade >= 1}
    kept = {(query, document) for query, document in pairs if document != absent}
    folded: dict[str, set[str]] = {}
    for document in corpus:
        folded.setdefault(document.lower(), set()).add(document)

    def is_kept(document: str) -> bool:
        return bool(SAFE_ID.fullmatch(document)) and len(folded[document.lower()]) == 1

    written = [document for document in corpus if document != empty]
    counts = report.policy_counts
    assert report.document_count == len(written)
    assert report.query_count == len({query for query, _ in kept})
    assert report.relevance_pair_count == len(kept)
    assert report.total_characters == sum(map(len, corpus.values()))
    assert counts.mapped_document_count == sum(not is_kept(document) for document in written)
    assert counts.mapped_query_count == sum(not JUDGMENT_ID.fullmatch(query) for query in {query for query, _ in kept})
    assert counts.dropped_document_count == (empty is not None)
    assert counts.dropped_pair_count == len(pairs) - len(kept)
    assert counts.below_threshold_pair_count == 0
    assert counts.lost_query_count == len({query for query, _ in pairs}) - len({query for query, _ in kept})
    assert counts.repeated_row_count == len(rows) - len(set(rows))
    assert documents_of(tmp_path / "output") == {document: corpus[document] for document in written}
    id_map = load_id_map(tmp_path / "output")
    judged = {
        judgment.query_id: {span.quote for span in judgment.gold}
        for judgment in load_judgments(tmp_path / "output" / "judgments.jsonl")
    }
    expected: dict[str, set[str]] = {}
    for query, document in kept:
        expected.setdefault(query, set()).add(corpus[document])
    assert id_map.scores_to_source(judged) == expected


def test_admissible_ids_keep_their_names_and_others_get_one_that_is(tmp_path: Path) -> None:
    corpus = {"Fine.id": "a", "<dbpedia:9/11_(film)>": "b", "Abc": "c", "abC": "d", "nul": "e", "x" * 252: "f"}
    source = write_dataset(tmp_path / "source", corpus, {"q1": "?"}, [("q1", "Abc", 1)])
    report = adapt_beir_dataset(source, tmp_path / "output", policy=BeirPolicy(document_ids="map"))
    names = adapted_names(tmp_path / "output")
    assert "Fine.id" in names
    assert any(name.startswith("dbpedia-9-11-film-") for name in names)
    assert len({name.casefold() for name in names}) == len(names)
    assert report.policy_counts.mapped_document_count == 5
    assert documents_of(tmp_path / "output") == corpus


def test_a_mapped_name_is_the_same_in_every_subset(tmp_path: Path) -> None:
    policy = BeirPolicy(document_ids="map")
    large = write_dataset(tmp_path / "large", {"a/b": "x", "é": "y", "d": "z"}, {"q": "?"}, [("q", "a/b", 1)])
    small = write_dataset(tmp_path / "small", {"a/b": "x"}, {"q": "?"}, [("q", "a/b", 1)])
    adapt_beir_dataset(large, tmp_path / "large-out", policy=policy)
    adapt_beir_dataset(small, tmp_path / "small-out", policy=policy)
    assert set(adapted_names(tmp_path / "small-out")) < set(adapted_names(tmp_path / "large-out"))


@pytest.mark.parametrize("spell", [str, str.upper])
def test_an_id_spelled_like_a_name_that_another_gets_is_mapped_too(tmp_path: Path, spell: Any) -> None:
    policy = BeirPolicy(document_ids="map")
    first = write_dataset(tmp_path / "first", {"a/b": "x"}, {"q": "?"}, [("q", "a/b", 1)])
    adapt_beir_dataset(first, tmp_path / "first-out", policy=policy)
    (name,) = adapted_names(tmp_path / "first-out")
    corpus = {spell(name): "mine", "a/b": "x", "other-0123456789abcdef0123": "kept"}
    second = write_dataset(tmp_path / "second", corpus, {"q": "?"}, [("q", "a/b", 1)])
    report = adapt_beir_dataset(second, tmp_path / "second-out", policy=policy)
    assert report.policy_counts.mapped_document_count == 2
    assert documents_of(tmp_path / "second-out") == corpus
    assert "other-0123456789abcdef0123" in adapted_names(tmp_path / "second-out")


@settings(deadline=None, max_examples=40)
@given(ids=st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=6), min_size=1, max_size=8, unique=True))
def test_any_ids_map_to_admissible_names_and_back(ids: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("dataset")
    corpus = {identifier: f"text {number}" for number, identifier in enumerate(ids)}
    taken = [identifier for identifier in ids if "\t" not in identifier and "\n" not in identifier]
    taken = [identifier for identifier in taken if not identifier.endswith("\r")] or ["spare"]
    corpus.setdefault("spare", "spare")
    queries = dict.fromkeys(taken, "?")
    source = write_dataset(directory / "source", corpus, queries, [(query, query, 1) for query in taken])
    report = adapt_beir_dataset(source, directory / "output", policy=PERMISSIVE)
    names = adapted_names(directory / "output")
    assert report.document_count == len(corpus) == len({name.casefold() for name in names})
    assert all(SAFE_ID.fullmatch(name) for name in names)
    assert documents_of(directory / "output") == corpus
    id_map = load_id_map(directory / "output")
    judgments = {judgment.query_id: judgment for judgment in load_judgments(directory / "output" / "judgments.jsonl")}
    assert set(id_map.scores_to_source(judgments)) == set(taken)
    assert id_map.scores_to_adapted(id_map.scores_to_source(judgments)) == judgments
    shutil.rmtree(directory)


def test_a_threshold_decides_what_is_relevant_and_the_rest_is_counted(tmp_path: Path) -> None:
    qrels = [("q1", "a", 1), ("q1", "b", 2), ("q1", "b", 2), ("q1", "c", 3), ("q1", "d", -1), ("q2", "a", 1)]
    source = write_dataset(tmp_path / "source", dict.fromkeys("abcd", "x"), {"q1": "?", "q2": "?"}, qrels)
    report = adapt_beir_dataset(source, tmp_path / "output", policy=BeirPolicy(min_relevance=2))
    assert (report.query_count, report.relevance_pair_count) == (1, 2)
    counts = report.policy_counts
    assert (counts.below_threshold_pair_count, counts.lost_query_count, counts.repeated_row_count) == (2, 1, 1)


def test_two_grades_of_one_pair_are_refused_under_any_policy(tmp_path: Path) -> None:
    source = write_dataset(tmp_path / "source", {"a": "x"}, {"q": "?"}, [("q", "a", 2), ("q", "a", 3)])
    with pytest.raises(EvalError, match=r"line 3.*grade 3 here and grade 2 on line 2"):
        adapt_beir_dataset(source, tmp_path / "output", policy=PERMISSIVE)


def test_an_empty_document_that_is_judged_relevant_is_never_dropped(tmp_path: Path) -> None:
    source = write_dataset(tmp_path / "source", {"a": "x", "b": " "}, {"q": "?"}, [("q", "a", 1), ("q", "b", 1)])
    with pytest.raises(EvalError, match="'b' has no title or text"):
        adapt_beir_dataset(source, tmp_path / "output", policy=PERMISSIVE)


def test_queries_that_lose_every_document_need_no_admissible_id(tmp_path: Path) -> None:
    qrels = [("q", "a", 1), ("Q_2", "gone", 1)]
    source = write_dataset(tmp_path / "source", {"a": "x"}, {"q": "?", "Q_2": "?"}, qrels)
    report = adapt_beir_dataset(source, tmp_path / "output", policy=BeirPolicy(unknown_documents="drop"))
    assert (report.query_count, report.policy_counts.lost_query_count) == (1, 1)


def test_the_default_policy_refuses_all_of_it_and_names_the_options(tmp_path: Path) -> None:
    qrels = [("Q_1", "a/b", 2), ("Q_1", "gone", 1)]
    source = write_dataset(tmp_path / "source", {"a/b": "x", "c": ""}, {"Q_1": "?"}, qrels)
    with pytest.raises(EvalError) as caught:
        adapt_beir_dataset(source, tmp_path / "output")
    for option in ("document_ids", "query_ids", "min_relevance", "empty_documents", "unknown_documents"):
        assert option in str(caught.value)


def test_inspection_counts_what_a_policy_would_do(tmp_path: Path) -> None:
    source = write_dataset(tmp_path / "source", {"a/b": "x", "c": ""}, {"Q_1": "?"}, [("Q_1", "a/b", 2)])
    inspection = inspect_beir_dataset(source, policy=PERMISSIVE)
    report = adapt_beir_dataset(source, tmp_path / "output", policy=PERMISSIVE)
    assert inspection.admissible
    assert inspection.policy_counts == report.policy_counts
    assert inspection.document_count == report.document_count == 1


def test_a_sharded_corpus_names_the_shard_in_the_judgments(tmp_path: Path) -> None:
    corpus = {f"d{number}": f"text {number}" for number in range(600)}
    source = write_dataset(tmp_path / "source", corpus, {"q": "?"}, [("q", "d5", 1), ("q", "d7", 1)])
    adapt_beir_dataset(source, tmp_path / "output", layout="sharded")
    paths = {path.stem: path.relative_to(tmp_path / "output" / "corpus") for path in tmp_path.glob("output/**/*.txt")}
    assert paths.keys() == corpus.keys()
    assert all(re.fullmatch(r"[0-9a-f]{2}/d[0-9]+\.txt", str(path)) for path in paths.values())
    assert len({path.parent for path in paths.values()}) > 200
    (judgment,) = load_judgments(tmp_path / "output" / "judgments.jsonl")
    assert [span.doc for span in judgment.gold] == [str(paths["d5"]), str(paths["d7"])]


def test_an_unknown_layout_is_refused(tmp_path: Path) -> None:
    source = write_dataset(tmp_path / "source", {"a": "x"}, {"q": "?"}, [("q", "a", 1)])
    with pytest.raises(EvalError, match="unknown layout 'deep'"):
        adapt_beir_dataset(source, tmp_path / "output", layout="deep")  # type: ignore[arg-type]


def test_an_old_id_map_never_stands_beside_a_new_corpus(tmp_path: Path) -> None:
    source = write_dataset(tmp_path / "source", {"a": "x"}, {"q": "?"}, [("q", "a", 1)])
    adapt_beir_dataset(source, tmp_path / "output", policy=BeirPolicy(document_ids="map"))
    assert pl.read_parquet(tmp_path / "output" / "id-map.parquet").is_empty()
    shutil.rmtree(tmp_path / "output" / "corpus")
    adapt_beir_dataset(source, tmp_path / "output")
    assert not (tmp_path / "output" / "id-map.parquet").exists()


def test_a_run_file_is_translated_and_back(tmp_path: Path) -> None:
    source = write_dataset(tmp_path / "source", {"a/b": "x", "c": "y"}, {"Q_1": "?"}, [("Q_1", "a/b", 1)])
    adapt_beir_dataset(source, tmp_path / "output", policy=PERMISSIVE)
    id_map = load_id_map(tmp_path / "output")
    run = tmp_path / "run.txt"
    run.write_text("Q_1 Q0 a/b 1 2.5 tag\nQ_1 Q0 c 2 1.5 tag\n")
    assert id_map.translate_run_file(run, tmp_path / "adapted.txt", to_source=False) == 2
    adapted = (tmp_path / "adapted.txt").read_text()
    assert "a/b" not in adapted
    id_map.translate_run_file(tmp_path / "adapted.txt", tmp_path / "back.txt", to_source=True)
    assert (tmp_path / "back.txt").read_text() == run.read_text()
    with pytest.raises(EvalError, match="cannot write run file"):
        id_map.translate_run_file(run, tmp_path / "back.txt", to_source=True)
    run.write_text("Q_1 Q0 a/b\n")
    with pytest.raises(EvalError, match=r"run\.txt:1: a run row has six fields, found 3"):
        id_map.translate_run_file(run, tmp_path / "other.txt", to_source=True)


def test_a_file_that_is_no_id_map_is_refused(tmp_path: Path) -> None:
    (tmp_path / "id-map.parquet").write_text("no parquet")
    with pytest.raises(EvalError, match="not an id map"):
        load_id_map(tmp_path)
    with pytest.raises(EvalError, match="not a directory"):
        load_id_map(tmp_path / "absent")


def test_a_policy_of_another_type_is_a_type_error(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="policy"):
        inspect_beir_dataset(tmp_path, policy={"document_ids": "map"})  # type: ignore[arg-type]
