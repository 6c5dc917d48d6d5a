"""The section ``gate``: what a run must reach."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any, Literal

from ..classes import Attribute, field, frozen
from ..values import Basis
from ..values.bounds import Within
from ..values.errors import ConfigError
from .audit import SHARE

_NOT_NEGATIVE = Within(0, inf, "0 or more")

Bound = Literal["point", "interval", "anytime"]

MIN_COVERAGE = 0.95
"""The coverage below which a run is undecided where the file does not set another."""

CARD_BARS = (
    *("min_labels", "min_class", "min_kappa", "max_flips", "min_consistency", "max_moved", "min_canaries"),
    "max_failures",
)
"""What a judge card is held against, where a clause of the gate requires one."""


@frozen
class Clause:
    """What one label of the run must reach.

    :param on: the label of a metric, a judge or a criterion; by default the only label of the file. A file with several labels needs
        it, unless the clause has ``min_coverage`` alone. Of several labels the first clause's is that of the run's score.
    :param min_score: the least mean.
    :param max_score: the greatest mean.
    :param min_pass_rate: the least share of subjects that pass, of all that the label was to judge.
    :param min_coverage: the least share of subjects that were scored, by the clause's label, without one by every label that accepts
        them; below it the gate is undecided.
    :param min_basis: the weakest basis that any of the scores may rest on: ``human``, ``truth``, ``model``, ``heuristic`` or ``proxy``.
    :param bound: what is compared: ``point`` the figure itself, ``interval`` its whole 95 % interval, ``anytime`` what the early stop
        ``trust/anytime`` on this label says; astride, or without a decision, the gate is undecided.
    :param corrected: whether the mean is the one that audits have corrected, of ``metrics`` or of a truth metric; it needs ``scoring.audit``.
    :param require_card: a file that ``dicast doctor`` wrote about the judge; where it is missing, of another judge, or says that the judge cannot gate, the gate is
        undecided. The lines below stand in place of the card's own.
    :param min_labels: the least number of labels, 100 by the card's own line.
    :param min_class: the least number of labels that pass, and that fail; 10.
    :param min_kappa: the least lower bound of kappa; .40.
    :param max_flips: the greatest upper bound of the share of pairs whose winner changes with the order; .30.
    :param min_consistency: the least lower bound of the share of verdicts that come out the same again; .80.
    :param max_moved: how many canaries may move a verdict; 0.
    :param min_canaries: the least number of canaries tried; 60.
    :param max_failures: the greatest upper bound of the share of failures; .05.
    """

    on: str | None = None
    min_score: float | None = None
    max_score: float | None = field(default=None)
    min_pass_rate: float | None = field(default=None, validator=SHARE)
    min_coverage: float = field(default=MIN_COVERAGE, validator=SHARE)
    min_basis: Basis | None = None
    bound: Bound = "point"
    corrected: bool = False
    require_card: Path | None = None
    min_labels: int | None = field(default=None, validator=_NOT_NEGATIVE)
    min_class: int | None = field(default=None, validator=_NOT_NEGATIVE)
    min_kappa: float | None = field(default=None, validator=Within(-1, 1, "a number from -1 to 1"))
    max_flips: float | None = field(default=None, validator=SHARE)
    min_consistency: float | None = field(default=None, validator=SHARE)
    max_moved: int | None = field(default=None, validator=_NOT_NEGATIVE)
    min_canaries: int | None = field(default=None, validator=_NOT_NEGATIVE)
    max_failures: float | None = field(default=None, validator=SHARE)

    @max_score.validator
    def _above(self, attribute: Attribute[Any], value: float | None) -> None:
        if value is not None and self.min_score is not None and value < self.min_score:
            raise ConfigError(f"max_score {value:g} is below min_score {self.min_score:g}: no score is in between")


@frozen
class Gate:
    """The *clauses* that a run must reach, all of them; a file without the section ``gate`` has none."""

    clauses: tuple[Clause, ...] = ()
