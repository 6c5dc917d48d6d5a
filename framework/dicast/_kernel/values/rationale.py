"""Texts of models that may quote judged content: the events with such texts, and the sinks that get them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..events import EVAL_COMPLETED, EVAL_FAILED, SPEND_SETTLED
from .event import Event, sensitivity

RATIONALE = "rationale_redacted"
"""The signal with a judge's reasons."""

REPLY = "reply"
"""The member of ``eval.failed`` with the reply of a failed judgment."""

SCOPE = "rationale_scope"
"""The signal next to a text that is for one reader alone: :data:`LEDGER`."""

LEDGER = "ledger"
"""The scope of a text that the ledger keeps, and that only sinks with ``content`` get."""

_TYPES = frozenset((EVAL_COMPLETED, EVAL_FAILED, SPEND_SETTLED))


def for_sink(event: Event, *, content: bool) -> Event:
    """Return *event* for a sink: without texts whose scope is the ledger, unless the sink requests *content*."""
    if event.type not in _TYPES or event.sensitivity != "user_controlled":
        return event
    payload = _shared(event.payload, content=content)
    if payload is event.payload:
        return event
    return Event(
        event.id,
        event.type,
        event.time,
        event.run_id,
        payload,
        event.session_id,
        event.turn_id,
        event.subject_kind,
        event.subject_id,
        sensitivity(payload),
    )


def _shared(value: Any, *, content: bool) -> Any:
    """Return *value* without scopes, and without the texts next to them unless *content*; *value* itself if it has no scope."""
    if isinstance(value, Mapping):
        is_scoped = value.get(SCOPE) == LEDGER
        left_out = () if not is_scoped else (SCOPE,) if content else (SCOPE, RATIONALE, REPLY)
        members = {key: _shared(item, content=content) for key, item in value.items() if key not in left_out}
        is_same = not is_scoped and all(members[key] is value[key] for key in members)
        return value if is_same else members
    if isinstance(value, list | tuple):
        items = [_shared(item, content=content) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value
