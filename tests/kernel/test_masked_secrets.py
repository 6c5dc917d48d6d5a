"""A Secret of any component stays out of events, documents and errors, wherever the component puts it."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

import attrs
import pytest

from dicast import AccessRefused, DicastError, Due, Failure, Judgment, Score, Secret, Subject
from dicast.testing import FakeMetric, run_pipeline, sample

KEY = "sk-third-party-7Qw3rTy9"


@attrs.frozen
class Odd:
    """A component that shows its key in one *way*."""

    way: str
    tier = "truth"
    key: Secret = Secret(KEY)
    nested: dict[str, list[Secret]] = attrs.field(factory=lambda: {"X-Key": [Secret("gateway-4Hj8Lp2M")]})

    @property
    def shown(self):
        return f"the key {self.key.value} and {self.nested['X-Key'][0].value} were refused"

    @asynccontextmanager
    async def open(self, run):
        if self.way == "open":
            raise ValueError(self.shown)
        yield self
        if self.way == "close":
            raise ValueError(self.shown)

    def answer(self, kind):
        if self.way == "raise":
            raise ValueError(self.shown)
        if self.way == "failure":
            return Failure("crashed", self.shown)
        if self.way == "refused":
            raise AccessRefused(self.shown)
        signals = {"asked": [self.shown, {self.key.value: 1}]} if self.way == "signals" else {}
        if kind == "judge":
            return Judgment(0.5, signals=signals, judge_model=self.shown if self.way == "model" else None)
        return Score(0.5, signals=signals, details=self.shown if self.way == "details" else "")

    async def judge(self, subject, children):
        return self.answer("judge")

    def score(self, subject):
        return self.answer("metric")

    def write(self, events):
        if self.way == "write":
            raise OSError(self.shown)

    def close(self):
        pass

    def subjects(self):
        yield sample("x", id="1")
        if self.way == "source":
            raise OSError(self.shown)
        yield Due(Subject("row", "2"), failure=Failure("source_error", "broken"))


JUDGES = ("raise", "failure", "refused", "signals", "model", "open", "close")
METRICS = ("raise", "failure", "refused", "signals", "details", "open")
PLACES = [
    *(('{"judges": ["odd"]}', way) for way in JUDGES),
    *(('{"metrics": ["odd"]}', way) for way in METRICS),
    *(('{"metrics": ["good"], "sinks": ["odd"]}', way) for way in ("open", "close", "write")),
]


def printed(done):
    return json.dumps([done.document, [attrs.asdict(event) for event in done.events]], default=str)


@pytest.mark.parametrize(("text", "way"), PLACES)
def test_a_secret_is_masked_wherever_a_component_shows_it(text, way):
    components = {"odd": Odd(way), "good": FakeMetric(Score(1.0))}
    try:
        done = run_pipeline(text, subjects=[sample("x", id="1")], components=components)
    except DicastError as error:
        everything = f"{error} {error.__cause__}"
    else:
        everything = printed(done)
    assert KEY not in everything
    assert "gateway-4Hj8Lp2M" not in everything
    assert "***" in everything  # the component did show it


@pytest.mark.parametrize("way", ["source", "open"])
def test_a_secret_of_a_source_is_masked(way):
    source = Odd(way)
    with pytest.raises(DicastError) as caught:
        run_pipeline('{"metrics": ["good"]}', source=source, components={"good": FakeMetric(Score(1.0))})
    assert KEY not in str(caught.value)
    assert "***" in str(caught.value)


def test_texts_without_the_secret_stay_as_they_are():
    done = run_pipeline('{"judges": ["odd"]}', subjects=[sample("x", id="1")], components={"odd": Odd("none")})
    assert "***" not in printed(done)
    assert done.document["failures"] == {}


@pytest.mark.parametrize("secret", ["early", "scored", "early_stop", "metrics", "test", "good", "goodness"])
def test_a_secret_that_is_a_word_of_documents_changes_no_name_that_is_compared(secret):
    @attrs.frozen
    class Stop:
        key: Secret = Secret(secret)

        @asynccontextmanager
        async def open(self, run):
            yield self

        def observe(self, record):
            return {"scored": 1}

    subjects = [Subject("row", str(number), output="yes") for number in range(4)]
    pipeline = {
        "metrics": [{"check/contains": {"as": "goodness", "value": "yes"}}],
        "early_stop": ["stop"],
        "gate": {"on": "goodness", "min_pass_rate": 0.5},
    }
    run, plain = (
        run_pipeline(pipeline, subjects=subjects, components={"stop": attrs.evolve(Stop(), key=Secret(key))})
        for key in (secret, "")
    )
    assert run.document["stopped"]["reason"] == "early_stop"
    assert run.exit_code == plain.exit_code == 0
    assert run.document["gate"]["clauses"][-1] == plain.document["gate"]["clauses"][-1]
    assert run.document.keys() == plain.document.keys()
    assert run.document["labels"].keys() == plain.document["labels"].keys()


@pytest.mark.parametrize("text", ["hunterpassword", "hunterpassword_x", "xhunterpassword", "key hunterpassword"])
def test_a_component_answers_no_name_with_a_secret_in_it(text):
    @attrs.frozen
    class Metric:
        tier = "truth"
        key: Secret = Secret("hunterpassword")

        def score(self, subject):
            return Score(1.0, details=text, signals={text: text})

    @attrs.frozen
    class Total:
        key: Secret = Secret("hunterpassword")

        @asynccontextmanager
        async def open(self, run):
            yield self

        def add(self, record):
            pass

        def finish(self):
            return {text: text}

    pipeline = {"metrics": ["metric"], "aggregates": ["total"]}
    subjects = [Subject("row", "1", output="yes")]
    run = run_pipeline(pipeline, subjects=subjects, components={"metric": Metric(), "total": Total()})
    assert run.document["scored"] == 1
    shown = [run.document, *(event.payload for event in run.events)]
    assert [part for part in shown if "hunterpassword" in json.dumps(part)] == []
