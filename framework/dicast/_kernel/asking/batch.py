"""Where a metric is asked: here and alone, here for many subjects together, or where the executor asks it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack

import attrs

from ..plan.sections import Slot
from ..values import Failure, Subject
from .call import Call, Caller, Elsewhere

Host = Callable[[Sequence[Slot]], Awaitable[Mapping[str, Elsewhere]]]
"""An executor's offer: of these metrics, those that it asks itself, by path."""


def placed(call: Call, elsewhere: Elsewhere | None, stack: AsyncExitStack) -> Call:
    """*call* as it is made *elsewhere*; or for many subjects together, where its metric can and nothing is to be paid."""
    together = getattr(getattr(call.function, "__self__", None), "score_batch", None)
    free = not call.nests and call.estimate is None and call.slot.kind == "metric"
    if elsewhere is None and together is not None and free:
        gathering = Batch(together)
        stack.push_async_callback(gathering.close)
        elsewhere = gathering.ask
    return call if elsewhere is None else attrs.evolve(call, elsewhere=elsewhere)


class Batch:
    """The subjects that one metric is asked about at the same moment, and its *function* that scores them together."""

    def __init__(self, function: Callable[[Sequence[Subject]], object]) -> None:
        self._function = function
        self._waiting: list[tuple[Subject, asyncio.Future[object]]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, caller: Caller, call: Call, subject: Subject) -> asyncio.Future[object]:
        """Ask about *subject* together with all that are asked about before the loop comes round."""
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
            found = await self._answers(caller, call, [subject for subject, _ in waiting])
        except BaseException as error:  # the run has to stop: it is raised for whoever waits
            for _, answer in waiting:
                if not answer.done():
                    answer.set_exception(error)
            return
        for (_, answer), one in zip(waiting, found, strict=True):
            if not answer.done():
                answer.set_result(one)

    async def _answers(self, caller: Caller, call: Call, subjects: Sequence[Subject]) -> Sequence[object]:
        """An answer for each subject, still to be checked. A call for all that fails is made again for each alone."""
        try:
            found = caller.timed(self._function, (subjects,), call.seconds)
            if isinstance(found, Awaitable):
                found = await caller.awaited(found, call.seconds)
        except BaseException as error:  # the border to a plugin's code
            caller.failure(call, error)  # unless the run has to stop
            alone = attrs.evolve(call, elsewhere=None)
            return [await caller.call(alone, subject) for subject in subjects]
        if isinstance(found, Sequence) and len(found) == len(subjects):
            return found
        given = f"{len(found)} answers" if isinstance(found, Sequence) else f"{type(found).__name__}, not a list,"
        message = f"score_batch of {call.slot.name} returned {given} for {len(subjects)} subjects"
        return [Failure("crashed", message)] * len(subjects)

    async def close(self) -> None:
        """End what is still asked for."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
