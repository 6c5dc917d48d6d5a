"""Tool calls: read from a subject's events, or from a list in any of the usual formats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from dicast import Failure, Subject
from dicast.toolkit.json_values import read_json
from dicast.toolkit.sessions import shown_tool

UNKNOWN: Final[Any] = type("Unknown", (), {"__repr__": lambda _: "unknown arguments"})()
"""The arguments of a call whose data has no arguments."""

NAMES = ("name", "tool_name", "tool")
ARGUMENTS = ("arguments", "args", "input", "tool_input", "parameters")
_ENDS = ("tool.completed", "tool.failed")


@attrs.frozen
class Call:
    """A call of the tool *name*. *arguments* is a JSON value, a text that is not JSON, or :data:`UNKNOWN`."""

    name: str
    arguments: Any = UNKNOWN


def calls_of(subject: Subject, metric: str) -> list[Call] | Failure:
    """Return the calls in the events of a turn or session, in their order; read any other subject's output as a list of calls."""
    if subject.kind == "tool_cycle":
        return Failure(
            "missing_input",
            f"{metric} reads all calls of a turn or session, and {subject.id!r} is one call; write on: [turn]",
        )
    if subject.events or subject.kind in ("turn", "session"):
        called = (event.payload for event in subject.events if event.type == "tool.called")
        return [Call(shown_tool(payload), _parsed(payload.get("input", UNKNOWN))) for payload in called]
    try:
        return parse_calls(subject.output)
    except ValueError as error:
        return Failure(
            "missing_input", f"{metric} reads tool calls; {subject.id!r} has no events, and its output: {error}"
        )


def failed_calls(subject: Subject) -> list[str]:
    """Return the tool of each failed call."""
    ends = (event for event in subject.events if event.type in _ENDS)
    return [
        shown_tool(event.payload)
        for event in ends
        if event.type == "tool.failed" or event.payload.get("success") is False
    ]


def parse_calls(value: object) -> list[Call]:
    """Return the calls in *value*: a list of calls, an object with ``calls`` or ``tool_calls``, or the JSON text of either.

    A call is the name of a tool, or an object with a name and, optionally, arguments: ``{name, arguments}``, as OpenAI
    (``{function: {name, arguments}}``), Anthropic (``{name, input}``) or Gemini (``{name, args}``) write it.

    :raises ValueError: names the value that is not a call.
    """
    if isinstance(value, str):
        value = _parsed(value)
    if isinstance(value, Mapping):
        key = next((key for key in ("calls", "tool_calls") if key in value), None)
        if key is None:
            raise ValueError(f"{_excerpt(value)} is not a list of calls, and has no key 'calls'")
        value = value[key]
    if not isinstance(value, list | tuple):
        raise ValueError(f"{_excerpt(value)} is not a list of calls")  # noqa: TRY004  # a fault of data, as below
    return [_call(item, number) for number, item in enumerate(value, 1)]


def _call(item: object, number: int) -> Call:
    if isinstance(item, str) and item.strip():
        return Call(item)
    if isinstance(item, Mapping):
        inner = item.get("function", item)
        inner = inner if isinstance(inner, Mapping) else {**item, "name": inner}
        name = next((inner[key] for key in NAMES if isinstance(inner.get(key), str)), "")
        if name:
            return Call(name, _parsed(next((inner[key] for key in ARGUMENTS if key in inner), UNKNOWN)))
    raise ValueError(
        f"call {number}, {_excerpt(item)}, is neither the name of a tool nor an object with the key 'name'"
    )


def _parsed(arguments: object) -> object:
    """Return *arguments*, parsed if they are JSON text. None becomes an empty object: some tools have no parameters."""
    if arguments is None:
        return {}
    if not isinstance(arguments, str):
        return arguments
    try:
        return read_json(arguments)
    except ValueError:
        return arguments if arguments.strip() else {}


def _excerpt(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
