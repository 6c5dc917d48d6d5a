"""The line of a run's summary about its input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def read_lines(done: Mapping[str, Any]) -> Iterator[str]:
    """Yield one line if records were marked, dropped or recorded as failed, or if the source has a note."""
    read = done.get("read")  # runs of earlier versions have none
    if not read:
        return
    parts = [_counts(kind, read[kind]) for kind in ("marked", "dropped") if read[kind]]
    parts += [f"failed: {read['failed']:,} (source_error)"] if read["failed"] else []
    parts += read.get("notes", ())
    if parts:
        records = [] if read["records"] is None else [f"{read['records']:,} record{'s' * (read['records'] != 1)}"]
        yield f"read: {'; '.join([*records, *parts])}"


def _counts(name: str, counts: Mapping[str, int]) -> str:
    return f"{name}: " + ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
