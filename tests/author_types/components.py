"""Components as an author writes them. Each line that a type checker has to refuse ends with ``# error``; tests/test_author_types.py compares."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import assert_type

import attrs

import dicast
from dicast import (
    ChatModel,
    ChatRequest,
    Classes,
    Event,
    Executor,
    Extractor,
    Failure,
    InputPath,
    Judge,
    Judgment,
    Message,
    Metric,
    RawScore,
    Record,
    Reply,
    RunContext,
    Score,
    Sink,
    Source,
    Subject,
    Task,
    Verdict,
    hookimpl,
    judge,
    metric,
)
from dicast.testing import FakeChatModel, FakeJudge, FakeMetric

# Functions


@metric(tier="proxy")
def brevity(subject: Subject, *, words: int = 120) -> Score:
    """Return 1.0 for up to *words* words."""
    return Score(min(1.0, words / max(1, len(subject.text.split()))))


@metric(tier="truth", cost="0.01 usd")
async def paid(subject: Subject, *, service: str) -> Score | Failure:
    """Return the score of a service."""
    return Failure("timeout", service) if subject.output is None else Score(1)


@metric(tier="truth")
def points(subject: Subject) -> RawScore | Failure:
    """Return the number of characters."""
    return RawScore(len(subject.text))


@judge(accepts=["turn"])
def polite(subject: Subject, *, word: str = "please") -> Judgment:
    """Return 1.0 for a text with *word*."""
    return Judgment(float(word in subject.text))


@judge()
async def steady(subject: Subject, children: Sequence[Verdict], *, least: float = 0.5) -> Judgment | Failure:
    """Return 1.0 if no part scores less than *least*."""
    return Judgment(float(all(child.score is not None and child.score >= least for child in children)))


brevity()
brevity(words=3)
brevity(words="3")  # error
brevity(word=3)  # error
brevity(3)  # error
paid(service="s")
paid()  # error
polite(word="thanks")
polite(words="thanks")  # error
steady(least=0.25)
steady(least="0.25")  # error
steady(children=())  # error
assert_type(brevity().score(Subject("row", "1")), Score)
assert_type(polite().judge(Subject("turn", "1")), Judgment)


@metric(tier="gold")  # error
def wrong_tier(subject: Subject) -> Score:
    return Score(1.0)


@metric(tier="proxy")  # error
def returns_a_number(subject: Subject) -> float:
    return 1.0


@judge()  # error
def returns_a_score(subject: Subject) -> Score:
    return Score(1.0)


@metric  # error
def without_a_tier(subject: Subject) -> Score:
    return Score(1.0)


# Nested components


@attrs.frozen
class Asks:
    """Asks a component of each kind."""

    first: Judge
    model: ChatModel
    metric: Metric
    task: Task

    async def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment | Failure:
        reply = await self.model.complete(ChatRequest((Message("user", subject.text),)))
        assert_type(reply, Reply | Failure)
        score = await self.metric.score(subject)
        assert_type(score, Score | RawScore | Failure)
        produced = await self.task.produce(subject)
        assert_type(produced, Subject | Failure)
        assert_type(await self.first.judge(subject, children), Judgment | Failure)
        print(self.first.judge(subject).score)  # error
        await self.model.complete("Is this right?")  # error
        await self.metric.score()  # error
        return await self.first.judge(subject)


@attrs.frozen
class Plain:
    """A component of each kind whose methods are ``def``."""

    tier = "proxy"

    def score(self, subject: Subject) -> Score:
        return Score(float(subject.text.isupper()))

    def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment | Failure:
        return Judgment(1.0)

    def complete(self, request: ChatRequest) -> Reply:
        return Reply("yes", "plain-1")

    def produce(self, subject: Subject) -> Subject:
        return attrs.evolve(subject, output="yes")


plain = Plain()
Asks(plain, plain, plain, plain)
Asks(FakeJudge(), FakeChatModel(), FakeMetric(), plain)
Asks(polite(), plain, brevity(words=3), plain)
Asks(brevity(), plain, brevity(), plain)  # error
Asks(plain, polite(), plain, plain)  # error
Asks(plain, plain, plain, plain, plain)  # error

# Classes with open


class Lines:
    def write(self, events: Sequence[Event]) -> int:
        return len(events)

    def close(self) -> None:
        return None


@attrs.frozen
class Opened:
    """A sink whose live object is opened."""

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncGenerator[Lines]:
        yield Lines()


@attrs.frozen
class Numbers:
    """Numbers as rows."""

    def subjects(self) -> Iterator[Subject]:
        yield Subject("row", "1", output="one")


@attrs.frozen
class Words:
    """The number of words."""

    writes = ("words",)

    def extract(self, record: Record) -> Mapping[str, object]:
        return {"words": len(record["response"]["content"].split())}


@attrs.frozen
class OneByOne:
    """Judges one subject after the other."""

    concurrency: int = 1


@hookimpl
def dicast_metrics() -> Classes[Metric]:
    return [brevity, paid, points, Plain]


@hookimpl
def dicast_judges() -> Classes[Judge]:
    return [polite, steady, Asks]


@hookimpl
def dicast_sinks() -> Classes[Sink]:
    return [Opened, Lines]


@hookimpl
def dicast_sources() -> Classes[Source]:
    return [Numbers]


@hookimpl
def dicast_extractors() -> Classes[Extractor]:
    return [Words]


@hookimpl
def dicast_executors() -> Classes[Executor]:
    return [OneByOne]


def offers_a_source_as_a_sink() -> Classes[Sink]:
    return [Numbers]  # error


def offers_an_opened_sink_as_a_model() -> Classes[ChatModel]:
    return [Opened]  # error


def offers_a_component() -> Classes[Metric]:
    return [brevity()]  # error


@attrs.frozen
class Rows:
    """A source with a file."""

    path: InputPath

    def subjects(self) -> Iterator[Subject]:
        yield Subject("row", "1", output=self.path.read_text())


Rows(Path("rows.txt"))
Rows("rows.txt")  # error

# A run


run = dicast.evaluate([{"output": "yes"}], [brevity(words=3)])
assert_type(run.score["mean"], float | None)
assert_type(run.score["ci_low"], float | None)
assert_type(run.score["label"], str)
run.score["median"]  # error
assert_type(run.labels["metrics"]["scored"], int)
run.labels["metrics"]["coverage"]  # error
