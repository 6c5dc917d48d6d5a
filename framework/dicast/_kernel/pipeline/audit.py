"""Which of the subjects that the proxies rejected are looked at all the same."""

from __future__ import annotations

from typing import Any, Literal

import attrs

from ..values.bounds import Within

SHARE = Within(0, 1, "a number from 0 to 1")
SEED = Within(-(2**63), 2**63 - 1, "a whole number of 64 bits")


@attrs.frozen
class Width:
    """How far the ends of the corrected mean's 95 % interval may lie from it: *width* is half of the whole."""

    width: float = attrs.field(validator=Within(0, 1, "more than 0 and less than 1", open=True))


@attrs.frozen
class AutoRate:
    """The rate that gives the corrected mean an interval of a width."""

    auto: Width


def _is_rate(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if isinstance(value, float):
        SHARE(instance, attribute, value)


@attrs.frozen
class Audit:
    """Which share of the subjects that the proxies rejected the truth metrics look at anyway.

    :param rate: the share, from 0 to 1; ``auto`` is the one with which a width of the corrected mean's interval costs least, as far as the
        newest run of this pipeline that had audits tells; ``{auto: {width: W}}`` the one that gives an interval of the mean plus or minus W.
    :param seed: with which subjects are drawn: the same ones in every run.
    """

    rate: float | Literal["auto"] | AutoRate = attrs.field(validator=_is_rate)
    seed: int = attrs.field(default=0, validator=SEED)

    @property
    def share(self) -> float:
        """The rate, once a run has begun: it is a number then."""
        assert isinstance(self.rate, float)  # a run replaces what is none where it begins
        return self.rate
