"""Declines of pass rates during a watch, found while the verdicts arrive."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, lgamma
from typing import Any

import attrs

from dicast import Event
from dicast.reporting import PassRule

BLOCK = 20
"""Number of verdicts of a label that are compared with the verdicts before them."""

LEVEL = 0.05
"""Probability of a false decline of a label during a whole watch, if its verdicts are independent."""


@attrs.frozen
class Decline:
    """A *label* whose newest verdicts pass less often than the verdicts before them.

    :param passed: the number of passes among *n* new verdicts.
    :param before: the number of passes among *before_n* earlier verdicts.
    :param p: the probability of so few passes without a change.
    """

    label: str
    passed: int
    n: int
    before: int
    before_n: int
    p: float

    @property
    def words(self) -> str:
        """The decline in one sentence."""
        newest, earlier = self.passed / self.n, self.before / self.before_n
        return (
            f"{self.label}: {self.passed} of the newest {self.n} verdicts pass ({newest:.1%}); "
            f"before, {self.before:,} of {self.before_n:,} passed ({earlier:.1%})"
        )


@attrs.define
class _Passes:
    """Passes of one label: the block that fills, and the verdicts before it. *comparisons* counts the tests so far."""

    passed: int = 0
    n: int = 0
    before: int = 0
    before_n: int = 0
    comparisons: int = 0


@attrs.define
class DeclineReader:
    """Reader of a watch's verdicts.

    Each block of 20 verdicts of a label is compared with all earlier verdicts since the last decline, by Fisher's exact test, one-sided.
    The test number k has the level 0.05 / (k (k + 1)); all levels together are 0.05. After a decline the newest block is the new reference,
    so that a decline is reported once.
    """

    _rule: PassRule = attrs.field(factory=PassRule)
    _counted: frozenset[str] = frozenset()
    _labels: dict[str, _Passes] = attrs.field(factory=dict)

    def take(self, event: Event) -> Decline | None:
        """Read *event*, and return the decline that it completes. Only verdicts count, and no failed judgment."""
        payload: Mapping[str, Any] = event.payload
        if event.type == "run.started":
            self._rule, self._counted = PassRule.of(payload), frozenset(payload.get("counted", ()))
        if event.type != "eval.completed" or payload["judge"] not in self._counted:
            return None
        label = str(payload["judge"])
        passes = self._rule.verdict(label, payload)
        return None if passes is None else self._add(label, self._labels.setdefault(label, _Passes()), passes=passes)

    @staticmethod
    def _add(label: str, counts: _Passes, *, passes: bool) -> Decline | None:
        counts.passed += passes
        counts.n += 1
        if counts.n < BLOCK:
            return None
        passed, n, before, before_n = counts.passed, counts.n, counts.before, counts.before_n
        counts.passed = counts.n = 0
        counts.before, counts.before_n = before + passed, before_n + n
        if not before_n:
            return None
        counts.comparisons += 1
        p = lower_tail(passed, n, before, before_n)
        if p >= LEVEL / (counts.comparisons * (counts.comparisons + 1)):
            return None
        counts.before, counts.before_n = passed, n
        return Decline(label, passed, n, before, before_n, p)


def lower_tail(passed: int, n: int, before: int, before_n: int) -> float:
    """Return the probability of at most *passed* passes among *n* verdicts, for the given total of passes.

    It is the hypergeometric distribution of Fisher's exact test (R. A. Fisher, Journal of the Royal Statistical Society 85 (1922), 87-94).
    """
    total, passes = n + before_n, passed + before
    least = max(0, n - (total - passes))
    ways = _log_choose(total, n)
    terms = (exp(_log_choose(passes, k) + _log_choose(total - passes, n - k) - ways) for k in range(least, passed + 1))
    return min(1.0, sum(terms))


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
