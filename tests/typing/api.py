"""What a type checker has to see in the public API. Checked by mypy and basedpyright, never executed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from decimal import Decimal
from typing import assert_type

import attrs

from dicast import (
    Cost,
    Event,
    Failure,
    Judge,
    Judgment,
    Metric,
    Score,
    Sink,
    Source,
    Subject,
    Verdict,
    hookimpl,
    judge,
    maybe_await,
    metric,
)
from dicast.optional import HasEstimate, HasWants


@metric(tier="proxy")
def brevity(subject: Subject, *, words: int = 120) -> Score:
    return Score(min(1.0, words / max(1, len(subject.text.split()))))


@metric(tier="truth", cost="0.01 usd", name="slow")
async def waits(subject: Subject) -> Score | Failure:
    return Failure("timeout", "too slow") if subject.output is None else Score(1)


@judge(accepts=["turn"])
def polite(subject: Subject) -> Judgment:
    return Judgment(1.0 if "please" in subject.text else 0.0)


@metric(tier="cheap")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
def wrong_tier(subject: Subject) -> Score:
    return Score(float(bool(subject.text)))


@attrs.frozen
class Shout:
    """1.0 when everything is in capitals."""

    tier = "proxy"
    threshold: float = 0.5

    def score(self, subject: Subject) -> Score:
        return Score(float(subject.text.isupper()))

    def estimate(self, subject: Subject) -> Cost:
        return Cost.zero() if subject.text else Cost("0.01")


@attrs.frozen
class Nested:
    """A judge of another judge and a metric; composition is by field type."""

    accepts = ("turn",)
    first: Judge
    second: Metric

    async def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment | Failure:
        answer = self.first.judge(subject, children)
        return answer if isinstance(answer, Judgment | Failure) else await answer


async def awaited(now: str, later: Awaitable[str]) -> None:
    assert_type(await maybe_await(later), str)
    assert_type(await maybe_await(now), str)


class Numbers:
    def subjects(self) -> Iterator[Subject]:
        yield Subject("row", "1", output="one")


class Stream:
    async def subjects(self) -> AsyncIterator[Subject]:
        yield Subject("row", "1", output="one")


class Memory:
    def write(self, events: Sequence[Event]) -> int:
        return len(events)

    def close(self) -> None:
        return None


sources: list[Source] = [Numbers(), Stream()]
sink: Sink = Memory()
a_metric: Metric = Shout()
a_judge: Judge = Nested(polite(), brevity(words=3))
not_a_metric: Metric = Memory()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]


@hookimpl
def dicast_metrics() -> list[type[Metric]]:
    return [Shout, brevity, waits]


@hookimpl
def dicast_judges() -> list[type[Judge]]:
    return [Nested, polite]


def values(score: Score, cost: Cost, verdict: Verdict) -> None:
    assert_type(score.value, float | None)
    assert_type(cost.amount, Decimal | None)
    assert_type(cost + cost, Cost)
    assert_type(verdict.tier, str)
    score.value = 1.0  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


# Optional members


@attrs.frozen
class Estimating:
    """What it may cost is said."""

    def estimate(self, asked: Subject) -> Cost:
        return Cost.zero()

    wants = ("eval.completed",)


@attrs.frozen
class Amiss:
    """Nothing of it is right."""

    def estimate(self) -> float:
        return 0.0

    wants = 3


estimates: type[HasEstimate] = Estimating
wants: HasWants = Estimating()
not_an_estimate: HasEstimate = Amiss()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
not_types: HasWants = Amiss()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
