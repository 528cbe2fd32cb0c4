"""The same dataset in every form it may come in: a directory, packed files, zip archives."""

import gzip
import io
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from groundkit.errors import EvalError
from groundkit.evals.beir import BeirInspection, adapt_beir_dataset, inspect_beir_dataset
from groundkit.evals.beir.inspect import check_dataset

# Enough for several blocks of the reader; line 41 is no JSON.
CORPUS = b"".join(
    b'{"_id": "d%d", "title": "T", "text": "%s"}\n' % (number, b"x" * 997) if number != 41 else b"oops\n"
    for number in range(1, 1_500)
)
QUERIES = b'{"_id": "q1", "text": "what?"}\n'
QRELS = b"query-id\tcorpus-id\tscore\nq1\td7\t1\nq1\td900\t0\n"
FILES = {"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES, "qrels/test.tsv": QRELS}


class Unseekable(io.RawIOBase):
    """A sink that only goes forward, so that zipfile writes data descriptors."""

    def __init__(self) -> None:
        self.content = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, content: bytes) -> int:  # type: ignore[override]
        self.content += content
        return len(content)


def write_directory(root: Path, suffix: str = "", pack: Callable[[bytes], bytes] = bytes) -> Path:
    for name, content in FILES.items():
        path = root / f"{name}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pack(content))
    return root


def write_archive(
    path: Path, files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED, *, zip64: bool = False
) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files.items():
            with archive.open(name, "w", force_zip64=zip64) as member:
                member.write(content)
    return path


def in_folder(folder: str) -> dict[str, bytes]:
    return {f"{folder}{name}": content for name, content in FILES.items()}


def counts(inspection: BeirInspection) -> dict[str, object]:
    return inspection.model_dump(exclude={"source_dir", "problems"})


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> BeirInspection:
    return inspect_beir_dataset(write_directory(tmp_path_factory.mktemp("plain")))


def check_same(source: Path, plain: BeirInspection, corpus_name: str) -> None:
    inspection = inspect_beir_dataset(source)
    assert counts(inspection) == counts(plain)
    assert [problem.file for problem in inspection.problems] == [corpus_name]
    assert inspection.problems[0].line == 41
    expected = plain.problems[0].message.replace("corpus.jsonl", corpus_name)
    assert inspection.problems[0].message == expected


def test_gzip_files_are_read_in_place(tmp_path: Path, plain: BeirInspection) -> None:
    check_same(write_directory(tmp_path, ".gz", gzip.compress), plain, "corpus.jsonl.gz")


def test_gzip_members_one_after_another_are_read_through(tmp_path: Path, plain: BeirInspection) -> None:
    def pack(content: bytes) -> bytes:
        return b"".join(gzip.compress(content[start : start + 100_000]) for start in range(0, len(content), 100_000))

    check_same(write_directory(tmp_path, ".gz", pack), plain, "corpus.jsonl.gz")


@pytest.mark.parametrize("zip64", [False, True])
@pytest.mark.parametrize("folder", ["", "scifact/", "données/"])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_archive_is_read_in_place(
    tmp_path: Path, plain: BeirInspection, method: int, folder: str, *, zip64: bool
) -> None:
    archive = write_archive(tmp_path / "scifact.zip", in_folder(folder), method, zip64=zip64)
    check_same(archive, plain, f"scifact.zip:{folder}corpus.jsonl")


@pytest.mark.parametrize("zip64", [False, True])
def test_an_archive_with_data_descriptors_is_read_in_place(
    tmp_path: Path, plain: BeirInspection, *, zip64: bool
) -> None:
    sink = Unseekable()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in FILES.items():
            with archive.open(name, "w", force_zip64=zip64) as member:
                member.write(content)
    path = tmp_path / "scifact.zip"
    path.write_bytes(sink.content)
    check_same(path, plain, "scifact.zip:corpus.jsonl")


def test_an_archive_with_folders_and_a_comment_is_read_in_place(tmp_path: Path, plain: BeirInspection) -> None:
    path = tmp_path / "scifact.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("scifact")
        archive.mkdir("scifact/qrels")
        for name, content in in_folder("scifact/").items():
            archive.writestr(name, content)
        archive.writestr("__MACOSX/scifact/._corpus.jsonl", b"\0\5\x16\7")
        archive.comment = b"made for a test"
    check_same(path, plain, "scifact.zip:scifact/corpus.jsonl")


def test_content_has_one_hash_whatever_it_is_packed_in(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "d.zip", FILES)
    found = [
        [(file.digest, file.size) for file in (checked.corpus, checked.queries, checked.qrels) if file is not None]
        for checked in (
            check_dataset(write_directory(tmp_path / "plain"), split="test"),
            check_dataset(write_directory(tmp_path / "packed", ".gz", gzip.compress), split="test"),
            check_dataset(archive, split="test"),
        )
    ]
    assert [size for _, size in found[0]] == [len(content) for content in FILES.values()]
    assert found[1] == found[0]
    assert found[2] == found[0]


def test_an_absent_split_lists_those_in_the_archive(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "d.zip", FILES | {"qrels/train.tsv": QRELS})
    messages = [problem.message for problem in inspect_beir_dataset(archive, split="dev").problems]
    assert any(
        "cannot read BEIR file d.zip:qrels/dev.tsv: the archive has no such member; splits present: 'test', 'train'"
        in message
        for message in messages
    )


def test_a_page_saved_as_an_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scifact.zip"
    path.write_bytes(b"<!DOCTYPE html><title>404</title>")
    with pytest.raises(
        EvalError, match=r"cannot read BEIR file scifact\.zip: .* an HTML page: it begins with"
    ) as caught:
        inspect_beir_dataset(path)
    assert "<title>404" in str(caught.value)


def test_a_damaged_member_is_a_problem_that_names_the_checksum(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "d.zip", FILES, zipfile.ZIP_STORED)
    content = bytearray(path.read_bytes())
    content[content.index(b"what?")] ^= 1
    path.write_bytes(content)
    (problem,) = [problem for problem in inspect_beir_dataset(path).problems if problem.kind == "unreadable_file"]
    assert "d.zip:queries.jsonl: it is damaged: its CRC-32 checksum is" in problem.message


def test_a_gzip_file_cut_short_is_a_problem_that_names_the_checksum(tmp_path: Path) -> None:
    write_directory(tmp_path, ".gz", gzip.compress)
    path = tmp_path / "corpus.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-5])
    (problem,) = [problem for problem in inspect_beir_dataset(tmp_path).problems if problem.kind == "unreadable_file"]
    assert "corpus.jsonl.gz: damaged or cut short gzip data, whose CRC-32 checksum" in problem.message


def test_members_with_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "d.zip"
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings(action="ignore"):
        for content in (CORPUS, b""):
            archive.writestr("corpus.jsonl", content)
    with pytest.raises(EvalError, match=r"one member twice"):
        inspect_beir_dataset(path)


def test_a_bomb_is_refused_at_the_size_it_declares(tmp_path: Path) -> None:
    corpus = b'{"_id": "d1", "text": "x"}' + b" " * 20_000_000 + b"\n"
    path = write_archive(tmp_path / "d.zip", FILES | {"corpus.jsonl": corpus})
    size = struct.pack("<L", len(corpus))
    path.write_bytes(path.read_bytes().replace(size, struct.pack("<L", 100)))
    (problem,) = [problem for problem in inspect_beir_dataset(path).problems if problem.kind == "unreadable_file"]
    assert "expands beyond the 100 bytes" in problem.message


def test_an_archive_adapts_to_the_same_output_as_a_directory(tmp_path: Path) -> None:
    corpus = b"".join(line for line in CORPUS.splitlines(keepends=True) if line != b"oops\n")
    files = FILES | {"corpus.jsonl": corpus}
    plain = write_directory(tmp_path / "plain")
    (plain / "corpus.jsonl").write_bytes(corpus)
    outputs = []
    for source in (plain, write_archive(tmp_path / "d.zip", files)):
        output = tmp_path / f"output-{source.name}"
        report = adapt_beir_dataset(source, output)
        assert report.document_count == 1498
        found = {path.relative_to(output): path.read_bytes() for path in output.rglob("*") if path.is_file()}
        del found[Path("adaptation.json")]
        outputs.append(found)
    assert outputs[0] == outputs[1]
