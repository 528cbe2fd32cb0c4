"""Datasets damaged at random: only `EvalError` leaves, nothing is written on refusal, and never anything outside."""

import tempfile
from pathlib import Path

import pytest
from datasets import write_files
from groundkit.errors import EvalError
from groundkit.evals.beir import BeirPolicy, Layout, adapt_beir_dataset, inspect_beir_dataset
from groundkit.evals.corpus import load_judgments
from groundkit.evals.provenance import verify_adaptation
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FILES = {
    "corpus.jsonl": (
        b'{"_id": "d1", "title": "T", "text": "B"}\n'
        b'{"_id": "D2", "text": "na\xc3\xafve \\u00e9\\n", "m": [1.5, {}]}\r\n'
        b'\n{"_id": "d3", "title": "", "text": "x\\ud83d\\ude00"}\n'
    ),
    "queries.jsonl": b'{"_id": "q1", "text": "what?"}\n{"_id": "q2", "text": "who?", "metadata": {"a": null}}\n',
    "qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\tD2\t0\nq2\td3\t1\n",
}
# What breaks parsers, paths and terminals.
PIECES = [
    *(b"\0", b"\n", b"\r", b"\t", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b" ", b"\x1b[31m"),
    *(b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xc2\x85", b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"NaN"),
    *(b"..", b"/", b"../../x", b"/etc/passwd", b"nul", b"CON.txt", b"d1", b"D1", b"q2", b"-", b".", b"2", b"-1"),
    *(b"9223372036854775808", b"[" * 600, b'"_id": "d3", ', b'"text": 1, ', b"a" * 300, b"1e999", b"null", b"\xc3\xa9"),
]
damage = st.lists(
    st.tuples(
        st.sampled_from(sorted(FILES)),
        st.floats(0, 1),
        st.integers(0, 6),
        st.sampled_from(PIECES) | st.binary(max_size=3),
    ),
    min_size=1,
    max_size=3,
)
policies = st.builds(
    BeirPolicy,
    document_ids=st.sampled_from(["strict", "map"]),
    query_ids=st.sampled_from(["strict", "map"]),
    min_relevance=st.sampled_from([None, 1, 2]),
    empty_documents=st.sampled_from(["refuse", "drop"]),
    unknown_documents=st.sampled_from(["refuse", "drop"]),
)


def paths_below(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


@settings(deadline=None, max_examples=250, suppress_health_check=[HealthCheck.too_slow])
@given(damage=damage, policy=policies, sharded=st.booleans(), absent=st.sampled_from([None, *sorted(FILES)]))
def test_a_damaged_dataset_is_adapted_soundly_or_refused_without_a_trace(
    damage: list[tuple[str, float, int, bytes]], policy: BeirPolicy, sharded: bool, absent: str | None
) -> None:
    files = dict(FILES)
    for name, where, length, piece in damage:
        position = int(where * len(files[name]))
        files[name] = files[name][:position] + piece + files[name][position + length :]
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        # One file in four cases is missing altogether.
        missing = absent if len(damage) == 1 else None
        write_files(root / "source", *(None if name == missing else content for name, content in files.items()))
        before = paths_below(root)
        inspection = inspect_beir_dataset(root / "source", policy=policy)
        assert paths_below(root) == before
        layout: Layout = "sharded" if sharded else "flat"
        if not inspection.admissible:
            with pytest.raises(EvalError) as caught:
                adapt_beir_dataset(root / "source", root / "output", policy=policy, layout=layout)
            message = str(caught.value)
            assert caught.value.problem_count == inspection.problem_count
            assert paths_below(root) == before
            assert not set(message) & set("\0\r\x1b\u2028\x85")
            assert len(message.splitlines()) <= 20
            return
        report = adapt_beir_dataset(root / "source", root / "output", policy=policy, layout=layout)
        new = paths_below(root) - before
        assert all(path == "output" or path.startswith("output/") for path in new)
        assert len([path for path in new if path.endswith(".txt")]) == report.document_count
        judgments = load_judgments(report.judgments_path)
        assert sum(len(judgment.gold) for judgment in judgments) == report.relevance_pair_count
        for judgment in judgments:
            for span in judgment.gold:
                assert (root / "output" / "corpus" / span.doc).read_bytes().decode() == span.quote
        verify_adaptation(root / "output")
