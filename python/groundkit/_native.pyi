from array import array
from collections.abc import Callable
from os import PathLike
from types import TracebackType
from typing import Self, TypeAlias, final

from polars import DataFrame

__version__: str

@final
class Columns:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class ScoreReader:
    @staticmethod
    def like(scores: dict[str, float]) -> ScoreReader | None: ...
    @property
    def query_ids(self) -> list[str]: ...
    def read(self, scores: dict[str, float]) -> bytes | None: ...

@final
class Dataset:
    def __new__(cls, path: str | PathLike[str]) -> Dataset: ...
    def splits(self) -> list[str]: ...

@final
class Problem:
    @property
    def kind(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def message(self) -> str: ...

@final
class QrelsFile:
    @property
    def name(self) -> str: ...
    @property
    def rows(self) -> Columns: ...
    @property
    def problems(self) -> list[Problem]: ...
    @property
    def problem_counts(self) -> dict[str, int]: ...
    @property
    def size(self) -> int: ...
    @property
    def digest(self) -> str | None: ...

@final
class CheckedFile:
    @property
    def name(self) -> str: ...
    @property
    def problems(self) -> list[Problem]: ...
    @property
    def problem_counts(self) -> dict[str, int]: ...
    @property
    def size(self) -> int: ...
    @property
    def digest(self) -> str | None: ...
    @property
    def record_count(self) -> int: ...
    @property
    def dropped_count(self) -> int: ...
    @property
    def mapped(self) -> Columns: ...
    @property
    def character_count(self) -> int: ...
    @property
    def judged_lines(self) -> Columns: ...

def read_qrels(
    dataset: Dataset,
    name: str,
    *,
    any_document: bool = False,
    any_query: bool = False,
    hash: str | None = None,
    progress: Callable[[int, int, int], object] | None = None,
) -> QrelsFile: ...
def check_records(
    dataset: Dataset,
    name: str,
    *,
    documents: bool,
    judged: DataFrame,
    map_ids: bool = False,
    drop_empty: bool = False,
    hash: str | None = None,
    progress: Callable[[int, int, int], object] | None = None,
    threads: int | None = None,
) -> CheckedFile: ...
def paired_bootstrap(
    baseline: array[float],
    candidate: array[float],
    *,
    resamples: int,
    seed: bytes,
    confidence_level: float,
    threads: int | None = None,
    level: str | None = None,
) -> tuple[float, float, float, int, int] | None: ...
def levels() -> list[str]: ...

@final
class CorpusFingerprint:
    @property
    def document_count(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def digest(self) -> str: ...

@final
class FileFingerprint:
    @property
    def size(self) -> int: ...
    @property
    def digest(self) -> str: ...

@final
class FoundCorpus:
    @property
    def fingerprint(self) -> CorpusFingerprint: ...
    @property
    def other_entries(self) -> list[str]: ...

@final
class WrittenOutput:
    @property
    def corpus(self) -> CorpusFingerprint: ...
    @property
    def files(self) -> dict[str, FileFingerprint]: ...
    def publish(self, record: bytes) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

def read_corpus(
    output: str | PathLike[str],
    *,
    hash: str = "blake3",
    bytes_total: int = 0,
    progress: Callable[[int, int, int], object] | None = None,
    threads: int | None = None,
) -> FoundCorpus: ...
def read_file(
    directory: str | PathLike[str],
    name: str,
    *,
    hash: str = "blake3",
    progress: Callable[[int, int, int], object] | None = None,
    threads: int | None = None,
) -> FileFingerprint: ...
def find_obstacles(output: str | PathLike[str], corpus: CheckedFile | None, *, sharded: bool = False) -> list[str]: ...
def write_output(
    output: str | PathLike[str],
    *,
    corpus: CheckedFile,
    queries: CheckedFile,
    pairs: DataFrame,
    files: list[tuple[str, bytes]],
    sharded: bool = False,
    durable: bool = False,
    progress: Callable[[int, int, int], object] | None = None,
    threads: int | None = None,
) -> WrittenOutput: ...

Row: TypeAlias = tuple[
    tuple[float, float, int, int, int],
    tuple[float, float, int, int],
    tuple[int, int, bool] | None,
    tuple[int, float, float] | None,
]

def compare_rows(
    scores: array[float],
    queries: int,
    comparisons: list[tuple[int, int, int]],
    *,
    resamples: int,
    seed: bytes,
    confidence_level: float,
    sign_flip: bool,
    family_levels: list[float],
    threads: int | None = None,
    level: str | None = None,
) -> tuple[list[Row], list[float], int | None]: ...
def compare_averages(
    strata: list[tuple[array[float], int, list[tuple[int, int]], bytes]],
    *,
    resamples: int,
    confidence_level: float,
    threads: int | None = None,
) -> tuple[list[tuple[float, float, int, int]], int | None]: ...
def student_two_sided(statistic: float, freedom: float) -> float: ...
def student_quantile(probability: float, freedom: float) -> float: ...
