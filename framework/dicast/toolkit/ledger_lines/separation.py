"""Separation of the texts of users from payloads: an erasure can remove them, because the line has only their digest.

The texts of an event are one content: the JSON list ``[session_id, turn_id, subject_id, text, …]``. The ids keep equal texts of different subjects apart. In
the payload a blank has the place of each text: ``""``, ``{}``, ``[]`` or ``null``. *places* are the numbers of characters of the payload before the blanks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Number
from typing import Any, NamedTuple

import orjson

from dicast import Event

from .redaction import IN_FULL, PLAIN_KEYS, RECORDS, plain

IDS = 3
"""The number of ids before the texts in a content."""

_LABELS = "label."
"""Prefix of the types of labels and retractions, whose payloads have scores and names."""

_FACTS = frozenset(
    (
        *(
            "digest",
            "model",
            "chosen_model",
            "name",
            "tool_name",
            "tool_use_id",
            "input_hash",
            "cost_usd",
            "usage",
            "role",
            "type",
            "kind",
        ),
        *(
            "scope",
            "rating",
            "disposition",
            "stop_reason",
            "finish_reason",
            "subject_turn_id",
            "parent_id",
            "parent_tool_use_id",
        ),
    )
)
"""Keys of the payload of a trace event whose values are names, ids and counts."""

_REPLIED_FACTS = frozenset(("digest", "criterion", "request_digest"))
"""Keys of the payload of ``task.replied`` whose values are no texts."""

_RECORD_FACTS = frozenset(("digest", "adapted", *PLAIN_KEYS))
"""Keys of a record whose values are no texts."""

_STRING = re.compile(rb'("(?:[^"\\]|\\.)*+")(:?)')
"""A string of a JSON text, with the colon of a key."""

_KEYS = ("details", "error_message", "feedback", "rationale_redacted")
_DETAILS, _MESSAGE, _FEEDBACK, _RATIONALE = (b'%b":"' % key.encode() for key in _KEYS)


def _explanations(*keys: str) -> re.Pattern[bytes]:
    """Return the pattern of the members *keys* with a text that is not empty. Its group is the text."""
    return re.compile(rb'"(?:%b)":("(?:[^"\\]|\\.)++")' % "|".join(keys).encode())


_OF_VERDICT, _OF_FAILURE, _OF_PERSON = (
    _explanations(*_KEYS),
    _explanations(*_KEYS, "reply"),
    _explanations(*_KEYS, "reason"),
)
_OF_READING = _explanations("message")


class Separated(NamedTuple):
    """A payload with blanks, the places of the blanks, and the content with the texts; without texts, *places* is empty."""

    body: bytes
    places: Sequence[int] = ()
    content: bytes = b""


class _Text:
    """JSON text of a payload while it is written."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.places: list[int] = []
        self.texts: list[bytes] = []
        self._size = 0

    def put(self, part: bytes) -> None:
        """Add *part* of the payload."""
        self.parts.append(part)
        self._size += len(part)

    def take(self, text: bytes, blank: bytes) -> None:
        """Add *blank* in place of *text*."""
        self.places.append(self._size)
        self.texts.append(text)
        self.put(blank)

    def put_object(self, members: Mapping[str, Any], put_value: Callable[[str, Any], None]) -> None:
        """Add an object, with *put_value* for each value."""
        start = b"{"
        for key, value in members.items():
            self.put(b"%b%b:" % (start, orjson.dumps(key)))
            put_value(key, value)
            start = b","
        self.put(b"}" if members else b"{}")

    def put_matches(self, text: bytes, matches: Iterable[re.Match[bytes]]) -> None:
        """Add *text* with a blank in place of the first group of each of *matches*, a JSON string, if it is not empty."""
        end = 0
        for match in matches:
            if match.end(1) - match.start(1) > len('""'):
                self.put(text[end : match.start(1)])
                self.take(match[1], b'""')
                end = match.end(1)
        self.put(text[end:])

    def separated(self, event: Event) -> Separated:
        """Return the payload."""
        body = b"".join(self.parts)
        if not self.places:
            return Separated(body)
        places = self.places if body.isascii() else [len(body[:place].decode()) for place in self.places]
        ids = orjson.dumps((event.session_id, event.turn_id, event.subject_id))
        return Separated(body, places, b"%b,%b]" % (ids[:-1], b",".join(self.texts)))


def separate(event: Event) -> Separated:
    """Return the payload of *event* without the texts of users.

    :raises TypeError: if the payload cannot be written as JSON.
    """
    type_, payload = event.type, event.payload
    if type_.startswith(IN_FULL):
        return _judgment(event)
    if type_ in RECORDS:
        return _record(event)
    if event.sensitivity != "user_controlled" or type_.startswith(_LABELS):
        return Separated(orjson.dumps(payload, plain))
    if type_ == "subject.read":
        return _reading(event)
    facts = _REPLIED_FACTS if type_ == "task.replied" else _FACTS
    texts = [key for key, value in payload.items() if key not in facts and _blank(value) is not None]
    if not texts:
        return Separated(orjson.dumps(payload, plain))
    text = _Text()

    def put_value(key: str, value: Any) -> None:
        if key in texts:
            # a reply without its text must not be used again
            text.take(orjson.dumps(value, plain), b"null" if key == "reply" else _blank(value) or b"null")
        else:
            text.put(orjson.dumps(value, plain))

    text.put_object(payload, put_value)
    return text.separated(event)


def _blank(value: object) -> bytes | None:
    """Return the blank of a text, an object or a list that is not empty; None for other values."""
    if isinstance(value, str):
        return b'""' if value else None
    if isinstance(value, Mapping):
        return b"{}" if value else None
    return b"[]" if isinstance(value, list | tuple) and value else None


def _judgment(event: Event) -> Separated:
    body, pattern = orjson.dumps(event.payload, plain), _OF_VERDICT
    if event.type == "eval.failed":
        pattern = _OF_FAILURE
    elif event.payload.get("judge_kind") in ("human", "recorded"):
        pattern = _OF_PERSON
    elif not (_DETAILS in body or _MESSAGE in body or _FEEDBACK in body or _RATIONALE in body):
        return Separated(body)
    text = _Text()
    text.put_matches(body, pattern.finditer(body))
    return text.separated(event)


def _reading(event: Event) -> Separated:
    text = _Text()

    def put_value(key: str, value: Any) -> None:
        part = orjson.dumps(value, plain)
        if key == "content" and value is not None:
            text.take(part, b"null")
        elif key == "failure":
            text.put_matches(part, _OF_READING.finditer(part))
        else:
            text.put(part)

    text.put_object(event.payload, put_value)
    return text.separated(event)


def _record(event: Event) -> Separated:
    text = _Text()

    def put_cell(key: str, value: Any) -> None:
        part, blank = orjson.dumps(value, plain), _blank(value)
        is_number = isinstance(value, Number) and not isinstance(value, bool)
        if key != "id" and (blank is not None or is_number):
            text.take(part, blank or b"null")
        else:
            text.put(part)

    def put_value(key: str, value: Any) -> None:
        part = orjson.dumps(value, plain)
        if key == "row" and isinstance(value, Mapping):
            text.put_object(value, put_cell)
        elif key in _RECORD_FACTS:
            text.put(part)
        else:
            text.put_matches(part, (match for match in _STRING.finditer(part) if not match[2]))

    text.put_object(event.payload, put_value)
    return text.separated(event)


def restored(type_: str, payload: dict[str, Any], digest: str, places: Sequence[int], content: bytes | None) -> Any:
    """Return *payload* with the texts of *content* at their *places*.

    Without a content the blanks stay, and a record has the member ``digest``, as in a ledger with digests only.

    :raises ValueError: if *content* does not have a text for each place.
    """
    if content is None:
        return {"digest": digest, **payload} if type_ in RECORDS else payload
    texts = orjson.loads(content)[IDS:]
    body, parts, end = orjson.dumps(payload).decode(), list[str](), 0
    for place, text in zip(places, texts, strict=True):
        parts += body[end:place], orjson.dumps(text).decode()
        end = place + (len("null") if body.startswith("n", place) else len('""'))
    return orjson.loads("".join([*parts, body[end:]]))
