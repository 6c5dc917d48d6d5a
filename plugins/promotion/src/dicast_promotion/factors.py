"""Factors that make a module worth improving next."""

from __future__ import annotations

from math import fsum
from typing import Any

import attrs

from dicast import ConfigError, Problem

FAILURE_WEIGHT, STALENESS_WEIGHT, ISSUE_WEIGHT = 3.0, 0.5, 0.2
LATENCY_MS, COST_MSAT, STALENESS_DAYS = 1_000, 10_000, 30
"""Caps: a latency, a cost or an age above its cap counts as the cap."""
MOST = 1e15
"""Upper limit of every factor."""


def _check(owner: object, attribute: attrs.Attribute[Any], value: object) -> None:
    most = 1 if attribute.name == "failure_rate" else MOST
    if type(value) not in (int, float) or not 0 <= value <= most:  # type: ignore[operator]  # a number, if it comes to that
        message = f"{attribute.name} is {value!r:.100}, not a number from 0 to {most:g}"
        raise ConfigError(Problem(message, path=attribute.name))


@attrs.frozen
class Factors:
    """Factors of a module, such as a prompt, a model's role or a step of an agent.

    :param invocation_rate: calls a day.
    :param failure_rate: the share of calls that fail, from 0 to 1.
    :param latency_ms: the time of a call in milliseconds.
    :param cost_msat: the cost of a call in msat. Other units are not converted.
    :param staleness_days: days since the last improvement.
    :param issues: the number of issues that users have reported.
    :raises ConfigError: if a value is not a number in its range.
    """

    invocation_rate: float = attrs.field(default=0.0, validator=_check)
    failure_rate: float = attrs.field(default=0.0, validator=_check)
    latency_ms: float = attrs.field(default=0.0, validator=_check)
    cost_msat: float = attrs.field(default=0.0, validator=_check)
    staleness_days: float = attrs.field(default=0.0, validator=_check)
    issues: float = attrs.field(default=0, validator=_check)

    @property
    def urgency(self) -> dict[str, float]:
        """The contribution of each factor to the priority, for one call a day."""
        return {
            "failure": FAILURE_WEIGHT * self.failure_rate,
            "latency": min(self.latency_ms / LATENCY_MS, 1.0),
            "cost": min(self.cost_msat / COST_MSAT, 1.0),
            "staleness": STALENESS_WEIGHT * min(self.staleness_days / STALENESS_DAYS, 1.0),
            "issues": ISSUE_WEIGHT * self.issues,
        }

    @property
    def priority(self) -> float:
        """The compile priority of the module; higher is more urgent.

        rate * (3 * failures + min(ms/1000, 1) + min(msat/10000, 1) + .5 * min(days/30, 1) + .2 * issues)
        """
        return self.invocation_rate * fsum(self.urgency.values())
