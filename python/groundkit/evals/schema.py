"""The evaluation report: what a harness writes about one run, and what comparisons read.

One report holds the results of every stage of one run, query by query. Two runs are comparable when their corpus and
judgments hashes are equal.
"""

import os
import uuid
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator

from groundkit.errors import EvalError
from groundkit.evals.files import describe_first_fault, read_regular_file
from groundkit.evals.model import FrozenModel

__all__ = [
    "EmbeddingIdentity",
    "EvalReport",
    "GoldSpanResult",
    "MetricSet",
    "QueryMetrics",
    "QueryResult",
    "RetrievedHit",
    "RunConfig",
    "RunMetadata",
    "StageName",
    "StageResult",
    "SynthesisReport",
    "load_report",
]

StageName = Literal["bm25", "dense", "fusion", "rerank"]

Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Milliseconds = Annotated[float, Field(ge=0.0)]


class EmbeddingIdentity(FrozenModel):
    """The model that made the vectors of a dense stage.

    Attributes:
        provider: Who serves the model.
        model_name: The model.
        dimensions: Length of a vector.
    """

    provider: str
    model_name: str
    dimensions: int = Field(gt=0)


class RunConfig(FrozenModel):
    """The settings that produced a run.

    Attributes:
        chunk_size: Target length of a chunk, in characters.
        chunk_overlap: Characters that neighbouring chunks share.
        top_k: Hits asked for per query.
        bm25_k1: Term-frequency saturation of BM25.
        bm25_b: Length normalisation of BM25.
        score_threshold: Lowest score of a hit; ``None`` where there is no threshold.
        embedding: The model of the dense stage, together with ``rrf_k``.
        rrf_k: Constant of reciprocal rank fusion, together with ``embedding``.
        rerank_input: Stage whose hits are reranked; the three rerank settings are set together.
        rerank_candidates: Hits that are reranked, at least ``top_k``.
        rerank_model: The reranking model.
    """

    chunk_size: int
    chunk_overlap: int
    top_k: int
    bm25_k1: float
    bm25_b: float
    score_threshold: float | None
    embedding: EmbeddingIdentity | None = None
    rrf_k: int | None = Field(default=None, gt=0)
    rerank_input: StageName | None = None
    rerank_candidates: int | None = Field(default=None, gt=0)
    rerank_model: str | None = None

    @model_validator(mode="after")
    def _check_settings_that_belong_together(self) -> Self:
        if (self.embedding is None) != (self.rrf_k is None):
            raise ValueError("embedding and rrf_k must be set together or not at all")
        rerank = (self.rerank_input, self.rerank_candidates, self.rerank_model)
        if any(setting is None for setting in rerank) and any(setting is not None for setting in rerank):
            raise ValueError("rerank_input, rerank_candidates and rerank_model must be set together or not at all")
        if self.rerank_input == "rerank":
            raise ValueError("rerank_input must not be 'rerank': a stage cannot rerank itself")
        if self.rerank_candidates is not None and self.rerank_candidates < self.top_k:
            raise ValueError(f"rerank_candidates ({self.rerank_candidates}) must be at least top_k ({self.top_k})")
        return self


class RunMetadata(FrozenModel):
    """What a run was made of.

    Attributes:
        run_id: Identifier of the run; a new hexadecimal UUID by default.
        started_at: When the run began, ISO 8601 in UTC.
        groundkit_version: Version of the program that wrote the report.
        corpus_hash: Hash of the corpus.
        judgments_hash: Hash of the judgments.
        document_count: Documents in the corpus.
        chunk_count: Chunks made of them.
        judgment_count: Judgments evaluated.
        config: Settings of the run.
    """

    run_id: str = Field(default_factory=lambda: uuid.uuid4().hex)
    started_at: str
    groundkit_version: str
    corpus_hash: str
    judgments_hash: str
    document_count: Count
    chunk_count: Count
    judgment_count: Count
    config: RunConfig


class MetricSet(FrozenModel):
    """Means of the metrics over a set of queries.

    Attributes:
        query_count: Queries averaged over.
        recall_at_1: Mean recall in the first hit.
        recall_at_5: Mean recall in the first five hits.
        recall_at_10: Mean recall in the first ten hits.
        mrr: Mean reciprocal rank of the first relevant hit.
        ndcg_at_10: Mean normalised discounted cumulative gain of the first ten hits.
    """

    query_count: Count
    recall_at_1: Share
    recall_at_5: Share
    recall_at_10: Share
    mrr: Share
    ndcg_at_10: Share


class QueryMetrics(FrozenModel):
    """The metrics of one query.

    Attributes:
        recall_at_1: Recall in the first hit.
        recall_at_5: Recall in the first five hits.
        recall_at_10: Recall in the first ten hits.
        reciprocal_rank: One over the rank of the first relevant hit, zero without one.
        ndcg_at_10: Normalised discounted cumulative gain of the first ten hits.
    """

    recall_at_1: Share
    recall_at_5: Share
    recall_at_10: Share
    reciprocal_rank: Share
    ndcg_at_10: Share


class GoldSpanResult(FrozenModel):
    """A gold quote, found in the corpus.

    Attributes:
        document: Path of the document within the corpus.
        start_offset: Character at which the quote begins.
        end_offset: Character after its last.
        quote: The quote.
    """

    document: str
    start_offset: int = Field(ge=0)
    end_offset: int = Field(gt=0)
    quote: str


class RetrievedHit(FrozenModel):
    """One hit of a ranking.

    Attributes:
        rank: Position in the ranking, from one.
        document: Path of the document within the corpus.
        start_offset: Character at which the chunk begins.
        end_offset: Character after its last.
        score: Score that the stage gave.
        is_relevant: Whether the chunk overlaps a gold quote.
    """

    rank: int = Field(ge=1)
    document: str
    start_offset: int = Field(ge=0)
    end_offset: int = Field(gt=0)
    score: float = Field(ge=0.0)
    is_relevant: bool


class QueryResult(FrozenModel):
    """One query's judgment and ranking in one stage.

    Attributes:
        query_id: Identifier of the query.
        query: Its text.
        category: Category of its judgment.
        is_no_answer: Whether the corpus holds no answer; then there are no metrics and no gold, and only then.
        gold: Gold quotes, found in the corpus.
        total_relevant_chunks: Chunks that overlap a gold quote.
        retrieved: The ranking.
        metrics: Metrics of the ranking.
        latency_ms: Time to answer, in milliseconds.
    """

    query_id: str
    query: str
    category: str
    is_no_answer: bool
    gold: list[GoldSpanResult]
    total_relevant_chunks: Count
    retrieved: list[RetrievedHit]
    metrics: QueryMetrics | None
    latency_ms: Milliseconds

    @model_validator(mode="after")
    def _check_agreement_on_no_answer(self) -> Self:
        if not self.is_no_answer == (self.metrics is None) == (not self.gold):
            raise ValueError(
                f"query {self.query_id!r}: is_no_answer ({self.is_no_answer}), absent metrics "
                f"({self.metrics is None}) and empty gold ({not self.gold}) must agree"
            )
        return self


class StageResult(FrozenModel):
    """One stage's results over all queries.

    Attributes:
        stage: The stage.
        is_baseline: Whether the others are compared with it.
        aggregate: Means over the queries that have an answer.
        by_category: The same for each category.
        no_answer_query_count: Queries without an answer.
        no_answer_abstained_count: Those of them for which nothing was retrieved.
        latency_p50_ms: Median time a query, in milliseconds.
        latency_p95_ms: 95th percentile, in milliseconds.
        latency_p99_ms: 99th percentile, in milliseconds.
        queries: Results query by query.
    """

    stage: StageName
    is_baseline: bool
    aggregate: MetricSet
    by_category: dict[str, MetricSet]
    no_answer_query_count: Count
    no_answer_abstained_count: Count
    latency_p50_ms: Milliseconds
    latency_p95_ms: Milliseconds
    latency_p99_ms: Milliseconds
    queries: list[QueryResult]

    @model_validator(mode="after")
    def _check_abstentions(self) -> Self:
        if self.no_answer_abstained_count > self.no_answer_query_count:
            raise ValueError(
                f"no_answer_abstained_count ({self.no_answer_abstained_count}) must not exceed "
                f"no_answer_query_count ({self.no_answer_query_count})"
            )
        return self


class SynthesisReport(FrozenModel):
    """What became of the answers that were written from the hits.

    Attributes:
        input_stage: Stage whose hits the answers were written from.
        synthesis_provider: Who serves the writing model.
        synthesis_model: The writing model.
        synthesis_prompt_hash: Hash of its prompt.
        redacted: Whether texts were redacted before they were sent.
        answered_count: Queries answered.
        abstained_count: Queries that the model declined to answer.
        rejected_count: Answers that failed validation.
        judge_provider: Who serves the judging model; the judge's fields are set together.
        judge_model: The judging model.
        judge_prompt_hash: Hash of its prompt.
        judged_count: Answers judged: the sum of the next three.
        faithful_count: Answers judged faithful to the hits.
        unfaithful_count: Answers judged unfaithful.
        judge_error_count: Answers that the judge failed on.
    """

    input_stage: StageName
    synthesis_provider: str
    synthesis_model: str
    synthesis_prompt_hash: str
    redacted: bool
    answered_count: Count
    abstained_count: Count
    rejected_count: Count
    judge_provider: str | None = None
    judge_model: str | None = None
    judge_prompt_hash: str | None = None
    judged_count: Count | None = None
    faithful_count: Count | None = None
    unfaithful_count: Count | None = None
    judge_error_count: Count | None = None

    @model_validator(mode="after")
    def _check_judge(self) -> Self:
        counts = (self.faithful_count, self.unfaithful_count, self.judge_error_count)
        fields = (self.judge_provider, self.judge_model, self.judge_prompt_hash, self.judged_count, *counts)
        if all(field is None for field in fields):
            return self
        if any(field is None for field in fields):
            raise ValueError("the judge's fields must be set together or not at all")
        if self.judged_count != sum(count for count in counts if count is not None):
            raise ValueError("judged_count must be the sum of faithful_count, unfaithful_count and judge_error_count")
        return self


class EvalReport(FrozenModel):
    """The results of one run, stage by stage.

    Attributes:
        schema_version: Version of this shape.
        run: What the run was made of.
        stages: Results of every stage. The first is the baseline, the only one, and is ``bm25``; two later stages may
            share a name.
        synthesis: What became of the answers, where answers were written.
    """

    schema_version: Literal[1] = 1
    run: RunMetadata
    stages: list[StageResult]
    synthesis: SynthesisReport | None = None

    @model_validator(mode="after")
    def _check_baseline(self) -> Self:
        if not self.stages:
            raise ValueError("stages must not be empty")
        baselines = [position for position, stage in enumerate(self.stages) if stage.is_baseline]
        if len(baselines) != 1:
            raise ValueError(f"exactly one stage must be the baseline, found {len(baselines)}")
        if baselines != [0]:
            raise ValueError("the baseline must be the first stage")
        if self.stages[0].stage != "bm25":
            raise ValueError(f"the baseline must be 'bm25', not {self.stages[0].stage!r}")
        return self


def load_report(path: str | os.PathLike[str]) -> EvalReport:
    """Read an evaluation report from a JSON file.

    Args:
        path: The file.

    Returns:
        The report.

    Raises:
        EvalError: The file cannot be read or is no report; names the file and the field.
    """
    try:
        return EvalReport.model_validate_json(read_regular_file(path, "evaluation report"))
    except ValidationError as error:
        raise EvalError(f"{path}: not an evaluation report: {describe_first_fault(error)}") from error
