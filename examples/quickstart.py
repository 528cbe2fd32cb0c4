"""The two halves of groundkit in ten lines each; run from the root of the repository."""

from tempfile import TemporaryDirectory

from groundkit.evals.beir import adapt_beir_dataset, inspect_beir_dataset
from groundkit.evals.corpus import load_judgments
from groundkit.evals.significance import paired_bootstrap

# Is the difference between two systems real?
bm25 = {"q1": 0.43, "q2": 1.00, "q3": 0.00, "q4": 0.63, "q5": 0.31, "q6": 0.50, "q7": 0.39, "q8": 0.71}
dense = {"q1": 0.63, "q2": 1.00, "q3": 0.39, "q4": 0.61, "q5": 0.50, "q6": 0.63, "q7": 0.39, "q8": 0.85}
result = paired_bootstrap(bm25, dense, baseline_name="bm25", candidate_name="dense", metric="ndcg_at_10")
print(f"{result.candidate} - {result.baseline} on {result.query_count} queries: {result.effect:+.3f}")
print(f"95 % interval: {result.confidence_interval_low:+.3f} to {result.confidence_interval_high:+.3f}")
print(f"significant: {result.significant} (p = {result.p_value_two_sided:.4f})")

# Is the dataset what it says, and how do I evaluate on it?
inspection = inspect_beir_dataset("examples/beir-small", split="test")
print(f"{inspection.document_count} documents, grades {inspection.grade_counts}, {inspection.problem_count} problems")
for problem in inspection.problems:
    print(problem.message)  # with file and line
with TemporaryDirectory() as output:
    report = adapt_beir_dataset("examples/beir-small", output)
    judgments = load_judgments(report.judgments_path)
print(f"{report.query_count} queries, {report.relevance_pair_count} relevant pairs")
print(judgments[0].query, "->", judgments[0].gold[0].doc)
