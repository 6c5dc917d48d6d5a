"""Which kept verdicts are also put to the next stage, or held against labels, and when what these say refutes the calibration."""

from __future__ import annotations

import math
from hashlib import sha256
from typing import Literal

import attrs

from dicast import Within

EVERY = 25
"""After so many audits another bet begins, so that a change late in a long run is seen as soon as one at its beginning."""


@attrs.frozen
class Audit:
    """Which share of the kept verdicts is put to the next stage as well; who, is a keyed hash of *seed* and the subject's id.

    *against* ``gold`` asks no stage: the verdict waits for a person's label in the ledger.
    """

    rate: float = attrs.field(default=0.02, validator=Within(0, 1, "a number from 0 to 1"))
    seed: int = attrs.field(default=0, validator=Within(-(2**63), 2**63 - 1, "a whole number of 64 bits"))
    against: Literal["next", "gold"] = "next"

    def draws(self, id: str) -> bool:
        """Whether the verdict on this subject is audited: the same in every run."""
        drawn = int.from_bytes(sha256(f"{self.seed}\n{id}".encode()).digest()[:8], "big")
        return drawn < self.rate * 2**64


def ln_above(losses: int, n: int, rate: float) -> float:
    """The logarithm of the evidence that losses are more frequent than *rate*, after *losses* of *n*.

    The likelihood ratio against *rate* of a mixture, uniform over all higher rates. It is 1 / ((n+1) C(n, losses) (1-rate) rate^losses
    (1-rate)^(n-losses)) times P(Bin(n+1, rate) <= losses), whose terms are added in logarithms: dicast-trust has it vectorised, with scipy, which
    a cascade need not load.
    """
    log_r, log_s = math.log(rate), math.log1p(-rate)
    terms = [ln_choose(n + 1, k) + k * log_r + (n + 1 - k) * log_s for k in range(losses + 1)]
    most = max(terms)
    tail = most + math.log(math.fsum(math.exp(term - most) for term in terms))
    return tail - math.log(n + 1) - ln_choose(n, losses) - log_s - losses * log_r - (n - losses) * log_s


def ln_choose(n: int, k: int) -> float:
    """The logarithm of the binomial coefficient."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


@attrs.define
class Watch:
    """The audits of one stage since its calibration: how many were *lost*, in order, and the evidence against its *risk*.

    Bets begin every 25 audits, the one numbered j with the share 6 / (pi^2 (j+1)^2) of the stake. The sum is an e-process: where
    the risk holds it reaches 1 / alpha with a probability of alpha at most (Ville 1939), however long it is watched.
    """

    risk: float
    losses: list[bool] = attrs.field(factory=list)

    def add(self, *, loss: bool) -> float:
        """Count an audit; return the evidence after it."""
        self.losses.append(loss)
        return self.evidence()

    @property
    def lost(self) -> int:
        """How many audits disagreed."""
        return sum(self.losses)

    def evidence(self) -> float:
        """The evidence that losses are more frequent than the risk; at most 1 on average where they are not."""
        found, staked = 0.0, 0.0
        for number, begin in enumerate(range(0, len(self.losses), EVERY)):
            share = 6 / (math.pi**2 * (number + 1) ** 2)
            since = self.losses[begin:]
            log = ln_above(sum(since), len(since), self.risk)
            found += share * math.exp(min(log, 700.0))  # beyond it a float ends; it is refuted long before
            staked += share
        return found + (1 - staked)
