"""Which of the subjects that the proxies rejected are looked at all the same."""

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
    """How far the ends of the corrected mean's 95 % interval may lie from it: *width* is half of the whole."""

    width: float = field(validator=Within(0, 1, "more than 0 and less than 1", open=True))


@frozen
class AutoRate:
    """The rate that gives the corrected mean an interval of a width."""

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
    """Groups of subjects that are audited at rates of their own: more where the score says less of the truth.

    :param by: the row's column, or a dotted path in the subject's context, whose value names the group; a subject without one is in the group ``""``.
    :param rates: the rate of a group, more than 0 and at most 1; of one that is not named the audit's. With ``rate: auto`` earlier runs tell all of them.
    """

    by: str
    rates: Mapping[str, float] = field(factory=dict, validator=_are_rates)

    def name(self, context: Mapping[str, object]) -> str:
        """The group of a subject with this *context*."""
        found = lookup(context, self.by)
        return "" if found is MISSING or found is None else str(found)


@frozen
class Audit:
    """Which share of the subjects that the proxies rejected the truth metrics look at anyway.

    :param rate: the share, from 0 to 1; ``auto`` is the one with which a width of the corrected mean's interval costs least, as far as the
        newest run of this pipeline that had audits tells; ``{auto: {width: W}}`` the one that gives an interval of the mean plus or minus W.
    :param seed: with which subjects are drawn: the same ones in every run.
    :param strata: groups of subjects with rates of their own.
    """

    rate: float | Literal["auto"] | AutoRate = field(validator=_is_rate)
    seed: int = field(default=0, validator=SEED)
    strata: AuditStrata | None = None

    @property
    def share(self) -> float:
        """The rate, once a run has begun: it is a number then."""
        assert isinstance(self.rate, float)  # a run replaces what is none where it begins
        return self.rate

    def group(self, context: Mapping[str, object]) -> str:
        """The group that a subject with this *context* is in."""
        return "" if self.strata is None else self.strata.name(context)

    def share_of(self, group: str) -> float:
        """The rate of a *group*, once a run has begun."""
        return self.share if self.strata is None else self.strata.rates.get(group, self.share)
