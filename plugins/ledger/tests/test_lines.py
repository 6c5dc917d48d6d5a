"""Lines of format 4: every event comes back from its line, with its payload byte by byte."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import Event
from dicast.toolkit.ledger_lines.lines import Encoder, events_of
from dicast.toolkit.ledger_lines.makers import Maker

TIME = "2026-03-01T12:00:00.000Z"

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ['","score":', '"},{"metric":"m', "\x0112\x01", '\\","signals":{}', "null", '{"content":null', "\n"]
)
NUMBERS = st.floats(allow_nan=False) | st.integers(-(2**53), 2**53)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
SCORES = st.fixed_dictionaries(
    {"metric": st.sampled_from(["m", "n", '"', "signals"]), "value": NUMBERS, "rollout": st.sampled_from([0, 1])},
    optional={"confidence": NUMBERS, "details": TEXTS, "signals": VALUES, "weight": st.sampled_from([1, 1.0])},
)
VERDICTS = st.fixed_dictionaries(
    {"score": NUMBERS | st.none(), "signals": VALUES | st.fixed_dictionaries({"metrics": VALUES, "rollouts": VALUES})},
    optional={"scores": st.lists(SCORES, max_size=3), "basis": st.sampled_from(["proxy", "truth"]), "judge": TEXTS},
)
READINGS = st.fixed_dictionaries(
    {"digest": TEXTS}, optional={"content": VALUES, "columns": VALUES, "weight": NUMBERS, '"content":null': VALUES}
)
PLACES = st.fixed_dictionaries({}, optional={"session_id": TEXTS, "turn_id": TEXTS})


@st.composite
def subjects(draw):
    """Return the three events of a subject."""
    subject_id, number, columns = draw(TEXTS), draw(st.integers(0, 999)), draw(PLACES)
    about = {"eval_id": f"V{number}", "subject_kind": "row", "subject_id": subject_id}
    payloads = {
        "subject.read": draw(READINGS),
        "eval.started": {**about, "judge": "metrics"},
        "eval.completed": {**about, **draw(VERDICTS)},
    }
    common = {"subject_kind": "row", "subject_id": subject_id, **columns}
    return [Event(f"E{number}-{type_}", type_, TIME, "R1", payload, **common) for type_, payload in payloads.items()]


def decoded(encoded):
    """Return the events of the lines with their payloads. Each line is JSON on one line."""
    makers, result = {}, []
    for line, count, _ in encoded.lines:
        assert b"\n" not in line
        values = orjson.loads(line)
        if values[0] == 1:
            maker = Maker.of(line)
            makers[maker.name] = maker
        events = [event for _, event in events_of(values, makers, encoded.contents.get)]
        assert len(events) == count
        result += events
    return result


def assert_exact(events):
    result = decoded(Encoder(store_content=True).encode(events))
    assert [fields(event) for event in result] == [
        {**fields(event), "payload": orjson.loads(orjson.dumps(event.payload))} for event in events
    ]
    assert [orjson.dumps(event.payload) for event in result] == [orjson.dumps(event.payload) for event in events]


def fields(event):
    names = "id type time run_id payload session_id turn_id subject_kind subject_id sensitivity"
    return {name: getattr(event, name) for name in names.split()}


@given(st.lists(subjects(), max_size=6))
def test_subjects_come_back_exactly(rows):
    assert_exact([event for row in rows for event in row])


@given(st.lists(st.builds(Event, *(TEXTS,) * 4, st.dictionaries(TEXTS, VALUES, max_size=3)), max_size=4))
def test_other_events_come_back_exactly(events):
    assert_exact(events)


def test_recorded_events_come_back_exactly(old_ledger):
    names = set(fields(Event("", "", "", "", {})))
    assert_exact([Event(**{key: row[key] for key in names & row.keys()}) for row in old_ledger.events])


def row(number, **verdict):
    about = {"eval_id": f"V{number}", "subject_kind": "row", "subject_id": str(number)}
    content = {"context": {}, "input": None, "output": f"text {number}", "reference": None}
    payloads = {
        "subject.read": {"digest": f"{number:064}", "content": content},
        "eval.started": {**about, "judge": "metrics"},
        "eval.completed": {**about, "judge": "metrics", "score": 0.5, "confidence": 1.0, "signals": {}, **verdict},
    }
    common = {"subject_kind": "row", "subject_id": str(number)}
    return [Event(f"{number}-{type_}", type_, TIME, "R1", value, **common) for type_, value in payloads.items()]


def test_subjects_with_the_same_facts_share_a_maker():
    encoded = Encoder(store_content=True).encode([event for number in range(10) for event in row(number)])
    assert [count for _, count, _ in encoded.lines] == [0, *[3] * 10]
    assert len(encoded.makers) == 1


@pytest.mark.parametrize(
    "verdict",
    [{"score": 1}, {"signals": {"a": [1, {"b": "}"}]}}, {"signals": {"deep": [[[[[[1]]]]]]}}, {"basis": "proxy"}],
)
def test_a_subject_with_other_facts_comes_back_exactly(verdict):
    assert_exact([*row(1), *row(2), *row(3, **verdict), *row(4)])


def test_a_value_of_another_type_is_not_taken_for_the_same():
    first, second = row(1, weight=1), row(2, weight=1.0)
    assert_exact([*first, *second])


def test_makers_have_a_bound():
    encoded = Encoder(store_content=True).encode(
        [event for number in range(50) for event in row(number, basis=str(number))]
    )
    assert len(encoded.makers) == 32
    assert [count for _, count, _ in encoded.lines].count(1) == 3 * 18


def test_a_forgotten_maker_is_written_again():
    encoder = Encoder(store_content=True)
    encoder.encode(row(1))
    assert not encoder.encode(row(2)).makers
    encoder.forget()
    assert len(encoder.encode(row(3)).makers) == 1


def test_without_contents_no_text_of_a_user_is_in_a_line():
    encoded = Encoder(store_content=False).encode([*row(1, scores=[{"details": "text 1 is short"}]), *row(2)])
    assert not encoded.contents
    assert not [line for line, _, _ in encoded.lines if b"text 1" in line]
