"""Placement of a metric's calls: alone, for many subjects together, or by the executor."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack

import attrs

from ..plan.sections import Slot
from ..values import Failure, Subject
from ..values.answer import is_pending
from .call import Call, Caller, Elsewhere

Host = Callable[[Sequence[Slot]], Awaitable[Mapping[str, Elsewhere]]]
"""Offer of an executor: the metrics that it calls itself, by path."""


def placed(call: Call, elsewhere: Elsewhere | None, stack: AsyncExitStack) -> Call:
    """Return *call*, made by *elsewhere* if it is not None, else by a :class:`Batch` if the metric has ``score_batch`` and is free."""
    score_batch = getattr(getattr(call.function, "__self__", None), "score_batch", None)
    free = not call.nests and call.estimate is None and call.slot.kind == "metric"
    if elsewhere is None and score_batch is not None and free:
        batch = Batch(score_batch)
        stack.push_async_callback(batch.close)
        elsewhere = batch.ask
    return call if elsewhere is None else attrs.evolve(call, elsewhere=elsewhere)


class Batch:
    """Subjects that one metric judges at the same moment, with its *function* that scores them together."""

    def __init__(self, function: Callable[[Sequence[Subject]], object]) -> None:
        self._function = function
        self._waiting: list[tuple[Subject, asyncio.Future[object]]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, caller: Caller, call: Call, subject: Subject) -> asyncio.Future[object]:
        """Score *subject* together with all subjects that are requested before the next turn of the event loop."""
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting.append((subject, answer))
        if len(self._waiting) == 1:
            task = asyncio.create_task(self._ask_all(caller, call))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return answer

    async def _ask_all(self, caller: Caller, call: Call) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            results = await self._answers(caller, call, [subject for subject, _ in waiting])
        except BaseException as error:  # the run has to stop: each waiting call raises it
            for _, answer in waiting:
                if not answer.done():
                    answer.set_exception(error)
            return
        for (_, answer), result in zip(waiting, results, strict=True):
            if not answer.done():
                answer.set_result(result)

    async def _answers(self, caller: Caller, call: Call, subjects: Sequence[Subject]) -> Sequence[object]:
        """Return an answer for each subject, still unchecked. If the call for all fails, each subject is scored alone."""
        try:
            result = caller.timed(self._function, (subjects,), call.seconds)
            if is_pending(result):
                result = await caller.awaited(result, call.seconds)
        except BaseException as error:  # the border to a plugin's code
            caller.failure(call, error)  # unless the run has to stop
            alone = call.here()
            return [await caller.call(alone, subject) for subject in subjects]
        if isinstance(result, Sequence) and len(result) == len(subjects):
            return result
        description = (
            f"{len(result)} answers" if isinstance(result, Sequence) else f"{type(result).__name__}, not a list,"
        )
        message = f"score_batch of {call.slot.name} returned {description} for {len(subjects)} subjects"
        return [Failure("crashed", message)] * len(subjects)

    async def close(self) -> None:
        """Cancel the pending calls."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
