"""Metrics and sinks that change their subjects and events: no other component gets the change, and the ledger has the original."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle

import attrs
import pytest

from dicast import Score, Subject, TraceEvent, metric
from dicast._kernel.stream import sinks
from dicast.testing import run_pipeline


def subject():
    return Subject(
        "row",
        "1",
        input={"question": "q"},
        output={"answer": "42", "steps": [{"tool": "a"}]},
        reference=["42"],
        context={"tags": ["x"]},
        events=(TraceEvent("tool.called", {"tool_use_id": "t", "input": {"path": "/"}}),),
    )


CHANGES = {
    "output": lambda given: given.output.update(answer="best"),
    "inside": lambda given: given.output["steps"][0].pop("tool"),
    "input": lambda given: given.input.__setitem__("question", "easy"),
    "reference": lambda given: given.reference.append("best"),
    "sorted": lambda given: given.reference.sort(),
    "context": lambda given: given.context.setdefault("passed", True),
    "labels": lambda given: given.context["tags"].clear(),
    "trace": lambda given: given.events[0].payload["input"].update(path="/etc"),
}


@metric(tier="proxy")
def looks(subject):
    plain = (subject.input, subject.output, subject.reference, subject.context, subject.events[0].payload)
    return Score(1.0, details=json.dumps(plain))


def changing(how, what):
    if how == "inline":

        @metric(tier="proxy")
        def changes(subject):
            what(subject)
            return Score(1.0)
    elif how == "awaited":

        @metric(tier="proxy")
        async def changes(subject):
            await asyncio.sleep(0)
            what(subject)
            return Score(1.0)
    else:

        @attrs.frozen
        class Together:
            tier = "proxy"

            def score(self, subject):
                what(subject)
                return Score(1.0)

            def score_batch(self, subjects):
                return [self.score(subject) for subject in subjects]

        return Together()
    return changes()


@pytest.mark.parametrize("how", ["inline", "awaited", "batch"])
@pytest.mark.parametrize("what", CHANGES)
def test_a_metric_that_changes_what_it_is_given_fails_alone(what, how):
    text = json.dumps({"metrics": [{"bad": {"on_failure": "exclude"}}, "looks", {"looks": {"as": "again"}}]})
    components = {"bad": changing(how, CHANGES[what]), "looks": looks()}
    done = run_pipeline(text, subjects=[subject()], components=components)
    alone = run_pipeline('{"metrics": ["looks"]}', subjects=[subject()], components=components)
    seen = [score["details"] for score in done.verdicts[0].scores]
    assert seen == [alone.verdicts[0].scores[0]["details"]] * 2
    assert [skipped["reason"] for skipped in done.verdicts[0].skipped] == ["crashed"]
    for type_ in ("subject.read", "tool.called"):
        assert [event.payload for event in done.of(type_)] == [event.payload for event in alone.of(type_)]


def test_what_is_judged_is_as_dicts_and_lists_are_and_a_copy_of_it_can_be_changed():
    given = []

    @metric(tier="proxy")
    def keeps(subject):
        given.append(subject.output)
        return Score(1.0)

    run_pipeline('{"metrics": ["keeps"]}', subjects=[subject()], components={"keeps": keeps()})
    [output] = given
    assert isinstance(output, dict)
    assert isinstance(output["steps"], list)
    assert (output, repr(output)) == (subject().output, repr(subject().output))
    for changed in (copy.deepcopy(output), json.loads(json.dumps(output))):
        changed["steps"][0]["tool"] = "b"
        assert output == subject().output
    for changed in (output.copy(), copy.copy(output), dict(output), output | {}):
        changed["answer"] = ""
        assert output["answer"] == "42"
    sent = pickle.loads(pickle.dumps(output))
    with pytest.raises(TypeError, match="read-only"):
        sent["steps"].append(1)


def test_what_a_task_made_is_read_only_too():
    @attrs.frozen
    class Makes:
        def produce(self, subject):
            return attrs.evolve(subject, output={"answer": ["42"]})

    @metric(tier="proxy")
    def changes(subject):
        subject.output["answer"].append("43")
        return Score(1.0)

    components = {"makes": Makes(), "changes": changes()}
    text = '{"task": "makes", "metrics": ["changes"]}'
    done = run_pipeline(text, subjects=[Subject("row", "1", input="q")], components=components)
    assert done.document["failures"] == {"crashed": 1}
    assert "are read-only, because" in done.document["failed_subjects"][0]["error_message"]


@attrs.frozen
class Forger:
    """A sink that changes the payloads of events."""

    change: object

    def write(self, events):
        for event in events:
            self.change(event)

    def close(self):
        pass


@attrs.frozen
class Collector:
    """A sink that keeps the payloads of events."""

    payloads: list

    def write(self, events):
        self.payloads.extend(event.payload for event in events)

    def close(self):
        pass


def forge_score(event):
    if event.type == "eval.completed":
        event.payload["score"] = 0.0


FORGERIES = {
    "a member": forge_score,
    "all members": lambda event: event.payload.clear(),
    "a nested member": lambda event: (
        event.payload["signals"]["metrics"].clear() if "signals" in event.payload else None
    ),
    "the end of the run": lambda event: event.payload["gate"].clear() if "gate" in event.payload else None,
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_sink_that_changes_an_event_fails_alone(forgery, monkeypatch):
    monkeypatch.setattr(sinks, "PAUSE_SECONDS", 0.001)
    text = "metrics: [looks]\nsinks: [first, second]\ngate: {on: looks, min_score: 0.5}"
    plain, later = [], []
    honest = {"looks": looks(), "first": Collector([]), "second": Collector(plain)}
    run_pipeline(text, subjects=[subject()], components=honest)
    components = {"looks": looks(), "first": Forger(FORGERIES[forgery]), "second": Collector(later)}
    done = run_pipeline(text, subjects=[subject()], components=components)
    assert [sorted(payload) for payload in later] == [sorted(payload) for payload in plain]
    assert later
    assert [payload.get("score") for payload in later] == [payload.get("score") for payload in plain]
    assert done.document["gate"]["passed"] is True
    first, second = done.document["sinks"].values()
    assert "read-only" in first["error"]
    assert "test_mutating_plugins.py:" in first["error"]
    assert (first["lost"] > 0, second["lost"], done.exit_code) == (True, 0, 4)
