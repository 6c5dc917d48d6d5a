"""What a verdict rests on: an order of bases from strongest to weakest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

Basis = Literal["human", "truth", "model", "heuristic", "proxy"]
"""``truth`` is a reference, an execution or an assertion; ``model`` is a model's opinion."""

BASES: tuple[Basis, ...] = get_args(Basis)
"""Every basis, the strongest first."""

_OF_KIND: dict[str, Basis] = {"human": "human", "evaluator": "truth", "llm": "model", "metrics": "proxy"}


def weakest(bases: Iterable[Basis], default: Basis = "proxy") -> Basis:
    """The weakest of *bases*; *default* where there is none."""
    return max(bases, key=BASES.index, default=default)


def reaches(basis: Basis, least: Basis) -> bool:
    """Whether *basis* is as strong as *least*, or stronger."""
    return BASES.index(basis) <= BASES.index(least)


def basis_of(judge_kind: str, tier: str | None = None, judge_model: str | None = None) -> Basis:
    """The basis of an answer that does not say it, as verdicts of old ledgers do not.

    A *judge_kind* that stands for several judges (``hybrid``, ``jury``) counts as a model where *judge_model* answered, else as a
    heuristic. ``metrics`` has its *tier* as its basis, and is a proxy where none is known.
    """
    if judge_kind == "metrics" and tier == "truth":
        return "truth"
    return _OF_KIND.get(judge_kind) or ("model" if judge_model is not None else "heuristic")
