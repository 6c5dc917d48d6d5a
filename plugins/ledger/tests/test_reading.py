"""Reading: queries, contents, and the stored form of contents."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing

import pytest

from dicast import LedgerError, Query
from dicast_ledger.selection import select


def read(content, digest="aa" * 32):
    return {"digest": digest, "content": content}


def stored(path):
    with closing(sqlite3.connect(path)) as connection:
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


def plan(path, query):
    """How SQLite would find the rows of *query*."""
    with closing(sqlite3.connect(path)) as connection:
        statement, values = select(connection, query)
        return " / ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values))


def test_rows_of_a_type_up_to_a_time_are_found_by_an_index_that_ledgers_of_before_get(tmp_path, opened, make_event):
    path, completed = tmp_path / "ledger.db", ("eval.completed",)
    with opened(path) as ledger:
        ledger.append([make_event("eval.completed")])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP INDEX by_time")  # an older ledger
    as_of = Query(types=completed, until="2026-03-01T12:00:00.000Z")
    with opened(path, create=False) as ledger:
        assert [entry.seq for entry in ledger.read(as_of)] == [1]
    assert "by_time" not in plan(path, as_of)
    with opened(path) as ledger:
        assert [entry.seq for entry in ledger.read(as_of)] == [1]
        assert ledger.verify().ok
    assert "USING COVERING INDEX by_time (type=? AND time<?)" in plan(path, as_of)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)


@pytest.mark.parametrize(
    "query", [Query(types=("a",), newest_first=True, limit=1), Query("R1", ("a",)), Query(types=("a",), session_id="s")]
)
def test_rows_are_not_sorted_where_they_can_be_read_in_their_order(runs, query):
    assert "by_time" not in plan(runs.path, query)


def test_an_entry_has_its_place_in_the_chain(runs):
    first, second = runs.read(Query(limit=2))
    assert (first.prev, second.prev) == ("0" * 64, first.digest)


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
    assert [payload["content"] for payload in stored(path)] == ["one", None, "two", None]


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
    assert stored(path) == [read(None), read("one")]


@pytest.mark.parametrize("digest", [None, 7, "no hexadecimal"])
def test_a_content_without_a_digest_is_refused(tmp_path, opened, make_event, digest):
    with opened(tmp_path / "ledger.db") as ledger, pytest.raises(LedgerError, match="digest of a subject.read"):
        ledger.append([make_event("subject.read", read("one", digest))])


def test_a_contents_table_that_leads_elsewhere_is_no_content(tmp_path, opened, make_event):
    path = tmp_path / "ledger.db"
    with opened(path) as ledger:
        ledger.append([make_event("subject.read", read(f"text {n}", f"{n:064x}")) for n in (1, 2, 1)])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE contents SET seq = 2 WHERE seq = 1")
    with opened(path) as ledger, pytest.raises(LedgerError, match="names a row with another content"):
        list(ledger.read(Query(after=2)))
