"""What a run may cost, said before anything is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import attrs

from .asking.call import Call
from .asking.metering import Nested
from .contract.kinds import parts
from .contract.protocols import Source
from .pipeline.sections import Pipeline, Slot
from .report.tally import nothing
from .run.plan import lookahead, make_plan
from .stream.opening import open_component
from .stream.source import read
from .values import Cost, RunContext, Subject
from .values.clock import Clock


@attrs.frozen
class Forecast:
    """How many *subjects* there are, how many of them nothing *judges*, and what judging may cost at most.

    An amount of None cannot be known.
    """

    subjects: int
    unjudged: int
    usd: Cost
    msat: Cost


async def forecast(pipeline: Pipeline, ledger: Slot, source: Source) -> Forecast:
    """Read *source* whole, and add up what its subjects' judges say that they may cost. Nothing is judged.

    :raises RequestError: when the source or a component cannot be opened or read.
    """
    bill, subjects, unjudged = nothing(), 0, 0
    async with AsyncExitStack() as stack:
        draft = RunContext(Clock().id(), pipeline.name, pipeline.base)
        live = await open_component(ledger.component, draft, stack)
        context = attrs.evolve(draft, read=live.read, lookahead=lookahead(pipeline))
        opened = await open_component(source, context, stack)
        plan = await make_plan(pipeline, context, stack)
        priced = [(call.slot, one) for call in plan.calls.values() for one in _priced(call)]
        async for due in read(opened, "the ledger"):
            subjects += 1
            unjudged += not plan.units_for(due.subject.kind)
            for slot, estimate in priced:
                if slot.accepts(due.subject.kind):
                    cost = estimate(due.subject)
                    bill[cost.unit] += cost
    return Forecast(subjects, unjudged, bill["usd"], bill["msat"])


def _priced(call: Call) -> Iterator[Callable[[Subject], Cost]]:
    """What says how much *call* may cost; where it does not say, what says it of each judge inside it, however deep."""
    if call.estimate is not None:
        yield call.estimate
        return
    owner: Any = getattr(call.function, "__self__", None)
    for field in attrs.fields(type(owner)) if attrs.has(type(owner)) else ():
        for part in parts(getattr(owner, field.name)):
            if isinstance(part, Nested) and part.call.estimate is not None:
                yield part.call.estimate
