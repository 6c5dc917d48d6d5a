"""Audit of subjects that the proxies rejected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ...toolkit.json_values import MISSING, lookup
from ..classes import Attribute, field, frozen
from ..values.bounds import Within

SHARE = Within(0, 1, "a number from 0 to 1")
SEED = Within(-(2**63), 2**63 - 1, "a whole number of 64 bits")


@frozen
class Width:
    """Half of the width of the corrected mean's 95 % interval."""

    width: float = field(validator=Within(0, 1, "more than 0 and less than 1", open=True))


@frozen
class AutoRate:
    """Rate to be computed so that the corrected mean's interval has the width *auto*."""

    auto: Width


def _is_rate(instance: object, attribute: Attribute[Any], value: object) -> None:
    if isinstance(value, float):
        SHARE(instance, attribute, value)


def _are_rates(instance: object, attribute: Attribute[Any], value: Mapping[str, float]) -> None:
    for name, rate in value.items():
        if not 0 < rate <= 1:
            raise ValueError(
                f"invalid value for {attribute.name}.{name}, expected more than 0 and at most 1, got {rate:g}"
            )


@frozen
class AuditStrata:
    """Groups of subjects with their own audit rates: higher where the score predicts the truth less well.

    :param by: the row's column, or a dotted path in the subject's context, whose value is the group; a subject without a value is in the group ``""``.
    :param rates: the rate of each group, more than 0 and at most 1; by default the audit's rate. With ``rate: auto`` earlier runs determine all rates.
    """

    by: str
    rates: Mapping[str, float] = field(factory=dict, validator=_are_rates)

    def name(self, context: Mapping[str, object]) -> str:
        """Return the group of a subject with this *context*."""
        value = lookup(context, self.by)
        return "" if value is MISSING or value is None else str(value)


@frozen
class Audit:
    """Share of the subjects rejected by the proxies that the truth metrics judge nevertheless.

    :param rate: the share, from 0 to 1. ``auto`` is the rate at which a width of the corrected mean's interval costs least, by the figures of
        the newest run of this pipeline with audits. ``{auto: {width: W}}`` is the rate that gives an interval of the mean plus or minus W.
    :param seed: the seed of the selection: every run selects the same subjects.
    :param strata: groups of subjects with their own rates.
    """

    rate: float | Literal["auto"] | AutoRate = field(validator=_is_rate)
    seed: int = field(default=0, validator=SEED)
    strata: AuditStrata | None = None

    @property
    def share(self) -> float:
        """Rate of a started run, which is a number."""
        assert isinstance(self.rate, float)  # a run replaces ``auto`` when it starts
        return self.rate

    def group(self, context: Mapping[str, object]) -> str:
        """Return the group of a subject with this *context*."""
        return "" if self.strata is None else self.strata.name(context)

    def share_of(self, group: str) -> float:
        """Return the rate of a *group* in a started run."""
        return self.share if self.strata is None else self.strata.rates.get(group, self.share)
