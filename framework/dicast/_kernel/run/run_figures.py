"""Types of the figures of a run, for type checkers. A figure is None if there are too few scores for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict


class PassFigures(TypedDict):
    """Numbers of subjects that passed, that have a verdict, and that are open, with the 95 % interval of the rate."""

    passed: int
    n: int
    open: int
    ci_low: float | None
    ci_high: float | None
    ci_method: str | None


class MeanFigures(TypedDict):
    """Mean of the scores with its 95 % interval, and the pass rate. *scale* is present for raw numbers, *corrected* and *audit* in an audited run."""

    mean: float | None
    pass_rate: float | None
    passes: PassFigures | None
    ci_low: float | None
    ci_high: float | None
    ci_method: str | None
    scale: NotRequired[Literal["raw"]]
    reasons: NotRequired[Sequence[str] | Mapping[str, Any]]
    corrected: NotRequired[Mapping[str, Any] | None]
    audit: NotRequired[Mapping[str, Any]]


class LabelFigures(MeanFigures):
    """Figures of a label, with its numbers of subjects."""

    basis: str | None
    scored: int
    failed: int
    total: int


class ScoreFigures(MeanFigures):
    """Figures of the run's score. *aggregate* is the result of the pipeline's aggregation."""

    label: str
    aggregation: str | Mapping[str, Any]
    aggregate: float | None
    by_tier: Mapping[str, int]
    by_basis: Mapping[str, int]
    calibrated: NotRequired[int]
