"""Numbers as text: rounded for people, as in the summary on a terminal, and with all digits for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._kernel.report.document import is_refused
from ..toolkit.decimals import decimal_text, percent_text
from ..toolkit.money import amounts_text


def figure(value: float | None) -> str:
    """Return a score with four decimals, or ``-`` for None."""
    return "-" if value is None else decimal_text(value, 4)


def share(value: float | None) -> str:
    """Return a share in percent with one decimal, or ``-`` for None."""
    return "-" if value is None else f"{percent_text(value, 1)}%"


def exact(value: float | None) -> str:
    """Return a number with the digits needed to read back the same bits, or an empty text for None."""
    return "" if value is None else repr(value)


def money(amounts: Mapping[str, str | None]) -> str:
    """Return amounts by unit with all digits, or ``nothing`` if all are 0."""
    return amounts_text(amounts) or "nothing"


def run_answer(done: Mapping[str, Any]) -> str:
    """Return the answer of the gate in a run's document *done*; ``no gate`` or ``undecided, no gate`` without a gate.

    A run that was refused before anything was judged has the answer ``not judged (exit code 2)``.
    """
    if is_refused(done):
        return "not judged (exit code 2)"
    if done["gate"] is None:
        return "undecided, no gate" if done["undecided"] else "no gate"
    return gate_answer(done["gate"])


def gate_answer(gate: Mapping[str, Any] | None) -> str:
    """Return the answer of the gate of a run's document in a word; ``none`` without a gate."""
    return "none" if gate is None else answer(gate["passed"])


def answer(passed: bool | None) -> str:
    """Return the answer of a gate or of a gate clause in a word."""
    return {True: "passed", False: "failed"}.get(passed, "undecided")  # type: ignore[arg-type]  # None has the default
