"""The counts of a run's input, as its document has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ..values import ReadCounts
from .fold import Report

READ_WARNINGS = ("failed_records", "dropped_records", "marked_parts")
"""The kinds of warnings about the input, which the summary has in one line of its own."""


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
    """Return one warning for each way in which the judged subjects are not all that the input has."""
    warnings: list[dict[str, Any]] = []
    if failed := read["failed"]:
        message = (
            f"{failed:,} record{'s' * (failed != 1)} failed where {'they were' if failed != 1 else 'it was'} recorded"
        )
        warnings.append(
            {
                "kind": "failed_records",
                "message": f"{message}; nothing was asked about {'them' if failed != 1 else 'it'}",
                "records": failed,
            }
        )
    if dropped := read["dropped"]:
        message = f"records of the input that gave no subject: {_listed(dropped)}"
        warnings.append({"kind": "dropped_records", "message": message, "dropped": dropped})
    if marked := read["marked"]:
        message = f"parts of the input that are not shown, markers replace them: {_listed(marked)}"
        warnings.append({"kind": "marked_parts", "message": message, "marked": marked})
    return warnings


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.items())


def read_sum(documents: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums of the members ``read`` of *documents*; ``records`` is None if one of them does not count them."""
    parts = [done["read"] for done in documents if "read" in done]  # runs of earlier versions have none
    records = [part["records"] for part in parts]
    sums = {
        name: sum((Counter(part[name]) for part in parts), Counter[str]()) for name in ("subjects", "marked", "dropped")
    }
    total = None if None in records or not parts else sum(records)
    counts = {name: dict(sorted(sum_.items())) for name, sum_ in sums.items()}
    return {"records": total, **counts, "failed": sum(part["failed"] for part in parts)}
