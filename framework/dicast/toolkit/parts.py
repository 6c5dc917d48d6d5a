"""Parts of a message: text, media, reasoning, refusals, tool calls and their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import attrs

from dicast.toolkit.printable import one_line

_KB, _MB = 1000, 1_000_000
_EXCERPT = 100  # characters of a name or an address in a marker
_BASE64 = 4 / 3


@attrs.define
class TextPart:
    """A visible text."""

    text: str


@attrs.define
class ReasoningPart:
    """The thoughts of a model before its answer. *text* is empty if the provider encrypted them."""

    text: str


@attrs.define
class RefusalPart:
    """A text with which the model refuses to answer."""

    text: str


MediaKind = Literal["image", "audio", "file"]


@attrs.define
class MediaPart:
    """An image, a sound or a file. *url* is an address or a data URL; *data* is base64 without such a prefix.

    *size* is in bytes, None if unknown. *transcript* is the text of a sound: it is shown in place of the marker.
    """

    kind: MediaKind
    media_type: str | None = None
    url: str | None = None
    data: str | None = None
    file_id: str | None = None
    name: str | None = None
    size: int | None = None
    transcript: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.url is not None and self.url[:5].lower() == "data:":
            head, _, data = self.url.partition(",")
            self.media_type = self.media_type or head[5:].partition(";")[0].lower() or None
            self.size = _size(data, is_base64=head.endswith(";base64")) if self.size is None else self.size
        elif self.data is not None and self.size is None:
            self.size = _size(self.data, is_base64=True)

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> MediaPart:
        """Return the part with the recorded *fields*, as :meth:`fields` returns them; fields of a wrong type are left out."""
        texts = ((key, fields.get(key)) for key in ("media_type", "url", "data", "file_id", "name", "transcript"))
        known: Any = {key: text for key, text in texts if isinstance(text, str)}
        size = fields.get("bytes")
        return cls(fields["type"], **known, size=size if type(size) is int else None)

    @property
    def marker(self) -> str:
        """The text in place of the content, as in ``[image/png, 48 kB]``."""
        details = [self.media_type or self.kind]
        details += [_short(self.name)] if self.name else []
        if self.size is not None:
            details.append(_size_text(self.size))
        elif self.url or self.file_id:
            details.append(_short(self.url or self.file_id or ""))
        return f"[{', '.join(details)}]"

    @property
    def text(self) -> str:
        """The transcript, else the marker."""
        return self.transcript or self.marker

    def fields(self) -> dict[str, object]:
        """Return the part as it is recorded."""
        values = {
            "type": self.kind,
            "media_type": self.media_type,
            "url": self.url,
            "data": self.data,
            "file_id": self.file_id,
            "name": self.name,
            "bytes": self.size,
            "transcript": self.transcript,
        }
        return {key: value for key, value in values.items() if value is not None}


@attrs.define
class UnknownPart:
    """A part, a role or an item that the format does not document, replaced by a marker. *kind* is one of these words, *name* its value."""

    kind: str
    name: str

    @property
    def text(self) -> str:
        """The marker, as in ``[unknown part "audio"]``."""
        return f'[unknown {self.kind} "{_short(self.name)}"]'


@attrs.define
class ToolCall:
    """A call of a tool. *arguments* are as recorded: a value, or its JSON as a text; with *is_plain* they are a text that is not JSON.

    *error* is the reason why the arguments are not JSON, if the format records it. *span* has the ``trace_id`` and the ``span_id`` of the call's span.
    """

    id: str | None
    name: str
    arguments: object = None
    is_plain: bool = False
    error: str | None = None
    span: Mapping[str, str] | None = None


@attrs.define
class ToolResult:
    """The result of the call *id*. Without an id it belongs to the oldest open call of the tool *name*, else to the oldest open call.

    *content* is a text, a list of parts, or any JSON value. *is_error* marks a failure of the tool; *exit_code* is its command's exit code.
    *session_id* is the id of the session that the call started, for a sub-agent.
    """

    id: str | None
    content: Any
    name: str | None = None
    is_error: bool = False
    exit_code: int | None = None
    session_id: str | None = None


Spoken: TypeAlias = TextPart | ReasoningPart | RefusalPart | MediaPart | UnknownPart
"""The parts of a message other than tool calls and results."""

Part: TypeAlias = Spoken | ToolCall | ToolResult


def visible_text(parts: Sequence[Spoken]) -> str | None:
    """Return the text of *parts* without reasoning, each part on a new line; None if there is no text."""
    texts = [part.text for part in parts if type(part) is not ReasoningPart]
    return "\n".join(texts) if texts else None


def media_in(payload: Mapping[str, Any]) -> list[str]:
    """Return the markers of the media among the recorded ``parts`` of an event's *payload*."""
    parts = payload.get("parts")
    recorded = [part for part in parts if isinstance(part, Mapping)] if isinstance(parts, list | tuple) else []
    return [MediaPart.of(fields).marker for fields in recorded if fields.get("type") in ("image", "audio", "file")]


def part_fields(part: Spoken) -> Mapping[str, object]:
    """Return *part* as an event records it."""
    if isinstance(part, MediaPart):
        return part.fields()
    if isinstance(part, UnknownPart):
        return {"type": "unknown", "kind": part.kind, "name": part.name}
    return {"type": _TYPES[type(part)], "text": part.text}


_TYPES = {TextPart: "text", ReasoningPart: "reasoning", RefusalPart: "refusal"}


def split_reasoning(text: str) -> list[Spoken]:
    """Return *text* as parts, with each ``<think>…</think>`` as a :class:`ReasoningPart`; a ``<think>`` without an end stays text."""
    parts: list[Spoken] = []
    rest: list[str] = []
    place = 0
    while (start := text.find(_THINK, place)) >= 0 and (end := text.find(_END, start + len(_THINK))) >= 0:
        before = text[place:start]
        rest += [before] if before.strip() else []
        parts.append(ReasoningPart(text[start + len(_THINK) : end].strip()))
        place = end + len(_END)
        while place < len(text) and text[place].isspace():
            place += 1
    if not parts:
        return [TextPart(text)]
    rest = [part.rstrip() for part in rest] + ([text[place:]] if place < len(text) else [])
    return [*parts, TextPart("\n".join(rest))]


_THINK, _END = "<think>", "</think>"


def _size(data: str, *, is_base64: bool) -> int:
    return int(len(data.rstrip("=")) / _BASE64) if is_base64 else len(data.encode())


def _size_text(size: int) -> str:
    if size < _KB:
        return f"{size} B"
    return f"{round(size / _KB)} kB" if size < _MB else f"{size / _MB:.1f} MB"


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _EXCERPT else f"{line[:_EXCERPT]}…"
