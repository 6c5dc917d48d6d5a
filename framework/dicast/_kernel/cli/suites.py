"""What ``dicast run`` prints of a suite: the summary of each experiment, and a table of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..._toolkit.printable import one_line
from ..._toolkit.terminal import Drawing, Part
from ..._toolkit.text_table import TextTable
from ..suite import Suite
from .output import problems_json, problems_text
from .summary import run_parts


def suite_json(suite: Suite) -> dict[str, Any]:
    """What ``dicast run --json`` prints."""
    documents = {name: outcome.document for name, outcome in suite.outcomes.items()}
    done = {"suite": suite.file, "baseline": suite.baseline, "experiments": documents}
    if suite.error is None:
        return done
    kind = type(suite.error).__name__
    return {**done, "error": {"kind": kind, "message": str(suite.error), "errors": problems_json(suite.error)}}


def suite_parts(suite: Suite) -> Iterator[Part]:
    """The summary of each experiment, and a table of all."""
    documents = {name: outcome.document for name, outcome in suite.outcomes.items()}
    for done in documents.values():
        yield from run_parts(done)
        yield ""
    yield _table(documents, suite.baseline)
    if suite.error is not None:
        yield from ("", f"not begun: {problems_text(suite.error)}")


def _table(documents: Mapping[str, Mapping[str, Any]], baseline: str | None) -> Drawing:
    """One line an experiment: what was scored, the score, the means of criteria where an aggregate has them, and the cost."""
    means = {name: _means(done) for name, done in documents.items()}
    criteria = list(dict.fromkeys(criterion for found in means.values() for criterion in found))
    rows = [["EXPERIMENT", "SCORED", "FAILED", "SCORE", *criteria, "USD"]]
    for name, done in documents.items():
        score = done["score"] and done["score"]["mean"]
        figures = [score, *(means[name].get(criterion) for criterion in criteria)]
        shown = ["-" if figure is None else f"{figure:.4f}" for figure in figures]
        label = f"{name} (baseline)" if name == baseline else name
        rows.append([label, f"{done['scored']:,}", f"{done['failed']:,}", *shown, done["cost"].get("usd") or "unknown"])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return Drawing(TextTable(rows[0], rows[1:], right=rows[0][1:]), [one_line(line) for line in lines])


def _means(done: Mapping[str, Any]) -> dict[str, float | None]:
    """The mean of each criterion, from the first aggregate that has them."""
    for found in done["aggregates"].values():
        criteria = (found or {}).get("criteria")
        if isinstance(criteria, Mapping):
            return {name: one.get("mean") for name, one in criteria.items() if isinstance(one, Mapping)}
    return {}
