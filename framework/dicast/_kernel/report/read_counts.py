"""Counts of a run's input in the run's document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ..values import ReadCounts
from .fold import Report

READ_WARNINGS = ("failed_records", "dropped_records", "marked_parts")
"""Kinds of warnings about the input; the summary has a separate line for them."""


def read_document(report: Report, counts: ReadCounts | None) -> dict[str, Any]:
    """Return the member ``read`` of a run's document; ``records`` is None if the source does not count them."""
    numbers = counts or ReadCounts(0)
    return {
        "records": None if counts is None else counts.records,
        "subjects": dict(sorted(report.subject_kinds.items())),
        "marked": dict(sorted(numbers.marked.items())),
        "dropped": dict(sorted(numbers.dropped.items())),
        "failed": report.failed_records if counts is None else counts.failed,
        **{name: dict(sorted(values.items())) for name, values in numbers.details.items()},
        **({"notes": [*numbers.notes]} if numbers.notes else {}),
    }


def read_warnings(read: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one warning for each reason why the judged subjects are not the whole input."""
    warnings: list[dict[str, Any]] = []
    if failed := read["failed"]:
        subject = f"{failed:,} record was" if failed == 1 else f"{failed:,} records were"
        message = f"{subject} recorded as failed and not judged"
        warnings.append({"kind": "failed_records", "message": message, "records": failed})
    if dropped := read["dropped"]:
        message = f"input records without a subject: {_listed(dropped)}"
        warnings.append({"kind": "dropped_records", "message": message, "dropped": dropped})
    if marked := read["marked"]:
        message = f"input parts replaced by markers: {_listed(marked)}"
        warnings.append({"kind": "marked_parts", "message": message, "marked": marked})
    return warnings


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.items())


def read_sum(documents: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums of the members ``read`` of *documents*; ``records`` is None if any of the sources does not count records."""
    parts = [done["read"] for done in documents if "read" in done]  # runs of older versions have none
    records = [part["records"] for part in parts]
    sums = {
        name: sum((Counter(part[name]) for part in parts), Counter[str]()) for name in ("subjects", "marked", "dropped")
    }
    total = None if None in records or not parts else sum(records)
    counts = {name: dict(sorted(sum_.items())) for name, sum_ in sums.items()}
    return {"records": total, **counts, "failed": sum(part["failed"] for part in parts)}
