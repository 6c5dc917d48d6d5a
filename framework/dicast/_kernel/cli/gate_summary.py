"""What the gate of a run says, for a reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..._toolkit.terminal import Drawing
from ..._toolkit.text_table import TextTable

Document = Mapping[str, Any]

_USUAL = 0.95
"""The coverage that a gate asks for where the file does not say it."""


def gate_parts(gate: Document) -> Iterator[str | Drawing]:
    """What the gate says and why, and each of its clauses where it has more than a coverage to ask for."""
    yield f"gate: {gate_answer(gate)}" + (": " if gate["reasons"] else "") + "; ".join(gate["reasons"])
    clauses = gate.get("clauses", ())  # earlier versions had none
    if any(clause["rule"] != "min_coverage" for clause in clauses):
        rows = [_clause_row(clause) for clause in clauses]
        width = max(len(on) for on, *_ in rows)
        lines = []
        for on, rule, value, interval, answer in rows:
            more = (f" ({interval})" if interval else "") + ("" if answer == "passed" else f", {answer}")
            lines.append(f"  {on:<{width}}  {rule}: {value}{more}")
        heads = ("  on", "clause", "value", "interval", "answer")
        table = TextTable(heads, [(f"  {on}", *more) for on, *more in rows], right=("value",))
        yield Drawing(table, lines)


def gate_answer(gate: Document) -> str:
    """What the gate says, in a word."""
    return {True: "passed", False: "failed"}.get(gate["passed"], "undecided")


def listed_gate(gate: Document) -> str | None:
    """Likewise, and None where the file has none: what a run does without one is to look at its coverage."""
    clauses = gate.get("clauses", ())
    usual = bool(clauses) and all(one["rule"] == "min_coverage" and one["line"] == _USUAL for one in clauses)
    return gate_answer(gate) if gate.get("given", not usual) else None  # earlier versions did not say it


def _clause_row(clause: Document) -> tuple[str, str, str, str, str]:
    value, line = (f"{one:.4g}" if isinstance(one, float) else one for one in (clause["value"], clause["line"]))
    interval = "" if clause["low"] is None else f"{clause['low']:.4f} to {clause['high']:.4f}"
    return clause["on"] or "", f"{clause['rule']} {line}", str(value or "-"), interval, gate_answer(clause)
