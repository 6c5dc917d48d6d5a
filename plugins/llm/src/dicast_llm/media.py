"""Images, sounds and files in the events of a trace: their number, and their places in the texts of messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from dicast import Subject, TraceEvent
from dicast.toolkit.gallery import Gallery
from dicast.toolkit.media import KINDS, recorded_part


def texts_of(subject: Subject, events: Sequence[TraceEvent]) -> bytes:
    """Return all texts of *subject* and *events*, in JSON."""
    values = [subject.input, subject.output, subject.reference, subject.context, [event.payload for event in events]]
    return orjson.dumps(values)


def placed_text(gallery: Gallery, payload: Mapping[str, Any], text: str) -> str:
    """Return the *text* of the event with *payload*, with placeholders for its media. The media are not counted here."""
    parts = [*_parts(payload)]
    if not any(part.get("type") in KINDS for part in parts):
        return text
    texts = [line for part in parts if (line := _plain(part)) is not None]
    is_whole = "\n".join(texts) == text
    lines = [_placed(gallery, part) for part in parts if is_whole or part.get("type") in KINDS]
    return "\n".join(line for line in [*([] if is_whole else [text]), *lines] if line is not None)


def count_media(events: Iterable[TraceEvent]) -> Mapping[str, int]:
    """Return the number of images, sounds and files in *events*, by kind."""
    return Counter(str(part["type"]) for event in events for part in _parts(event.payload) if part.get("type") in KINDS)


def thoughts(event: TraceEvent) -> Iterator[str]:
    """Yield the texts of the reasoning that a message holds."""
    for part in _parts(event.payload):
        if part.get("type") == "reasoning" and isinstance(text := part.get("text"), str) and text:
            yield text


def _parts(payload: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    parts = payload.get("parts")
    if isinstance(parts, list | tuple):
        yield from (part for part in parts if isinstance(part, Mapping))


def _placed(gallery: Gallery, part: Mapping[str, Any]) -> str | None:
    media = recorded_part(part)
    return _plain(part) if media is None else gallery.place(media, is_counted=False)


def _plain(part: Mapping[str, Any]) -> str | None:
    """Return the text that the reader of a trace made of *part*; None for reasoning, which it leaves out."""
    if part.get("type") == "reasoning":
        return None
    if (media := recorded_part(part)) is not None:
        return media.text
    text = part.get("text")
    return text if isinstance(text, str) else f'[unknown {part.get("kind")} "{part.get("name")}"]'
