"""Numbers for a reader, as the summary on a terminal has them, and for a program, with all their digits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..toolkit.money import amounts_text


def figure(value: float | None) -> str:
    """A score with four decimals; ``-`` where there is none."""
    return "-" if value is None else f"{value:.4f}"


def share(value: float | None) -> str:
    """A share of a whole in percent with one decimal; ``-`` where there is none."""
    return "-" if value is None else f"{value:.1%}"


def exact(value: float | None) -> str:
    """A number with as many digits as it takes to read back the same bits; empty where there is none."""
    return "" if value is None else repr(value)


def money(amounts: Mapping[str, str | None]) -> str:
    """Amounts by unit, all digits; ``nothing`` where all are 0."""
    return amounts_text(amounts) or "nothing"


def run_answer(done: Mapping[str, Any]) -> str:
    """Return what the document *done* of a run answers: its gate's answer; without a gate that there is none, or that the run is undecided."""
    if done["gate"] is None:
        return "undecided, no gate" if done["undecided"] else "no gate"
    return gate_answer(done["gate"])


def gate_answer(gate: Mapping[str, Any] | None) -> str:
    """Return the answer of the gate of a run's document in a word; ``none`` without a gate."""
    return "none" if gate is None else answer(gate["passed"])


def answer(passed: bool | None) -> str:
    """What a gate, or one of its clauses, says in a word."""
    return {True: "passed", False: "failed"}.get(passed, "undecided")  # type: ignore[arg-type]  # None has the default
