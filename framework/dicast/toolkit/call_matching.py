"""The tool calls of one conversation: unique ids, and the match of each result with its call."""

from __future__ import annotations

import hashlib
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TypeGuard

import orjson

from dicast.toolkit.json_values import MISSING, inexact, too_deep

from .parts import (
    MediaPart,
    ReasoningPart,
    RefusalPart,
    Spoken,
    TextPart,
    ToolCall,
    ToolResult,
    UnknownPart,
    part_fields,
    visible_text,
)

_SPOKEN = (TextPart, ReasoningPart, RefusalPart, MediaPart, UnknownPart)

NameCall = Callable[[str, str], str]
"""A function that returns the id of a tool call in the trace, from the id of its turn and the call's id in the file."""


class CallId(str):
    """An id in the trace of a first pass, with the ids of its turn and of the call in the file, from which the next pass makes its id."""

    __slots__ = ("file_id", "turn_id")

    file_id: str
    turn_id: str

    @classmethod
    def of(cls, id: str, turn_id: str, file_id: str) -> CallId:
        """Return *id* with its origin."""
        call_id = cls(id)
        call_id.turn_id, call_id.file_id = turn_id, file_id
        return call_id


class CallNames:
    """The ids of the calls of one conversation in the trace. A provider may use an id twice in a conversation: the second becomes ``id#2``."""

    def __init__(self, name_call: NameCall) -> None:
        self._name_call = name_call
        self._used: set[str] = set()
        self._times: dict[str, int] = {}  # how often a name was used

    def __len__(self) -> int:
        return len(self._used)

    def take(self, turn_id: str, file_id: str) -> str:
        """Return a unique id for the call *file_id* of a turn."""
        name = id_ = self._name_call(turn_id, file_id)
        times = self._times.get(name, 1)
        while id_ in self._used:
            times += 1
            id_ = f"{name}#{times}"
        self._times[name] = times
        self._used.add(id_)
        return CallId.of(id_, turn_id, file_id) if type(name) is CallId else id_


class CallMatching:
    """Matching of results with calls: by id, else the oldest open call of the same tool, else the oldest open call.

    A result whose id no call has is matched by order only with calls that have no id. A second result of a call has no match. Each match takes
    constant time.
    """

    def __init__(self, name_call: NameCall) -> None:
        self._names, self._turn_id = CallNames(name_call), ""
        self._has_nameless = False  # True once a call had no id in the file
        self._open: dict[str, Sequence[object]] = {}  # the queues of each open call, by its id in the trace
        self._tools: dict[str, str] = {}
        self._queues: defaultdict[object, OrderedDict[str, None]] = defaultdict(OrderedDict)

    @property
    def open(self) -> int:
        """The number of calls without a result."""
        return len(self._open)

    def start(self, turn_id: str) -> None:
        """Start the turn *turn_id*; the ids of later calls are made with it."""
        self._turn_id = turn_id

    def call(self, call: ToolCall) -> dict[str, object]:
        """Return the payload of ``tool.called``."""
        file_id = call.id or f"{self._turn_id}/{len(self._names) + 1}"
        id_ = self._names.take(self._turn_id, file_id)
        self._has_nameless = self._has_nameless or not call.id
        queues: list[object] = [("id", file_id), ("tool", call.name), "all"]
        queues += [] if call.id else [("nameless", call.name), "nameless"]
        self._open[id_], self._tools[id_] = queues, call.name
        for queue in queues:
            self._queues[queue][id_] = None
        input_, digest, error = _plain(call) if call.is_plain else _arguments(call.arguments)
        payload = {"tool_use_id": id_, "tool_name": call.name, "input_hash": digest, "input": input_}
        payload |= {} if call.span is None else {"span": call.span}
        error = call.error or error
        return payload if error is None else {**payload, "arguments_error": error}

    def result(self, result: ToolResult) -> tuple[dict[str, object], bool]:
        """Return the first fields of the event that ends a call, and whether there is such a call."""
        match = self._match(result)
        started: dict[str, object] = {} if result.session_id is None else {"started_session": result.session_id}
        if match is not None:
            for queue in self._open.pop(match):
                del self._queues[queue][match]
            return {"tool_use_id": match, "tool_name": self._tools.pop(match), **started}, True
        id_ = result.id or self._names.take(self._turn_id, f"{self._turn_id}/{len(self._names) + 1}")
        return {"tool_use_id": id_, "tool_name": result.name, **started}, False

    def _match(self, result: ToolResult) -> str | None:
        """Return the id in the trace of the open call that *result* ends."""
        if not result.id:
            return self._oldest(("tool", result.name)) or self._oldest("all")
        same_id = self._oldest(("id", result.id))
        if same_id is not None or not self._has_nameless or ("id", result.id) in self._queues:
            return same_id
        return self._oldest(("nameless", result.name)) or self._oldest("nameless")

    def _oldest(self, queue: object) -> str | None:
        return next(iter(self._queues.get(queue, ())), None)


def _plain(call: ToolCall) -> tuple[object, str, None]:
    text = str(call.arguments)
    return text, hashlib.sha256(text.encode(errors="replace")).hexdigest(), None


def _arguments(value: object) -> tuple[object, str, str | None]:
    """Return three values: a call's arguments, as JSON if they can be recorded as JSON; the SHA-256 of their canonical form; and the reason why they are not JSON, if so."""
    error = None
    if isinstance(value, str):
        text = value.encode(errors="replace")
        try:
            parsed = orjson.loads(text)
        except orjson.JSONDecodeError as wrong:
            parsed, error = MISSING, f"not JSON: {wrong}" if text.strip() else None
        if parsed is MISSING or too_deep(text, parsed) or inexact(text):
            return value, hashlib.sha256(text).hexdigest(), error
        value = parsed
    return value, hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest(), None


def content_output(content: object) -> tuple[str, object, Mapping[str, object]]:
    """Return the content of a result as text, the output of its event, and further fields of the event."""
    if isinstance(content, str):
        return content, content, {}
    if has_parts(content):
        text = visible_text(content) or ""
        is_plain = all(type(part) is TextPart for part in content)
        return text, text, {} if is_plain else {"parts": [part_fields(part) for part in content]}
    if content is None:
        return "", "", {}
    return orjson.dumps(content).decode(), content, {}


def count_known(parts: Sequence[Spoken]) -> int:
    """Return the number of parts that no marker replaces."""
    return sum(type(part) is not UnknownPart for part in parts)


def has_parts(content: object) -> TypeGuard[list[Spoken]]:
    """Return whether *content* is a list of parts that are no calls or results."""
    return isinstance(content, list) and bool(content) and all(isinstance(part, _SPOKEN) for part in content)
