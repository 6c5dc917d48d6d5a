"""The tool calls that a subject is about, and the form in which two of them are compared."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import attrs
import orjson

from dicast import Subject
from dicast.toolkit.json_values import MISSING, locate, read_json

_FORMS = (("tool", "params"), ("tool_name", "input"), ("name", "arguments"))
"""Key pairs of a call: the metric's own form, the form of traces, and the form of OpenAI, whose arguments are JSON text."""
_TRACED = ("turn", "session")
_INTEGRAL = re.compile(r"[:,\[]-?\d+(?:\.0(?!\d)|(?:\.\d+)?e)")  # a float that may be an integer, as orjson writes it
_EXPONENT = re.compile(
    r"e(?<=[0-9]e)[-+]?[0-9]"
)  # nearly never; the letter is found in a fifth of the time of _INTEGRAL
_LEAST, _MOST = -(2.0**63), 2.0**64  # the integers that orjson writes
_LONGEST = 200


class Call(NamedTuple):  # made in a third of the time that an attrs class takes
    """One call of a tool. *params* is MISSING if the call has none; *id* names it, if it is text.

    *digest* replaces the params of a call that was recorded without them.
    """

    tool: object
    params: object = MISSING
    id: object = None
    digest: object = None

    @property
    def named(self) -> str | None:
        """The tool's name for a reader; None without a name."""
        return shortened(self.tool) if isinstance(self.tool, str) else None

    def place(self, number: int) -> str | int:
        """Return the name of the call for a reader: its id, else its *number*."""
        return shortened(self.id) if isinstance(self.id, str) and self.id else number


@attrs.frozen
class Calls:
    """The *calls* to judge. *single* is true if the subject is one call; *absence* is the reason why an expected call is missing."""

    calls: Sequence[Call]
    single: bool = True
    absence: str | None = None


def calls_of(subject: Subject, field: str | None) -> Calls:
    """Return the calls of *subject*: the call in its output (or in the *field* of it), or each of the calls in a list there.

    A tool cycle of a trace is the call in its input; a turn or session with events has all its ``tool.called``.
    """
    if field is None:
        call_input = subject.input
        if subject.kind == "tool_cycle" and isinstance(call_input, Mapping) and "tool_name" in call_input:
            return Calls((_traced(subject, call_input),))
        if subject.kind in _TRACED and subject.events:
            payloads = (event.payload for event in subject.events if event.type == "tool.called")
            return Calls([as_call(payload) or Call(MISSING, id=_id(payload)) for payload in payloads], single=False)
    output = subject.output if field is None else locate(subject.output, field)
    if isinstance(output, str):
        output = parsed(output)
    if isinstance(output, list | tuple) and output:
        return Calls([as_call(item) or Call(MISSING) for item in output], single=False)
    call = as_call(output)
    if call is not None:
        return Calls((call,))
    where = "the output" if field is None else f"the field {field!r} of the output"
    return Calls((), absence=f"{where} is missing" if output in (MISSING, None) else f"{where} is no tool call")


def as_call(value: object) -> Call | None:
    """Return the call that *value* describes, or None."""
    if type(value) is not dict and not isinstance(value, Mapping):
        return None
    for tool, params in _FORMS:
        if tool in value:
            item_ = value.get(params, MISSING)
            if params == "arguments" and isinstance(item_, str):
                item_ = parsed(item_)
            digest = value.get("input_hash") if item_ is MISSING and params == "input" else None
            return Call(value[tool], item_, _id(value), digest)
    inner = value.get("function")
    call = as_call(inner) if inner is not value else None
    return None if call is None else call._replace(id=_id(value))


def parsed(text: str) -> object:
    """Return the JSON value of *text*, or *text* itself if it is no JSON."""
    try:
        return read_json(text)
    except orjson.JSONDecodeError:
        return text


def canonical(value: object) -> str:
    """Return the JSON of *value* in which equal values have equal texts: keys sorted, ``1.0`` as ``1``, texts in Unicode's form NFC.

    ``1``, ``"1"`` and ``true`` stay different, and so do keys that would become equal.

    :raises ValueError: if it is not JSON, or nested deeper than 254 levels.
    """
    try:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
        if _is_canonical(text) and type(value) is not float:  # so with nearly every value
            return text
        return orjson.dumps(_normal(value), option=orjson.OPT_SORT_KEYS).decode()
    except TypeError as error:
        raise ValueError(str(error)) from error


def _is_canonical(text: str) -> bool:
    if not text.isascii() and not unicodedata.is_normalized("NFC", text):
        return False
    return (".0" not in text and not _EXPONENT.search(text)) or not _INTEGRAL.search(text)


def shortened(text: str) -> str:
    """*text* as far as a reader needs it, and as UTF-8 can hold it."""
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return cut if cut.isascii() else cut.encode(errors="replace").decode()


def _traced(subject: Subject, call_input: Mapping[str, object]) -> Call:
    """Return the call of a tool cycle. Without input it may be known by the hash in the trace."""
    if call_input.get("input") is None:
        for event in subject.events:
            if event.type == "tool.called" and str(event.payload.get("tool_use_id")) == subject.id:
                return as_call(event.payload) or Call(call_input["tool_name"])
    return Call(call_input["tool_name"], call_input.get("input", MISSING))


def _id(value: Mapping[Any, object]) -> object:
    return value.get("tool_use_id", value.get("id"))


def _normal(value: object) -> object:
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, float) and value.is_integer() and _LEAST <= value < _MOST:
        return int(value)
    if isinstance(value, Mapping):
        named = {unicodedata.normalize("NFC", key): _normal(item) for key, item in value.items()}
        return named if len(named) == len(value) else {key: _normal(item) for key, item in value.items()}
    return [_normal(item) for item in value] if isinstance(value, list | tuple) else value
