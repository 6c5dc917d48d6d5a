"""A changed row of a table is found by the check, with its place."""

from __future__ import annotations

import json

import pytest

from dicast import Claim, Event, LedgerError, Query
from dicast.testing.ledger_events import make_cap, make_closing, make_event, make_lost, make_reservation
from dicast.toolkit.ids import stamp

pytestmark = pytest.mark.slow

RUN = "01KDZ3W5Z0000000000000TEST"


class Clock:
    """A clock for the builders of events."""

    def stamp(self):
        return stamp()

    def id(self):
        return stamp()[0]

    def after(self, seconds):
        return "2099-01-01T00:00:00.000Z"


def record_runs(ledger):
    """Record two runs with a judged subject, paid calls and an open reservation."""
    clock = Clock()
    for run in ("A", "B"):
        ledger.append([make_event(clock, "run.started", {"n": 1}, run_id=run)])
        content = {"input": f"question of {run}", "output": "answer"}
        about = {"run_id": run, "subject_kind": "row", "subject_id": f"row-{run}"}
        eval_id = {"eval_id": f"V{run}", "subject_kind": "row", "subject_id": f"row-{run}", "judge": "metrics"}
        ledger.append(
            [
                make_event(clock, "subject.read", {"digest": "d", "content": content}, **about),
                make_event(clock, "eval.started", eval_id, **about),
                make_event(clock, "eval.completed", {**eval_id, "score": 0.5}, **about),
            ]
        )
        ledger.append([make_event(clock, "run.completed", {}, run_id=run)])
    settled, lost, open_one = (
        make_reservation(clock, "0.01", lease_until=until) for until in (None, "2020-01-01T00:00:00Z", None)
    )
    caps = [make_cap("1")]
    for reservation in (settled, lost, open_one):
        ledger.reserve([Claim(reservation, caps)], make_lost(clock))
    ledger.append([make_closing(clock, "spend.settled", settled, "0.005")])


CHANGES = {
    "a line": ("UPDATE blocks SET body = replace(body, '0.5', '0.6') WHERE run_id = 'B'", "line 2", "run B"),
    "a line of the run's start": (
        "UPDATE blocks SET body = replace(body, '{\"n\":1}', '{\"n\":2}') WHERE run_id = 'A'",
        "line 1",
        "run A",
    ),
    "the marks": ("UPDATE blocks SET marks = '\\x00000000' WHERE run_id = 'A' AND lines = 1", "line 1", "run A"),
    "a removed block": (
        "DELETE FROM blocks WHERE first = (SELECT min(first) FROM blocks WHERE run_id = 'B')",
        "prev of the block",
        "run B",
    ),
    "a removed end": (
        "DELETE FROM blocks WHERE first = (SELECT max(first) FROM blocks WHERE run_id = 'A')",
        "ends at event",
        "run A",
    ),
    "a removed run": (
        "WITH gone AS (DELETE FROM chains WHERE run_id = 'A') DELETE FROM blocks WHERE run_id = 'A'",
        "run number 1 is missing",
    ),
    "a number": ("UPDATE blocks SET last = last + 1 WHERE run_id = 'B' AND lines = 1", "up to"),
    "a hint": (
        "UPDATE blocks SET types = '{run.stopped}' WHERE run_id = 'B' AND types = '{run.completed}'",
        "hints of the block",
        "run B",
    ),
    "the bounds of subjects": (
        "UPDATE blocks SET low = NULL WHERE low IS NOT NULL AND run_id = 'A'",
        "hints of the block",
        "run A",
    ),
    "the head of a chain": ("UPDATE chains SET digest = '\\x00' WHERE run_id = 'B'", "the chain of run B"),
    "a removed chain": ("DELETE FROM chains WHERE run_id = 'B'", "run number 2 is missing"),
    "a maker": ("UPDATE makers SET line = replace(line, 'metrics', 'metricz')", "the maker"),
    "a removed maker": ("DELETE FROM makers", "the maker"),
    "a content": ("UPDATE texts SET body = replace(body, 'answer', 'wrong')", "the content"),
    "a spent amount": ("UPDATE accounts SET spent = 0", "the sums do not follow", "accounts"),
    "a removed account": ("DELETE FROM accounts", "the sums do not follow", "accounts"),
    "an open reservation": ("DELETE FROM reservations", "the sums do not follow", "reservations"),
    "a lost reservation": ("UPDATE lost SET amount = 0", "the sums do not follow", "lost"),
    "the sequence": ("SELECT setval('numbers', 3)", "the sequence numbers is 3"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_found_with_its_place(change, component, open_ledger, connect):
    statement, *words = CHANGES[change]
    with open_ledger(component) as ledger:
        record_runs(ledger)
        assert ledger.verify().ok, ledger.verify()
        connect.execute(statement)
        verification = ledger.verify()
    assert not verification.ok
    assert verification.bad_seq
    for word in words:
        assert word in verification.reason, verification


def test_a_removed_content_is_counted_and_not_a_fault(component, open_ledger, connect):
    with open_ledger(component) as ledger:
        record_runs(ledger)
        connect.execute("DELETE FROM texts WHERE body LIKE '%of A%'")
        verification = ledger.verify()
        (read,) = [entry.event for entry in ledger.read(Query("A", ("subject.read",)))]
    assert (verification.ok, verification.absent) == (True, 1)
    assert read.payload["content"] is None


def test_a_changed_start_of_a_run_is_no_start(component, open_ledger, connect):
    with open_ledger(component) as ledger:
        record_runs(ledger)
        connect.execute(CHANGES["a line of the run's start"][0])
        with pytest.raises(LedgerError, match="line 1 was changed: run dicast ledger verify"):
            list(ledger.read(Query("A", ("run.started",))))


def test_each_line_has_the_digest_of_its_run(component, open_ledger):
    with open_ledger(component) as ledger:
        events = [Event(*stamp()[:1], "run.started", stamp()[1], "A", {"n": n}) for n in range(3)]
        head = ledger.append(events)
        other = ledger.append([Event(stamp()[0], "run.started", stamp()[1], "B", {})])
        assert ledger.digest_of(3) == head.digest
        assert ledger.digest_of(4) == other.digest
        assert ledger.digest_of(1) not in (None, head.digest)
        assert ledger.digest_of(9) is None
        for digest in (ledger.digest_of(2), head.digest, other.digest):
            assert ledger.verify(digest).ok


def test_the_view_of_events_has_the_texts_in_their_places(component, open_ledger, connect):
    """Texts of records, failures and replies are contents of their own; an absent text is a blank."""
    about = {"run_id": "A", "subject_kind": "row", "subject_id": "1"}
    private = {"sensitivity": "user_controlled"}
    payloads = [
        (
            "record.completed",
            {"row": {"id": "1", "Größe": "ä\n", "n": 2.5}, "response": {"text": "ünï"}, "metrics": {}},
            {},
        ),
        ("task.replied", {"criterion": "c", "reply": {"text": "hello", "n": [1]}}, private),
        ("eval.failed", {"eval_id": "V", "error_message": 'bad "reply"', "reply": "héllo"}, private),
        ("note.of_a_trace", {"text": "é", "items": [1, 2], "role": "user", "empty": ""}, private),
        ("subject.read", {"digest": "d", "content": {"input": "q"}, "place": "f:1"}, private),
    ]
    events = [
        Event(stamp()[0], type_, stamp()[1], payload=payload, **about, **level) for type_, payload, level in payloads
    ]
    with open_ledger(component) as ledger:
        ledger.append(events)
        view = "SELECT payload FROM events ORDER BY seq"
        assert [json.loads(text) for (text,) in connect.execute(view)] == [payload for _, payload, _ in payloads]
        assert [entry.event.payload for entry in ledger.read(Query())] == [payload for _, payload, _ in payloads]
        connect.execute("DELETE FROM texts")
        entries = [entry.event.payload for entry in ledger.read(Query())]
        assert [json.loads(text) for (text,) in connect.execute(view)] == entries
        assert entries[3] == {"text": "", "items": [], "role": "user", "empty": ""}
        verification = ledger.verify()
        assert (verification.ok, verification.absent) == (True, 5)
