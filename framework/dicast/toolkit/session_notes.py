"""Notes about the counts of recorded sessions, for the summary of a run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

MOST_NOTES = 10
"""The most kinds of marked content in the summary of a run."""

_PLURAL = re.compile(r"(?<=\w)s\b")
_ABANDONED = (("turns", "turn"), ("messages", "message"), ("calls", "tool call"), ("results", "tool result"))
_REASONS = {
    "trailing": "without a reply to the last user message (trailing: keep judges it)",
    "no_turn": "without a user message",
    "no_tool_cycle": "without a tool call",
}


def marked_notes(marked: Counter[str], first_places: Mapping[str, str]) -> Iterator[str]:
    """Yield a note for each of the most frequent kinds of *marked* content, and one for the other kinds."""
    for kind, count in marked.most_common(MOST_NOTES):
        yield f"{kind} marked {count:,} time{'s' * (count != 1)}, first at {first_places[kind]}"
    if (rest := len(marked) - MOST_NOTES) > 0:
        yield f"{rest:,} further kind{'s' * (rest != 1)} of content marked"


def numbered(count: int, name: str) -> str:
    """Return a count with its *name* in the plural, such as ``spans of tools``. For one, the first word that ends in s loses it."""
    return f"{count:,} {_PLURAL.sub('', name, count=1) if count == 1 else name}"


def left_out_note(left_out: Counter[str]) -> str:
    """Return the note about parts of the input that belong to no session; empty if there are none."""
    counts = ", ".join(numbered(count, name) for name, count in sorted(left_out.items()))
    return f"{counts} left out: no session is made of them" if counts else ""


def abandoned_note(abandoned: Counter[str]) -> str:
    """Return the note about turns that the user took back; empty if there are none."""
    counts = [f"{abandoned[key]:,} {name}{'s' * (abandoned[key] != 1)}" for key, name in _ABANDONED]
    return f"{', '.join(counts)} not judged: the user took them back" if abandoned else ""


def dropped_reasons(dropped: Counter[str]) -> str:
    """Return the reasons why records gave no subject, with their counts."""
    return "; ".join(f"{count:,} {_REASONS[name]}" for name, count in sorted(dropped.items()))
