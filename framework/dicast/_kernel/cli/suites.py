"""Output of ``dicast run`` for a suite: a table of all experiments, the summary of each experiment, and the next command."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...toolkit.printable import short_name
from ...toolkit.terminal import Drawing, Part
from ...toolkit.text_table import TextTable
from ..run.suite import Suite
from .output import problems_json, problems_text
from .screen import ROWS, ledger_option, screen_parts
from .summary import lowest_label, run_parts

_LABELS = 6
"""The most labels of the table, if they fit next to each other."""

_TABLE_ROWS = 6
"""The rows of a table with three experiments, and of the next commands."""

_LEAST_ROWS = 4
"""The fewest rows for an experiment of a suite with many experiments."""


def suite_json(suite: Suite) -> dict[str, Any]:
    """Return the document that ``dicast run --json`` prints."""
    documents = {name: outcome.document for name, outcome in suite.outcomes.items()}
    done = {"suite": suite.file, "baseline": suite.baseline, "experiments": documents}
    if suite.error is None:
        return done
    kind = type(suite.error).__name__
    return {**done, "error": {"kind": kind, "message": str(suite.error), "errors": problems_json(suite.error)}}


def suite_parts(suite: Suite, *, full: bool = False) -> Iterator[Part]:
    """Yield a table of all experiments, and the summary of each experiment; with *full*, every figure of each experiment."""
    documents = {name: outcome.document for name, outcome in suite.outcomes.items()}
    yield from _table_parts(suite, documents, full=full)
    rows = max(_LEAST_ROWS, (ROWS - _TABLE_ROWS) // max(1, len(documents)) - 1)
    for done in documents.values():
        yield ""
        if full:
            yield from run_parts(done, suite.command)
        else:
            yield from screen_parts(done, suite.command, rows=rows, is_in_suite=True)
    if not full and documents:
        yield from _next_lines(suite, documents)
    if suite.error is not None:
        yield from ("", f"not started: {problems_text(suite.error)}")


def _table_parts(suite: Suite, documents: Mapping[str, Mapping[str, Any]], *, full: bool) -> Iterator[Part]:
    """Yield the table of all experiments, and the number of labels that do not fit."""
    means = {name: _means(done) for name, done in documents.items()}
    labels = list(dict.fromkeys(label for run_means in means.values() for label in run_means))
    shown = labels if full else labels[:_LABELS]
    table = _table(documents, means, shown, suite.baseline)
    while not full and len(shown) > 1 and "" in table.lines:  # the columns do not fit next to each other
        shown = shown[:-1]
        table = _table(documents, means, shown, suite.baseline)
    yield table
    if omitted := len(labels) - len(shown):
        yield f"+ {omitted:,} more label{'s' * (omitted != 1)} (--full)"


def _next_lines(suite: Suite, documents: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the command that compares the baseline, else the first experiment, with the highest mean score among the others."""
    scored = [name for name, done in documents.items() if done["scored"]]
    first = suite.baseline if suite.baseline in scored else next(iter(scored), None)
    others = [name for name in scored if name != first]
    if first is not None and others:
        best = max(others, key=lambda name: _lead(documents[name]))
        names = " ".join(shlex.quote(documents[name]["name"]) for name in (first, best))
        yield f"next: dicast compare {names}{ledger_option(documents[best]['ledger'])}"
    name = next(iter(documents.values()))["name"]
    yield f"details: dicast show {shlex.quote(name)} --full"


def _lead(done: Mapping[str, Any]) -> float:
    """Return the mean of the gate's label, else of the score; below every mean without one."""
    figures = done["labels"] | done["metrics"]
    mean = (figures.get(lowest_label(done)) or done["score"] or {}).get("mean")
    return -math.inf if mean is None else mean


def _table(
    documents: Mapping[str, Mapping[str, Any]],
    means: Mapping[str, Mapping[str, float | None]],
    labels: Sequence[str],
    baseline: str | None,
) -> Drawing:
    """Return a table with a row for each experiment: scored subjects, failed judgments, the mean score, the *means* of *labels*, and the cost."""
    rows = []
    for name, done in documents.items():
        score = done["score"] and done["score"]["mean"]
        figures = [score, *(means[name].get(label) for label in labels)]
        cells = ["-" if figure is None else f"{figure:.4f}" for figure in figures]
        title = f"{name} (baseline)" if name == baseline else name
        rows.append([title, f"{done['scored']:,}", f"{done['failed']:,}", *cells, done["cost"].get("usd") or "unknown"])
    heads = ["EXPERIMENT", "SCORED", "FAILED JUDGMENTS", "MEAN SCORE", *map(short_name, labels), "USD"]
    table = TextTable(heads, rows, right=heads[1:], uncut=heads[1:])
    return Drawing(table, [*table.lines()])


def _means(done: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the mean of each label and single metric but the score's, and of each criterion from the first aggregate with criteria."""
    means = dict[str, float | None]()
    if done.get("labels"):  # a run that was not started has none
        figures = {**done["labels"], **(done["metrics"] if len(done["metrics"]) > 1 else {})}
        gated = [clause["on"] for clause in (done["gate"] or {}).get("clauses", ())]
        order = dict.fromkeys(label for label in (*gated, *figures) if label in figures)
        means = {label: figures[label]["mean"] for label in order}
    if len(means) == 1:  # the score is about the only label
        means = {}
    score: Mapping[str, Any] = done["score"] or {}
    means.pop(str(score.get("label")), None)
    for aggregate in done["aggregates"].values():
        criteria = (aggregate or {}).get("criteria")
        if isinstance(criteria, Mapping):
            return means | {
                name: criterion.get("mean") for name, criterion in criteria.items() if isinstance(criterion, Mapping)
            }
    return means
