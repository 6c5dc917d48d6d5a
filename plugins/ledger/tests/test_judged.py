"""Judged subjects that are appended as one value each become the lines of their events."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import attrs
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import Event, Query, Score, Subject
from dicast.toolkit.ledger_lines.lines import Encoder, events_of

TIMES = "2026-03-01T12:00:00.000Z", "2026-03-01T12:00:00.001Z"
LEVELS = {True: "user_controlled", False: "pseudonymous"}


@attrs.frozen
class Maker:
    """The facts of a judged subject that the kernel gives."""

    run_id: str = "R1"
    kind: str = "row"
    judge: str = "metrics"
    metrics: tuple[str, ...] = ("a", "b")
    keeps_texts: bool = False


@attrs.frozen
class Record:
    """A judged subject as the kernel appends it."""

    maker: Maker
    subject: Subject
    read: dict[str, Any]
    verdict: dict[str, Any]
    answers: tuple[Score, ...]
    eval_id: str
    ids: tuple[str, str, str]
    latency_ms: int = 0
    times: tuple[str, str] = TIMES
    has_notes: bool = False
    text: bytes | None = None
    type = "judged"

    @property
    def subject_id(self):
        return self.subject.id

    def events(self):
        """Return the three events."""
        about = {"eval_id": self.eval_id, "subject_kind": self.maker.kind, "subject_id": self.subject.id}
        completed = {**self.verdict, "eval_id": self.eval_id, "subject_id": self.subject.id}
        completed["judge_latency_ms"] = self.latency_ms
        if self.has_notes:
            completed["scores"] = [
                {**item, "details": answer.details, "signals": answer.signals}
                for item, answer in zip(self.verdict["scores"], self.answers, strict=True)
            ]
        is_sensitive = any("rationale_redacted" in answer.signals for answer in self.answers)
        levels = "user_controlled", "pseudonymous", LEVELS[is_sensitive or self.maker.keeps_texts]
        payloads = self.read, {**about, "judge": self.maker.judge}, completed
        types = "subject.read", "eval.started", "eval.completed"
        times = self.times[0], *self.times
        place = self.subject.session_id, None, self.maker.kind, self.subject.id
        return tuple(
            Event(id_, type_, time, self.maker.run_id, payload, *place, level)
            for id_, type_, time, payload, level in zip(self.ids, types, times, payloads, levels, strict=True)
        )


MAKER = Maker()


def verdict(score):
    scores = [{"metric": name, "value": score, "details": "", "signals": {}, "rollout": 0} for name in ("a", "b")]
    about = {"eval_id": "", "subject_kind": "row", "subject_id": "", "judge": "metrics", "judge_latency_ms": 0}
    signals = {"metrics": {"a": score, "b": score}}
    other = {"signals": signals, "scores": scores, "basis": "proxy", "skipped": []}
    return {**about, "score": score, "confidence": 1.0, **other}


def record(number, shared, *, maker=MAKER, answers=None, session_id=None, **read):
    notes = answers is not None
    answers = answers or (Score(shared["score"]), Score(shared["score"]))
    content = {"context": {}, "input": None, "output": f"Answer {number}", "reference": None}
    ids = tuple(f"E{number:04}-{place}" for place in range(3))
    subject = Subject("row", f"row-{number:04}", output=content["output"], session_id=session_id)
    payload = {"digest": f"{number:064x}", "content": content, **read}
    return Record(maker, subject, payload, shared, answers, f"V{number}", ids, number % 3, has_notes=notes)


@pytest.fixture
def records(make_event):
    """Return judged subjects of every form, with other events between them."""
    one, half = verdict(1.0), verdict(0.5)
    noted = Score(1.0, details='a "text"'), Score(1.0, signals={"found": [1, {"b": None}]})
    secret = Score(1.0, signals={"rationale_redacted": "because"}), Score(1.0)
    return [
        make_event("run.started", {}),
        *(record(number, (one, half)[number % 2]) for number in range(120)),
        record(200, one, answers=noted),
        record(201, one, answers=secret),
        record(202, one, maker=Maker(keeps_texts=True), answers=secret),
        make_event("spend.reserved", {"reservation_id": "1", "scopes": ["run:R1"], "amount": "1", "unit": "usd"}),
        record(203, one, session_id="s"),
        record(204, one, columns={"a": "output"}, weight=2.0),
        record(205, one, content=None),
        record(206, verdict(1.0)),
        make_event("run.completed", {}),
    ]


@pytest.mark.parametrize("content", ["store", "digest"])
def test_the_lines_are_those_of_the_events(tmp_path, opened, records, content):
    events = [event for record in records for event in (record.events() if record.type == "judged" else [record])]
    with opened(tmp_path / "a.db", content=content) as ledger, opened(tmp_path / "b.db", content=content) as other:
        for start in range(0, len(records), 60):
            ledger.append_judged(records[start : start + 60])
        head = other.append(events)
        assert ledger.verify().ok
        assert [entry.event for entry in ledger.read(Query())] == [entry.event for entry in other.read(Query())]
        assert [entry.seq for entry in ledger.reservations("R1")] == [371]
        assert ledger.head().seq == head.seq
        if content == "store":
            assert [orjson.dumps(entry.event.payload) for entry in ledger.read(Query())] == [
                orjson.dumps(event.payload) for event in events
            ]


@pytest.mark.parametrize("content", ["store", "digest"])
def test_read_judged_yields_the_records_with_their_events(tmp_path, opened, make_event, records, content):
    with opened(tmp_path / "a.db", content=content) as ledger:
        ledger.append_judged(records)
        ledger.append([attrs.evolve(make_event("run.started", {}), run_id="R2")])
        read = list(ledger.read_judged("R1"))
        events = [
            (seq + n, event)
            for seq, item in read
            for n, event in enumerate(item.events() if item.type == "judged" else [item])
        ]
        entries = [(entry.seq, entry.event) for entry in ledger.read(Query("R1"))]
        assert events == entries
        assert [orjson.dumps(event.payload) for _, event in events] == [
            orjson.dumps(event.payload) for _, event in entries
        ]
        assert sum(item.type == "judged" for _, item in read) >= (121 if content == "store" else 0)
        assert [seq for seq, _ in ledger.read_judged("R1", after=100)] == [seq for seq, _ in read if seq > 100]


def test_subjects_with_equal_values_share_their_verdict(tmp_path, opened):
    shared = verdict(1.0), verdict(0.5)
    with opened(tmp_path / "a.db") as ledger:
        ledger.append_judged([record(number, shared[number % 2]) for number in range(20)])
        read = [item for _, item in ledger.read_judged("R1")]
    assert len({id(item.verdict) for item in read}) == 2
    assert len({id(item.maker) for item in read}) == 1


def test_few_verdicts_have_the_lines_of_many_without_a_pattern(monkeypatch):
    shared = [verdict(score) for score in (1.0, 0.5, 0.25)]
    records = [record(number, shared[number % 3]) for number in range(12)]
    few, many = Encoder(store_content=True), Encoder(store_content=True)
    lines = few.encode(records).lines
    monkeypatch.setattr("dicast.toolkit.ledger_lines.lines._FEW_TEMPLATES", 0)
    assert [line for line, _, _ in lines] == [line for line, _, _ in many.encode(records).lines]
    assert [[maker._pattern is None for maker in encoder.makers.values()] for encoder in (few, many)] == [
        [True],
        [False],
    ]


def test_a_content_whose_text_is_known_has_the_same_line(tmp_path, opened):
    shared, texts, dumped = verdict(1.0), [], []
    for number in range(9):
        text = orjson.dumps(record(number, shared).read["content"])
        texts.append(record(number, shared, digest=sha256(text).hexdigest()))
        dumped.append(attrs.evolve(texts[-1], text=text))
    digests = []
    for name, records in (("a.db", texts), ("b.db", dumped)):
        with opened(tmp_path / name) as ledger:
            digests.append(ledger.append_judged(records).digest)
            assert ledger.verify().ok
            read = [entry.event.payload for entry in ledger.read(Query(types=("subject.read",)))]
            assert read == [record.read for record in texts]
    assert digests[0] == digests[1]


ANSWER = st.builds(
    lambda details, signals: Score(1.0, details=details, signals=signals),
    st.sampled_from(["", "a", "b"]),
    st.sampled_from([{}, {"n": 1}, {"n": 2}]),
)


@given(st.lists(st.tuples(ANSWER, ANSWER), min_size=2, max_size=4))
def test_the_texts_and_signals_of_a_subject_are_its_own(answers):
    shared = verdict(1.0)
    records = [
        attrs.evolve(
            record(number, shared, answers=pair), has_notes=any(score.details or score.signals for score in pair)
        )
        for number, pair in enumerate(answers)
    ]
    encoder = Encoder(store_content=True)
    lines = [line for line, _, _ in encoder.encode(records).lines]
    events = [
        event for line in map(orjson.loads, lines) for _, event in events_of(line, encoder.makers, lambda _: None)
    ]
    expected = [event.payload["scores"] for record in records for event in record.events()[-1:]]
    assert [event.payload["scores"] for event in events if event.type == "eval.completed"] == expected


def test_the_events_of_a_subject_are_made_for_a_new_form_only(tmp_path, opened, monkeypatch):
    shared, calls = verdict(1.0), []
    monkeypatch.setattr(Record, "events", lambda self, events=Record.events: (calls.append(self), events(self))[1])
    with opened(tmp_path / "ledger.db") as ledger:
        ledger.append_judged([record(number, shared) for number in range(50)])
        assert len(calls) == 1
        ledger.append_judged([record(number, shared) for number in range(50, 99)])
    assert len(calls) == 1


def test_a_subject_that_is_not_json_is_an_error_with_its_event(tmp_path, opened):
    shared = verdict(1.0)
    with opened(tmp_path / "ledger.db") as ledger:
        ledger.append_judged([record(1, shared)])
        with pytest.raises(Exception, match=r"E0002-0 \(subject.read\) cannot be written as JSON"):
            ledger.append_judged([record(2, shared, columns={"a": [{1, 2}]}), record(3, shared)])
        ledger.append_judged([record(4, shared)])
        assert ledger.verify().ok
        assert ledger.head().seq == 6
