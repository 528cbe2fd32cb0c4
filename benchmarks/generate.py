"""Write a synthetic BEIR dataset of any size: the same bytes for the same arguments.

`passages` have numeric ids, no titles and about 350 characters each, as MS MARCO has them. `articles` have wiki-like
ids, titles and about 1,500 characters each, with escapes and raw UTF-8, as NQ and BioASQ have them.

Usage: python benchmarks/generate.py OUT_DIR [--docs N] [--profile passages|articles] [--queries N] [--seed S]
"""

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

Profile = Literal["passages", "articles"]

_SYLLABLES = [consonant + vowel for consonant in "bcdfghjklmnprstvwz" for vowel in "aeiou"]
_WORDS = 20_000
# Documents are made of sentences that are drawn once: writing is fast, and the text stays Zipfian.
_SENTENCES = 4_096
_MEAN_SENTENCES: dict[Profile, int] = {"passages": 3, "articles": 14}
# Every so many documents, one may be judged.
_JUDGED_EVERY = 97
_BATCH = 10_000


def write_dataset(directory: Path, *, docs: int, profile: Profile, queries: int = 7_000, seed: int = 7) -> Path:
    """Write a dataset whose qrels name one to three documents for each query."""
    generator = random.Random(seed)
    words = _make_words(generator)
    (directory / "qrels").mkdir(parents=True, exist_ok=True)
    lines = _make_documents(generator, words, docs, profile)
    with (directory / "corpus.jsonl").open("w", encoding="utf-8", newline="\n") as corpus:
        while batch := [line for _, line in zip(range(_BATCH), lines, strict=False)]:
            corpus.writelines(batch)
    with (directory / "queries.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        for number in range(queries):
            file.write(json.dumps({"_id": f"q{number}", "text": " ".join(generator.choices(words, k=6))}) + "\n")
    judged = [_make_id(words, number, profile) for number in range(0, docs, _JUDGED_EVERY)]
    with (directory / "qrels" / "test.tsv").open("w", encoding="utf-8", newline="\n") as file:
        file.write("query-id\tcorpus-id\tscore\n")
        for number in range(queries):
            for name in sorted(generator.sample(judged, min(len(judged), generator.randint(1, 3)))):
                file.write(f"q{number}\t{name}\t1\n")
    return directory


def _make_words(generator: random.Random) -> list[str]:
    words = {"".join(generator.choices(_SYLLABLES, k=generator.randint(1, 4))) for _ in range(2 * _WORDS)}
    return sorted(words)[:_WORDS]


def _make_id(words: list[str], number: int, profile: Profile) -> str:
    return f"{words[number % len(words)]}_{number:x}" if profile == "articles" else str(number)


def _make_sentences(generator: random.Random, words: list[str], profile: Profile) -> list[str]:
    weights = [1 / (rank + 2) for rank in range(len(words))]
    sentences = []
    for number in range(_SENTENCES):
        sentence = " ".join(generator.choices(words, weights, k=generator.randint(8, 24))).capitalize() + ". "
        if profile == "articles" and number % 5 == 0:
            sentence = f'The "{sentence.strip()}"\n\tNaïve café \N{EN DASH} 東京. '
        sentences.append(json.dumps(sentence, ensure_ascii=number % 2 == 0)[1:-1])
    return sentences


def _make_documents(generator: random.Random, words: list[str], docs: int, profile: Profile) -> Iterator[str]:
    sentences = _make_sentences(generator, words, profile)
    longest = 2 * _MEAN_SENTENCES[profile]
    for number in range(docs):
        title = f"{words[number * 31 % len(words)]} {words[number % 997]}" if profile == "articles" else ""
        text = "".join(generator.choices(sentences, k=generator.randint(1, longest)))
        name = _make_id(words, number, profile)
        yield f'{{"_id": "{name}", "title": "{title}", "text": "{text}", "metadata": {{}}}}\n'


def main() -> None:
    """Write the dataset that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out_dir", type=Path)
    parser.add_argument("--docs", type=int, default=50_000)
    parser.add_argument("--profile", choices=tuple(_MEAN_SENTENCES), default="passages")
    parser.add_argument("--queries", type=int, default=7_000)
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    write_dataset(
        arguments.out_dir,
        docs=arguments.docs,
        profile=arguments.profile,
        queries=arguments.queries,
        seed=arguments.seed,
    )


if __name__ == "__main__":
    main()
