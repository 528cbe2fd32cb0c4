"""Provenance: what an output was made of, and whether it is still what was written."""

import gzip
import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import write_files
from groundkit.errors import EvalError
from groundkit.evals.beir import BeirPolicy, adapt_beir_dataset
from groundkit.evals.provenance import HashName, read_adaptation, verify_adaptation

FILES = {
    "corpus.jsonl": '{"_id":"d1","title":"T","text":"é"}\n{"_id":"d2","text":"B"}\n{"_id":"d3","text":"C"}\n',
    "queries.jsonl": '{"_id": "q1", "text": "what?"}\n',
    "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td2\t1\nq1\td1\t1\n",
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_files(tmp_path / "source", *FILES.values())


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


# One zstd frame with one raw block (RFC 8878); Python writes zstd from 3.14 on only.
ZSTD_CONTENT = FILES["corpus.jsonl"].encode()
ZSTD_FRAME = (
    bytes.fromhex("28b52ffd20")
    + bytes([len(ZSTD_CONTENT)])
    + (len(ZSTD_CONTENT) << 3 | 1).to_bytes(3, "little")
    + ZSTD_CONTENT
)


def pack(source: Path, form: str) -> Path:
    if form == "zip":
        with zipfile.ZipFile(source.parent / "d.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name in FILES:
                archive.write(source / name, f"d/{name}")
        return source.parent / "d.zip"
    if form != "plain":
        corpus = source / "corpus.jsonl"
        content = corpus.read_bytes()
        corpus.unlink()
        corpus.with_name(f"corpus.jsonl.{form}").write_bytes(gzip.compress(content) if form == "gz" else ZSTD_FRAME)
    return source


@pytest.mark.parametrize("form", ["plain", "gz", "zst", "zip"])
def test_sha256_is_taken_of_what_is_read_and_written(source: Path, tmp_path: Path, form: str) -> None:
    output = tmp_path / "output"
    adapt_beir_dataset(pack(source, form), output, hash="sha256")
    record = verify_adaptation(output)
    assert record.hash == "sha256"
    expected = [hashlib.sha256(content.encode()).hexdigest() for content in FILES.values()]
    assert [file.sha256 for file in record.sources] == expected
    judgments = (output / "judgments.jsonl").read_bytes()
    assert record.files["judgments.jsonl"].sha256 == hashlib.sha256(judgments).hexdigest()
    documents = sorted((output / "corpus").iterdir())
    leaves = [hashlib.sha256(path.name.encode() + b"\0" + path.read_bytes()).digest()[:16] for path in documents]
    assert record.corpus.sha256 == hashlib.sha256(b"".join(sorted(leaves))).hexdigest()
    assert b"blake3" not in (output / "adaptation.json").read_bytes()


def test_sha256_is_taken_in_order_of_a_file_of_many_blocks(source: Path, tmp_path: Path) -> None:
    rows = (json.dumps({"_id": f"d{number}", "text": f"{number} " * 500}) + "\n" for number in range(2_000))
    (source / "corpus.jsonl").write_text("".join(rows))
    adapt_beir_dataset(source, tmp_path / "output", hash="sha256")
    digest = verify_adaptation(tmp_path / "output").sources[0].digest
    assert digest == hashlib.sha256((source / "corpus.jsonl").read_bytes()).hexdigest()


@pytest.mark.parametrize("name", ["corpus/d2.txt", "judgments.jsonl"])
def test_a_change_is_found_by_sha256(source: Path, tmp_path: Path, name: str) -> None:
    adapt_beir_dataset(source, tmp_path / "output", hash="sha256")
    path = tmp_path / "output" / name
    path.write_bytes(path.read_bytes().swapcase())
    with pytest.raises(EvalError, match=f"{name} (is missing or )?differs"):
        verify_adaptation(tmp_path / "output")


@pytest.mark.parametrize("name", ["blake3", "sha256"])
def test_another_source_has_another_hash(source: Path, tmp_path: Path, name: HashName) -> None:
    adapt_beir_dataset(source, tmp_path / "before", hash=name)
    (source / "queries.jsonl").write_text('{"_id": "q1", "text": "which?"}\n')
    adapt_beir_dataset(source, tmp_path / "after", hash=name)
    before, after = read_adaptation(tmp_path / "before"), read_adaptation(tmp_path / "after")
    pairs = zip(before.sources, after.sources, strict=True)
    assert [one.digest == other.digest for one, other in pairs] == [True, False, True]


def test_an_unknown_hash_is_refused_with_those_that_are_known(source: Path, tmp_path: Path) -> None:
    unknown: Any = "md5"
    with pytest.raises(EvalError, match=r"unknown hash 'md5'; expected one of blake3, sha256"):
        adapt_beir_dataset(source, tmp_path / "output", hash=unknown)
    assert not (tmp_path / "output").exists()


def test_a_record_of_the_first_release_is_verified(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus/d1.txt").write_text("B")
    (tmp_path / "judgments.jsonl").write_text("")
    (tmp_path / "adaptation.json").write_text("""{
      "schema_version": 1, "groundkit_version": "0.1.0", "split": "test", "layout": "flat",
      "policy": {"min_relevance": null}, "counts": {},
      "sources": [{"name": "corpus.jsonl", "kept_as": "corpus.jsonl", "bytes": 0,
        "blake3": "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"}],
      "corpus": {"documents": 1, "bytes": 1,
        "blake3": "fdc1b90f02122e46eeec2111ce89846868ed887973220fd4e11584e10f596f3b"},
      "files": {"judgments.jsonl": {"bytes": 0,
        "blake3": "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"}}
    }""")
    record = verify_adaptation(tmp_path)
    assert record.hash == "blake3"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: record["corpus"].pop("blake3"), r"corpus: .*exactly one hash is needed of blake3, sha256"),
        (lambda record: record["corpus"].update(sha256="0" * 64), r"corpus: .*exactly one hash"),
        (lambda record: record["corpus"].update(blake3="0" * 63), r"corpus.blake3: String should match"),
        (lambda record: record["corpus"].update(md5="0" * 32), r"corpus.md5: Extra inputs"),
        (
            lambda record: record["sources"][0].update(sha256=record["sources"][0].pop("blake3")),
            r": .*all files need the same hash as the corpus",
        ),
    ],
    ids=["none", "two", "short", "unknown", "mixed"],
)
def test_a_record_has_one_hash_of_everything(
    output: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    path = output / "adaptation.json"
    record = json.loads(path.read_bytes())
    change(record)
    path.write_text(json.dumps(record))
    with pytest.raises(EvalError, match=message):
        verify_adaptation(output)


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
