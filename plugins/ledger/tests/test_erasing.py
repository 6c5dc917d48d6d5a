"""Erasure of contents."""

from __future__ import annotations

import pytest

from dicast import Event, Query
from dicast_ledger.leftover import leftover


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def erased(digests):
    return Event("E", "content.erased", "2026-03-03T00:00:00.000Z", "E", {"digests": [*digests], "reason": "asked"})


def outputs(ledger):
    entries = ledger.read(Query(types=("subject.read",)))
    return [(entry.event.payload["content"] or {}).get("output") for entry in entries]


@pytest.mark.parametrize("together", [True, False])
def test_the_text_of_a_subject_goes_and_everything_else_stays(path, opened, make_subject, together):
    appends = [[event for number in range(120) for event in make_subject(number)], make_subject(7, run_id="R2")]
    with opened(path) as ledger:
        for append in appends:
            for part in [append] if together else [[event] for event in append]:
                ledger.append(part)
        head = ledger.head()
        result = ledger.erase("row-0007", None, erased)
        assert (len(result.digests), result.others) == (1, 0)
        assert outputs(ledger) == [
            *(None if number == 7 else f"Answer {number}" for number in range(120)),
            None,
        ]
        checked = ledger.verify(head.digest)
        assert (checked.ok, checked.absent) == (True, 2)
        (event,) = [entry.event for entry in ledger.read(Query(types=("content.erased",)))]
        assert event.payload == {"digests": list(result.digests), "reason": "asked"}
        assert len(ledger.verdict_columns().codes) == 121
        assert ledger.erase("row-0007", None, erased).digests == ()
    assert not [file for file in path.parent.iterdir() if b"Answer 7" in file.read_bytes()]


def test_a_text_that_another_subject_shares_goes_too_and_is_counted(path, opened, make_event):
    content = {"digest": "0", "content": {"output": "shared"}}
    with opened(path) as ledger:
        ledger.append([make_event("subject.read", content, subject_id=name) for name in ("a", "b", "c")])
        assert ledger.erase("a", None, erased).others == 2
        assert outputs(ledger) == [None] * 3
        assert ledger.verify().absent == 3


def test_a_text_from_before_a_time_stays_if_it_was_read_later(path, opened, make_event):
    def read(text, day):
        content = {"digest": "0", "content": {"output": text}}
        return make_event("subject.read", content, time=f"2026-03-0{day}T12:00:00.000Z")

    with opened(path) as ledger:
        ledger.append([read("old", 1), read("both", 1), read("both", 3), read("new", 3)])
        assert len(ledger.erase(None, "2026-03-02T00:00:00.000Z", erased).digests) == 1
        assert outputs(ledger) == [None, "both", "both", "new"]
        assert ledger.verify().ok


def test_an_erased_text_is_stored_again_when_it_is_read_again(path, opened, make_subject):
    with opened(path) as ledger, opened(path) as other:
        other.append(make_subject(1))
        ledger.erase("row-0001", None, erased)
        other.append(make_subject(1, run_id="R2"))
        assert outputs(ledger) == ["Answer 1", "Answer 1"]
        assert ledger.verify().ok


def test_without_texts_a_later_ledger_stores_the_text_for_both(path, opened, make_subject):
    with opened(path, content="digest") as ledger:
        ledger.append(make_subject(1))
        assert outputs(ledger) == [None]
        assert ledger.verify().ok
    with opened(path) as ledger:
        ledger.append(make_subject(1))
        assert outputs(ledger) == ["Answer 1", "Answer 1"]
        assert ledger.verify().ok


@pytest.fixture
def traced(path, opened, make_event):
    """A ledger with a session of one turn: readings, a step, an explained verdict, a label, and a replied task, the last two days later."""
    turn = {"subject_kind": "turn", "subject_id": "t1", "session_id": "s1"}
    content = {"digest": "0", "content": {"output": "text"}}
    later = {"time": "2026-03-03T12:00:00.000Z"}
    events = [
        make_event("subject.read", content, **turn),
        make_event(
            "tool.call_completed", {"output": "text"}, session_id="s1", turn_id="t1", sensitivity="user_controlled"
        ),
        make_event("eval.completed", {"score": 1.0, "feedback": "text"}, **turn),
        make_event("eval.completed", {"score": 1.0, "feedback": ""}, **turn),
        make_event("label.given", {"subject": "t1", "score": 1.0}, session_id="s1", sensitivity="user_controlled"),
        make_event("task.replied", {"reply": "text"}, **turn, **later, sensitivity="user_controlled"),
        make_event("task.replied", {"digest": "0"}, **turn, **later, sensitivity="user_controlled"),
        make_event("task.replied", {"reply": "text"}, subject_id="t2", session_id="s2", sensitivity="user_controlled"),
    ]
    with opened(path) as ledger:
        ledger.append(events)
        yield ledger


@pytest.mark.parametrize(
    ("subject", "before", "expected"),
    [
        ("t1", None, {"eval.completed": 1, "task.replied": 1, "tool.call_completed": 1}),
        ("s1", None, {"eval.completed": 1, "subject.read": 1, "task.replied": 1, "tool.call_completed": 1}),
        ("t2", None, {"task.replied": 1}),
        ("t3", None, {}),
        (None, "2026-03-02T00:00:00.000Z", {"eval.completed": 1, "task.replied": 1, "tool.call_completed": 1}),
        (None, "2026-03-01T12:00:00.000Z", {}),
    ],
)
def test_events_with_texts_in_the_chain_are_counted_by_type(traced, subject, before, expected):
    assert leftover(traced, subject, before) == expected
