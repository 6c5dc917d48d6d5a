"""Lines of a run's summary about its gate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...toolkit.terminal import Drawing
from ...toolkit.text_table import TextTable
from ..plan.clauses import GATE_LEFT_OUT
from ..report.document import exit_note, is_refused
from ..report.failure_words import open_text
from ..report.gate_words import gate_reasons, unanswered_labels
from ..values.passes import shown_label

Document = Mapping[str, Any]

_DIFFERENCES = ("max_drop",)
"""Rules about a difference from another run, which is shown with its sign: a drop is negative."""


def gate_parts(done: Document) -> Iterator[str | Drawing]:
    """Yield the decision of the gate of a run's document with its reasons, then its clauses if there is any besides coverage."""
    gate, undecided = done["gate"], done["undecided"]
    if gate is None:
        yield gate_head(done) + (f": {'; '.join(undecided)}" if undecided else "")
        return
    reasons = gate_reasons(done) if gate["reasons"] else []
    yield gate_head(done) + (": " if reasons else "") + "; ".join(reasons)
    clauses = gate.get("clauses", ())  # documents of older versions have none
    if any(clause["rule"] != "min_coverage" for clause in clauses):
        rows = [_clause_row(done, clause) for clause in clauses]
        lines = clause_lines(done, clauses)
        heads = ("  on", "clause", "value", "interval", "answer")
        table = TextTable(heads, [(f"  {on}", *cells) for on, *cells in rows], right=("value",))
        yield Drawing(table, lines)


def gate_head(done: Document) -> str:
    """Return the decision of the gate of a run's document without its reasons, with the exit code where the decision does not show it."""
    gate, refused = done["gate"], "not judged (exit code 2)" if is_refused(done) else ""
    if gate is not None:
        labels = ", ".join(unanswered_labels(done))
        unanswered = f", without an answer on {labels}" if labels and not refused else ""
        return f"gate: {refused or gate_answer(gate)}{unanswered}{exit_note(done)}"
    answer = refused or ("undecided" if done["undecided"] else "")
    return missing_gate(done) + exit_note(done) + (f"; {answer}" if answer else "")


def missing_gate(done: Document) -> str:
    """Return the line of a run without a gate: the reason if the command left it out; a shard has its gate at the merge."""
    if "shard" in done:
        return "gate: at the merge"
    warnings = done.get("warnings", ())  # documents of older versions have none
    return next((warning["message"] for warning in warnings if warning["kind"] == GATE_LEFT_OUT), "gate: none")


def gate_coverage(done: Document) -> str:
    """Return the coverage of each label that the gate compares with ``min_coverage``, after a comma, if it differs from the coverage of all labels together."""
    clauses = [
        clause
        for clause in (done["gate"] or {}).get("clauses", ())  # documents of older versions have none
        if clause["rule"] == "min_coverage" and clause["on"] is not None and clause["value"] is not None
    ]
    shares = {shown_label(done, clause["on"]): clause["value"] for clause in clauses}
    if all(math.isclose(value, done["coverage"]) for value in shares.values()):
        return ""
    return " by all labels; the gate reads " + ", ".join(f"{value:.1%} by {label}" for label, value in shares.items())


def clause_lines(done: Document, clauses: Sequence[Document]) -> list[str]:
    """Return a line for each of *clauses* of the document *done*, with the label, the rule, the value and its interval."""
    rows = [_clause_row(done, clause) for clause in clauses]
    width = max((len(on) for on, *_ in rows), default=0)
    lines = []
    for on, rule, value, interval, answer in rows:
        cells = (f" ({interval})" if interval else "") + ("" if answer == "passed" else f", {answer}")
        lines.append(f"  {on:<{width}}  {rule}: {value}{cells}")
    return lines


def gate_answer(gate: Document) -> str:
    """Return the gate's decision in one word."""
    return {True: "passed", False: "failed"}.get(gate["passed"], "undecided")


def _clause_row(done: Document, clause: Document) -> tuple[str, str, str, str, str]:
    sign = "+" if clause["rule"] in _DIFFERENCES else ""
    value, line = (
        f"{number:{style}.4g}" if isinstance(number, float) else number
        for number, style in ((clause["value"], sign), (clause["line"], ""))
    )
    interval = "" if clause["low"] is None else f"{clause['low']:{sign}.4f} to {clause['high']:{sign}.4f}"
    interval += open_text(clause) if interval else ""
    if value is None and sign and clause["passed"]:
        value = "this run is the baseline"
    on = "" if clause["on"] is None else shown_label(done, clause["on"])
    return on, f"{clause['rule']} {line}", str(value or "-"), interval, gate_answer(clause)
