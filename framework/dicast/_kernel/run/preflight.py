"""What a run reads before anything is judged, read without running anything: for whoever runs several, one after the other."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack

import attrs

from ..pipeline.sections import Pipeline, Slot
from ..records.baseline import find_baseline
from ..stream.opening import open_component
from ..stream.source import data_digest
from ..values import RunContext
from ..values.clock import Clock


async def preflight(pipeline: Pipeline, ledger: Slot, later: Collection[str]) -> Mapping[str, str]:
    """Read the data of *pipeline* whole, and find its baseline unless that is one of *later*; return what a run is resumed by.

    :raises RequestError: when the run would be refused for them.
    """
    async with AsyncExitStack() as stack:
        draft = RunContext(Clock().id(), pipeline.name, pipeline.base)
        live = await open_component(ledger.component, draft, stack)
        if pipeline.baseline is not None and pipeline.baseline.run not in later:
            find_baseline(live, pipeline)
        slot = pipeline.source
        assert slot is not None  # dicast run needs one
        source = await open_component(slot.component, attrs.evolve(draft, read=live.read), stack)
        return {**pipeline.setup, **await data_digest(source, f"source {slot.name}", pipeline)}
