"""Adapt a dataset to quote-anchored judgments: check, refuse or write, publish, report."""

import os
from contextlib import suppress
from pathlib import Path
from typing import get_args

from groundkit._native import WrittenOutput, find_obstacles, write_output
from groundkit.errors import EvalError
from groundkit.evals.arguments import require_choice
from groundkit.evals.beir.inspect import QRELS_DIR, CheckedDataset, check_dataset
from groundkit.evals.beir.models import STRICT, BeirAdaptationReport, BeirPolicy, Layout
from groundkit.evals.beir.refusal import CORPUS_FILE, QUERIES_FILE, add_obstacles, make_refusal
from groundkit.evals.files import describe_reason
from groundkit.evals.fork import using_polars
from groundkit.evals.id_map import ID_MAP_FILE, write_id_map
from groundkit.evals.progress import ProgressOption, open_progress
from groundkit.evals.provenance import AdaptationRecord, HashName, OutputCorpus, OutputFile, SourceFile
from groundkit.evals.quoting import quote_path


def adapt_beir_dataset(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    split: str = "test",
    policy: BeirPolicy = STRICT,
    layout: Layout = "flat",
    durable: bool = False,
    hash: HashName = "blake3",
    progress: ProgressOption = None,
) -> BeirAdaptationReport:
    r"""Turn a BEIR dataset into a quote-anchored corpus: `corpus/<id>.txt` and `judgments.jsonl`.

    BEIR judges whole documents and a judgment quotes a document verbatim, so each gold quote is the document's whole
    text. A score over the adapted set is no published BEIR number.

    Everything is checked before the first byte is written. Then it is written beside its place and appears at once; a
    refusal, an exception, Ctrl-C or a full disk leaves the output as it was. `adaptation.json` beside the judgments
    says what the output was made of; see `groundkit.evals.provenance`.

    Args:
        source: Directory or zip archive, as for `inspect_beir_dataset`.
        output: Directory to write to; made where it is absent. Other files in it stay; `judgments.jsonl` is replaced.
        split: Name of the qrels file, without `.tsv`.
        policy: What to do about rows that the strict rules refuse. Where it maps ids, `id-map.parquet` beside the
            judgments gives `kind`, `source_id` and `adapted_id` of every mapped id.
        layout: `"flat"` puts all documents into one directory, `"sharded"` into 256 by a hash of the id,
            `corpus/<2 hexadecimal digits>/<id>.txt`, for file systems that take no more than some millions in one.
        durable: Whether everything is on the disk before it appears, so that a power loss leaves it whole or absent.
        hash: Which hash `adaptation.json` has of the source files and of all that was written: `"blake3"`, which
            several threads take, or `"sha256"`, which other tools give.
        progress: As for `inspect_beir_dataset`.

    Returns:
        Counts and paths.

    Raises:
        EvalError: The dataset has problems (`problems` and `problem_count` of the error tell them all), the output
            holds a corpus already or is no place to write to, another run is writing to it, or a source file changed
            after it was checked.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as name:
        ...     source = pathlib.Path(name)
        ...     (source / "qrels").mkdir()
        ...     _ = (source / "corpus.jsonl").write_text('{"_id": "d1", "title": "T", "text": "B"}\n')
        ...     _ = (source / "queries.jsonl").write_text('{"_id": "q1", "text": "what is B?"}\n')
        ...     _ = (source / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
        ...     report = adapt_beir_dataset(source, source / "adapted")
        ...     (source / "adapted/corpus/d1.txt").read_text()
        'T\n\nB'
        >>> report.document_count, report.query_count, report.relevance_pair_count, report.total_characters
        (1, 1, 1, 4)
    """
    require_choice("layout", layout, get_args(Layout))
    require_choice("hash", hash, get_args(HashName))
    destination = _resolve_output(output)
    with open_progress(progress) as report, using_polars():
        dataset = check_dataset(source, split=split, policy=policy, hash=hash, report=report)
        obstacles = find_obstacles(destination, dataset.corpus, sharded=layout == "sharded")
        inspection = add_obstacles(dataset.inspection, obstacles)
        if not inspection.admissible or dataset.corpus is None or dataset.queries is None:
            raise make_refusal(inspection)
        with write_output(
            destination,
            corpus=dataset.corpus,
            queries=dataset.queries,
            pairs=dataset.relevant.sort("query", "document"),  # by code point
            files=[(ID_MAP_FILE, write_id_map(dataset.id_map))] if policy.maps_ids else [],
            sharded=layout == "sharded",
            durable=durable,
            progress=report("output", inspection.document_count),
        ) as written:
            written.publish(_record(dataset, written, policy, layout, hash).encode())
    return BeirAdaptationReport(
        source_dir=inspection.source_dir,
        output_dir=str(destination),
        split=split,
        document_count=inspection.document_count,
        query_count=inspection.query_count,
        relevance_pair_count=inspection.relevance_pair_count,
        total_characters=inspection.total_characters,
        corpus_dir=str(destination / "corpus"),
        judgments_path=str(destination / "judgments.jsonl"),
        policy=policy,
        policy_counts=inspection.policy_counts,
        layout=layout,
        id_map_path=str(destination / ID_MAP_FILE) if policy.maps_ids else None,
    )


def _record(
    dataset: CheckedDataset, written: WrittenOutput, policy: BeirPolicy, layout: Layout, hash: HashName
) -> AdaptationRecord:
    """Record what was read and what was written."""
    inspection = dataset.inspection
    sources = {
        CORPUS_FILE: dataset.corpus,
        QUERIES_FILE: dataset.queries,
        f"{QRELS_DIR}/{inspection.split}.tsv": dataset.qrels,
    }
    corpus = written.corpus
    return AdaptationRecord(
        split=inspection.split,
        layout=layout,
        policy=policy.model_dump(),
        counts={
            "document_count": corpus.document_count,
            "query_count": inspection.query_count,
            "relevance_pair_count": inspection.relevance_pair_count,
            "total_characters": inspection.total_characters,
        },
        sources=tuple(
            SourceFile(name=name, kept_as=file.name, bytes=file.size, **{hash: file.digest})
            for name, file in sources.items()
            if file is not None
        ),
        corpus=OutputCorpus(documents=corpus.document_count, bytes=corpus.size, **{hash: corpus.digest}),
        files={name: OutputFile(bytes=file.size, **{hash: file.digest}) for name, file in written.files.items()},
    )


def _resolve_output(output: str | os.PathLike[str]) -> Path:
    path = Path(output)
    try:
        resolved = path.resolve()
        # What cannot even be asked for, such as a path longer than the system takes, cannot be opened later.
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            os.lstat(resolved / "judgments.jsonl")
    # A loop of links is a RuntimeError before Python 3.13; a NUL is a ValueError.
    except (OSError, RuntimeError, ValueError) as error:
        reason = describe_reason(error)
        raise EvalError(f"cannot resolve output directory {quote_path(path)}: {reason}") from error
    return resolved
