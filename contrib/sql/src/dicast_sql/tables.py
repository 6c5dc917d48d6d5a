"""Tables of a ledger: their columns, and their rows as JSON documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import attrs

from dicast import DataError, Entry, Event, Ledger, Query
from dicast.reading import place_of_label, retracted_labels

Row = Mapping[str, Any]

DIGITS = 18
"""Digits of an amount after the point."""

_AMOUNT = f"DECIMAL(38, {DIGITS})"
_RUN = {"seq": "BIGINT", "time": "TIMESTAMP", "run_id": "VARCHAR", "session_id": "VARCHAR"}
_SUBJECT = {"subject_kind": "VARCHAR", "subject_id": "VARCHAR"}

_EVENTS = {
    **_RUN,
    **_SUBJECT,
    **dict.fromkeys(("id", "type", "turn_id", "sensitivity"), "VARCHAR"),
    "payload": "JSON",
}
_VERDICTS = {
    **_RUN,
    **_SUBJECT,
    **dict.fromkeys(("eval_id", "judge"), "VARCHAR"),
    **dict.fromkeys(("score", "raw", "confidence"), "DOUBLE"),
    **dict.fromkeys(("tier", "basis", "judge_kind", "judge_model", "rubric_id", "rubric_version"), "VARCHAR"),
    "fingerprint": "VARCHAR",
    "judge_cost_usd": _AMOUNT,
    "judge_latency_ms": "BIGINT",
}
_LABELS = {
    **_RUN,
    **_SUBJECT,
    "labeller": "VARCHAR",
    "score": "DOUBLE",
    **dict.fromkeys(("drawn", "output_digest"), "VARCHAR"),
    **dict.fromkeys(("blind", "adjudicated", "retracted"), "BOOLEAN"),
}
_SPEND = {
    **_RUN,
    **_SUBJECT,
    **dict.fromkeys(("type", "reservation_id", "eval_id", "judge", "metric", "model"), "VARCHAR"),
    "amount": _AMOUNT,
    **dict.fromkeys(("unit", "pricing_version"), "VARCHAR"),
    **dict.fromkeys(("rollout", "calls", "tokens"), "BIGINT"),
    "overrun": "BOOLEAN",
}
_FIELDS = frozenset(field.name for field in attrs.fields(Event))


@attrs.frozen
class Table:
    """A table: the SQL types of its *columns*, and the function that returns its rows in a ledger."""

    columns: Mapping[str, str]
    rows: Callable[[Ledger], Iterable[Row]]


def _events(ledger: Ledger) -> Iterator[Row]:
    return (_row(entry, _EVENTS) for entry in ledger.read(Query()))


def _verdicts(ledger: Ledger) -> Iterator[Row]:
    return (_row(entry, _VERDICTS) for entry in ledger.read(Query(types=("eval.completed",))))


def _spend(ledger: Ledger) -> Iterator[Row]:
    return (_row(entry, _SPEND) for entry in ledger.read(Query(types=("spend.settled", "spend.lost"))))


def _labels(ledger: Ledger) -> Iterator[Row]:
    """Yield the labels; the events of labels name the subject in their payload."""
    retracted = retracted_labels(ledger)
    for entry in ledger.read(Query(types=("label.given",))):
        payload = entry.event.payload
        row = {
            **_row(entry, _LABELS),
            "subject_id": payload.get("subject"),
            "subject_kind": payload.get("subject_kind"),
        }
        row["adjudicated"] = payload.get("adjudicated") is True
        row["retracted"] = place_of_label(entry.event) in retracted
        yield row


def _row(entry: Entry, columns: Mapping[str, str]) -> dict[str, Any]:
    """Return the row of *entry*: fields of the event, else members of its payload. A missing member is None.

    :raises DataError: for an amount with more digits than a column has.
    """
    event = entry.event
    row = {name: getattr(event, name) if name in _FIELDS else event.payload.get(name) for name in columns}
    row["seq"] = entry.seq
    for name, kind in columns.items():
        if kind == _AMOUNT and row[name] is not None:
            _refuse_rounded(str(row[name]), f"event {event.id}, {name}")
    return row


def _refuse_rounded(text: str, place: str) -> None:
    try:
        exponent = Decimal(text).normalize().as_tuple().exponent
    except InvalidOperation:
        exponent = None
    if not isinstance(exponent, int) or exponent < -DIGITS:
        raise DataError(f"{place}: the amount {text!r:.60} has no exact value of {DIGITS} digits after the point")


TABLES: Mapping[str, Table] = {
    "events": Table(_EVENTS, _events),
    "labels": Table(_LABELS, _labels),
    "spend": Table(_SPEND, _spend),
    "verdicts": Table(_VERDICTS, _verdicts),
}
"""The tables by their names."""
