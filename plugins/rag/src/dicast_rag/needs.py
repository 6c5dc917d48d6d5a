"""What a subject has to have, so that something can be said of its retrieval."""

from __future__ import annotations

from collections.abc import Sequence

from dicast import MISSING, Subject, lookup
from dicast.toolkit.references import is_missing

_EMPTY: tuple[object, ...] = (MISSING, None, "", [], (), {})
_CONVERSATIONS = ("turn", "tool_cycle", "session")
"""The kinds whose tools may have retrieved something; of these a judge is shown what the tools returned."""


def without_context(subject: Subject, columns: Sequence[str]) -> str | None:
    """The retrieved context, where *subject* has none of *columns*, and no result of a tool in place of them."""
    if any(lookup(subject.context, column) not in _EMPTY for column in columns) or _retrieved(subject):
        return None
    if subject.kind in _CONVERSATIONS:
        return "retrieved context: no tool returned anything, as far as the source says"
    named = " or ".join(columns) or "no column"
    return f"retrieved context ({named}); name the columns that have it in the option context"


def without_input(subject: Subject) -> str | None:
    """The question, where *subject* has none; a conversation has what its user said."""
    return "input" if subject.input in _EMPTY and subject.kind not in _CONVERSATIONS else None


def without_reference(subject: Subject) -> str | None:
    """The reference, where *subject* has none."""
    return "reference" if is_missing(subject.reference) or subject.reference == {} else None


def _retrieved(subject: Subject) -> bool:
    if subject.kind not in _CONVERSATIONS:
        return False
    return any(
        event.type == "tool.completed" and event.payload.get("output") not in _EMPTY
        for events in (subject.events, subject.trail)
        for event in events
    )
