"""Judged subjects of a trace: the events of the trace are in the subject's line, and come back as they were appended."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing

import attrs
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import Event, LedgerError, Query
from dicast.reading import ActivityColumns, VerdictColumns
from dicast.reading.blocks.making import Layouts, columns_of
from dicast.toolkit.ledger_lines.blocks import list_in
from dicast.toolkit.ledger_lines.lines import Encoder, events_of
from dicast.toolkit.ledger_lines.makers import Maker
from dicast.toolkit.ledger_lines.proofs import check_proof
from dicast_ledger.format4.connecting import add_functions
from dicast_ledger.format4.first_columns import first_texts
from dicast_ledger.format4.reading import Makers

TIME = "2026-03-01T12:00:00.000Z"
ULID = "01M8DDD0CJ447KDPCZE0VF"
TRACED = 4

IDS = st.integers(0, 99).map(lambda number: f"{ULID}00{number:02}") | st.text(st.characters(codec="utf-8"), max_size=5)
TEXTS = st.none() | st.text(st.characters(codec="utf-8"), max_size=5)
TRACES = st.builds(
    Event,
    *(IDS, st.sampled_from(["tool.called", "llm.call_completed", "spend.settled", "é"]), st.just(TIME), st.just("R1")),
    st.dictionaries(
        st.sampled_from(["a", "content", '","']),
        st.floats(allow_nan=False, allow_infinity=False) | TEXTS | st.just({"b": [1]}),
    ),
    session_id=st.sampled_from(["s", "s", "s", "other"]),
    turn_id=st.sampled_from(["t", "0", None]),
    subject_kind=st.sampled_from([None, None, None, "turn"]),
    sensitivity=st.sampled_from(["user_controlled"] * 3 + ["pseudonymous"]),
)


def trace(number, type_="tool.called", **columns):
    payload = {"tool_name": "search", "input": {"query": f"number {number}"}}
    columns = {"session_id": "s", "turn_id": "t", "sensitivity": "user_controlled", "payload": payload} | columns
    return Event(f"{ULID}{number:04}", type_, TIME, "R1", **columns)


def of_turn(subject, *traces, turn_id="t"):
    """Return the events of a judged turn with trace events."""
    read, started, completed = (attrs.evolve(event, session_id="s", turn_id=turn_id) for event in subject)
    return [read, *traces, started, completed]


def fields(event):
    return attrs.astuple(event, recurse=False)


def decoded(encoded):
    makers, result = {}, []
    for line, count, _ in encoded.lines:
        values = orjson.loads(line)
        if values[0] == 1:
            maker = Maker.of(line)
            makers[maker.name] = maker
        events = list(events_of(values, makers, encoded.contents.get))
        assert [place for place, _ in events] == list(range(count))
        result += [event for _, event in events]
    return result


def kinds(encoded):
    return [orjson.loads(line)[0] for line, _, _ in encoded.lines]


@given(st.lists(st.lists(TRACES, max_size=4), min_size=1, max_size=3))
def test_trace_events_of_any_form_come_back_exactly(make_subject, lists):
    events = [event for number, traces in enumerate(lists) for event in of_turn(make_subject(number), *traces)]
    encoded = Encoder(store_content=True).encode(events)
    assert [fields(event) for event in decoded(encoded)] == [fields(event) for event in events]


def test_a_subject_with_trace_events_is_one_line(make_subject):
    encoder, events = Encoder(store_content=True), of_turn(make_subject(1), *map(trace, range(20)))
    assert kinds(encoder.encode([*events, *of_turn(make_subject(2)), *of_turn(make_subject(3), trace(99))])) == [
        *(1, TRACED, 2, TRACED)
    ]


def test_few_lines_with_many_events_are_compressed_at_once(tmp_path, opened, make_subject):
    turns = [of_turn(make_subject(number), *(trace(20 * number + at) for at in range(20))) for number in range(24)]
    path = tmp_path / "ledger.db"
    with opened(path) as ledger:
        ledger.append([event for turn in turns[:20] for event in turn])
        ledger.append([event for turn in turns[20:] for event in turn])
        assert ledger.verify().ok
        assert [entry.event for entry in ledger.read(Query())] == [event for turn in turns for event in turn]
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT lines, columns IS NULL, size = length(body) FROM blocks").fetchall()
    assert rows == [(21, 0, 0), (4, 1, 1)]


@pytest.mark.parametrize(
    "other",
    [
        {"session_id": "another"},
        {"sensitivity": "pseudonymous"},
        {"run_id": "R2"},
        {"subject_kind": "turn"},
        {"type": "spend.settled"},
        {"id": "0001"},
    ],
)
def test_an_event_that_is_not_of_the_trace_is_a_line(make_subject, other):
    events = of_turn(make_subject(1), trace(1), attrs.evolve(trace(2), **other), trace(3))
    encoded = Encoder(store_content=True).encode(events)
    assert kinds(encoded) == [0] * 6 or kinds(encoded) == [1, *[0] * 6]
    assert [fields(event) for event in decoded(encoded)] == [fields(event) for event in events]


def test_many_or_large_trace_events_are_lines(make_subject):
    large = trace(1, payload={"name": "x" * 300_000})
    for traces in (list(map(trace, range(1_001))), [large]):
        encoded = Encoder(store_content=True).encode(of_turn(make_subject(1), *traces))
        assert TRACED not in kinds(encoded)


def test_without_contents_no_text_of_a_trace_is_in_a_line(make_subject):
    encoded = Encoder(store_content=False).encode(of_turn(make_subject(1), trace(1)))
    assert kinds(encoded) == [1, TRACED]
    assert not [line for line, _, _ in encoded.lines if b"search" in line]


def test_a_trace_event_that_is_not_json_is_an_error_with_its_name(tmp_path, opened, make_subject):
    with opened(tmp_path / "ledger.db") as ledger:
        with pytest.raises(LedgerError, match=rf"event {ULID}0002 \(tool.called\) cannot be written as JSON"):
            ledger.append(of_turn(make_subject(1), trace(1), trace(2, payload={"a": {1, 2}})))
        assert ledger.head() is None


FLAGGED = {"flags_negative": ["explicit_thumbs_down"], "flags": []}


@pytest.fixture
def events(make_subject, make_event):
    """Return the events of judged turns of a trace, of rows, and of a run."""
    calls = [trace(number, "llm.call_completed", payload={"model": f"m{number % 2}"}) for number in range(100, 180)]
    return [
        make_event("run.started", {}),
        *of_turn(make_subject(1, signals=FLAGGED), *map(trace, range(3)), *calls[:3], trace(7, turn_id=None)),
        *of_turn(make_subject(2, signals={"flags": ["clean"]})),
        *of_turn(make_subject(3, signals={"escalated": True}), calls[3], trace(8, turn_id="u")),
        *make_subject(4),
        *(event for number in range(5, 70) for event in of_turn(make_subject(number), calls[number])),
        *of_turn(make_subject(71, signals={"flags": 7}, score=7), calls[-1]),
        make_event("run.completed", {}),
    ]


@pytest.fixture(params=["one append", "small appends"])
def path(request, tmp_path, opened, events):
    """Return the path of a ledger of *events*."""
    step, path = (len(events) if request.param == "one append" else 11), tmp_path / "ledger.db"
    with opened(path) as ledger:
        for start in range(0, len(events), step):
            ledger.append(events[start : start + step])
    return path


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"newest_first": True},
        {"types": ("eval.completed", "llm.call_completed")},
        {"subject_id": "row-0003"},
        {"subject_kind": "row"},
        {"session_id": "s", "types": ("tool.called",)},
        {"after": 3},
        {"after": 9, "limit": 4},
        {"newest_first": True, "limit": 30},
        {"until": TIME},
        {"run_id": "R1", "types": ("subject.read",)},
    ],
)
def test_a_query_yields_the_same_events_as_separate_lines(path, opened, events, query):
    asked = Query(**query)
    expected = [
        (seq, event)
        for seq, event in enumerate(events, 1)
        if (not asked.types or event.type in asked.types)
        and asked.subject_id in (None, event.subject_id)
        and asked.subject_kind in (None, event.subject_kind)
        and asked.session_id in (None, event.session_id)
        and seq > asked.after
    ]
    expected = (expected[::-1] if asked.newest_first else expected)[: asked.limit]
    with opened(path, create=False) as ledger:
        assert [(entry.seq, entry.event) for entry in ledger.read(asked)] == expected
        assert ledger.verify().ok
        assert ledger.verify().events == len(events)


def test_the_view_has_the_same_events(path, events):
    names = "seq, id, type, time, run_id, session_id, turn_id, subject_kind, subject_id, sensitivity, payload"
    with closing(sqlite3.connect(path)) as connection:
        add_functions(connection)
        rows = connection.execute(f"SELECT {names} FROM events ORDER BY seq").fetchall()
    assert rows == [
        (seq, *(getattr(event, name) for name in names.split(", ")[1:-1]), orjson.dumps(event.payload).decode())
        for seq, event in enumerate(events, 1)
    ]


def test_the_columns_are_the_columns_of_the_events(path, opened, events):
    types = ("subject.read", "llm.call_completed", "route.decided")
    with opened(path, create=False) as ledger:
        verdicts = VerdictColumns().add(ledger.read(Query(types=("eval.completed",))))
        activity = ActivityColumns().add(ledger.read(Query(types=types)))
        columns, active = ledger.verdict_columns(), ledger.activity_columns(None, types)
        assert not ledger.open_judgments()
    for name in ("seqs", "times", "flags", "scores", "confidences", "ids"):
        assert list(getattr(columns, name)) == list(getattr(verdicts, name)), name
    for name in ("seqs", "content_hashes", "ids"):
        assert list(getattr(active, name)) == list(getattr(activity, name)), name
    assert [active.origins[code] for code in active.codes] == [activity.origins[code] for code in activity.codes]


def test_a_proof_has_the_line_with_the_trace(path, opened):
    with opened(path, create=False) as ledger:
        proof, head = ledger.prove("V1"), ledger.head()
    proven = check_proof(orjson.loads(orjson.dumps(proof)))
    assert proven.head == {"seq": head.seq, "digest": head.digest}
    assert [event.type for event in proven.events][-2:] == ["eval.started", "eval.completed"]


def test_an_erased_content_leaves_the_trace(path, opened, make_event, events):
    with opened(path, create=False) as ledger:
        ledger.erase("row-0001", None, lambda digests: make_event("content.erased", {"digests": list(digests)}))
        (read, *_) = (entry.event for entry in ledger.read(Query(subject_id="row-0001")))
        assert read.payload["content"] is None
        assert ledger.verify().ok
        assert [entry.event for entry in ledger.read(Query(types=("tool.called",)))] == [
            event for event in events if event.type == "tool.called"
        ]


def test_the_digest_of_a_line_with_a_trace_is_found_by_its_last_event(path, opened):
    with opened(path, create=False) as ledger:
        assert ledger.verify(ledger.digest_of(11)).ok
        assert ledger.digest_of(10) is None


@pytest.fixture
def calls(make_subject):
    """The events of 120 turns with a paid call each."""
    payload = {"model": "m", "cost_usd": "0.5", "usage": {"total_tokens": 3}, "output": "said"}
    return [
        event
        for number in range(120)
        for event in of_turn(make_subject(number), trace(number, "llm.call_completed", payload=payload))
    ]


def test_paid_calls_in_lines_of_subjects_are_spent(tmp_path, opened, calls):
    with opened(tmp_path / "calls.db") as ledger:
        ledger.append(calls)
        spent = ledger.spent()
        assert (len(spent.codes), {payer.type for payer in spent.payers}) == (120, {"llm.call_completed"})


def test_paid_calls_in_columns_of_the_first_version_are_read_from_lines(tmp_path, opened, calls):
    def first_packed(lines):
        *texts, hashes = first_texts(columns_of(lines, Layouts(makers), has_calls=False))
        bodies = [zlib.compress(text) for text in texts]
        return b"".join([*(len(body).to_bytes(4, "little") for body in bodies), *bodies, hashes])

    with opened(tmp_path / "calls.db") as ledger:
        ledger.append(calls)
    with closing(sqlite3.connect(tmp_path / "calls.db")) as connection:
        makers = Makers(connection)
        ((size, body),) = connection.execute("SELECT size, body FROM blocks").fetchall()
        columns = first_packed(orjson.loads(list_in(size, body)))
        connection.execute("UPDATE blocks SET columns = ?", (columns,))
        connection.commit()
    with opened(tmp_path / "calls.db") as ledger:
        assert len(ledger.spent().codes) == 120
        assert ledger.verify().ok
