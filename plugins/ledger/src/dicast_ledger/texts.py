"""What a ledger of digests keeps of a payload: everything but what users wrote, and what may quote it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import orjson

from dicast import Event

_IN_FULL = ("eval.", "run.", "spend.")
"""Never digested: verdicts, what the sums are made of, and how the run ended."""

_TEXTS = frozenset(("details", "error_message", "feedback"))
"""Where components explain themselves to a reader."""

_LEFT_OUT = frozenset(("rationale_redacted", "rationale_scope"))
"""Texts of models that are not kept, and the members next to them."""

_RECORDS = ("record.completed", "record.failed")
_KEPT = ("response", "responses", "metrics", "retry", "error")
"""What of a record is kept, with its texts left empty."""

_SAID = ("failure_mode", "timestamp", "security_level", "determinism_level")
"""What of a record is no text of anybody's."""


def without_texts(event: Event, plain: Callable[[object], object]) -> Mapping[str, object]:
    """The payload of *event* without texts; *plain* makes JSON of what is none yet.

    Of a verdict, a reply, a failure and a run's end the explanations are blanked, so that scores, kinds, signals and money
    stay whole, of a record all texts but its row's id; what else holds what a user wrote becomes its digest.
    """
    if event.type in _RECORDS:
        whole = orjson.loads(orjson.dumps(event.payload, plain))
        kept = {key: _numbers(value) for key, value in whole.items() if key in _KEPT}
        plainly = {key: whole[key] for key in _SAID if key in whole}
        return {"digest": _digest(event, plain), "row": {"id": event.subject_id}, **kept, **plainly}
    if event.type.startswith(_IN_FULL):
        left_out = _LEFT_OUT | {"reply"} if event.type == "eval.failed" else _LEFT_OUT
        return {key: _blanked(key, value) for key, value in event.payload.items() if key not in left_out}
    if event.sensitivity != "user_controlled":
        return event.payload
    failure = event.payload.get("failure") if event.type == "subject.read" else None
    kept = {"failure": {"kind": failure.get("kind"), "message": ""}} if isinstance(failure, Mapping) else {}
    return {"digest": _digest(event, plain), **kept}


def _digest(event: Event, plain: Callable[[object], object]) -> str:
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
