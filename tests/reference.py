"""The algorithms of the package in plain Python: slow, short, and what every fast path is compared with."""

import hashlib
import json
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any


def paired_bootstrap(  # noqa: PLR0913 - the parameters of the function that it is compared with
    baseline_scores: Mapping[str, float],
    candidate_scores: Mapping[str, float],
    *,
    baseline_name: str,
    candidate_name: str,
    metric: str,
    resamples: int = 10_000,
    seed: int = 7,
    confidence_level: float = 0.95,
    add_up: Callable[[Iterable[float]], float] = math.fsum,
) -> dict[str, object]:
    """Compare two systems with `random` and `math.fsum`; ``add_up`` may replace the latter."""
    query_ids = sorted(baseline_scores)
    deltas = [candidate_scores[query_id] - baseline_scores[query_id] for query_id in query_ids]
    count = len(deltas)
    generator = random.Random(seed)
    means = sorted(add_up(deltas[generator.randrange(count)] for _ in range(count)) / count for _ in range(resamples))
    alpha = (1.0 - confidence_level) / 2.0
    low = quantile(means, alpha)
    high = quantile(means, 1.0 - alpha)
    non_positive = sum(mean <= 0.0 for mean in means)
    non_negative = sum(mean >= 0.0 for mean in means)
    return {
        "baseline": baseline_name,
        "candidate": candidate_name,
        "metric": metric,
        "query_count": count,
        "resamples": resamples,
        "seed": seed,
        "confidence_level": confidence_level,
        "effect": add_up(deltas) / count,
        "confidence_interval_low": low,
        "confidence_interval_high": high,
        "p_value_two_sided": min(1.0, 2.0 * (min(non_positive, non_negative) + 1) / (resamples + 1)),
        "significant": low > 0.0 or high < 0.0,
        "method": "paired bootstrap over query-level candidate-minus-baseline deltas",
    }


def quantile(ordered: list[float], probability: float) -> float:
    """Interpolate linearly between ordered values at position ``(len - 1) * probability``."""
    position = (len(ordered) - 1) * probability
    lower, upper = math.floor(position), math.ceil(position)
    if lower == upper:
        return ordered[lower]
    weight = position - lower
    return ordered[lower] * (1.0 - weight) + ordered[upper] * weight


def adapt_beir_dataset(source: Path, split: str = "test") -> dict[str, bytes]:
    """Adapt a well-formed dataset: the files of the output, by their path relative to it.

    Lines end at a line feed, and the same pair may stand twice; apart from that it is the shortest program.
    """
    texts: dict[str, str] = {}
    for record in _read_rows(source / "corpus.jsonl"):
        title = record.get("title", "").strip()
        body = record.get("text", "").strip()
        texts[record["_id"]] = f"{title}\n\n{body}" if title else body
    queries = {record["_id"]: record["text"].strip() for record in _read_rows(source / "queries.jsonl")}
    relevant: dict[str, set[str]] = {}
    for line in _read_lines(source / "qrels" / f"{split}.tsv")[1:]:
        query_id, document_id, grade = line.split("\t")
        if int(grade) == 1:
            relevant.setdefault(query_id, set()).add(document_id)
    files = {f"corpus/{document_id}.txt": text.encode() for document_id, text in texts.items()}
    judgments = [
        {
            "query_id": query_id,
            "query": queries[query_id],
            "category": "normal",
            "gold": [{"doc": f"{name}.txt", "quote": texts[name]} for name in sorted(relevant[query_id])],
        }
        for query_id in sorted(relevant)
    ]
    files["judgments.jsonl"] = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in judgments).encode()
    return files


def _read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _read_lines(path)]


def _read_lines(path: Path) -> list[str]:
    lines = path.read_bytes().decode("utf-8-sig").split("\n")
    return [line.removesuffix("\r") for line in lines if line.strip()]


def sign_flip_level(
    baseline: Sequence[float], candidate: Sequence[float], *, assignments: int, seed: int
) -> tuple[float, bool]:
    """Return the level of the paired sign-flip test and whether it is exact; scores in query order."""
    deltas = [after - before for before, after in zip(baseline, candidate, strict=True)]
    count = len(deltas)
    rounding = sum(abs(score) * 2.0**-52 for score in (*baseline, *candidate))
    observed = abs(math.fsum(deltas)) - rounding

    def reaches(signs: int) -> bool:
        flipped = (-delta if signs >> query & 1 else delta for query, delta in enumerate(deltas))
        return abs(math.fsum(flipped)) >= observed

    if count <= 16:
        return sum(map(reaches, range(2**count))) / 2**count, True
    generator = random.Random(seed)
    return (sum(reaches(generator.getrandbits(count)) for _ in range(assignments)) + 1) / (assignments + 1), False


def max_t(
    comparisons: Sequence[Sequence[float]], *, resamples: int, seed: int, confidence_level: float
) -> list[tuple[float, float, float]]:
    """Return step-down levels and simultaneous intervals of deltas in query order, none of them all equal."""
    count = len(comparisons[0])
    generator = random.Random(seed)
    draws = [[generator.randrange(count) for _ in range(count)] for _ in range(resamples)]
    effects, errors, statistics = [], [], []
    for deltas in comparisons:
        effect = math.fsum(deltas) / count
        squares = ((delta - effect) * (delta - effect) for delta in deltas)
        error = math.sqrt(math.fsum(squares) / (count - 1)) / math.sqrt(count)
        # Deltas count in 32767ths of the largest.
        unit = max(map(abs, deltas)) / 32767
        rounded = [round(delta / unit) for delta in deltas]
        sums = [sum(rounded[query] for query in resample) - sum(rounded) for resample in draws]
        effects.append(effect)
        errors.append(error)
        statistics.append([abs(value) * (unit / (count * error)) for value in sums])
    observed = [abs(effect) / error for effect, error in zip(effects, errors, strict=True)]
    maxima = [0.0] * resamples
    levels = [0.0] * len(comparisons)
    for number in sorted(range(len(comparisons)), key=observed.__getitem__):
        maxima = list(map(max, maxima, statistics[number]))
        reached = sum(maximum >= observed[number] for maximum in maxima)
        levels[number] = (reached + 1) / (resamples + 1)
    most = 0.0
    for number in sorted(range(len(comparisons)), key=observed.__getitem__, reverse=True):
        levels[number] = most = max(most, levels[number])
    rank = min(math.ceil(confidence_level * (resamples + 1)), resamples)
    critical = sorted(maxima)[rank - 1]
    return [
        (level, effect - critical * error, effect + critical * error)
        for level, effect, error in zip(levels, effects, errors, strict=True)
    ]


def average(
    deltas: Mapping[str, Sequence[float]], *, resamples: int, confidence_level: float, seed: int
) -> tuple[float, float, float, float]:
    """Return effect, interval and level of an average over datasets of deltas in query order."""
    totals = [0.0] * resamples
    for dataset, values in deltas.items():
        digest = hashlib.sha256(f"{seed} {dataset}".encode()).digest()
        generator = random.Random(int.from_bytes(digest, "little"))
        count = len(values)
        for number in range(resamples):
            totals[number] += math.fsum(values[generator.randrange(count)] for _ in range(count)) / count
    means = sorted(total / len(deltas) for total in totals)
    alpha = (1.0 - confidence_level) / 2.0
    tail = min(sum(mean <= 0.0 for mean in means), sum(mean >= 0.0 for mean in means))
    effect = math.fsum(math.fsum(values) / len(values) for values in deltas.values()) / len(deltas)
    level = min(1.0, 2.0 * (tail + 1) / (resamples + 1))
    return effect, quantile(means, alpha), quantile(means, 1.0 - alpha), level
