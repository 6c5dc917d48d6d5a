"""What a ledger of digests keeps of a payload: everything but what users wrote, and what may quote it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import orjson

from dicast import Event

_IN_FULL = ("eval.", "run.", "spend.")
"""Never digested: verdicts, what the sums are made of, and how the run ended."""

_TEXTS = frozenset(("details", "error_message", "feedback", "rationale_redacted"))
"""Where components explain themselves to a reader."""


def without_texts(event: Event, plain: Callable[[object], object]) -> Mapping[str, object]:
    """The payload of *event* without texts; *plain* makes JSON of what is none yet.

    Of a verdict, a reply, a failure and a run's end the explanations are blanked, so that scores, kinds, signals and money
    stay whole; what else holds what a user wrote becomes its digest.
    """
    if event.type.startswith(_IN_FULL):
        return {key: _blanked(key, value) for key, value in event.payload.items()}
    if event.sensitivity != "user_controlled":
        return event.payload
    return {"digest": sha256(orjson.dumps(event.payload, plain, orjson.OPT_SORT_KEYS)).hexdigest()}


def _blanked(key: str, value: Any) -> object:
    if isinstance(value, str):
        return "" if key in _TEXTS else value
    if isinstance(value, Mapping):
        return {name: _blanked(name, item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_blanked(key, item) for item in value]
    return value
