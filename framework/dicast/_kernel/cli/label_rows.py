"""Rows of a run's labels for the summary on one screen: a figure of each label, its interval, its number of subjects and its basis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...toolkit.printable import short_name
from ...toolkit.terminal import Drawing
from ...toolkit.text_table import WIDTH, TextTable
from ..classes import frozen
from ..report.label_order import ordered_labels
from ..values.passes import shown_label

Document = Mapping[str, Any]

_MEAN_RULES = ("min_score", "max_score")
"""Rules of the gate about the mean of a label."""

_RATE_RULE = "min_pass_rate"

_INDENT = "  "

_BETWEEN = 2
"""Number of blanks between columns."""

_SHORTEST = 12
"""The number of characters of a label that the table shows even if it has no space for them."""


@frozen
class LabelRow:
    """A label with its *figure*, the pass rate or the mean, and the *interval*, the counts and the *basis* of the figure."""

    label: str
    figure: str
    value: float | None
    interval: tuple[float, float] | None
    n: int
    total: int
    basis: str

    def cells(self) -> tuple[str, str, str, str, str]:
        """Return the cells of the table behind the label."""
        interval = "" if self.interval is None else f"{self.interval[0]:.4f} to {self.interval[1]:.4f}"
        n = f"{self.n:,}" if self.n == self.total else f"{self.n:,} of {self.total:,}"
        value = "-" if self.value is None else f"{self.value:.4f}"
        return self.figure, value, interval, n, self.basis


def label_rows(done: Document) -> list[LabelRow]:
    """Return a row for each label and single metric of the document *done*, in the order of :func:`ordered_labels`; the only metric has its own name."""
    rules = _rules(done)
    return [
        _row(shown_label(done, label), figures, rules.get(label, {})) for label, figures in ordered_labels(done).items()
    ]


def label_row(done: Document, label: str) -> LabelRow | None:
    """Return the row of *label* in the document *done*, also of a label that :func:`label_rows` leaves out because another is equal."""
    figures = {**done.get("recorded", {}), **done["metrics"], **done["labels"]}.get(label)
    return None if figures is None else _row(shown_label(done, label), figures, _rules(done).get(label, {}))


def _rules(done: Document) -> dict[str, dict[str, Document]]:
    """Return the clauses of the gate by label and rule."""
    rules: dict[str, dict[str, Document]] = {}
    for clause in (done["gate"] or {}).get("clauses", ()):  # documents of older versions have none
        if clause["on"] is not None:
            rules.setdefault(clause["on"], {})[clause["rule"]] = clause
    return rules


def labels_table(rows: list[LabelRow]) -> Drawing:
    """Return the table of *rows*."""
    heads, cells = ("figure", "value", "95 % interval", "n", "basis"), [row.cells() for row in rows]
    widths = (max(map(len, column)) for column in zip(heads, *cells, strict=True))
    longest = max(_SHORTEST, WIDTH - sum(width + _BETWEEN for width in widths) - len(_INDENT))
    labels = [_INDENT + short_name(row.label, longest) for row in rows]
    table = TextTable(
        ("label", *heads),
        [(label, *others) for label, others in zip(labels, cells, strict=True)],
        right=("value", "n"),
        uncut=("label",),
    )
    return Drawing(table, [*table.lines()])


def _row(label: str, figures: Document, clauses: Mapping[str, Document]) -> LabelRow:
    passes, total = figures.get("passes"), figures["total"]
    basis = figures.get("basis") or next(reversed(figures.get("by_basis", {"-": 0})), "-")
    about_mean = next((clauses[rule] for rule in _MEAN_RULES if rule in clauses), None)
    if passes is None or (about_mean is not None and _RATE_RULE not in clauses):
        name = "mean, raw" if figures.get("scale") == "raw" else "mean"
        interval = _interval(figures)
        if interval is None and about_mean is not None and about_mean["low"] is not None:
            interval = about_mean["low"], about_mean["high"]  # a single metric has no interval of its own
        return LabelRow(label, name, figures["mean"], interval, figures["scored"], total, basis)
    return LabelRow(label, "pass rate", figures.get("pass_rate"), _interval(passes), passes["n"], total, basis)


def _interval(figures: Document) -> tuple[float, float] | None:
    return None if figures.get("ci_low") is None else (figures["ci_low"], figures["ci_high"])
