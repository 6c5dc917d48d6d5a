"""Images, sounds and files of a subject: their places in the texts of the evidence, and their number."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import attrs
import orjson

from dicast import Media, Subject, TraceEvent
from dicast.toolkit.media import KINDS, BadMedia, Urls, media_part, recorded_part, sendable
from dicast.toolkit.parts import MediaPart

MediaMode = Literal["auto", "show", "mark"]

_PLACES = range(0xF0000, 0xFFFFE)
"""Characters for private use: each holds the place of one of the media, and none of them is in the evidence otherwise."""
_PRIVATE = re.compile("[\U000f0000-\U000ffffd]")


@attrs.define
class Gallery:
    """The media of one subject. :meth:`text` puts a character into a text for each of *media*, and a marker for any other.

    *counts* has the number of all of them by kind; *faults* says why some cannot be sent. No place occurs in *subject* and its *events*.
    """

    mode: MediaMode
    urls: Urls
    subject: Subject
    events: Sequence[TraceEvent] = ()
    media: dict[str, Media] = attrs.field(factory=dict)
    counts: Counter[str] = attrs.field(factory=Counter)
    faults: list[str] = attrs.field(factory=list)
    _used: frozenset[str] | None = None

    def place(self, part: MediaPart, *, is_counted: bool = True) -> str:
        """Return the text for *part*: the character for its content, else its marker. The transcript of a sound follows its content."""
        self.counts[part.kind] += is_counted
        media = None if self.mode == "mark" else self._sendable(part)
        if media is None:
            return part.text
        if self._used is None:
            self._used = _private(self.subject, self.events)
        place = next(each for each in map(chr, _PLACES) if each not in self._used and each not in self.media)
        self.media[place] = media
        return f"{place}\n{part.transcript}" if part.transcript else place

    def text(self, value: object) -> str:
        """Return *value* as text: a string as it is, nothing as ``""``, media by their places, any other JSON value as compact JSON."""
        if isinstance(value, str) or value is None:
            return value or ""
        if (media := media_of(value)) is not None:
            return "\n".join(map(self.place, media))
        return orjson.dumps(self._placed(value)).decode()

    def message(self, payload: Mapping[str, Any], text: str) -> str:
        """Return the *text* of the event that *payload* is, with the places of its media, which are counted elsewhere."""
        parts = [*_parts(payload)]
        if not any(part.get("type") in KINDS for part in parts):
            return text
        texts = [each for part in parts if (each := _plain(part)) is not None]
        is_whole = "\n".join(texts) == text
        shown = [self._shown(part) for part in parts if is_whole or part.get("type") in KINDS]
        return "\n".join(each for each in [*([] if is_whole else [text]), *shown] if each is not None)

    def _shown(self, part: Mapping[str, Any]) -> str | None:
        media = recorded_part(part)
        return _plain(part) if media is None else self.place(media, is_counted=False)

    def _placed(self, value: object) -> object:
        """Return *value* with texts in place of its media."""
        if (part := media_part(value)) is not None:
            return self.place(part)
        if isinstance(value, Mapping):
            return {key: self._placed(inner) for key, inner in value.items()}
        return [self._placed(inner) for inner in value] if isinstance(value, list | tuple) else value

    def _sendable(self, part: MediaPart) -> Media | None:
        try:
            return sendable(part, self.urls)
        except BadMedia as error:
            self.faults.append(f"{part.marker}: {error}")
            return None

    def missing(self) -> str | None:
        """Return the reason why the evidence lacks media that it should have; None if it lacks none."""
        if self.faults:
            return f"{'; '.join(dict.fromkeys(self.faults))} (evidence: {{media: mark}} shows markers)"
        unsent = self.counts - Counter(media.kind for media in self.media.values())
        if self.mode != "show" or not unsent:
            return None
        named = ", ".join(f"{count} {kind}" for kind, count in sorted(unsent.items()))
        return f"media: show cannot show {named}: its content is not recorded, and its address is not one of urls"


def media_of(value: object) -> list[MediaPart] | None:
    """Return the media that *value* is, alone or as a list; None if it is anything else."""
    values = value if isinstance(value, list | tuple) else [value]
    parts = [part for each in values if (part := media_part(each)) is not None]
    return parts if values and len(parts) == len(values) else None


def count_media(events: Iterable[TraceEvent]) -> Mapping[str, int]:
    """Return the number of images, sounds and files in *events*, by kind."""
    return Counter(str(part["type"]) for event in events for part in _parts(event.payload) if part.get("type") in KINDS)


def marked(text: str, media: Mapping[str, Media]) -> str:
    """Return *text* with the markers of *media* in their places."""
    return (
        _PRIVATE.sub(lambda found: media[found[0]].marker if found[0] in media else found[0], text) if media else text
    )


def thoughts(event: TraceEvent) -> Iterator[str]:
    """Yield the texts of the reasoning that a message holds."""
    for part in _parts(event.payload):
        if part.get("type") == "reasoning" and isinstance(text := part.get("text"), str) and text:
            yield text


def _parts(payload: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    parts = payload.get("parts")
    if isinstance(parts, list | tuple):
        yield from (part for part in parts if isinstance(part, Mapping))


def _plain(part: Mapping[str, Any]) -> str | None:
    """Return the text that the reader of a trace made of *part*; None for reasoning, which it leaves out."""
    if part.get("type") == "reasoning":
        return None
    if (media := recorded_part(part)) is not None:
        return media.text
    text = part.get("text")
    return text if isinstance(text, str) else f'[unknown {part.get("kind")} "{part.get("name")}"]'


def _private(subject: Subject, events: Sequence[TraceEvent]) -> frozenset[str]:
    """Return the characters for private use in the texts of *subject*."""
    values = [subject.input, subject.output, subject.reference, subject.context, [event.payload for event in events]]
    data = orjson.dumps(values)
    return frozenset() if data.isascii() else frozenset(_PRIVATE.findall(data.decode()))
