"""What callers give and get: the policy, the inspection and the report of an adaptation."""

from typing import Final, Literal

from pydantic import Field

from groundkit.evals.beir.problem import BeirProblem
from groundkit.evals.model import FrozenModel

__all__ = ["STRICT", "BeirAdaptationReport", "BeirInspection", "BeirPolicy", "Layout", "PolicyCounts"]

Layout = Literal["flat", "sharded"]


class BeirPolicy(FrozenModel):
    """What to do, on request, about rows that the strict rules refuse; the default refuses them all.

    Attributes:
        document_ids: `"map"` gives document ids that are no safe file name, and those that differ from another in case
            only, another name: a readable slug and a hash of the id, the same in every run and every subset of the
            dataset. Admissible ids keep their names.
        query_ids: `"map"` does the same for query ids that cannot be the id of a judgment.
        min_relevance: Rows of at least this grade (1 or more) are relevant, others are not; `None` takes the grades 0
            and 1 only.
        empty_documents: `"drop"` leaves out documents without title and text, unless they are judged relevant.
        unknown_documents: `"drop"` leaves out relevant rows that name a document which the corpus lacks.
    """

    document_ids: Literal["strict", "map"] = "strict"
    query_ids: Literal["strict", "map"] = "strict"
    min_relevance: int | None = Field(default=None, ge=1)
    empty_documents: Literal["refuse", "drop"] = "refuse"
    unknown_documents: Literal["refuse", "drop"] = "refuse"

    @property
    def maps_ids(self) -> bool:
        """Whether any identifier may get another name."""
        return "map" in {self.document_ids, self.query_ids}


class PolicyCounts(FrozenModel):
    """What a `BeirPolicy` did.

    Attributes:
        mapped_document_count: Documents with another name.
        mapped_query_count: Queries with a relevant row and another name.
        dropped_document_count: Documents left out for want of title and text.
        dropped_pair_count: Relevant pairs left out because the corpus lacks the document.
        below_threshold_pair_count: Pairs of a positive grade below `min_relevance`.
        lost_query_count: Queries that have a row of a positive grade but no relevant one that is left.
        repeated_row_count: Rows that repeat a pair with the same grade, each counted once only.
    """

    mapped_document_count: int = 0
    mapped_query_count: int = 0
    dropped_document_count: int = 0
    dropped_pair_count: int = 0
    below_threshold_pair_count: int = 0
    lost_query_count: int = 0
    repeated_row_count: int = 0


STRICT: Final = BeirPolicy()


class BeirInspection(FrozenModel):
    """What a dataset holds and what is wrong with it.

    Counts cover the rows that could be read; where there are problems, they tell about the dataset as it is.

    Attributes:
        source_dir: The dataset's directory or archive, resolved.
        split: The split whose qrels were read.
        document_count: Rows of `corpus.jsonl` with an identifier.
        query_count: Queries with a relevant row.
        relevance_pair_count: Distinct pairs of query and document that are relevant.
        total_characters: Characters (code points) of all documents' texts, as they would be written.
        all_query_count: Rows of `queries.jsonl` with an identifier, judged or not.
        qrels_row_count: Well-formed rows of the qrels.
        grade_counts: Distinct pairs of each grade, in ascending order.
        unjudged_document_count: Documents that no row of the qrels names.
        unknown_document_count: Distinct documents that the qrels name, relevant or not, and the corpus lacks.
        unknown_query_count: Distinct queries that the qrels name, relevant or not, and `queries.jsonl` lacks.
        policy: What was to be done about rows that the strict rules refuse.
        policy_counts: What it did.
        problems: What is wrong, by file and line; the first ones of every kind.
        problem_count: How many problems there are; may be more than are kept.
        problem_counts: How many problems there are of each kind.
    """

    source_dir: str
    split: str
    document_count: int
    query_count: int
    relevance_pair_count: int
    total_characters: int
    all_query_count: int
    qrels_row_count: int
    grade_counts: dict[int, int]
    unjudged_document_count: int
    unknown_document_count: int
    unknown_query_count: int
    policy: BeirPolicy = STRICT
    policy_counts: PolicyCounts = PolicyCounts()
    problems: tuple[BeirProblem, ...]
    problem_count: int
    problem_counts: dict[str, int]

    @property
    def admissible(self) -> bool:
        """Whether `adapt_beir_dataset` accepts the dataset."""
        return self.problem_count == 0


class BeirAdaptationReport(FrozenModel):
    """Counts and paths of an adapted dataset.

    Attributes:
        source_dir: The dataset's directory or archive, resolved.
        output_dir: Where it was adapted to, resolved.
        split: The split whose qrels were adapted.
        document_count: Documents written.
        query_count: Queries with a relevant row, each one judgment.
        relevance_pair_count: Distinct relevant pairs of query and document, each one gold quote.
        total_characters: Characters (code points) of all documents written.
        corpus_dir: Directory of the documents.
        judgments_path: File of the judgments.
        policy: What was done about rows that the strict rules refuse.
        policy_counts: How often.
        layout: Where documents stand below `corpus_dir`.
        id_map_path: File of the mapped ids; `None` where the policy maps none.
    """

    source_dir: str
    output_dir: str
    split: str
    document_count: int
    query_count: int
    relevance_pair_count: int
    total_characters: int
    corpus_dir: str
    judgments_path: str
    policy: BeirPolicy = STRICT
    policy_counts: PolicyCounts = PolicyCounts()
    layout: Layout = "flat"
    id_map_path: str | None = None
