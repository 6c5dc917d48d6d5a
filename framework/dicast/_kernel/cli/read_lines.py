"""The lines of a run's summary about its input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...toolkit.printable import one_line
from ...toolkit.terminal import folded

_MOST_LINES = 4
"""The number of lines for the counts and notes of the input."""

_MOST_KINDS = 5
"""The number of kinds that a count names."""


def read_lines(done: Mapping[str, Any]) -> Iterator[str]:
    """Yield the counts of the input and as many notes as :data:`_MOST_LINES` lines hold, then the number of further notes.

    Nothing is yielded if all records were read as they are, and the source has no note. Notes about marked content come last: the counts have
    its number.
    """
    read = done.get("read")  # runs of earlier versions have none
    if not read:
        return
    parts = [_counts(kind, read[kind]) for kind in ("marked", "dropped") if read[kind]]
    parts += [f"failed: {read['failed']:,} (source_error)"] if read["failed"] else []
    notes = sorted(read.get("notes", ()), key=lambda note: _is_about_marks(note, read["marked"]))
    if not parts and not notes:
        return
    records = [] if read["records"] is None else [f"{read['records']:,} record{'s' * (read['records'] != 1)}"]
    line, shown = f"read: {'; '.join([*records, *parts])}", 0
    for note in notes:
        longer = f"{line}; {note}" if line != "read: " else f"read: {note}"
        if shown and _height(longer) > _MOST_LINES:
            break
        line, shown = longer, shown + 1
    yield line
    if (rest := len(notes) - shown) > 0:
        yield f"  + {rest:,} more note{'s' * (rest != 1)} (--json)"


def _height(text: str) -> int:
    return len(folded(one_line(text)).splitlines())


def _is_about_marks(note: str, marked: Mapping[str, int]) -> bool:
    return any(note.startswith(f"{kind} marked ") for kind in marked)


def _counts(name: str, counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    rest = [f"{len(counts) - _MOST_KINDS:,} more kinds"] if len(counts) > _MOST_KINDS else []
    return f"{name}: " + ", ".join([*(f"{count:,} {kind}" for kind, count in ordered[:_MOST_KINDS]), *rest])
