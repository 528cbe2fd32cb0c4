"""Provenance: what an output was made of, and whether it is still what was written."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from groundkit.errors import EvalError
from groundkit.evals.beir import BeirPolicy, adapt_beir_dataset
from groundkit.evals.provenance import read_adaptation, verify_adaptation

FILES = {
    "corpus.jsonl": '{"_id":"d1","title":"T","text":"é"}\n{"_id":"d2","text":"B"}\n{"_id":"d3","text":"C"}\n',
    "queries.jsonl": '{"_id": "q1", "text": "what?"}\n',
    "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td2\t1\nq1\td1\t1\n",
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path / "source"


@pytest.fixture
def output(source: Path, tmp_path: Path) -> Path:
    adapt_beir_dataset(source, tmp_path / "output")
    return tmp_path / "output"


def refusal(output: Path) -> str:
    with pytest.raises(EvalError) as caught:
        verify_adaptation(output)
    return str(caught.value)


def test_the_record_says_what_was_read_and_written(output: Path) -> None:
    record = verify_adaptation(output)
    assert [(file.name, file.kept_as, file.bytes) for file in record.sources] == [
        (name, name, len(content.encode())) for name, content in FILES.items()
    ]
    assert record.split == "test"
    assert record.counts == {
        "document_count": 3,
        "query_count": 1,
        "relevance_pair_count": 2,
        "total_characters": 6,
    }
    assert (record.corpus.documents, record.corpus.bytes) == (3, 7)
    assert record.files["judgments.jsonl"].bytes == (output / "judgments.jsonl").stat().st_size


def test_the_record_is_the_same_for_the_same_dataset_and_tells_no_paths(
    source: Path, output: Path, tmp_path: Path
) -> None:
    adapt_beir_dataset(source, tmp_path / "again")
    content = (output / "adaptation.json").read_bytes()
    assert (tmp_path / "again" / "adaptation.json").read_bytes() == content
    assert str(tmp_path).encode() not in content


def test_the_content_of_a_dataset_has_one_hash_whatever_it_is_packed_in(
    source: Path, output: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
        for name in FILES:
            archive.write(source / name, f"d/{name}")
    adapt_beir_dataset(tmp_path / "d.zip", tmp_path / "packed")
    plain, packed = verify_adaptation(output), verify_adaptation(tmp_path / "packed")
    assert packed.corpus == plain.corpus
    assert packed.files == plain.files
    assert packed.sources[0].kept_as == "d.zip:d/corpus.jsonl"
    assert [file.blake3 for file in packed.sources] == [file.blake3 for file in plain.sources]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda output: (output / "corpus/d2.txt").write_text("b"), r"differ\n  corpus/d2.txt differs"),
        (lambda output: (output / "corpus/d1.txt").unlink(), r"1 documents are missing\n  corpus/d1.txt is missing"),
        (lambda output: (output / "corpus/d3.txt").write_text("c"), r"names or texts of documents differ"),
        (lambda output: (output / "corpus/d3.txt").rename(output / "corpus/d4.txt"), r"names or texts of documents"),
        (lambda output: (output / "corpus/d4.txt").write_text("D"), r"1 documents are there in addition"),
        (lambda output: (output / "corpus/link").symlink_to("d1.txt"), r"entries that are no documents: 'link'"),
        (lambda output: (output / "judgments.jsonl").write_text("{}"), r"judgments.jsonl is missing or differs"),
        (lambda output: (output / "judgments.jsonl").unlink(), r"judgments.jsonl is missing or differs"),
    ],
    ids=["changed", "missing", "unquoted", "renamed", "added", "link", "judgments", "unjudged"],
)
def test_every_change_is_found_and_named(output: Path, change: Callable[[Path], object], message: str) -> None:
    change(output)
    with pytest.raises(EvalError, match=message):
        verify_adaptation(output)


def test_an_output_without_a_record_is_refused(output: Path, tmp_path: Path) -> None:
    assert "cannot read adaptation record" in refusal(tmp_path / "absent")
    (output / "adaptation.json").write_text("{}")
    assert "split: Field required" in refusal(output)
    (output / "adaptation.json").write_text("<html>")
    assert "cannot read adaptation record" in refusal(output)


def test_a_record_survives_reading_and_writing(output: Path) -> None:
    content = (output / "adaptation.json").read_bytes()
    assert read_adaptation(output).encode() == content
    assert json.loads(content)["schema_version"] == 1


@pytest.mark.parametrize("obstacle", ["directory", "link"])
def test_a_record_never_replaces_what_is_no_file(source: Path, tmp_path: Path, obstacle: str) -> None:
    output = tmp_path / "taken"
    output.mkdir()
    if obstacle == "directory":
        (output / "adaptation.json").mkdir()
    else:
        (output / "adaptation.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EvalError, match=r"output adaptation path .* is (not a regular file|a symbolic link)"):
        adapt_beir_dataset(source, output)
    assert [path.name for path in output.iterdir()] == ["adaptation.json"]


def test_a_sharded_output_with_an_id_map_is_verified(source: Path, tmp_path: Path) -> None:
    policy = BeirPolicy(document_ids="map", query_ids="map")
    adapt_beir_dataset(source, tmp_path / "sharded", policy=policy, layout="sharded")
    record = verify_adaptation(tmp_path / "sharded")
    assert (record.layout, record.policy["document_ids"]) == ("sharded", "map")
    (tmp_path / "sharded" / "id-map.parquet").write_bytes(b"")
    assert "id-map.parquet is missing or differs" in refusal(tmp_path / "sharded")
