"""Calls of components: any behavior of a plugin becomes an answer or a counted Failure."""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import orjson

from ..classes import evolve, frozen
from ..contract.define import NeedsOutput
from ..contract.plugin_errors import author_place, describe_error, in_brackets, is_plugins_own, place_of
from ..contract.protocols import Judge, member
from ..plan.secret_mask import SecretMask
from ..plan.sections import Slot
from ..plan.variables import FileVariables
from ..stream.sinks import Silence
from ..timing.awaiting import TimeUp, within
from ..timing.stop import Stop
from ..timing.timer import Overtime, Timer
from ..values import Cost, Failure, Judgment, Score, Subject, Verdict
from ..values.answer import is_pending
from ..values.endpoint_errors import UNSUPPORTED, AccessRefused, EndpointUnreachable, UnsupportedByModel
from ..values.errors import Interrupted, InvalidScore
from ..values.raw_score import RawScore

DEF_SECONDS = 60.0
"""Seconds for a ``def`` component whose slot has no ``timeout``."""

ASYNC_SECONDS = 600.0
"""Seconds for an ``async def`` component whose slot has no ``timeout``."""


Children = Sequence[Verdict]
"""Verdicts that a judge gets in addition to its subject."""

_METHODS: Mapping[str, tuple[str, type[Any]]] = {
    "judge": ("judge", Judgment),
    "task": ("produce", Subject),
    "extractor": ("extract", Mapping),
}
"""Method and type of the answer by kind of component; other kinds have a score."""

Elsewhere = Callable[["Caller", "Call", Subject], Awaitable[object]]
"""Starts a call elsewhere, at once; returns an awaitable of the answer."""


@frozen
class Call:
    """A slot that is ready to be called.

    *function* takes a subject; the function of a judge also takes its children, and the function of an extractor takes a record instead.
    *waits* is True for an ``async def``. *estimate* is None if nothing can be charged. *expects* is the type of the answer. *quick* is True
    for a plain call: it neither waits nor costs, nests no other call and is not tried again. *nests* is True if there are judges or chat
    models inside. *fallback* is the judge for calls that a cap forbids. *elsewhere* replaces *function* if the call is made together with
    others or in another process, and keeps its own time. *is_unproven* is True if the actual cost may exceed the estimate until the first
    answer shows it. *needs_output* is True if a subject needs an output: see :class:`~dicast.Metric`. *lasting* is the highest number of
    seconds until a reply if all its chat models answer in batches, else 0. *reserves_inside* is True if the estimate covers only the nested
    judges, for which the kernel reserves.
    """

    slot: Slot
    function: Callable[..., object]
    waits: bool
    seconds: float
    estimate: Callable[[Subject], Cost] | None
    expects: type[Any]
    quick: bool
    nests: bool
    fallback: Judge | None
    elsewhere: Elsewhere | None = None
    is_unproven: bool = False
    needs_output: NeedsOutput = False
    lasting: float = 0.0
    reserves_inside: bool = False

    @classmethod
    def of(
        cls, slot: Slot, live: object, component: object | None = None, *, nests: bool = False, is_priced: bool = True
    ) -> Call:
        """Return the call of *slot* by its *live* object; *is_priced* is whether every chat model inside has an estimate.

        An optional member may be declared by *live* or by the *component* that it was opened from.
        """
        component = live if component is None else component
        name, expects = _METHODS.get(slot.kind, ("score", Score))
        method = getattr(live, name)
        waits = inspect.iscoroutinefunction(method)
        estimate = member(live, component, "estimate")
        fallback = member(live, component, "fallback") if expects is Judgment else None
        return cls(
            slot,
            method,
            waits,
            slot.timeout or member(live, component, "default_timeout") or (ASYNC_SECONDS if waits else DEF_SECONDS),
            estimate,
            expects,
            not (waits or slot.retries or nests or fallback or estimate),
            nests,
            fallback,
            is_unproven=waits and not (nests and is_priced),
            needs_output=expects in (Score, Judgment) and member(live, component, "needs_output", True),
            reserves_inside=nests and member(live, component, "estimates_judges", False),
        )

    def here(self) -> Call:
        """Return the call in this process."""
        return evolve(self, elsewhere=None)

    def lacks_output(self, subject: Subject, children: Children = ()) -> bool:
        """Return whether *subject* lacks a needed output; its events, or *children*, may replace an output."""
        if not self.needs_output or subject.output is not None:
            return False
        return self.needs_output == "always" or not (subject.events or children)


NO_SECRETS = SecretMask(())

_NO_VARIABLES = FileVariables()

_FREE = Cost.zero()


class Caller:
    """Caller of components, under their timers."""

    def __init__(
        self, timer: Timer, stop: Stop, mask: SecretMask = NO_SECRETS, variables: FileVariables = _NO_VARIABLES
    ) -> None:
        self._timer, self._stop, self._mask, self._variables = timer, stop, mask, variables

    def ticking(self) -> AbstractContextManager[None]:
        """End calls that exceed their time, during the block."""
        return self._timer.ticking(self._stop.__bool__)

    async def call(self, call: Call, subject: Any, children: Children = ()) -> Any:
        """Call the component once; an exception or an invalid result becomes a Failure.

        :raises Interrupted: if the call was ended because the run has to stop; this is not a failure of the component.
        """
        return await self.answered(call, self.call_def(call, subject, children))

    async def answered(self, call: Call, answer: object) -> Any:
        """Return *answer* itself, or its awaited result within the call's time."""
        if not is_pending(answer):
            return answer
        try:
            result = await (self.awaited(answer, call.seconds) if call.elsewhere is None else answer)
            return self._checked(result, call)
        except BaseException as error:  # the border: a plugin's fault is counted, not passed on
            return self.failure(call, error)

    def call_def(self, call: Call, subject: Any, children: Children = ()) -> Any:
        """Call the component; return its answer, or an awaitable for :meth:`answered`."""
        if call.needs_output and subject.output is None and call.lacks_output(subject, children):
            return no_output(subject)
        try:
            if call.elsewhere is not None:
                return call.elsewhere(self, call, subject)
            arguments = (subject, children) if call.expects is Judgment else (subject,)
            return self._accepted(self.timed(call.function, arguments, call.seconds), call)
        except BaseException as error:  # the border, as above
            return self.failure(call, error)

    def call_quick(self, calls: Sequence[Call], subject: Subject, answers: list[Any]) -> tuple[bool, bool]:
        """Add the answers of :meth:`call_def` to the quick *calls*, whose slots have no scale, to *answers*, until one is no plain score.

        Return whether the last answer is no plain score, and whether a plain score has a text or signals.
        """
        timer, now, lacks, has_notes = self._timer, time.monotonic, subject.output is None, False
        before = timer.deadline
        for call in calls:  # written flat: for every row
            if lacks and call.needs_output and call.lacks_output(subject):
                answers.append(no_output(subject))
                return True, has_notes
            try:
                until = now() + call.seconds  # as timed does
                timer.over, timer.deadline = False, min(before, until) if before else until
                try:
                    answer: Any = call.function(subject)
                finally:
                    timer.deadline = before
                if timer.over:
                    raise Overtime  # as timed does
                if is_other := (
                    type(answer) is not Score
                    or answer.signals
                    or answer.details
                    or answer.feedback
                    or answer.raw is not None
                ):
                    answer = self._accepted(answer, call)
            except BaseException as error:  # the border, as above
                answer, is_other = self.failure(call, error), True
            answers.append(answer)
            if is_other:
                if type(answer) is not Score or answer.raw is not None or answer.feedback:
                    return True, has_notes
                has_notes = has_notes or bool(answer.details or answer.signals)
            if answer.cost is not _FREE or type(answer.details) is not str or type(answer.signals) is not dict:
                return True, has_notes
        return False, has_notes

    def _accepted(self, answer: object, call: Call) -> Any:
        """Return the *answer* of a call that ended in time: an awaitable unchanged, any other answer checked."""
        slot = call.slot
        is_scaled = slot.range is not None or slot.is_raw
        if type(answer) is Score and call.expects is Score and answer.raw is None and not is_scaled:
            if not (answer.signals or answer.details or answer.feedback):
                return answer
            return self._mask.answer(_evidence_failure(answer) or answer)
        return answer if is_pending(answer) else self._checked(answer, call)

    def _checked(self, answer: object, call: Call) -> Any:
        return self._mask.answer(checked(answer, call))

    def timed(self, function: Callable[..., object], arguments: Sequence[object], seconds: float) -> object:
        """Return the result of *function* within *seconds*.

        :raises Overtime: if its time is over.
        """
        timer = self._timer
        before, until = (
            timer.deadline,
            time.monotonic() + seconds,
        )  # as Timer.patiently does, without a call for each row
        timer.over, timer.deadline = False, min(before, until) if before else until
        try:
            answer = function(*arguments)
        finally:
            timer.deadline = before
        if timer.over:
            raise Overtime  # the component swallowed the first one
        return answer

    async def ask_sink(self, action: Callable[[], object], seconds: float, awaited: float) -> object:
        """Return the sink's answer to *action*: *seconds* for a ``def``, also while the run stops, and *awaited* for an awaited answer.

        :raises Silence: if it takes longer.
        """
        limit = seconds
        try:
            answer = self._timer.patiently(lambda _: action(), None, seconds)
            if not is_pending(answer):
                return answer
            limit = awaited
            return await self.awaited(answer, awaited)
        except (Overtime, TimeUp) as error:
            raise Silence(f"no answer within {limit:g} s{error}") from error

    def awaited(self, answer: Awaitable[object], seconds: float) -> Awaitable[object]:
        """Await *answer* within *seconds*, as :func:`within` does."""
        return within(self._timer, answer, seconds)

    def estimate(self, call: Call, subject: Subject) -> Cost | Failure:
        """Return the most that *call* may cost, without the judges inside; zero if it has no estimate."""
        if call.estimate is None or call.reserves_inside:
            return Cost.zero()
        try:
            cost = self.timed(call.estimate, (subject,), call.seconds)
        except BaseException as error:  # the border, as above
            return self.failure(call, error)
        if isinstance(cost, Cost):
            return cost
        return Failure("crashed", f"its estimate is {cost!r:.200}, not a Cost{_line_of(call.estimate)}")

    def failure(self, call: Call, error: BaseException) -> Failure:
        """Return the failure for an exception of a component.

        :raises Interrupted: if it was raised because the run has to stop.
        """
        if not is_plugins_own(error):
            raise error
        if isinstance(error, AccessRefused):
            self._request_stop(call, error)
        if isinstance(error, Interrupted | Overtime | AccessRefused) and self._stop:
            raise Interrupted("the run was asked to stop") from error
        if isinstance(error, Overtime | TimeUp):
            return Failure("timeout", f"no answer within {call.seconds:g} s{error}", retryable=True)
        if isinstance(error, InvalidScore):
            return Failure("invalid_score", self._readable(f"{error}{in_brackets(author_place(error, _module(call)))}"))
        return Failure("crashed", self._readable(describe_error(error, _module(call))))

    def _request_stop(self, call: Call, error: AccessRefused) -> None:
        """Request the end of the run because of *error*, with the variables of the file that may be wrong."""
        message = self._readable(str(error))
        details: Mapping[str, object] = self._variables.details(call.slot.component, message)
        if isinstance(error, EndpointUnreachable):
            self._stop.request("endpoint_unreachable", message, {**self._mask.data(error.details), **details})
        else:
            reason = UNSUPPORTED if isinstance(error, UnsupportedByModel) else "refused_by_provider"
            self._stop.request(reason, message, details)

    def _readable(self, text: str) -> str:
        return self._mask.text(_readable(text))


def no_output(subject: Subject) -> Failure:
    """Return the failure of a subject without an output."""
    return Failure("missing_input", f"the {subject.kind} has no output to judge; an empty text would be one")


def _module(call: Call) -> str:
    return type(call.slot.component).__module__


def _line_of(function: object) -> str:
    return in_brackets(place_of(function))


def _readable(text: str) -> str:
    """Return *text* in a form that can be written in UTF-8."""
    return text.encode(errors="backslashreplace").decode()


def checked(answer: object, call: Call) -> Any:
    """Return *answer* if it is of the expected kind and its evidence is JSON; otherwise a failure."""
    slot = call.slot
    if call.expects is Score:
        try:
            answer = _on_scale(answer, slot)
        except InvalidScore as error:
            return Failure("invalid_score", str(error), cost=getattr(answer, "cost", Cost.zero()))
    if isinstance(answer, call.expects):
        return answer if call.expects not in (Score, Judgment) else _evidence_failure(answer) or answer
    if isinstance(answer, Failure):
        return evolve(answer, message=_readable(str(answer.message)))
    kind = "invalid_score" if call.expects in (Score, Judgment) else "crashed"
    return Failure(
        kind, f"{slot.name} returned {answer!r:.200}, not a {call.expects.__name__}{_line_of(call.function)}"
    )


def _evidence_failure(answer: Score | Judgment) -> Failure | None:
    signals: object = answer.signals
    if type(signals) is not dict and not isinstance(signals, Mapping):
        return Failure("invalid_score", f"signals must be a mapping, not {type(signals).__name__}", cost=answer.cost)
    texts: list[object] = [answer.details, answer.feedback] if isinstance(answer, Score) else [answer.judge_model]
    if not signals and all([type(text) is str and text.isascii() for text in texts]):  # noqa: C419  # for every metric
        return None
    try:
        orjson.dumps([signals, texts])
    except TypeError as error:
        return Failure("invalid_score", f"signals and texts must be JSON: {error}", cost=answer.cost)
    return None


def _on_scale(answer: object, slot: Slot) -> object:
    """Return *answer* on the scale of *slot*: in [0, 1], or without a value if the slot's numbers stay raw.

    A RawScore, a bare number, and the ``raw`` of a Score are mapped; any other answer is returned unchanged.

    :raises InvalidScore: if the number is outside the slot's range, or the slot has no range.
    """
    if isinstance(answer, RawScore):
        return answer.unscaled() if slot.is_raw else answer.on(slot.range)
    if slot.range is None and not slot.is_raw:
        if type(answer) is Score and answer.value is None:
            raise InvalidScore(f"{answer.raw!r} is a raw number: give {slot.name} a range, as in range: [0, 100]")
        return answer
    raw = answer.raw if isinstance(answer, Score) else answer
    if raw is None and isinstance(answer, Score) and slot.is_raw:
        raw = answer.value
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return answer
    score = RawScore(raw).unscaled() if slot.is_raw else RawScore(raw).on(slot.range)
    return evolve(answer, value=score.value, raw=score.raw) if isinstance(answer, Score) else score


def as_score(judgment: Judgment) -> Score:
    """Return a judge's answer as the score of a metric."""
    return Score(
        judgment.score, judgment.confidence, cost=judgment.cost, signals=judgment.signals, basis=judgment.basis
    )
