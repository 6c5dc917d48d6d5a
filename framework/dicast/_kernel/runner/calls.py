"""Calling components: the border where whatever a plugin does becomes an answer or a counted Failure."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable

import attrs
import orjson

from ..errors import Interrupted, InvalidScore
from ..model import Cost, Failure, Judgment, Score, Subject
from ..sections import Slot
from .timer import Overtime, Timer

DEF_SECONDS = 60.0
"""How long a ``def`` component may take where its slot has no ``timeout``."""

ASYNC_SECONDS = 600.0
"""How long an ``async def`` component may take where its slot has no ``timeout``."""


@attrs.frozen
class Call:
    """A slot made ready to be called: *function* takes a subject; *estimate* is None where nothing can be charged."""

    slot: Slot
    function: Callable[[Subject], object]
    waits: bool
    seconds: float
    estimate: Callable[[Subject], Cost] | None
    expects: type[Score] | type[Judgment]

    @classmethod
    def of(cls, slot: Slot, component: object) -> Call:
        """*component* is the live object of *slot*."""
        is_judge = slot.kind == "judge"
        method = getattr(component, "judge" if is_judge else "score")
        waits = inspect.iscoroutinefunction(method)
        return cls(
            slot,
            (lambda subject: method(subject, ())) if is_judge else method,
            waits,
            slot.timeout or (ASYNC_SECONDS if waits else DEF_SECONDS),
            getattr(component, "estimate", None),
            Judgment if is_judge else Score,
        )


class Caller:
    """Calls components under their timers."""

    def __init__(self, timer: Timer, stopped: Callable[[], bool]) -> None:
        self._timer, self._stopped = timer, stopped

    async def call(self, call: Call, subject: Subject) -> Score | Judgment | Failure:
        """Ask once; whatever is raised or returned amiss becomes a Failure.

        :raises Interrupted: when the call was ended because the run has to stop; it is nobody's failure.
        """
        try:
            answer = call.function(subject) if call.waits else self._timed(call, subject)
            if type(answer) is not Score and inspect.isawaitable(answer):
                answer = await _within(answer, call.seconds)
        except (Overtime, _TimeUp) as error:
            if self._stopped():
                raise Interrupted("the run was asked to stop") from error
            return Failure("timeout", f"no answer within {call.seconds:g} s", retryable=True)
        except InvalidScore as error:
            return Failure("invalid_score", str(error))
        except Interrupted:
            raise
        except (Exception, SystemExit) as error:  # the border: a plugin's fault is counted, not passed on
            return Failure("crashed", f"{type(error).__name__}: {error}")
        return checked(answer, call)

    def _timed(self, call: Call, subject: Subject) -> object:
        timer = self._timer
        timer.begin(call.seconds)
        try:
            return call.function(subject)
        finally:
            timer.end()


class _TimeUp(Exception):
    """An awaited answer did not come in time."""


async def _within(answer: Awaitable[object], seconds: float) -> object:
    try:
        async with asyncio.timeout(seconds) as limit:
            return await answer
    except TimeoutError:
        if limit.expired():
            raise _TimeUp from None
        raise


def checked(answer: object, call: Call) -> Score | Judgment | Failure:
    """Accept an answer of the expected kind whose evidence is JSON; anything else is an invalid score."""
    if isinstance(answer, Failure):
        return answer
    slot = call.slot
    if slot.range is not None and call.expects is Score:
        try:
            answer = _rescaled(answer, *slot.range)
        except InvalidScore as error:
            return Failure("invalid_score", str(error))
    if not isinstance(answer, call.expects):
        article = "a Judgment" if call.expects is Judgment else "a Score"
        return Failure("invalid_score", f"{slot.name} returned {answer!r:.200}, not {article}")
    return _evidence_failure(answer) or answer


def _evidence_failure(answer: Score | Judgment) -> Failure | None:
    if not answer.signals and (isinstance(answer, Judgment) or not answer.details):
        return None
    try:
        orjson.dumps([answer.signals, getattr(answer, "details", "")])
    except TypeError as error:
        return Failure("invalid_score", f"signals and details must be JSON: {error}")
    return None


def _rescaled(answer: object, low: float, high: float) -> object:
    """Bring a bare number, or a Score's raw one, from [low, high] to [0, 1].

    :raises InvalidScore: when it lies outside.
    """
    raw = answer.raw if isinstance(answer, Score) else answer
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return answer
    if not low <= raw <= high:
        raise InvalidScore(f"{raw!r} lies outside the declared range [{low:g}, {high:g}]")
    value = (raw - low) / (high - low)
    return attrs.evolve(answer, value=value) if isinstance(answer, Score) else Score(value, raw=float(raw))


def as_score(judgment: Judgment) -> Score:
    """A judge's answer where a metric is expected."""
    return Score(judgment.score, judgment.confidence, cost=judgment.cost, signals=judgment.signals)
