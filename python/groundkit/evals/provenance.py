"""What an adapted dataset was made of, and whether an output is still what was written.

`adaptation.json` names no paths, machines or times: two people who adapt the same dataset with the same options get the
same bytes, except where they keep its files under other names.
"""

import os
from pathlib import Path
from typing import Annotated, Final, Literal, Self, TypeAlias, cast, get_args

from pydantic import Field, ValidationError, model_validator

from groundkit._native import __version__, read_corpus, read_file
from groundkit.errors import EvalError
from groundkit.evals.arguments import require_threads
from groundkit.evals.files import describe_first_fault, read_regular_file
from groundkit.evals.model import FrozenModel
from groundkit.evals.progress import ProgressOption, Watch, open_progress
from groundkit.evals.quoting import quote_path

HashName: TypeAlias = Literal["blake3", "sha256"]

# A hash is written under its own name, and the other one is left out.
_Digest: TypeAlias = Annotated[
    str | None, Field(default=None, pattern=r"^[0-9a-f]{64}$", exclude_if=lambda digest: digest is None)
]

ADAPTATION_FILE: Final = "adaptation.json"
JUDGMENTS_FILE: Final = "judgments.jsonl"

_SHOWN_ENTRIES: Final = 5
_SHOWN_QUOTES: Final = 10


class _Hashed(FrozenModel):
    """Something that has one hash, under the name of the hash."""

    @property
    def hash(self) -> HashName:
        """Which hash it has."""
        return self._hashes()[0]

    @property
    def digest(self) -> str:
        """The hash in hexadecimal digits."""
        return cast("str", getattr(self, self.hash))

    def _hashes(self) -> list[HashName]:
        return [name for name in get_args(HashName) if getattr(self, name) is not None]

    @model_validator(mode="after")
    def _check_hashes(self) -> Self:
        if len(self._hashes()) != 1:
            raise ValueError(f"exactly one hash is needed of {', '.join(get_args(HashName))}")
        return self


class SourceFile(_Hashed):
    """A file that a dataset was read from.

    Attributes:
        name: The file of the dataset, such as `corpus.jsonl`.
        kept_as: What it was read from, such as `corpus.jsonl.gz` or `scifact.zip:scifact/corpus.jsonl`.
        bytes: Size of its content, unpacked.
        blake3: BLAKE3 of its content, unpacked: the same for everybody who has it, whatever it is packed in.
        sha256: SHA-256 of the same, where this was asked for instead.
    """

    name: str
    kept_as: str
    bytes: int = Field(ge=0)
    blake3: _Digest
    sha256: _Digest


class OutputFile(_Hashed):
    """A file beside the corpus, such as `judgments.jsonl`.

    Attributes:
        bytes: Its size.
        blake3: BLAKE3 of its bytes.
        sha256: SHA-256 of its bytes, where this was asked for instead.
    """

    bytes: int = Field(ge=0)
    blake3: _Digest
    sha256: _Digest


class OutputCorpus(_Hashed):
    """All documents of the corpus directory.

    Attributes:
        documents: How many there are.
        bytes: Bytes of all texts.
        blake3: BLAKE3 over the documents' leaves in ascending order; a leaf is the first 16 bytes of the BLAKE3 of the
            document's path in the corpus directory, a zero byte, and its text.
        sha256: The same with SHA-256 for both, where this was asked for instead.
    """

    documents: int = Field(ge=0)
    bytes: int = Field(ge=0)
    blake3: _Digest
    sha256: _Digest


class AdaptationRecord(FrozenModel):
    """The content of `adaptation.json`.

    Attributes:
        schema_version: Version of this record.
        groundkit_version: Version of the package that wrote the output.
        split: The split whose qrels were adapted.
        layout: How the corpus directory is laid out.
        policy: The `BeirPolicy`, by option.
        counts: What the report counts, by field.
        sources: The files that were read.
        corpus: The documents that were written.
        files: The files that were written beside the corpus, by name.
    """

    schema_version: Literal[1] = 1
    groundkit_version: str = __version__
    split: str
    layout: Literal["flat", "sharded"]
    policy: dict[str, str | int | None]
    counts: dict[str, int]
    sources: tuple[SourceFile, ...]
    corpus: OutputCorpus
    files: dict[str, OutputFile]

    @property
    def hash(self) -> HashName:
        """Which hash was taken of everything."""
        return self.corpus.hash

    @model_validator(mode="after")
    def _check_hashes(self) -> Self:
        if any(file.hash != self.hash for file in (*self.sources, *self.files.values())):
            raise ValueError("all files need the same hash as the corpus")
        return self

    def encode(self) -> bytes:
        """Write the record as JSON that people can read and compare line by line."""
        return (self.model_dump_json(indent=2) + "\n").encode()


def verify_adaptation(
    output: str | os.PathLike[str], *, threads: int | None = None, progress: ProgressOption = None
) -> AdaptationRecord:
    r"""Check that an adapted dataset is still what was written.

    Every document and every file beside the corpus is read again and compared with `adaptation.json`, by the hash that
    was taken then. It proves that
    nothing changed by accident; who can change the output can change that file as well, so compare records, or keep
    one elsewhere, to prove more.

    Args:
        output: Directory that `adapt_beir_dataset` wrote.
        threads: Maximum number of threads, -1 for all cores; by default all that this process may use.
        progress: As for `groundkit.evals.beir.inspect_beir_dataset`.

    Returns:
        The record, which tells what the output was made of.

    Raises:
        EvalError: There is no readable `adaptation.json`, or documents or files are missing, are there in addition, or
            differ. The message tells what.

    Example:
        >>> import pathlib, tempfile
        >>> from groundkit.evals.beir import adapt_beir_dataset
        >>> with tempfile.TemporaryDirectory() as name:
        ...     source = pathlib.Path(name)
        ...     (source / "qrels").mkdir()
        ...     _ = (source / "corpus.jsonl").write_text('{"_id": "d1", "title": "T", "text": "B"}\n')
        ...     _ = (source / "queries.jsonl").write_text('{"_id": "q1", "text": "what is B?"}\n')
        ...     _ = (source / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
        ...     _ = adapt_beir_dataset(source, source / "adapted")
        ...     record = verify_adaptation(source / "adapted")
        >>> record.counts["document_count"], record.sources[0].name
        (1, 'corpus.jsonl')
    """
    directory = Path(output)
    threads = require_threads(threads)
    record = read_adaptation(directory)
    with open_progress(progress) as report:
        watch = report("verification", record.corpus.documents)
        bytes_total = record.corpus.bytes + sum(file.bytes for file in record.files.values())
        differences = _compare_corpus(directory, record.corpus, threads, _watch_part(watch, 0, bytes_total))
        changed_files = []
        bytes_before = record.corpus.bytes
        for name, file in record.files.items():
            part = _watch_part(watch, bytes_before, bytes_total, record.corpus.documents)
            if not _is_same(directory, name, file, threads, part):
                changed_files.append(name)
            bytes_before += file.bytes
    differences += [f"{name} is missing or differs" for name in changed_files]
    if differences and JUDGMENTS_FILE not in changed_files:
        differences += _compare_quotes(directory)
    if differences:
        listed = "\n".join(f"  {difference}" for difference in differences)
        raise EvalError(f"adapted dataset {quote_path(directory)} is not what was written:\n{listed}")
    return record


def read_adaptation(output: str | os.PathLike[str]) -> AdaptationRecord:
    """Read the `adaptation.json` of an adapted dataset.

    Raises:
        EvalError: It is absent, cannot be read, or is no such record.
    """
    path = Path(output) / ADAPTATION_FILE
    content = read_regular_file(path, "adaptation record")
    try:
        return AdaptationRecord.model_validate_json(content)
    except ValidationError as error:
        raise EvalError(f"cannot read adaptation record {quote_path(path)}: {describe_first_fault(error)}") from error


def _watch_part(watch: Watch | None, bytes_before: int, bytes_total: int, documents_before: int = 0) -> Watch | None:
    """Let the reading of one part count as a part of the whole."""
    if watch is None:
        return None
    return lambda bytes_done, _, documents_done: watch(
        min(bytes_before + bytes_done, bytes_total), bytes_total, documents_before + documents_done
    )


def _compare_corpus(directory: Path, expected: OutputCorpus, threads: int | None, watch: Watch | None) -> list[str]:
    found = read_corpus(directory, hash=expected.hash, bytes_total=expected.bytes, progress=watch, threads=threads)
    corpus = found.fingerprint
    differences = []
    if corpus.document_count != expected.documents:
        what = "missing" if corpus.document_count < expected.documents else "there in addition"
        differences.append(f"corpus: {abs(corpus.document_count - expected.documents):,} documents are {what}")
    elif corpus.digest != expected.digest:
        what = "names or texts" if corpus.size == expected.bytes else "texts"
        differences.append(f"corpus: {what} of documents differ")
    others = found.other_entries
    if others:
        more = f" and {len(others) - _SHOWN_ENTRIES} more" if len(others) > _SHOWN_ENTRIES else ""
        differences.append(f"corpus: entries that are no documents: {', '.join(others[:_SHOWN_ENTRIES])}{more}")
    return differences


def _is_same(directory: Path, name: str, expected: OutputFile, threads: int | None, watch: Watch | None) -> bool:
    try:
        found = read_file(directory, name, hash=expected.hash, progress=watch, threads=threads)
    except EvalError:
        return False
    return (found.size, found.digest) == (expected.bytes, expected.digest)


def _compare_quotes(directory: Path) -> list[str]:
    """Name the documents that judgments quote and that are missing or differ, which a hash of all cannot."""
    from groundkit.evals.corpus import load_judgments  # noqa: PLC0415 - only where something is wrong

    differences: dict[str, None] = {}
    for judgment in load_judgments(directory / JUDGMENTS_FILE):
        for gold in judgment.gold:
            try:
                text = read_regular_file(directory / "corpus" / gold.doc, "document")
            except EvalError:
                differences[f"corpus/{gold.doc} is missing or cannot be read"] = None
            else:
                if text != gold.quote.encode():
                    differences[f"corpus/{gold.doc} differs"] = None
    shown = list(differences)[:_SHOWN_QUOTES]
    if len(differences) > len(shown):
        shown.append(f"... and {len(differences) - len(shown):,} more documents that judgments quote")
    return shown
