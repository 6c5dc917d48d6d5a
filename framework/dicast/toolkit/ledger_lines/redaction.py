"""Payloads in a ledger of digests, without the texts of users and without texts that may quote them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from hashlib import sha256
from typing import Any

import orjson

from dicast import Event

IN_FULL = ("eval.", "run.", "spend.")
"""Prefixes of types that are never digested: verdicts, events of runs, and the events behind the sums."""

_TEXTS = frozenset(("details", "error_message", "feedback"))
"""Keys of explanations for readers; they are blanked."""

_LEFT_OUT = frozenset(("rationale_redacted", "rationale_scope"))
"""Keys of texts of models, and the key next to them; they are removed."""

RECORDS = ("record.completed", "record.failed")
_NUMBERED_KEYS = ("response", "responses", "metrics", "retry", "error")
"""Keys of a record that are stored with empty texts."""

PLAIN_KEYS = ("failure_mode", "timestamp", "security_level", "determinism_level")
"""Keys of a record that hold no user's text."""


def without_texts(event: Event) -> Mapping[str, object]:
    """Return the payload of *event* without texts.

    The explanations of a verdict, a reply, a failure and a run's end are blanked; scores, kinds, signals and money
    stay in full. A record loses all texts except its row's id. Any other payload that holds a user's text becomes its digest.
    """
    if event.type in RECORDS:
        payload = orjson.loads(orjson.dumps(event.payload, plain))
        numbers = {key: _numbers(value) for key, value in payload.items() if key in _NUMBERED_KEYS}
        plain_values = {key: payload[key] for key in PLAIN_KEYS if key in payload}
        return {"digest": _digest(event), "row": {"id": event.subject_id}, **numbers, **plain_values}
    if event.type.startswith(IN_FULL):
        left_out = _LEFT_OUT | {"reply"} if event.type == "eval.failed" else _LEFT_OUT
        return {key: _blanked(key, value) for key, value in event.payload.items() if key not in left_out}
    if event.sensitivity != "user_controlled":
        return event.payload
    failure = failure_without_text(event.payload) if event.type == "subject.read" else {}
    return {"digest": _digest(event), **failure}


def failure_without_text(payload: Mapping[str, object]) -> dict[str, object]:
    """Return the member ``failure`` of the payload of ``subject.read`` with an empty message; empty without one."""
    failure = payload.get("failure")
    return {"failure": {"kind": failure.get("kind"), "message": ""}} if isinstance(failure, Mapping) else {}


def _digest(event: Event) -> str:
    payload = event.payload
    if event.type == "subject.read" and "columns" in payload:  # other names for the same content
        payload = {key: value for key, value in payload.items() if key != "columns"}
    return sha256(orjson.dumps(payload, plain, orjson.OPT_SORT_KEYS)).hexdigest()


def _numbers(value: Any) -> object:
    """*value* with an empty text in the place of each text."""
    if isinstance(value, dict):
        return {name: _numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return "" if isinstance(value, str) else value


def _blanked(key: str, value: Any) -> object:
    if isinstance(value, str):
        return "" if key in _TEXTS else value
    if isinstance(value, Mapping):
        return {name: _blanked(name, item) for name, item in value.items() if name not in _LEFT_OUT}
    if isinstance(value, list | tuple):
        return [_blanked(key, item) for item in value]
    return value


def plain(value: object) -> object:
    """Return the JSON form of a value that orjson does not know, as the ledger writes it."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    raise TypeError(f"{type(value).__name__} is not JSON")
