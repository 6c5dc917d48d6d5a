"""Images, sounds and files in a trace: they are shown to a judge as markers, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dicast import TraceEvent

_KINDS = ("image", "audio", "file")


def hidden_media(events: Iterable[TraceEvent]) -> Mapping[str, int]:
    """Return the number of images, sounds and files in *events*, by kind."""
    counts = Counter(str(part["type"]) for event in events for part in _parts(event) if part.get("type") in _KINDS)
    return dict(sorted(counts.items()))


def thoughts(event: TraceEvent) -> Iterator[str]:
    """Yield the texts of the reasoning that a message holds."""
    for part in _parts(event):
        if part.get("type") == "reasoning" and isinstance(text := part.get("text"), str) and text:
            yield text


def _parts(event: TraceEvent) -> Iterator[Mapping[str, Any]]:
    parts = event.payload.get("parts")
    if isinstance(parts, list | tuple):
        yield from (part for part in parts if isinstance(part, Mapping))
