"""What stands in which column."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import attrs

from .cells import Cell

_SUBJECT = ("subject_kind", "subject_id", "session_id", "score", "tier", "failure", "cost_usd")
_NOT_IN_A_COLUMN = re.compile(r"[^A-Za-z0-9_]")


@attrs.define
class Row:
    """A subject with the terminal events it has had: *ended* maps a label to the payload."""

    kind: str | None
    id: str | None
    session_id: str | None
    ended: dict[str, Mapping[str, Any]] = attrs.field(factory=dict)


@attrs.frozen
class Table:
    """The columns of a run: *metrics* and *judges* have some of their own; *counted* labels make the subject's score."""

    metrics: tuple[str, ...]
    judges: tuple[str, ...]
    counted: tuple[str, ...]

    @classmethod
    def of(cls, started: Mapping[str, Any], *, include_metrics: bool) -> Table:
        """Read the labels from the payload of ``run.started``."""
        metrics = started["metrics"] if include_metrics else ()
        return cls(tuple(metrics), tuple(started["judges"]), tuple(started["counted"]))

    def header(self) -> list[str]:
        """The names of the columns."""
        names = [*_SUBJECT, *(f"metric_{name}" for name in _column_names(self.metrics))]
        for name in _column_names(self.judges):
            names += (f"judge_{name}_{what}" for what in ("score", "confidence", "kind", "failure"))
        return names

    def cells(self, row: Row) -> list[Cell]:
        """The cells of *row*; what is missing is None."""
        cells: list[Cell] = [row.kind, row.id, row.session_id, *self._outcome(row), _cost(row)]
        if self.metrics:
            values = row.ended.get("metrics", {}).get("signals", {}).get("metrics", {})
            cells += map(values.get, self.metrics)
        for judge in self.judges:
            ended = row.ended.get(judge, {})
            cells += (ended.get(key) for key in ("score", "confidence", "judge_kind", "failure_mode"))
        return cells

    def _outcome(self, row: Row) -> tuple[Cell, Cell, Cell]:
        """Score, tier and failure; of several counted labels that judged the subject none is *the* score."""
        counted = [row.ended[label] for label in self.counted if label in row.ended]
        if len(counted) == 1:
            only = counted[0]
            return only.get("score"), only.get("tier"), only.get("failure_mode")
        return None, None, next((mode for ended in counted if (mode := ended.get("failure_mode"))), None)


def _cost(row: Row) -> str | None:
    """What judging *row* cost, a plain decimal number; None when a part of it is not known."""
    costs: list[Any] = [ended.get("judge_cost_usd") for ended in row.ended.values()]
    if not costs or None in costs:
        return None
    return format(sum(map(Decimal, costs)), "f")


def _column_names(labels: Sequence[str]) -> Iterator[str]:
    """Make *labels* fit for a column name: ASCII letters, digits and ``_``; a repeated one gets ``_2``, ``_3`` …."""
    taken: set[str] = set()
    for label in labels:
        plain = name = _NOT_IN_A_COLUMN.sub("_", label)
        count = 1
        while name in taken:
            count += 1
            name = f"{plain}_{count}"
        taken.add(name)
        yield name
