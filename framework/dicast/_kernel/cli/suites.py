"""Output of ``dicast run`` for a suite: a table of all experiments, the summary of each experiment, and the next command."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from ...toolkit.printable import short_name
from ...toolkit.terminal import Drawing, Line, Part
from ...toolkit.text_table import TextTable
from ..classes import evolve, frozen
from ..pipeline.ledger_path import ledger_option
from ..report.label_order import ordered_labels
from ..run.suite import Suite
from ..values import ALL_METRICS
from ..values.passes import shown_label
from .label_rows import label_row
from .output import problems_json, problems_text
from .screen import ROWS, retry_lines, screen_parts
from .summary import is_resumed, lowest_label, run_parts, short_run

_LABELS = 6
"""The most labels of the table, if they fit next to each other."""

_TABLE_ROWS = 6
"""The rows of a table with three experiments, and of the next commands."""

_LEAST_ROWS = 4
"""The fewest rows for an experiment of a suite with many experiments."""


_STEPS = 3
"""The most experiments with failures whose next commands are shown."""


def suite_json(suite: Suite) -> dict[str, Any]:
    """Return the document that ``dicast run --json`` prints."""
    documents = {name: outcome.document for name, outcome in suite.outcomes.items()}
    done: dict[str, Any] = {"suite": suite.file, "baseline": suite.baseline, "experiments": documents}
    done |= {"not_started": [*suite.not_started]} if suite.not_started else {}
    if suite.error is None:
        return done
    kind = type(suite.error).__name__
    return {**done, "error": {"kind": kind, "message": str(suite.error), "errors": problems_json(suite.error)}}


def suite_parts(suite: Suite, *, full: bool = False, reported: Collection[str] = ()) -> Iterator[Part]:
    """Yield a table of all experiments, and the summary of each experiment; with *full*, every figure of each experiment.

    :param reported: as in :func:`screen_parts`.
    """
    documents = {name: outcome.document for name, outcome in suite.outcomes.items()}
    yield from _table_parts(suite, documents, full=full)
    rows = max(_LEAST_ROWS, (ROWS - _TABLE_ROWS) // max(1, len(documents)) - 1)
    stopped = next((name for name, done in documents.items() if is_resumed(done)), None)
    for name, done in documents.items():
        resumes = name == stopped  # the command resumes the whole suite
        yield ""
        if full:
            yield from run_parts(done, suite.command, resumes=resumes)
        else:
            yield from screen_parts(
                done, suite.command, rows=rows, reported=reported, is_in_suite=True, resumes=resumes
            )
    if not full and documents:
        yield from _next_lines(suite, documents)
    if suite.error is not None:
        yield from ("", f"not started: {problems_text(suite.error)}")
    if suite.not_started:
        yield f"experiments not started, as the suite ended before them: {', '.join(map(short_name, suite.not_started))}"


def _table_parts(suite: Suite, documents: Mapping[str, Mapping[str, Any]], *, full: bool) -> Iterator[Part]:
    """Yield the table of all experiments, the figures of its columns, and the number of columns that do not fit."""
    columns = _columns(documents)
    shown = columns if full else columns[:_LABELS]
    table = _table(documents, shown, suite.baseline)
    while not full and len(shown) > 1 and "" in table.lines:  # the columns do not fit next to each other
        shown = shown[:-1]
        table = _table(documents, shown, suite.baseline)
    yield table
    figures: dict[str, list[str]] = {}
    for column in shown:
        figures.setdefault(column.figure, []).append(short_name(column.label))
    if figures:
        yield Line("; ".join(f"{name} of {', '.join(labels)}" for name, labels in figures.items()))
    if omitted := len(columns) - len(shown):
        yield f"+ {omitted:,} more column{'s' * (omitted != 1)} (--full)"


def _next_lines(suite: Suite, documents: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the command that compares the baseline, else the first experiment, with the highest mean score among the comparable others.

    Ids name the runs, because a name is the newest run without ``--head``.
    """
    best = None if suite.pairs is None else suite.pairs.best(lambda name: _lead(documents[name]))
    if suite.pairs is not None and best is not None:
        runs = [short_run(documents[name]["run_id"]) for name in (suite.pairs.base, best)]
        command = " ".join(["dicast compare", *runs, *suite.pairs.variants[best]])
        yield f"next: {command}{ledger_option(documents[best]['ledger'])}"
    documents_of_runs = {name: done for name, done in documents.items() if done["run_id"] is not None}
    failing = {name: done for name, done in documents_of_runs.items() if done["failures"] or done["failed_subjects"]}
    if not any(map(is_resumed, documents.values())):
        for name, done in islice(failing.items(), _STEPS):
            yield from retry_lines(done, suite.command and evolve(suite.command, experiment=name))
    details = {name: done for name, done in documents_of_runs.items() if is_resumed(done)} | failing
    for done in islice((details or documents_of_runs).values(), _STEPS if details else 1):
        yield f"details: dicast show {short_run(done['run_id'])} --full{ledger_option(done['ledger'])}"
    if (rest := len(failing) - _STEPS) > 0:
        yield f"+ {rest:,} more experiment{'s' * (rest > 1)} with failures (dicast runs lists their runs)"


def _lead(done: Mapping[str, Any]) -> tuple[float, float]:
    """Return the figure of the gate's label, else of the score, and the mean of the label; below every figure without one."""
    label = lowest_label(done)
    row = None if label is None else label_row(done, label)
    mean = (done["score"] or {}).get("mean")
    figure = None if row is None else row.value
    return -math.inf if figure is None else figure, -math.inf if mean is None else mean


@frozen
class _Column:
    """A *figure*, the pass rate or the mean, of *label* in each experiment, by name."""

    label: str
    figure: str
    values: Mapping[str, float | None]


def _columns(documents: Mapping[str, Mapping[str, Any]]) -> list[_Column]:
    """Return a column for each label that the summary of any experiment shows, the labels of gates first, then the criteria.

    A criterion with a pass rate has a column for its mean too, which is on the scale of its judge. So has a label whose figure is a pass
    rate in one experiment and a mean in another.
    """
    values: dict[tuple[str, str], dict[str, float | None]] = {}
    for label in _labels(documents):
        names = {shown_label(done, label) for done in documents.values() if label in done.get("labels", {})}
        shown_name = (
            names.pop() if len(names) == 1 else label
        )  # experiments may have several metrics, or another only metric
        for name, done in documents.items():
            if done.get("labels") and (row := label_row(done, label)) is not None:
                values.setdefault((shown_name, row.figure), {})[name] = row.value
    for name, done in documents.items():
        criteria = next((found for found in map(_criteria, done["aggregates"].values()) if found is not None), {})
        for label, mean in criteria.items():
            values.setdefault((label, "mean"), {})[name] = mean
    return [_Column(label, figure, means) for (label, figure), means in values.items()]


def _labels(documents: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the labels that the summary of any experiment shows: the labels of gates first, then in the order of the file."""
    scored = [done for done in documents.values() if done.get("labels")]  # a run that was not started has none
    names = {label for done in scored for label in ordered_labels(done)}
    gated = (clause["on"] for done in scored for clause in (done["gate"] or {}).get("clauses", ()))
    first = () if ALL_METRICS in names else (label for done in scored for label in done["metrics"])
    others = (label for done in scored for label in (*done["labels"], *done["metrics"]))
    order = dict.fromkeys([*gated, *first, *others])
    return [label for label in order if label in names]


def _criteria(aggregate: Any) -> dict[str, float | None] | None:
    """Return the mean of each criterion of an aggregate; None for an aggregate without criteria."""
    criteria = (aggregate or {}).get("criteria")
    if not isinstance(criteria, Mapping):
        return None
    return {name: criterion.get("mean") for name, criterion in criteria.items() if isinstance(criterion, Mapping)}


def _table(documents: Mapping[str, Mapping[str, Any]], columns: Sequence[_Column], baseline: str | None) -> Drawing:
    """Return a table with a row for each experiment: scored subjects, failed judgments, the *columns*, and the cost."""
    rows = []
    for name, done in documents.items():
        figures = [column.values.get(name) for column in columns]
        cells = ["-" if figure is None else f"{figure:.4f}" for figure in figures]
        title = f"{name} (baseline)" if name == baseline else name
        rows.append([title, f"{done['scored']:,}", f"{done['failed']:,}", *cells, done["cost"].get("usd") or "unknown"])
    labels = [column.label for column in columns]
    names = [
        short_name(item.label) + f" {item.figure}" * (item.label in labels[:at]) for at, item in enumerate(columns)
    ]
    heads = ["EXPERIMENT", "SCORED", "FAILED JUDGMENTS", *names, "USD"]
    table = TextTable(heads, rows, right=heads[1:], uncut=heads[1:])
    return Drawing(table, [*table.lines()])
