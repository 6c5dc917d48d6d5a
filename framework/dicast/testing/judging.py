"""What metrics and judges must do."""

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
    """The checks that metrics and judges share.

    - ``subjects``: what to ask about; the golden subjects by default, as far as the component accepts their kind.
    - ``deterministic``: False for one that samples, so that the same question may get another answer.
    """

    subjects: Sequence[Subject] = GOLDEN
    deterministic: bool = True
    answer: ClassVar[tuple[type, ...]]

    def asking(self, live: Any) -> Ask:
        """The method of *live* that answers, taking a subject."""
        raise NotImplementedError

    def accepted(self, component: Any) -> list[Subject]:
        """Those of the ``subjects`` whose kind *component* judges."""
        accepts = getattr(component, "accepts", ())
        found = [subject for subject in self.subjects if not accepts or subject.kind in accepts]
        assert found, (
            f"{self.named} accepts {accepts}, and none of the subjects is of these kinds; give it some: subjects = [...]"
        )
        return found

    def answers(self, component: Any, bench: Bench) -> dict[str, object]:
        """The answers by subject id; where it raised, the exception."""

        async def ask(live: Any) -> dict[str, object]:
            return {subject.id: await _answer(self.asking(live), subject) for subject in self.accepted(component)}

        return self.opened(component, bench.folder, ask)

    def test_answers_every_subject_with_a_score_or_a_failure(self, component: Any, bench: Bench) -> None:
        """No text, a mebibyte, objects, failed tools: a score in [0, 1], or a Failure that says why there is none."""
        found = self.answers(component, bench)
        wrong = {id: fault for id, answer in found.items() if (fault := self._fault(answer))}
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
        """Twice the same question, twice the same score and confidence."""
        if self.deterministic:
            first, second = (self.answers(component, bench) for _ in range(2))
            changed = [id for id in first if _figures(first[id]) != _figures(second[id])]
            assert not changed, (
                f"other answers the second time, about {', '.join(changed)}; or set deterministic = False"
            )

    def test_def_is_quick(self, component: Any, bench: Bench) -> None:
        """A ``def`` runs inline, so it must be quick; what takes its time is an ``async def``."""
        slow = self.opened(component, bench.folder, self._slow)
        limit = f"{DEF_SECONDS * 1000:g} ms of CPU"
        assert not slow, (
            f"takes more than {limit} about {slow}; make it quicker, or an async def that leaves the loop free"
        )

    async def _slow(self, live: Any) -> dict[str, str]:
        ask = self.asking(live)
        if inspect.iscoroutinefunction(ask):
            return {}
        taken = {subject.id: _seconds(ask, subject) for subject in self.accepted(live)}
        return {id: f"{seconds * 1000:.0f} ms" for id, seconds in taken.items() if seconds > DEF_SECONDS}

    def test_leaves_the_subject_as_it_was(self, component: Any, bench: Bench) -> None:
        """Other metrics and judges are asked about the same subject."""
        before = [_content(subject) for subject in self.accepted(component)]
        self.answers(component, bench)
        assert [_content(subject) for subject in self.accepted(component)] == before

    def test_estimate_is_a_cost(self, component: Any, bench: Bench) -> None:
        """The budget is kept by what is said here."""

        async def estimates(live: Any) -> list[object]:
            priced = live if hasattr(live, "estimate") else component
            return [estimate(priced, subject) for subject in self.accepted(component)]

        wrong = [found for found in self.opened(component, bench.folder, estimates) if not isinstance(found, Cost)]
        assert not wrong, f"estimate must return a dicast.Cost, not {wrong[0]!r}"

    def test_costs_no_more_than_the_estimate(self, component: Any, bench: Bench) -> None:
        """A paid call without an estimate, or with one that is too low, breaks every cap. Runs refuse it."""

        async def excesses(live: Any) -> list[str]:
            found = []
            for subject in self.accepted(component):
                answer = await _answer(self.asking(live), subject)
                most = estimate(live if hasattr(live, "estimate") else component, subject)
                cost = getattr(answer, "cost", None)  # an exception has none
                if isinstance(cost, Cost) and (fault := excess(cost, most)):
                    found.append(f"{self.named} about {subject.id}: {fault}")
            return found

        found = self.opened(component, bench.folder, excesses)
        assert not found, found[0]

    def test_cancelled_call_ends(self, component: Any, bench: Bench) -> None:
        """An ``async def`` ends soon after it was cancelled: that is how a timeout and Ctrl-C reach it."""
        lingering = self.opened(component, bench.folder, self._lingering)
        assert not lingering, f"still running {CANCEL_SECONDS:g} s after being cancelled, about {', '.join(lingering)}"

    async def _lingering(self, live: Any) -> list[str]:
        ask = self.asking(live)
        if not inspect.iscoroutinefunction(ask):
            return []
        return [subject.id async for subject in not_ending(ask, self.accepted(live))]


class MetricConformance(AnsweringConformance):
    """What a metric must do. ``metric = "plugin/name"`` says which one."""

    kind = "metric"
    answer = (Score, RawScore)
    metric: str

    def asking(self, live: Any) -> Ask:
        """``score``."""
        method: Ask = live.score
        return method

    def test_a_batch_gets_the_same_answers(self, component: Any, bench: Bench) -> None:
        """``score_batch``, where there is one, says of every subject what ``score`` says of it alone."""
        if self.deterministic:
            changed = self.opened(component, bench.folder, self._changed_together)
            assert not changed, f"score_batch and score differ about {', '.join(changed)}; or set deterministic = False"

    async def _changed_together(self, live: Any) -> list[str]:
        if not hasattr(live, "score_batch"):
            return []
        asked = [(subject, await _answer(live.score, subject)) for subject in self.accepted(live)]
        asked = [(subject, alone) for subject, alone in asked if not isinstance(alone, Exception)]
        together = await maybe_await(live.score_batch([subject for subject, _ in asked]))
        pairs = zip(asked, together, strict=True)
        return [subject.id for (subject, alone), one in pairs if _figures(alone) != _figures(one)]


class JudgeConformance(AnsweringConformance):
    """What a judge must do. ``judge = "plugin/name"`` says which one."""

    kind = "judge"
    answer = (Judgment,)
    judge: str

    def asking(self, live: Any) -> Ask:
        """``judge``, without children."""
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
    except Exception as error:  # reported beside the other answers
        return error


async def not_ending(ask: Callable[[T], Awaitable[object]], asked: Sequence[T]) -> AsyncIterator[T]:
    """Those of *asked* about which *ask*, cancelled right after it began, goes on for too long."""
    for each in asked:
        task = asyncio.ensure_future(ask(each))
        await asyncio.sleep(0)
        task.cancel()
        _, pending = await asyncio.wait({task}, timeout=CANCEL_SECONDS)
        if pending:
            yield each
        elif not task.cancelled():
            task.exception()  # looked at, so that nobody warns about it


def _seconds(ask: Ask, subject: Subject) -> float:
    """The least CPU time of up to five calls: what other processes do to the caches is not the component's fault."""
    taken = []
    for _ in range(5):
        began = time.thread_time()
        with suppress(ScoringError):  # a failure takes its time too
            ask(subject)
        taken.append(time.thread_time() - began)
        if taken[-1] <= DEF_SECONDS:
            break
    return min(taken)


def _figures(answer: object) -> object:
    if isinstance(answer, Score | RawScore):
        return answer.value, answer.confidence
    if isinstance(answer, Judgment):
        return answer.score, answer.confidence
    return answer.kind if isinstance(answer, Failure) else type(answer)


def excess(cost: Cost, most: Cost) -> str | None:
    """Return in which way *cost* is more than the estimate *most*; None if it is not."""
    if cost.is_zero or cost.amount is None or most.amount is None:
        return None
    if most.is_zero:
        return f"costs {cost} without an estimate; add estimate(...), which returns the highest cost of one call"
    if cost.unit != most.unit:
        return f"costs {cost}, and the estimate is in {most.unit}"
    return f"costs {cost}, more than the estimate of {most}" if cost.amount > most.amount else None


def _content(subject: Subject) -> bytes:
    return orjson.dumps([subject.input, subject.output, subject.reference, dict(subject.context)])
