"""The gates between a candidate and production, and their requirements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, get_args

import attrs

from dicast import ConfigError, nearest

State = Literal["candidate", "staged", "shadow", "promoted", "rolled_back"]
STATES: tuple[State, ...] = get_args(State)
"""The states from new to production. A version that was rolled back may return only as a new candidate."""

GATES = STATES[1:4]
"""The states behind the gates."""

OVERALL = "overall"
"""The name of the compared score in a gate, independent of its label."""

ROUNDING = 1e-9
"""Tolerance for binary rounding: 0.81 beats 0.80 by exactly 0.01."""


@attrs.frozen
class Shadow:
    """Number of subjects on which the candidate won, lost and tied against production."""

    wins: int
    losses: int
    ties: int

    @classmethod
    def of(cls, pairs: Iterable[tuple[float, float]], tie_margin: float = 0.01) -> Shadow:
        """Count *pairs* of the candidate's score and the baseline's. A difference of at most *tie_margin* is a tie."""
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
        """The number of compared subjects."""
        return self.wins + self.losses + self.ties

    @property
    def win_rate(self) -> float:
        """The share of compared subjects, ties included, that the candidate won; 0.5 if there are no subjects."""
        return self.wins / self.samples if self.samples else 0.5

    def promotes(self, min_samples: int = 100, min_win_rate: float = 0.52) -> bool:
        """Return whether the number of samples and the win rate suffice."""
        return self.samples >= min_samples and self.win_rate >= min_win_rate - ROUNDING


@attrs.frozen
class Evidence:
    """Figures of a candidate.

    *scores* are its mean scores by label. *margins* are the mean differences to the baseline, by label, over the subjects with a score
    in both runs. Both may have :data:`OVERALL`. *hours* is the time from the candidate's first verdict to its last.
    """

    scores: Mapping[str, float]
    margins: Mapping[str, float] = attrs.field(factory=dict)
    shadow: Shadow = Shadow(0, 0, 0)
    hours: float = 0.0


@attrs.frozen
class Requirement:
    """A requirement of a gate with its result. *actual* and *required* are None if the requirement is not a number."""

    requirement: str
    passed: bool
    actual: float | None
    required: float | None
    reason: str


@attrs.frozen
class Gate:
    """Requirements for the next state. A gate without requirements always passes.

    :param min_score: the minimum mean score, by label.
    :param beat_baseline: the minimum difference between the candidate's mean and the baseline's, by label, on the scale of the score.
    :param min_samples: the minimum number of subjects with a score in both runs.
    :param min_win_rate: the minimum share of these subjects that the candidate won.
    :param min_hours: the minimum time in hours from the candidate's first verdict to its last.
    :param manual_approval: a person has to approve by setting the next state; the gate never passes by itself.
    :param custom: names of requirements that are checked outside dicast; the gate never passes by itself.
    """

    min_score: Mapping[str, float] = attrs.field(factory=dict)
    beat_baseline: Mapping[str, float] = attrs.field(factory=dict)
    min_samples: int | None = None
    min_win_rate: float | None = None
    min_hours: float | None = None
    manual_approval: bool = False
    custom: tuple[str, ...] = ()

    def check(self, evidence: Evidence) -> list[Requirement]:
        """Return each requirement with its result for *evidence*."""
        return [*self._scores(evidence), *self._shadow(evidence), *self._manual()]

    def _scores(self, evidence: Evidence) -> Iterator[Requirement]:
        for label, least in self.min_score.items():
            yield _at_least(f"{label} >= {least:g}", evidence.scores.get(label), least, _absent(label, evidence.scores))
        for label, margin in self.beat_baseline.items():
            name = f"{label} beats the baseline by {margin:g}"
            yield _at_least(name, evidence.margins.get(label), margin, _absent(label, evidence.margins))

    def _shadow(self, evidence: Evidence) -> Iterator[Requirement]:
        shadow = evidence.shadow
        if self.min_samples is not None:
            yield _at_least(f"samples >= {self.min_samples:,}", shadow.samples, self.min_samples)
        if self.min_win_rate is not None:
            yield _at_least(f"win rate >= {self.min_win_rate:g}", shadow.win_rate, self.min_win_rate)
        if self.min_hours is not None:
            yield _at_least(f"hours >= {self.min_hours:g}", evidence.hours, self.min_hours)

    def _manual(self) -> Iterator[Requirement]:
        if self.manual_approval:
            yield Requirement("manual approval", False, None, None, "a person has to approve")
        for name in self.custom:
            yield Requirement(f"custom: {name}", False, None, None, "is not checked here")


@attrs.frozen
class Passage:
    """Result of a gate: the states before and after it, and its requirements."""

    start: State
    to: State
    requirements: Sequence[Requirement]

    @property
    def passed(self) -> bool:
        """True if the candidate meets every requirement."""
        return all(requirement.passed for requirement in self.requirements)


@attrs.frozen
class Gates:
    """The three gates, by the state behind each; the default gates without options."""

    staged: Gate = Gate(min_score={"proxy/format": 0.95, "proxy/syntax": 0.90})
    shadow: Gate = Gate(min_score={"llm/judge": 0.80}, beat_baseline={OVERALL: 0.02})
    promoted: Gate = Gate(min_samples=100, min_win_rate=0.52)
    tie_margin: float = 0.01

    def walk(self, evidence: Evidence, state: State = "candidate", goal: State = "promoted") -> list[Passage]:
        """Check the gates from *state* to *goal*, and stop after the first gate that does not pass.

        :raises ConfigError: if there is no gate from *state* to *goal*.
        """
        path = (STATES[0], *GATES)
        if state not in path or goal not in path or path.index(state) >= path.index(goal):
            raise ConfigError(f"no gate leads from {state!r} to {goal!r}; the states are {' -> '.join(path)}")
        passages: list[Passage] = []
        for start, to in zip(
            path[path.index(state) :], path[path.index(state) + 1 : path.index(goal) + 1], strict=False
        ):
            gate: Gate = getattr(self, to)
            passages.append(Passage(start, to, gate.check(evidence)))
            if not passages[-1].passed:
                break
        return passages


def _at_least(name: str, actual: float | None, required: float, absent: str = "") -> Requirement:
    if actual is None:
        return Requirement(name, False, None, required, absent)
    return Requirement(name, actual >= required - ROUNDING, actual, required, f"{actual:.4g}")


def _absent(label: str, scores: Mapping[str, float]) -> str:
    """Return the reason for a label without a score, with the labels that have scores."""
    hint = nearest(label, scores)
    return f"has no score; there are {', '.join(sorted(scores)) or 'none'}" + (
        f", did you mean {hint!r}?" if hint else ""
    )
