"""Reading: queries, contents, and the stored form of contents."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing

import pytest

from dicast import LedgerError, Query
from dicast_ledger import connect


def read(content, digest="aa" * 32):
    return {"digest": digest, "content": content}


def stored(path):
    with closing(connect(path)) as connection:
        return [json.loads(payload) for (payload,) in connection.execute("SELECT payload FROM events ORDER BY seq")]


@pytest.fixture
def runs(tmp_path, opened, make_event):
    """Make three runs, the second at the same time as the third."""
    with opened(tmp_path / "ledger.db") as ledger:
        for run_id in ("R1", "R2"):
            ledger.append([make_event("run.started", run_id=run_id), make_event("eval.started", run_id=run_id)])
        ledger.append([make_event("run.started", run_id="R3", time="2026-03-02T00:00:00.000Z")])
        ledger.append([make_event("eval.completed", run_id="R2", subject_kind="row", subject_id="7")])
        ledger.append([make_event("run.completed", run_id="R3", time="2026-03-02T00:00:00.000Z")])
        yield ledger


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (Query(), [1, 2, 3, 4, 5, 6, 7]),
        (Query(newest_first=True, limit=2), [7, 6]),
        (Query(limit=0), []),
        (Query(after=5), [6, 7]),
        (Query(run_id="R2"), [3, 4, 6]),
        (Query(run_id="R2", after=3, newest_first=True), [6, 4]),
        (Query(run_id="unknown"), []),
        (Query(types=("run.started",), newest_first=True), [5, 3, 1]),
        (Query(types=("run.started", "run.completed"), newest_first=True, limit=1), [7]),
        (Query(types=("run.started",), run_id="R2"), [3]),
        (Query(types=("run.started", "eval.completed")), [1, 3, 5, 6]),
        (Query(subject_kind="row", subject_id="7"), [6]),
        (Query(subject_kind="turn"), []),
        (Query(until="2026-03-01T12:00:00.000Z"), [1, 2, 3, 4, 6]),
        (Query(types=("run.started", "eval.completed"), until="2026-03-01T12:00:00.000Z"), [1, 3, 6]),
        (Query(types=("eval.started", "eval.completed"), until="2026-03-01T12:00:00.000Z", limit=2), [2, 4]),
        (Query(types=("run.started",), until="2026-03-01T12:00:00.000Z", newest_first=True), [3, 1]),
        (Query(types=("eval.started",), run_id="R2", until="2026-03-01T12:00:00.000Z"), [4]),
    ],
)
def test_a_query_gives_the_rows_that_match(runs, query, rows):
    assert [entry.seq for entry in runs.read(query)] == rows


def test_a_reader_keeps_the_state_it_began_with(runs, make_event):
    reading = runs.read(Query())
    next(reading)
    runs.append([make_event()])
    assert len(list(reading)) == 6
    assert runs.head().seq == 8


def test_appending_nothing_changes_nothing(tmp_path, opened):
    with opened(tmp_path / "ledger.db") as ledger:
        assert ledger.append([]).seq == 0
        assert ledger.head() is None


def test_a_content_is_stored_once_and_read_everywhere(tmp_path, opened, make_event):
    path = tmp_path / "ledger.db"
    with opened(path) as ledger:
        ledger.append([make_event("subject.read", read("one")), make_event("subject.read", read("one"))])
        ledger.append([make_event("subject.read", read("two", "bb" * 32)), make_event("subject.read", read("one"))])
        contents = [entry.event.payload["content"] for entry in ledger.read(Query())]
        assert contents == ["one", "one", "two", "one"]
        assert [entry.event.payload["content"] for entry in ledger.read(Query(after=3))] == ["one"]
        assert ledger.verify().ok
    assert [payload["content"] for payload in stored(path)] == contents
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM contents").fetchone() == (2,)


def test_digests_that_begin_alike_are_two_contents(tmp_path, opened, make_event):
    first, two = (read(text, "aa" * 31 + end) for text, end in (("one", "00"), ("two", "01")))
    with opened(tmp_path / "ledger.db") as ledger:
        ledger.append([make_event("subject.read", payload) for payload in (first, two, first, two)])
        ledger.append([make_event("subject.read", payload) for payload in (two, first)])
        assert [entry.event.payload for entry in ledger.read(Query())] == [first, two, first, two, two, first]


def test_a_content_of_a_refused_batch_is_stored_by_the_next(tmp_path, opened, make_event):
    with opened(tmp_path / "ledger.db") as ledger:
        with pytest.raises(LedgerError):
            ledger.append([make_event("subject.read", read("one")), make_event("eval.failed", {"error": object()})])
        ledger.append([make_event("subject.read", read("one"))])
        assert stored(ledger.path) == [read("one")]


def test_digest_mode_stores_no_content_and_digests_what_users_wrote(tmp_path, opened, make_event):
    prompt = {"signals_extra": {"user_prompt_text": "pssst", "a": 1}}
    verdict = {"score": 1.0, "signals": {"rationale_redacted": "because"}}
    with opened(tmp_path / "ledger.db", content="digest") as ledger:
        ledger.append(
            [
                make_event("subject.read", read("secret"), sensitivity="user_controlled"),
                make_event("turn.completed", prompt, sensitivity="user_controlled"),
                make_event("eval.completed", verdict, sensitivity="user_controlled"),
                make_event("tool.called", {"tool_name": "search"}),
            ]
        )
        payloads = [entry.event.payload for entry in ledger.read(Query())]
        assert ledger.verify().ok
    canonical = json.dumps(prompt, sort_keys=True, separators=(",", ":")).encode()
    digested = {"digest": hashlib.sha256(canonical).hexdigest()}
    blanked = {"score": 1.0, "signals": {}}
    assert payloads == [read(None), digested, blanked, {"tool_name": "search"}]


def test_digest_mode_keeps_verdicts_kinds_and_money_and_drops_what_may_quote_the_output(tmp_path, opened, make_event):
    def payloads(texts):
        reply = {"value": 0.5, "confidence": 1.0, "feedback": texts, "details": texts, "cost": {"amount": "0.01"}}
        score = {"metric": "a", "value": 0.5, "details": texts, "signals": {"details": 3}}
        money = {"reservation_id": "r", "amount": "0.01", "unit": "usd", "judge": "metrics", "metric": "a"}
        failure = {"failure_mode": "crashed", "error_message": texts}
        return {
            "eval.completed": {"score": 0.5, "scores": [score, score], "signals": {"flags": ["clean"]}},
            "eval.failed": {"eval_id": "e", **failure},
            "spend.settled": {**money, "reply": reply},
            "run.completed": {"failed_subjects": [{"subject_id": "1", **failure}], "cost": {"usd": "0.01"}},
        }

    with opened(tmp_path / "ledger.db", content="digest") as ledger:
        ledger.append([make_event(type, payload) for type, payload in payloads("it says pssst").items()])
        assert ledger.verify().ok
    assert stored(tmp_path / "ledger.db") == list(payloads("").values())


def test_a_ledger_of_digests_can_store_contents_later(tmp_path, opened, make_event):
    path = tmp_path / "ledger.db"
    for content in ("digest", "store"):
        with opened(path, content=content) as ledger:
            ledger.append([make_event("subject.read", read("one"))])
    assert stored(path) == [read("one"), read("one")]
