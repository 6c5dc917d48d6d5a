"""Output of ``dicast run`` for a suite: the summary of each experiment, and a table of all experiments."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from ...toolkit.terminal import Drawing, Part
from ...toolkit.text_table import TextTable
from ..run.suite import Suite
from .output import problems_json, problems_text
from .screen import ROWS, screen_parts
from .summary import run_parts

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
    """Yield the summary of each experiment, and a table of all experiments; with *full*, every figure of each experiment."""
    documents = {name: outcome.document for name, outcome in suite.outcomes.items()}
    rows = max(_LEAST_ROWS, ROWS // (len(documents) + 1))
    for done in documents.values():
        if full:
            yield from run_parts(done, suite.command)
        else:
            yield from screen_parts(done, suite.command, rows=rows, is_in_suite=True)
        yield ""
    yield _table(documents, suite.baseline)
    if not full and documents:
        name = next(iter(documents.values()))["name"]
        yield f"details of an experiment, such as {name}: dicast show {shlex.quote(name)} --full"
    if suite.error is not None:
        yield from ("", f"not started: {problems_text(suite.error)}")


def _table(documents: Mapping[str, Mapping[str, Any]], baseline: str | None) -> Drawing:
    """Return a table with a row for each experiment: scored and failed subjects, the score, the means of labels and criteria, and the cost."""
    means = {name: _means(done) for name, done in documents.items()}
    names = list(dict.fromkeys(name for run_means in means.values() for name in run_means))
    rows = []
    for name, done in documents.items():
        score = done["score"] and done["score"]["mean"]
        figures = [score, *(means[name].get(column) for column in names)]
        cells = ["-" if figure is None else f"{figure:.4f}" for figure in figures]
        title = f"{name} (baseline)" if name == baseline else name
        rows.append([title, f"{done['scored']:,}", f"{done['failed']:,}", *cells, done["cost"].get("usd") or "unknown"])
    heads = ["EXPERIMENT", "SCORED", "FAILED", "SCORE", *names, "USD"]
    table = TextTable(heads, rows, right=heads[1:], uncut=heads[1:])
    return Drawing(table, [*table.lines()])


def _means(done: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the mean of each label if the run has several, and of each criterion from the first aggregate with criteria."""
    labels = done.get("labels") or {}  # a run that was not started has none
    means = {label: figures["mean"] for label, figures in labels.items()} if len(labels) > 1 else {}
    for aggregate in done["aggregates"].values():
        criteria = (aggregate or {}).get("criteria")
        if isinstance(criteria, Mapping):
            return means | {
                name: criterion.get("mean") for name, criterion in criteria.items() if isinstance(criterion, Mapping)
            }
    return means
