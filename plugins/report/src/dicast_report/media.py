"""Images, sounds and files of a page: pictures as data URLs, other media as markers. The page loads nothing from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

import attrs

from dicast.toolkit.media import KINDS, media_part, recorded_part
from dicast.toolkit.parts import MediaPart

_DRAWABLE = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
"""Types that a browser draws without running scripts, unlike SVG."""
_DATA_URL = re.compile(r"data:([a-z]+/[a-z]+);base64,([A-Za-z0-9+/]+={0,2})", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")

MOST_CHARS = 6_000_000
"""Longest content of a picture on a page, in base64: 4.5 MB."""
MOST_ON_A_PAGE = 40_000_000
"""Length of all pictures of a page; further pictures become markers."""

Item = dict[str, Any]
"""One of the media for the page's script: ``{marker, name, src}``, or ``picture``, a key into the page's pictures, in place of ``src``."""


def item_of(part: MediaPart, name: str | None = None) -> Item:
    """Return *part* for the page, under the *name* of its column if it has one."""
    return {"marker": part.marker, "name": name, "src": _source(part)}


def without_media(value: object, items: list[Item], name: str | None = None) -> object:
    """Return *value* with markers in place of its media, which are appended to *items*."""
    if (part := _part(value)) is not None:
        items.append(item_of(part, name))
        return part.marker
    if isinstance(value, Mapping):
        return {key: without_media(inner, items, str(key)) for key, inner in value.items()}
    return [without_media(inner, items, name) for inner in value] if isinstance(value, list | tuple) else value


def items_in(payload: Mapping[str, Any]) -> list[Item]:
    """Return the media in an event's *payload*."""
    return [item_of(part) for part in _event_parts(payload)]


@attrs.define
class Pictures:
    """Pictures of a page by key, each stored once; *left* is the number of characters still allowed."""

    sources: dict[str, str] = attrs.field(factory=dict)
    left: int = MOST_ON_A_PAGE

    def keep(self, items: list[Item]) -> list[Item]:
        """Return *items* with keys in place of their contents."""
        return [self._keep(item) for item in items]

    def _keep(self, item: Item) -> Item:
        source = item["src"]
        fields = {key: value for key, value in item.items() if key != "src" and value is not None}
        if source is None:
            return fields
        key = sha256(source.encode()).hexdigest()[:16]
        if key not in self.sources:
            if len(source) > self.left:
                return fields
            self.left -= len(source)
            self.sources[key] = source
        return {**fields, "picture": key}


def _part(value: object) -> MediaPart | None:
    """Return the media in *value*, which may be a record with a digest in place of the content."""
    if not isinstance(value, Mapping):
        return None
    part = media_part(value)
    if part is None and value.get("type") in KINDS and isinstance(value.get("sha256"), str) and "media_type" in value:
        return recorded_part(value)
    return part


def _event_parts(payload: Mapping[str, Any]) -> Iterator[MediaPart]:
    parts = payload.get("parts")
    for part in parts if isinstance(parts, list | tuple) else ():
        if isinstance(part, Mapping) and (media := recorded_part(part)) is not None:
            yield media


def _source(part: MediaPart) -> str | None:
    """Return a data URL that a browser may draw; None for other media, including addresses."""
    type_, data = part.media_type, part.data
    if part.url is not None:
        if len(part.url) > MOST_CHARS or (match := _DATA_URL.fullmatch(part.url)) is None:
            return None
        type_, data = match[1].lower(), match[2]
    if data is None or type_ not in _DRAWABLE or len(data) > MOST_CHARS or not _BASE64.fullmatch(data):
        return None
    return f"data:{type_};base64,{data}"
