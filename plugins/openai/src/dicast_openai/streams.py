"""Completions that an endpoint streams although the request did not ask for a stream."""

from __future__ import annotations

from typing import Any

import orjson

_FIELD, _END = b"data:", b"[DONE]"
_CUT = "stream_cut"
"""The finish reason of a stream that has neither a reason nor an end."""


def read_stream(data: bytes) -> dict[str, Any]:
    """Return the completion in the events of *data*, the whole body of an event stream.

    If no event has a piece of a completion, the result is an error among the events, or empty.

    :raises orjson.JSONDecodeError: for an event that is not JSON, as in a stream that was cut.
    """
    body: dict[str, Any] = {}
    message: dict[str, Any] = {}
    choice: dict[str, Any] = {"message": message, "finish_reason": None if _END in data else _CUT}
    for line in data.splitlines():
        event = line.removeprefix(_FIELD).strip()
        if not line.startswith(_FIELD) or event == _END:
            continue
        match orjson.loads(event):
            case {"choices": [{"delta": {} as delta} as piece, *_]} as chunk:
                _add(message, delta)
                choice |= {name: piece[name] for name in ("finish_reason",) if piece.get(name) is not None}
                body |= {"choices": [choice]} | _rest(chunk)
            case {} as chunk:
                body |= _rest(chunk)
    return body


def _add(message: dict[str, Any], delta: dict[str, Any]) -> None:
    """Append the texts of *delta* to the texts of *message*."""
    for name, value in delta.items():
        if isinstance(value, str) and name != "role":
            message[name] = message.get(name, "") + value


def _rest(chunk: dict[str, Any]) -> dict[str, Any]:
    return {name: chunk[name] for name in ("model", "usage", "error") if chunk.get(name) is not None}
