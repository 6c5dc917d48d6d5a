"""Basis of a verdict: the kinds of evidence, from strongest to weakest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

Basis = Literal["human", "truth", "model", "heuristic", "proxy", "recorded"]
"""``truth`` is a reference, an execution or an assertion; ``model`` is a model's opinion; ``recorded`` is the score of another tool, on unknown evidence."""

BASES: tuple[Basis, ...] = get_args(Basis)
"""Every basis, the strongest first."""

_OF_KIND: dict[str, Basis] = {
    "human": "human",
    "evaluator": "truth",
    "llm": "model",
    "metrics": "proxy",
    "recorded": "recorded",
}


def weakest(bases: Iterable[Basis], default: Basis = "proxy") -> Basis:
    """Return the weakest of *bases*; *default* if there are none."""
    return max(bases, key=BASES.index, default=default)


def reaches(basis: Basis, least: Basis) -> bool:
    """Return whether *basis* is as strong as *least*, or stronger."""
    return BASES.index(basis) <= BASES.index(least)


def basis_of(judge_kind: str, tier: str | None = None, judge_model: str | None = None) -> Basis:
    """Return the basis of an answer that does not state it, such as a verdict of an old ledger.

    A *judge_kind* of several judges (``hybrid``, ``jury``) counts as a model if *judge_model* answered, otherwise as a
    heuristic. ``metrics`` has its *tier* as its basis, and is a proxy if the tier is unknown.
    """
    if judge_kind == "metrics" and tier == "truth":
        return "truth"
    return _OF_KIND.get(judge_kind) or ("model" if judge_model is not None else "heuristic")
