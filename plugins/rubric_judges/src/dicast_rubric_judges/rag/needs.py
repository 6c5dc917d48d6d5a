"""Fields of a subject without which its retrieval cannot be judged."""

from __future__ import annotations

from collections.abc import Sequence

from dicast import Subject
from dicast.toolkit.json_values import MISSING, lookup
from dicast.toolkit.references import is_missing

_EMPTY: tuple[object, ...] = (MISSING, None, "", [], (), {})
_CONVERSATIONS = ("turn", "tool_cycle", "session")
"""The kinds whose tools may have retrieved passages. The evidence of these kinds includes the output of the tools."""


def without_context(subject: Subject, columns: Sequence[str]) -> str | None:
    """Return the name of the missing context if *subject* has none of *columns* and no output of a tool, else None."""
    if any(lookup(subject.context, column) not in _EMPTY for column in columns) or _retrieved(subject):
        return None
    if subject.kind in _CONVERSATIONS:
        return "retrieved context: the source has no output of a tool"
    names = " or ".join(columns) or "no column"
    return f"retrieved context ({names}); name its columns in the option context"


def without_input(subject: Subject) -> str | None:
    """Return ``input`` if *subject* has no question, else None. The question of a conversation is its user messages."""
    return "input" if subject.input in _EMPTY and subject.kind not in _CONVERSATIONS else None


def without_reference(subject: Subject) -> str | None:
    """Return ``reference`` if *subject* has no reference, else None."""
    return "reference" if is_missing(subject.reference) or subject.reference == {} else None


def _retrieved(subject: Subject) -> bool:
    if subject.kind not in _CONVERSATIONS:
        return False
    return any(
        event.type == "tool.completed" and event.payload.get("output") not in _EMPTY
        for events in (subject.events, subject.trail)
        for event in events
    )
