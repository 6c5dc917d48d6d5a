"""Records and passes of a run from its shared judgments equal a reading of its events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import Entry, Event
from dicast._kernel.records import ends as ends_module
from dicast._kernel.records.ends import read_ends
from dicast._kernel.records.passes import ledger_passes, recorded_rule
from dicast._kernel.records.reader import results

RUN = "r"
VALUES = st.sampled_from([0, 0.0, 0.25, 0.5, 1, 1.0])
RAWS = st.sampled_from([-2.5, 0, 12])
NOTES = st.sampled_from([{}, {"rationale_redacted": "because"}, {"evidence": {"hidden": {"image": 2}}}])


class Events:
    """A ledger of *events*."""

    def __init__(self, events):
        self.entries = [Entry(seq, event, "", "") for seq, event in enumerate(events, 1)]

    def read(self, query):
        entries = self.entries[::-1] if query.newest_first else self.entries
        return (entry for entry in entries if not query.types or entry.event.type in query.types)


@st.composite
def metric_verdicts(draw, metrics):
    """The fields of the verdict of all metrics: some have a value, some a raw value, some were skipped, the proxies held back others."""
    values, raw, skipped = {}, {}, []
    for metric in metrics:
        fate = draw(st.sampled_from(["value", "value", "value", "raw", "skipped", "held back"]))
        values |= {metric: draw(VALUES)} if fate == "value" else {}
        raw |= {metric: draw(RAWS)} if fate == "raw" else {}
        skipped += [{"metric": metric, "reason": draw(st.text(max_size=2))}] if fate == "skipped" else []
    signals = {"metrics": values, **({"raw": raw} if raw else {}), **draw(NOTES)}
    score = draw(st.none() | VALUES)
    return {"score": score, **({"raw": draw(RAWS)} if score is None else {}), "signals": signals, "skipped": skipped}


@st.composite
def runs(draw):
    """The payload of ``run.started``, and the later events of a run: subjects are judged in a row, some again."""
    metrics, judges = draw(st.sampled_from([(["a", "b", "c"], ["j"]), (["a"], []), ([], ["j", "k"]), (["a", "b"], [])]))
    labels = [*(["metrics"] if metrics else []), *judges]
    rule = {"metrics": draw(st.sampled_from(["all", "score"])), "truths": draw(st.sampled_from([[], ["b"]]))}
    started = {
        "name": "n",
        "fingerprints": {},
        "metrics": metrics,
        "judges": judges,
        "labels": labels,
        "pass_at": {"j": 0.5, "a": 0.25},
        "pass_rule": rule,
        "on": {"a": ["row"]} if draw(st.booleans()) else {},
        "score_label": draw(st.sampled_from([None, labels[0]])),
    }
    events = [Event("0", "run.started", "", RUN, started)]
    subjects = draw(st.lists(st.tuples(st.sampled_from(["row", "turn"]), st.sampled_from("xyz")), max_size=8))
    for kind, id in subjects:
        for label in draw(st.lists(st.sampled_from([*labels, "recorded/old"]), min_size=1, max_size=4)):
            type_, payload = "eval.completed", {"score": draw(VALUES), "signals": draw(NOTES), "skipped": []}
            if draw(st.integers(0, 4)) == 0:
                type_, payload = "eval.failed", {"failure_mode": draw(st.sampled_from(["timeout", "invalid_score"]))}
            elif label == "metrics":
                payload = draw(metric_verdicts(metrics))
            payload |= {"judge": label, "subject_kind": kind, "subject_id": id, "eval_id": str(len(events))}
            session = draw(st.sampled_from([None, "s"]))
            events.append(Event(str(len(events)), type_, "", RUN, payload, session, None, kind, id))
    return started, events


def read(events):
    """Return the records and the passes of a run."""
    ledger = Events(events)
    run = results(ledger, RUN)
    rule = recorded_rule(events[0].payload)
    alone = ledger_passes(ledger.read, RUN, rule, None)
    every = [(passes.labels, passes.rows) for passes in (run.passes(None), alone)]
    return [(id, [*record.items()]) for id, record in run.records()], every


@given(runs())
def test_records_and_passes_are_those_of_the_events(run):
    _, events = run
    shared = read(events)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ends_module, "_MOST", 0)
        assert read(events) == shared
    assert all(rows == shared[1][0] for rows in shared[1])


def test_a_run_with_records_or_very_many_shapes_is_read_by_its_events(monkeypatch):
    payloads = [{"judge": "j", "score": number / 8, "signals": {}, "subject_kind": "row"} for number in range(3)]
    events = [Event("", "eval.completed", "", RUN, payload, None, None, "row", "x") for payload in payloads]
    assert len(read_ends(Events(events).read, RUN).shapes) == 3
    monkeypatch.setattr(ends_module, "_MOST", 2)
    assert read_ends(Events(events).read, RUN) is None
    record = Event("", "record.completed", "", RUN, {"metrics": {}}, None, None, "row", "x")
    assert read_ends(Events([*events[:1], record]).read, RUN) is None


def test_equal_judgments_with_other_ids_and_texts_have_one_shape():
    payload = {"judge": "j", "score": 0.5, "signals": {}, "subject_kind": "row"}
    notes = [{"eval_id": str(number), "signals": {"rationale_redacted": str(number)}} for number in range(9)]
    events = [Event("", "eval.completed", "", RUN, payload | note, None, None, "row", "x") for note in notes]
    ends = read_ends(Events(events).read, RUN)
    assert (len(ends.shapes), len(ends.numbers)) == (1, 9)
