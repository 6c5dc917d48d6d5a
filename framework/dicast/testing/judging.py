"""Checks for metrics and judges."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar, TypeVar

import orjson

from .._kernel.contract.define import maybe_await
from .._kernel.contract.protocols import estimate
from .._kernel.values import Cost, Failure, Judgment, Score, Subject
from .._kernel.values.errors import ScoringError
from .._kernel.values.raw_score import RawScore
from .conformance import Conformance
from .pipeline import Bench
from .subjects import GOLDEN

DEF_SECONDS = 0.05
"""CPU time that a ``def`` may take for a golden subject: it holds up everything else."""

ASYNC_SECONDS = 30.0
"""How long an ``async def`` may take for a golden subject."""

CANCEL_SECONDS = 1.0
"""How long a call may go on after it was cancelled."""

Ask = Callable[[Subject], Any]
T = TypeVar("T")


class AnsweringConformance(Conformance):
    """Checks that metrics and judges share.

    - ``subjects``: the subjects that the component gets; by default the golden subjects of the kinds that it accepts.
    - ``deterministic``: False for a component that samples, so that its answers to one subject may differ.
    """

    subjects: Sequence[Subject] = GOLDEN
    deterministic: bool = True
    answer: ClassVar[tuple[type, ...]]

    def asking(self, live: Any) -> Ask:
        """Return the method of *live* that takes a subject and returns an answer."""
        raise NotImplementedError

    def accepted(self, component: Any) -> list[Subject]:
        """Return the ``subjects`` of the kinds that *component* judges."""
        accepts = getattr(component, "accepts", ())
        subjects = [subject for subject in self.subjects if not accepts or subject.kind in accepts]
        assert subjects, (
            f"{self.named} accepts {accepts}, and none of the subjects is of these kinds; give it some: subjects = [...]"
        )
        return subjects

    def answers(self, component: Any, bench: Bench) -> dict[str, object]:
        """Return the answers by subject id, with the exception in place of an answer if the component raised."""

        async def ask(live: Any) -> dict[str, object]:
            return {subject.id: await _answer(self.asking(live), subject) for subject in self.accepted(component)}

        return self.opened(component, bench.folder, ask)

    def test_answers_every_subject_with_a_score_or_a_failure(self, component: Any, bench: Bench) -> None:
        """No text, a mebibyte, objects, failed tools: a score in [0, 1], or a Failure that says why there is none."""
        answers = self.answers(component, bench)
        wrong = {id: fault for id, answer in answers.items() if (fault := self._fault(answer))}
        assert not wrong, "\n".join(f"{id}: {fault}" for id, fault in wrong.items())

    def _fault(self, answer: object) -> str | None:
        if isinstance(answer, Failure | ScoringError):
            return None
        if isinstance(answer, BaseException):
            return f"raised {type(answer).__name__}: {answer}; return a Failure, or raise a ScoringError"
        if not isinstance(answer, self.answer):
            return f"returned {answer!r:.200}, not a {self.answer[0].__name__} or a Failure"
        try:
            orjson.dumps(dict(getattr(answer, "signals")))  # noqa: B009  # every answer has them
        except TypeError as error:
            return f"has signals that are not JSON: {error}"
        return None

    def test_same_subject_gets_the_same_answer(self, component: Any, bench: Bench) -> None:
        """The second answer to a subject has the same score and confidence."""
        if self.deterministic:
            first, second = (self.answers(component, bench) for _ in range(2))
            changed = [id for id in first if _figures(first[id]) != _figures(second[id])]
            assert not changed, (
                f"other answers the second time, about {', '.join(changed)}; or set deterministic = False"
            )

    def test_def_is_quick(self, component: Any, bench: Bench) -> None:
        """A ``def`` runs inline, so it must be quick; slow work belongs into an ``async def``."""
        slow = self.opened(component, bench.folder, self._slow)
        limit = f"{DEF_SECONDS * 1000:g} ms of CPU"
        assert not slow, (
            f"takes more than {limit} about {slow}; make it quicker, or an async def that leaves the loop free"
        )

    async def _slow(self, live: Any) -> dict[str, str]:
        ask = self.asking(live)
        if inspect.iscoroutinefunction(ask):
            return {}
        durations = {subject.id: _seconds(ask, subject) for subject in self.accepted(live)}
        return {id: f"{seconds * 1000:.0f} ms" for id, seconds in durations.items() if seconds > DEF_SECONDS}

    def test_leaves_the_subject_as_it_was(self, component: Any, bench: Bench) -> None:
        """Other metrics and judges get the same subject."""
        before = [_content(subject) for subject in self.accepted(component)]
        self.answers(component, bench)
        assert [_content(subject) for subject in self.accepted(component)] == before

    def test_estimate_is_a_cost(self, component: Any, bench: Bench) -> None:
        """The budget reserves the estimate before each call."""

        async def estimates(live: Any) -> list[object]:
            priced = live if hasattr(live, "estimate") else component
            return [estimate(priced, subject) for subject in self.accepted(component)]

        wrong = [cost for cost in self.opened(component, bench.folder, estimates) if not isinstance(cost, Cost)]
        assert not wrong, f"estimate must return a dicast.Cost, not {wrong[0]!r}"

    def test_costs_no_more_than_the_estimate(self, component: Any, bench: Bench) -> None:
        """A paid call without an estimate, or with one that is too low, breaks every cap. Runs refuse it."""

        async def excesses(live: Any) -> list[str]:
            excess_costs = []
            for subject in self.accepted(component):
                answer = await _answer(self.asking(live), subject)
                most = estimate(live if hasattr(live, "estimate") else component, subject)
                cost = getattr(answer, "cost", None)  # an exception has none
                if isinstance(cost, Cost) and (fault := excess(cost, most)):
                    excess_costs.append(f"{self.named} about {subject.id}: {fault}")
            return excess_costs

        excess_costs = self.opened(component, bench.folder, excesses)
        assert not excess_costs, excess_costs[0]

    def test_cancelled_call_ends(self, component: Any, bench: Bench) -> None:
        """A cancelled ``async def`` ends soon. Timeouts and Ctrl-C cancel calls."""
        lingering = self.opened(component, bench.folder, self._lingering)
        assert not lingering, f"still running {CANCEL_SECONDS:g} s after being cancelled, about {', '.join(lingering)}"

    async def _lingering(self, live: Any) -> list[str]:
        ask = self.asking(live)
        if not inspect.iscoroutinefunction(ask):
            return []
        return [subject.id async for subject in not_ending(ask, self.accepted(live))]


class MetricConformance(AnsweringConformance):
    """Checks for a metric. Name it with ``metric = "plugin/name"``."""

    kind = "metric"
    answer = (Score, RawScore)
    metric: str

    def asking(self, live: Any) -> Ask:
        """Return ``score``."""
        method: Ask = live.score
        return method

    def test_a_batch_gets_the_same_answers(self, component: Any, bench: Bench) -> None:
        """``score_batch``, if the metric has one, returns the same answer for each subject as ``score``."""
        if self.deterministic:
            changed = self.opened(component, bench.folder, self._changed_together)
            assert not changed, f"score_batch and score differ about {', '.join(changed)}; or set deterministic = False"

    async def _changed_together(self, live: Any) -> list[str]:
        if not hasattr(live, "score_batch"):
            return []
        answers = [(subject, await _answer(live.score, subject)) for subject in self.accepted(live)]
        answers = [(subject, alone) for subject, alone in answers if not isinstance(alone, Exception)]
        together = await maybe_await(live.score_batch([subject for subject, _ in answers]))
        pairs = zip(answers, together, strict=True)
        return [subject.id for (subject, alone), answer in pairs if _figures(alone) != _figures(answer)]


class JudgeConformance(AnsweringConformance):
    """Checks for a judge. Name it with ``judge = "plugin/name"``."""

    kind = "judge"
    answer = (Judgment,)
    judge: str

    def asking(self, live: Any) -> Ask:
        """Return ``judge``, called without children."""
        method = live.judge
        if inspect.iscoroutinefunction(method):

            async def wait(subject: Subject) -> object:
                return await method(subject, ())

            return wait
        return lambda subject: method(subject, ())


async def _answer(ask: Ask, subject: Subject) -> object:
    try:
        async with asyncio.timeout(ASYNC_SECONDS):
            return await maybe_await(ask(subject))
    except Exception as error:  # reported along with the other answers
        return error


async def not_ending(ask: Callable[[T], Awaitable[object]], requests: Sequence[T]) -> AsyncIterator[T]:
    """Yield each of *requests* whose call with *ask* goes on for too long after it was cancelled right at its start."""
    for request in requests:
        task = asyncio.ensure_future(ask(request))
        await asyncio.sleep(0)
        task.cancel()
        _, pending = await asyncio.wait({task}, timeout=CANCEL_SECONDS)
        if pending:
            yield request
        elif not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it


def _seconds(ask: Ask, subject: Subject) -> float:
    """Return the least CPU time of up to five calls, since other processes slow calls down through shared caches."""
    durations = []
    for _ in range(5):
        began = time.thread_time()
        with suppress(ScoringError):  # a failure takes its time too
            ask(subject)
        durations.append(time.thread_time() - began)
        if durations[-1] <= DEF_SECONDS:
            break
    return min(durations)


def _figures(answer: object) -> object:
    if isinstance(answer, Score | RawScore):
        return answer.value, answer.confidence
    if isinstance(answer, Judgment):
        return answer.score, answer.confidence
    return answer.kind if isinstance(answer, Failure) else type(answer)


def excess(cost: Cost, most: Cost) -> str | None:
    """Describe how *cost* exceeds the estimate *most*; return None if it does not."""
    if cost.is_zero or cost.amount is None or most.amount is None:
        return None
    if most.is_zero:
        return f"costs {cost} without an estimate; add estimate(...), which returns the highest cost of one call"
    if cost.unit != most.unit:
        return f"costs {cost}, and the estimate is in {most.unit}"
    return f"costs {cost}, more than the estimate of {most}" if cost.amount > most.amount else None


def _content(subject: Subject) -> bytes:
    return orjson.dumps([subject.input, subject.output, subject.reference, dict(subject.context)])
