"""The gates between a candidate and production, and what they ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, get_args

import attrs

from dicast import ConfigError, nearest

State = Literal["candidate", "staged", "shadow", "promoted", "rolled_back"]
STATES: tuple[State, ...] = get_args(State)
"""From new to in production; what was rolled back goes nowhere, as a new candidate it may."""

GATES = STATES[1:4]
"""The states that a gate leads to."""

OVERALL = "overall"
"""How a gate names the score that is compared, whichever label it has."""

ROUNDING = 1e-9
"""What sums of decimal fractions may be off by: 0.81 beats 0.80 by 0.01, and no more."""


@attrs.frozen
class Shadow:
    """How a candidate fared beside what is in production, on the same subjects: how many it won, lost and tied."""

    wins: int
    losses: int
    ties: int

    @classmethod
    def of(cls, pairs: Iterable[tuple[float, float]], tie_margin: float = 0.01) -> Shadow:
        """Count *pairs* of the candidate's score and the baseline's; no further apart than *tie_margin* is a tie."""
        wins = losses = ties = 0
        for candidate, baseline in pairs:
            difference = candidate - baseline
            if abs(difference) <= tie_margin + ROUNDING:
                ties += 1
            elif difference > 0:
                wins += 1
            else:
                losses += 1
        return cls(wins, losses, ties)

    @property
    def samples(self) -> int:
        """How many were compared."""
        return self.wins + self.losses + self.ties

    @property
    def win_rate(self) -> float:
        """The share that was won, ties included in the whole; 0.5 where nothing was compared (document 003's source)."""
        return self.wins / self.samples if self.samples else 0.5

    def promotes(self, min_samples: int = 100, min_win_rate: float = 0.52) -> bool:
        """Whether enough were compared, and enough of them won."""
        return self.samples >= min_samples and self.win_rate >= min_win_rate - ROUNDING


@attrs.frozen
class Evidence:
    """What is known of a candidate.

    *scores* are its mean scores by label, *margins* by how much they are above the baseline's on subjects that both have been
    judged on; both may have :data:`OVERALL`. *hours* lie between its first verdict and its last.
    """

    scores: Mapping[str, float]
    margins: Mapping[str, float] = attrs.field(factory=dict)
    shadow: Shadow = Shadow(0, 0, 0)
    hours: float = 0.0


@attrs.frozen
class Requirement:
    """One thing that a gate asks for, and whether it is there; *actual* and *required* are None where it is no number."""

    requirement: str
    passed: bool
    actual: float | None
    required: float | None
    reason: str


@attrs.frozen
class Gate:
    """What it takes to go on to the next state. What is not given is not asked for; a gate without anything lets all pass.

    :param min_score: the least mean score, by label.
    :param beat_baseline: by how much the mean has to be above the baseline's, by label; the difference, not a share.
    :param min_samples: the least number of subjects on which both have been judged.
    :param min_win_rate: the least share of these that the candidate won.
    :param min_hours: the least time from the candidate's first verdict to its last.
    :param manual_approval: a person has to agree, who then says that it is in the next state; never passed by itself.
    :param custom: what somebody else has to see to, by name; never passed by itself either.
    """

    min_score: Mapping[str, float] = attrs.field(factory=dict)
    beat_baseline: Mapping[str, float] = attrs.field(factory=dict)
    min_samples: int | None = None
    min_win_rate: float | None = None
    min_hours: float | None = None
    manual_approval: bool = False
    custom: tuple[str, ...] = ()

    def check(self, evidence: Evidence) -> list[Requirement]:
        """Hold *evidence* against each requirement."""
        return [*self._scores(evidence), *self._shadow(evidence), *self._others()]

    def _scores(self, evidence: Evidence) -> Iterator[Requirement]:
        for label, least in self.min_score.items():
            yield _at_least(f"{label} >= {least:g}", evidence.scores.get(label), least, _absent(label, evidence.scores))
        for label, margin in self.beat_baseline.items():
            said = f"{label} beats the baseline by {margin:g}"
            yield _at_least(said, evidence.margins.get(label), margin, _absent(label, evidence.margins))

    def _shadow(self, evidence: Evidence) -> Iterator[Requirement]:
        shadow = evidence.shadow
        if self.min_samples is not None:
            yield _at_least(f"samples >= {self.min_samples:,}", shadow.samples, self.min_samples)
        if self.min_win_rate is not None:
            yield _at_least(f"win rate >= {self.min_win_rate:g}", shadow.win_rate, self.min_win_rate)
        if self.min_hours is not None:
            yield _at_least(f"hours >= {self.min_hours:g}", evidence.hours, self.min_hours)

    def _others(self) -> Iterator[Requirement]:
        if self.manual_approval:
            yield Requirement("manual approval", False, None, None, "a person has to agree")
        for name in self.custom:
            yield Requirement(f"custom: {name}", False, None, None, "is not checked here")


@attrs.frozen
class Passage:
    """A gate that was tried: the state it leads from and to, and what it asked for."""

    start: State
    to: State
    requirements: Sequence[Requirement]

    @property
    def passed(self) -> bool:
        """Whether everything it asks for is there."""
        return all(requirement.passed for requirement in self.requirements)


@attrs.frozen
class Gates:
    """The three gates, by the state they lead to. Without options those of document 003's ``default_gates``."""

    staged: Gate = Gate(min_score={"proxy/format": 0.95, "proxy/syntax": 0.90})
    shadow: Gate = Gate(min_score={"llm/judge": 0.80}, beat_baseline={OVERALL: 0.02})
    promoted: Gate = Gate(min_samples=100, min_win_rate=0.52)
    tie_margin: float = 0.01

    def walk(self, evidence: Evidence, state: State = "candidate", goal: State = "promoted") -> list[Passage]:
        """Try the gates from *state* on, up to *goal*; the last one is that which was not passed, if there is one.

        :raises ConfigError: when no gate leads from *state* to *goal*.
        """
        path = (STATES[0], *GATES)
        if state not in path or goal not in path or path.index(state) >= path.index(goal):
            raise ConfigError(f"no gate leads from {state!r} to {goal!r}; the states are {' -> '.join(path)}")
        tried: list[Passage] = []
        for start, to in zip(
            path[path.index(state) :], path[path.index(state) + 1 : path.index(goal) + 1], strict=False
        ):
            gate: Gate = getattr(self, to)
            tried.append(Passage(start, to, gate.check(evidence)))
            if not tried[-1].passed:
                break
        return tried


def _at_least(said: str, actual: float | None, required: float, absent: str = "") -> Requirement:
    if actual is None:
        return Requirement(said, False, None, required, absent)
    return Requirement(said, actual >= required - ROUNDING, actual, required, f"{actual:.4g}")


def _absent(label: str, known: Mapping[str, float]) -> str:
    """What to say of a label without a score: never that it is 0."""
    hint = nearest(label, known)
    return f"has no score; there are {', '.join(sorted(known)) or 'none'}" + (
        f", did you mean {hint!r}?" if hint else ""
    )
