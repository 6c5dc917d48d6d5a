"""Erasure of contents."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dicast import Event, LedgerError, Query
from dicast.reading.blocks.spent import spent_of
from dicast_ledger import connect


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


def test_a_content_without_a_text_stays(path, opened, make_event):
    content = {"digest": "0", "content": {"input": None, "output": "", "context": {}}}
    with opened(path) as ledger:
        ledger.append([make_event("subject.read", content, subject_id=name) for name in ("a", "b")])
        assert ledger.erase("a", None, erased).digests == ()
        assert outputs(ledger) == ["", ""]


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
def turns(path, opened, make_event):
    """A ledger with two turns of a session and a row: readings, steps, explained verdicts, a label, and replies of a task."""

    def about(name, session, kind):
        names = {"session_id": session, "subject_kind": kind, "subject_id": name}
        step = {"session_id": session, "turn_id": name, "sensitivity": "user_controlled"}
        return [
            make_event("subject.read", {"digest": "0", "content": {"output": f"text of {name}"}}, **names),
            make_event("tool.completed", {"tool_name": "find", "success": True, "output": "found"}, **step),
            make_event("eval.completed", {"score": 1.0, "scores": [{"details": "short", "feedback": ""}]}, **names),
            make_event("label.given", {"subject": name, "score": 1.0}, **step),
            make_event(
                "task.replied",
                {"criterion": "c", "reply": {"text": "reply"}},
                **names,
                time="2026-03-03T12:00:00.000Z",
                sensitivity="user_controlled",
            ),
        ]

    with opened(path) as ledger:
        ledger.append([*about("t1", "s1", "turn"), *about("t2", "s1", "turn"), *about("r1", None, "row")])
        yield ledger


WITHOUT_TEXT = {
    "subject.read": {"digest": "0", "content": None},
    "tool.completed": {"tool_name": "find", "success": True, "output": ""},
    "eval.completed": {"score": 1.0, "scores": [{"details": "", "feedback": ""}]},
    "task.replied": {"criterion": "c", "reply": None},
}


@pytest.mark.parametrize(
    ("subject", "before", "erased_names", "types"),
    [
        ("t1", None, ["t1"], WITHOUT_TEXT),
        ("s1", None, ["t1", "t2"], WITHOUT_TEXT),
        ("r1", None, ["r1"], WITHOUT_TEXT),
        ("r2", None, [], ()),
        (None, "2026-03-02T00:00:00.000Z", ["t1", "t2", "r1"], ["subject.read", "tool.completed", "eval.completed"]),
        (None, "2026-03-01T12:00:00.000Z", [], ()),
    ],
)
def test_the_texts_of_a_subject_a_session_or_a_time_go(turns, subject, before, erased_names, types):
    events = [entry.event for entry in turns.read(Query())]
    result = turns.erase(subject, before, erased)
    assert (result.others, result.left) == (0, {})
    expected = [
        WITHOUT_TEXT[event.type]
        if event.type in types and {event.subject_id, event.turn_id}.intersection(erased_names)
        else event.payload
        for event in events
    ]
    assert [entry.event.payload for entry in turns.read(Query())][: len(events)] == expected
    assert turns.verify().ok


def test_texts_in_lines_of_an_older_version_are_counted(opened, first_ledger):
    with opened(first_ledger.path) as ledger:
        result = ledger.erase(None, "2100-01-01T00:00:00.000Z", erased)
        assert result.left["tool.completed"] > 0
        assert result.left["eval.completed"] > 0
        assert "subject.read" not in result.left
        assert ledger.verify().ok


def test_an_erased_record_is_read_as_a_record_of_a_ledger_with_digests(path, opened, make_event):
    record = {
        "row": {"id": "1", "question": "who?", "age": 41},
        "response": {"content": "she", "n": 2},
        "metrics": {"a": 1},
    }
    with opened(path) as ledger:
        ledger.append([make_event("record.completed", record, subject_id="1", sensitivity="user_controlled")])
        (digest,) = ledger.erase("1", None, erased).digests
        (entry,) = ledger.read(Query(subject_id="1"))
    without = {
        "row": {"id": "1", "question": "", "age": None},
        "response": {"content": "", "n": 2},
        "metrics": {"a": 1},
    }
    assert entry.event.payload == {"digest": digest, **without}
    with closing(connect(path)) as connection:
        ((payload,),) = connection.execute("SELECT payload FROM events WHERE subject_id = '1'")
    assert payload.encode() == orjson.dumps(entry.event.payload)


def test_a_reader_of_the_file_is_named(path, opened, make_subject):
    with opened(path) as ledger:
        ledger.append(make_subject(1))
        entries = ledger.read(Query())
        next(entries)
        with pytest.raises(LedgerError, match="its log still has them: give the same command again"):
            ledger.erase("row-0001", None, erased)
        entries.close()
        assert ledger.erase("row-0001", None, erased).digests == ()
    assert not [file for file in path.parent.iterdir() if b"Answer 1" in file.read_bytes()]


def test_a_content_that_two_processes_stored_at_once_goes(path, opened, make_subject):
    with opened(path) as ledger, opened(path) as other:
        prepared = other._writer.prepare(make_subject(1))
        ledger.append(make_subject(1))
        with other._transaction() as spending:
            other._write(prepared, spending)
        ledger.erase("row-0001", None, erased)
    assert b"Answer 1" not in bytes_of(path)


def bytes_of(path):
    """Return the bytes of the files of a ledger, and all its compressed bodies without compression."""
    with closing(connect(path)) as connection:
        query = "SELECT sqlar_uncompress(body, size) FROM {}"
        bodies = [bytes(body) for table in ("blocks", "texts") for (body,) in connection.execute(query.format(table))]
    return b"".join([*bodies, *(file.read_bytes() for file in path.parent.iterdir())])


SECRET = 'Čapek"\\\u2603'
TEXTS = st.text(max_size=8).map(lambda text: f"{text}{SECRET}{text[:2]}")
VALUES = st.recursive(
    TEXTS | st.none() | st.booleans() | st.integers(0, 9) | st.just("") | st.floats(0, 1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
ROWS = st.dictionaries(st.sampled_from(["input", 'Ä"', "n"]), VALUES)
SCORES = st.lists(
    st.fixed_dictionaries({"details": TEXTS | st.just(""), "feedback": TEXTS, "value": st.just(0.5)}), max_size=2
)
PAYLOADS = {
    "record.completed": st.fixed_dictionaries(
        {"row": ROWS, "response": VALUES, "metrics": st.fixed_dictionaries({"n": st.floats(0, 1)})},
        optional={"error": TEXTS},
    ),
    "record.failed": st.fixed_dictionaries({"row": ROWS, "error": TEXTS, "failure_mode": st.just("crashed")}),
    "task.replied": st.fixed_dictionaries({"criterion": st.just("c"), "reply": VALUES}),
    "eval.completed": st.fixed_dictionaries(
        {"scores": SCORES, "signals": st.fixed_dictionaries({"n": st.just(1)}, optional={"rationale_redacted": TEXTS})}
    ),
    "eval.failed": st.fixed_dictionaries({"error_message": TEXTS}, optional={"reply": TEXTS}),
    "spend.settled": st.fixed_dictionaries(
        {
            "reservation_id": st.none(),
            "amount": st.just("0.1"),
            "unit": st.just("usd"),
            "reply": st.fixed_dictionaries({"scores": SCORES}),
        }
    ),
    "subject.read": st.fixed_dictionaries(
        {"digest": st.just("0"), "content": st.fixed_dictionaries({"output": VALUES})},
        optional={"failure": st.fixed_dictionaries({"kind": st.just("k"), "message": TEXTS})},
    ),
    "tool.called": st.fixed_dictionaries({"tool_name": st.just("t"), "input": VALUES, "x": VALUES}),
    "llm.call_completed": st.fixed_dictionaries(
        {"model": st.just("m"), "usage": st.fixed_dictionaries({"total_tokens": st.just(3)}), "output": VALUES}
    ),
}
EVENTS = st.sampled_from(sorted(PAYLOADS)).flatmap(lambda type_: st.tuples(st.just(type_), PAYLOADS[type_]))


def paid(ledger):
    """Return the lines of the settled amounts with the ids of their events."""
    events = [entry.event for entry in ledger.read(Query(types=("spend.settled",)))]
    fields = [
        (event.type, event.time, event.run_id, event.session_id, event.turn_id, event.payload) for event in events
    ]
    return [(event.id, spent_of(*values)) for event, values in zip(events, fields, strict=True)]


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(payloads=st.lists(EVENTS, min_size=1, max_size=6), together=st.booleans())
def test_no_byte_of_an_erased_text_is_in_the_file(opened, make_event, payloads, together):
    def event(type_, payload, name):
        names = {"session_id": name, "turn_id": name}
        if type_ == "subject.read":  # subjects with equal contents share them
            payload = {**payload, "content": {**payload["content"], "context": name}}
        if "." in type_ and not type_.startswith(("tool.", "llm.")):
            names = {"subject_kind": "turn", "subject_id": name, **names}
        return make_event(type_, payload, sensitivity="user_controlled", **names)

    events = [event(*item, name) for name in ("chosen", "other") for item in payloads]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        with opened(path) as ledger:
            for append in [events] if together else [[event] for event in events]:
                ledger.append(append)
            assert [orjson.dumps(entry.event.payload) for entry in ledger.read(Query())] == [
                orjson.dumps(event.payload) for event in events
            ]
            cost = paid(ledger)
            ledger.erase("chosen", None, erased)
            kept = [entry.event.payload for entry in ledger.read(Query(session_id="other"))]
            assert [*map(orjson.dumps, kept)] == [orjson.dumps(event.payload) for event in events[len(payloads) :]]
            assert cost == paid(ledger)
            assert ledger.verify().ok
            read = [orjson.dumps(entry.event.payload) for entry in ledger.read(Query())]
            assert ledger.erase("other", None, erased).left == {}
        with closing(connect(path)) as connection:
            shown = [payload.encode() for (payload,) in connection.execute("SELECT payload FROM events ORDER BY seq")]
        assert shown[: len(payloads)] == read[: len(payloads)]
        for form in (SECRET.encode(), orjson.dumps(SECRET)[1:-1], SECRET[:5].encode()):
            assert form not in bytes_of(path)


@pytest.mark.parametrize("content", ["store", "digest"])
def test_the_rationale_of_a_subject_that_was_judged_at_once_goes(path, opened, make_subject, content):
    subjects = []
    for number in range(120):
        read, started, completed = make_subject(number, signals={"rationale_redacted": f"because {number}."})
        subjects += read, started, attrs.evolve(completed, sensitivity="user_controlled")
    with opened(path, content=content) as ledger:
        ledger.append(subjects)
        assert ledger.erase("row-0007", None, erased).left == {}
        assert ledger.verify().ok
    assert b"because 7." not in bytes_of(path)
    assert (b"because 8." in bytes_of(path)) == (content == "store")
