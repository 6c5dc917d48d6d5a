"""Audits of kept verdicts by the next stage or by labels, and the test that revokes a calibration."""

from __future__ import annotations

import math
from hashlib import sha256
from typing import Literal

import attrs

from dicast import Within

EVERY = 25
"""Number of audits after which a new bet starts. A late change in a long run is found as soon as an early one."""


@attrs.frozen
class Audit:
    """Share of the kept verdicts that the next stage judges too. A hash of *seed* and the subject's id selects the subjects.

    With *against* ``gold`` no stage is asked: the verdict waits for a person's label in the ledger.
    """

    rate: float = attrs.field(default=0.02, validator=Within(0, 1, "a number from 0 to 1"))
    seed: int = attrs.field(default=0, validator=Within(-(2**63), 2**63 - 1, "a whole number of 64 bits"))
    against: Literal["next", "gold"] = "next"

    def draws(self, id: str) -> bool:
        """Return whether the verdict of the subject *id* is audited; the answer is equal in every run."""
        number = int.from_bytes(sha256(f"{self.seed}\n{id}".encode()).digest()[:8], "big")
        return number < self.rate * 2**64


def ln_above(losses: int, n: int, rate: float) -> float:
    """Return the logarithm of the evidence that losses are more frequent than *rate*, after *losses* of *n*.

    The evidence is the likelihood ratio of a uniform mixture over all higher rates to *rate*. It is 1 / ((n+1) C(n, losses) (1-rate)
    rate^losses (1-rate)^(n-losses)) times P(Bin(n+1, rate) <= losses). The terms are added as logarithms. dicast-trust has a
    vectorized form with scipy, which a cascade does not import.
    """
    log_r, log_s = math.log(rate), math.log1p(-rate)
    terms = [ln_choose(n + 1, k) + k * log_r + (n + 1 - k) * log_s for k in range(losses + 1)]
    most = max(terms)
    tail = most + math.log(math.fsum(math.exp(term - most) for term in terms))
    return tail - math.log(n + 1) - ln_choose(n, losses) - log_s - losses * log_r - (n - losses) * log_s


def ln_choose(n: int, k: int) -> float:
    """Return the logarithm of the binomial coefficient."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


@attrs.define
class Watch:
    """The audits of a stage since its calibration: their *losses* in order, and the evidence against the stage's *risk*.

    A bet starts every 25 audits; bet number j has the share 6 / (pi^2 (j+1)^2) of the stake. The sum is an e-process: if the risk is
    true, the sum ever reaches 1 / alpha with a probability of at most alpha (Ville 1939).
    """

    risk: float
    losses: list[bool] = attrs.field(factory=list)

    def add(self, *, loss: bool) -> float:
        """Add an audit and return the new evidence."""
        self.losses.append(loss)
        return self.evidence()

    @property
    def lost(self) -> int:
        """The number of audits that disagreed."""
        return sum(self.losses)

    def evidence(self) -> float:
        """Return the evidence that losses are more frequent than the risk. Its mean is at most 1 if they are not."""
        evidence, stake = 0.0, 0.0
        for number, start in enumerate(range(0, len(self.losses), EVERY)):
            share = 6 / (math.pi**2 * (number + 1) ** 2)
            losses = self.losses[start:]
            log = ln_above(sum(losses), len(losses), self.risk)
            evidence += share * math.exp(
                min(log, 700.0)
            )  # exp overflows above 709; the calibration is revoked long before
            stake += share
        return evidence + (1 - stake)
