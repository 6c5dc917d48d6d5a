"""The batches of a run that an endpoint has not returned yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..classes import define, field
from ..events import BATCH_CREATED, BATCH_EVENTS, BATCH_INTENDED
from ..values import Entry, Event, Query


@define
class Batches:
    """Batches by their keys, in the order of their intents. *open* are the open batches, *ended_count* is the number of ended batches."""

    open: dict[str, dict[str, Any]] = field(factory=dict)
    ended_count: int = 0

    def observe(self, event: Event) -> None:
        """Count an event of a batch."""
        payload: Mapping[str, Any] = event.payload
        key = str(payload["key"])
        if event.type == BATCH_INTENDED:
            details = {name: payload[name] for name in ("key", "model", "endpoint", "until")}
            self.open[key] = {**details, "batch_id": None, "calls": len(payload["calls"])}
        elif event.type == BATCH_CREATED and key in self.open:
            self.open[key]["batch_id"] = payload["batch_id"]
        elif self.open.pop(key, None) is not None:
            self.ended_count += payload["batch_id"] is not None

    def figures(self) -> dict[str, Any]:
        """Return the open batches as a part of the run's document; empty without open batches."""
        return {"batches": self.documents()} if self.open else {}

    def documents(self) -> list[dict[str, Any]]:
        """Return the open batches as JSON data."""
        return [*self.open.values()]


def waiting_batches(read: Callable[[Query], Iterator[Entry]], run_id: str, now: str) -> list[dict[str, Any]]:
    """Return the batches of a run that the endpoint may still complete, as JSON data."""
    batches = Batches()
    for entry in read(Query(run_id, BATCH_EVENTS)):
        batches.observe(entry.event)
    return [batch for batch in batches.documents() if batch["until"] >= now]
