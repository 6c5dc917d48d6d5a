"""Media in texts: while texts are made, cut and joined, a private character is the placeholder of each media item.

A judge or a task makes texts of a subject's values with a :class:`Gallery`, and splits the finished text at the placeholders::

    gallery = Gallery("auto", "mark", lambda: orjson.dumps(subject.context))
    prompt = f"Compare {gallery.text(subject.input)} with {gallery.text(subject.output)}."
    message = Message.of_parts("user", gallery.split(prompt))
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Literal

import attrs
import orjson

from dicast import Media

from .media import BadMedia, Urls, media_part, sendable
from .parts import MediaPart

MediaMode = Literal["auto", "show", "mark"]
"""Rule for media: sent to a model that reads them (``auto``), refused by other models (``show``), or never sent (``mark``)."""

MOST_ITEMS = 50
"""The most media items in one request. Providers accept 100 and more, but each costs tokens."""
MOST_CHARS = 40_000_000
"""The most characters of base64 in one request. Providers accept requests of 32 MB and more; most requests are far shorter."""

_PLACES = range(0xF0000, 0xFFFFE)
"""Characters for private use."""
_PRIVATE = re.compile("[\U000f0000-\U000ffffd]")


def _nothing() -> bytes:
    return b""


@attrs.define
class Gallery:
    """Media by the characters that are their placeholders in texts; media that are not sent have a marker in the text.

    :param mode: the option of a judge or a task.
    :param urls: the addresses that may be sent.
    :param texts: returns all texts, in UTF-8, in which no placeholder may occur.
    :param media: the media with a place.
    :param counts: the number of all media by kind.
    :param faults: the reasons why some media cannot be sent.
    :param holds_markers: whether markers have a placeholder too: then the finished text shows which media are in it.
    :param markers: the markers with a placeholder, each with the reason why it cannot be sent, if any.
    """

    mode: MediaMode
    urls: Urls
    texts: Callable[[], bytes] = _nothing
    media: dict[str, Media] = attrs.field(factory=dict)
    counts: Counter[str] = attrs.field(factory=Counter)
    faults: list[str] = attrs.field(factory=list)
    holds_markers: bool = False
    markers: dict[str, tuple[MediaPart, str | None]] = attrs.field(factory=dict)
    _used: frozenset[str] | None = None

    def place(self, part: MediaPart, *, is_counted: bool = True) -> str:
        """Return the text for *part*: a placeholder if its content is sent, else its marker. The transcript of a sound follows its content."""
        self.counts[part.kind] += is_counted
        before = len(self.faults)
        media = None if self.mode == "mark" else self._sendable(part)
        if media is None and not self.holds_markers:
            return part.text
        place = self._free()
        if media is None:
            self.markers[place] = part, self.faults[-1] if len(self.faults) > before else None
            return place
        self.media[place] = media
        return f"{place}\n{part.transcript}" if part.transcript else place

    def _free(self) -> str:
        """Return a character that is no placeholder and is in no text."""
        if self._used is None:
            self._used = _private(self.texts())
        reserved = (self._used, self.media, self.markers)
        return next(place for place in map(chr, _PLACES) if not any(place in places for places in reserved))

    def text(self, value: object) -> str:
        """Return *value* as text: a string as it is, nothing as ``""``, media by their places, any other JSON value as compact JSON."""
        if isinstance(value, str) or value is None:
            return value or ""
        if (media := media_of(value)) is not None:
            return "\n".join(map(self.place, media))
        return orjson.dumps(self.placed(value)).decode()

    def placed(self, value: object) -> object:
        """Return *value* with texts in place of its media."""
        if (part := media_part(value)) is not None:
            return self.place(part)
        if isinstance(value, Mapping):
            return {key: self.placed(inner) for key, inner in value.items()}
        return [self.placed(inner) for inner in value] if isinstance(value, list | tuple) else value

    def newest(self) -> dict[str, Media | str]:
        """Return the media with a place, with markers in place of the oldest that are beyond the limits of one request."""
        items: dict[str, Media | str] = {}
        count = chars = 0
        for place, media in reversed(self.media.items()):
            count, chars = count + 1, chars + len(media.data or "")
            items[place] = media if count <= MOST_ITEMS and chars <= MOST_CHARS else media.marker
        return dict(reversed(items.items()))

    def split(self, text: str) -> list[str | Media]:
        """Return *text* as parts: texts, and media at their places."""
        places: dict[str, str | Media] = {
            **self.media,
            **{place: part.text for place, (part, _) in self.markers.items()},
        }
        if not places:
            return [text]
        parts = re.split(f"([{''.join(map(re.escape, places))}])", text)
        return [places.get(part, part) for part in parts if part]

    def missing(self, option: str) -> str | None:
        """Return the reason why the texts lack media that they should have; None if they lack none. *option* is written for ``mark``."""
        if self.faults:
            return f"{'; '.join(dict.fromkeys(self.faults))} ({option} shows markers)"
        contents = [media for media in self.newest().values() if isinstance(media, Media)]
        unsent = self.counts - Counter(media.kind for media in contents)
        if self.mode != "show" or not unsent:
            return None
        names = ", ".join(f"{count} {kind}" for kind, count in sorted(unsent.items()))
        if len(contents) < len(self.media):
            return f"media: show cannot show {names}: one request has at most {MOST_ITEMS} media, and {MOST_CHARS // 10**6} MB of them"
        return f"media: show cannot show {names}: its content is not recorded, and its address is not one of urls"

    def _sendable(self, part: MediaPart) -> Media | None:
        try:
            return sendable(part, self.urls)
        except BadMedia as error:
            self.faults.append(f"{part.marker}: {error}")
            return None


def media_of(value: object) -> list[MediaPart] | None:
    """Return the media that *value* is, alone or as a list; None if it is anything else."""
    values = value if isinstance(value, list | tuple) else [value]
    parts = [part for item in values if (part := media_part(item)) is not None]
    return parts if values and len(parts) == len(values) else None


def marked(text: str, media: Mapping[str, Media | str]) -> str:
    """Return *text* with the markers of *media* in their places."""

    def marker(match: re.Match[str]) -> str:
        item = media.get(match[0], match[0])
        return item if isinstance(item, str) else item.marker

    return _PRIVATE.sub(marker, text) if media else text


def _private(data: bytes) -> frozenset[str]:
    """Return the characters for private use in *data*."""
    return frozenset() if data.isascii() else frozenset(_PRIVATE.findall(data.decode()))
