"""Calls of metrics for executors that make them in other processes.

An executor with ``host`` takes over the metrics that have no :func:`reason_to_stay`. It sends their slots to its workers, which call them with :class:`MetricCalls`.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Protocol

import attrs

from . import ChatModel, Judge, Subject
from ._kernel.asking.call import Call, Caller
from ._kernel.contract.implements import implements
from ._kernel.contract.kinds import parts
from ._kernel.plan.sections import Slot
from ._kernel.timing.event_loop import patient_collector
from ._kernel.timing.stop import Stop
from ._kernel.timing.timer import Timer

__all__ = ["Call", "CallInRun", "CallerInRun", "MetricCalls", "Slot", "reason_to_stay"]


class CallInRun(Protocol):
    """Call of a metric, in the process of the run."""

    @property
    def seconds(self) -> float:
        """The seconds that a call may take."""
        ...

    def here(self) -> CallInRun:
        """Return the call in the process of the run."""
        ...


class CallerInRun(Protocol):
    """Caller of metrics, in the process of the run."""

    def call(self, call: CallInRun, subject: Subject) -> Awaitable[object]:
        """Call the metric about *subject*. The answer is a score or a failure."""
        ...


def reason_to_stay(slot: Slot) -> str | None:
    """Return the reason why the metric of *slot* has to be called in the process of the run; None if it can be pickled and called in another process."""
    component = slot.component
    inside = [part for part in parts(component) if attrs.has(type(part)) and part is not component]
    if slot.kind == "judge":
        return "it is a judge"
    if any(hasattr(part, "open") for part in (component, *inside)):
        return "it is opened once a run"
    if any(implements(part, ChatModel) or implements(part, Judge) for part in inside):
        return "it asks a model or a judge"
    if inspect.iscoroutinefunction(component.score):
        return "it waits (async def)"
    if hasattr(component, "score_batch"):
        return "it is asked for many subjects together"
    try:
        pickle.dumps(component)
    except Exception as error:  # the border to a plugin's code
        return f"it cannot be pickled ({type(error).__name__}: {error})"
    return None


class MetricCalls:
    """Calls of metrics in another process than that of the run, under the time limits of their slots."""

    def __init__(self) -> None:
        self._timer = Timer()
        self._caller = Caller(self._timer, Stop())

    def call_of(self, slot: Slot) -> Call:
        """Return the call of the metric of *slot*, for :meth:`answer`."""
        return Call.of(slot, slot.component)

    @contextmanager
    def ticking(self) -> Iterator[None]:
        """End calls that exceed their time during the block, which calls many metrics."""
        with patient_collector(), self._timer.ticking(bool):
            yield

    async def answer(self, call: Call, subject: Subject) -> object:
        """Call the metric about *subject*, and return a score, or a failure for everything else that it does.

        :raises dicast.Interrupted: if every further call would fail too; its cause is the error of the metric.
        """
        return await self._caller.call(call, subject)
