"""Running sums over the labels and subjects of a run, in constant memory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..classes import define, field
from ..values import BASES, Basis, Cost, Event, basis_of, weakest
from ..values.judged import Records
from ..values.score import zero_costs
from .exact_sum import ExactSum
from .failure_words import TASK
from .spool import Passes, ScoreFile

FAILED_SHOWN = 10
"""Number of failures in the document; of each further kind the first is added."""


def is_example(
    failures: Sequence[Mapping[str, object]], mode: object, origin: object = None, most: int = FAILED_SHOWN
) -> bool:
    """Return True if a failure belongs to the document along with the earlier *failures*: the first *most*, and the first of each further kind.

    Failures of a task and of a judge differ in kind: their *mode* and *origin* are compared.
    """
    return len(failures) < most or all(
        (failure["failure_mode"], failure.get("origin")) != (mode, origin) for failure in failures
    )


@define
class ScoreSum:
    """Running sums over scores of subjects, with the weights of the subjects."""

    scored: int = 0
    score: ExactSum = field(factory=ExactSum)
    weight: float = 0.0
    weight_squares: float = 0.0
    weighted: float = 0.0

    def add_times(self, score: float, times: int) -> None:
        """Count an equal *score* of *times* subjects."""
        self.scored += times
        self.score.add_times(score, times)
        self.weight += times
        self.weight_squares += times

    def add_scores(self, scores: Sequence[float], weights: Sequence[float] | None = None) -> None:
        """Count *scores* of subjects, each with its weight if there are *weights*."""
        self.scored += len(scores)
        self.score.add(scores)
        if weights is None:
            self.weight += len(scores)
            self.weight_squares += len(scores)
            return
        self.weight += math.fsum(weights)
        self.weight_squares += math.fsum([weight * weight for weight in weights])
        self.weighted += math.fsum([(weight - 1) * score for score, weight in zip(scores, weights, strict=True)])

    def remove_scores(self, other: ScoreSum) -> None:
        """Remove the scores that *other* counts too; no score has a weight."""
        self.scored -= other.scored
        self.score.subtract(other.score)
        self.weight -= other.weight
        self.weight_squares -= other.weight_squares

    @property
    def is_weighted(self) -> bool:
        """True if the weights of the scores differ from 1."""
        return self.weight != self.scored or self.weight_squares != self.scored

    def mean(self) -> float | None:
        """Return the mean score, weighted (Hajek's ratio); None without scores."""
        total = self.score.over(1)
        if not self.scored or total is None or not self.is_weighted:
            return self.score.over(self.scored)
        return (total + self.weighted) / self.weight

    def weights(self) -> dict[str, float]:
        """Return the sum of the weights and the effective number of scores (Kish); empty without weights."""
        if not self.scored or not self.is_weighted:
            return {}
        return {"weight": self.weight, "effective_n": self.weight**2 / self.weight_squares}


@define
class Tally(ScoreSum):
    """Running sums over the verdicts of one label.

    *bases* counts the scores by basis; *calibrated* counts the scores that a calibrated cascade kept.
    """

    failed: int = 0
    total: int = 0
    escalated: int = 0
    skipped: int = 0
    spared: int = 0
    saved: dict[str, Cost] = field(factory=zero_costs)
    confidence: ExactSum = field(factory=ExactSum)
    kinds: Counter[str | None] = field(factory=Counter)
    fallbacks: Counter[str] = field(factory=Counter)
    passes: Passes = field(factory=Passes)
    bases: Counter[Basis] = field(factory=Counter)
    calibrated: int = 0
    held_back: int = 0
    lowest: float = math.inf
    highest: float = -math.inf

    def add(
        self, verdicts: Records, weights: Sequence[float] | None = None, *, raw: bool = False
    ) -> list[float | None]:
        """Count one or more ``eval.completed`` events; return their scores, or their *raw* values.

        A raw value is None if the proxies held the subject back.
        """
        payloads: list[Mapping[str, Any]] = [event.payload for event in verdicts]
        scores: list[float | None] = [payload["raw" if raw else "score"] for payload in payloads]
        self.total += len(scores)
        self.kinds.update([event.subject_kind for event in verdicts])
        values = [score for score in scores if score is not None]
        self.add_scores(values, weights_of(scores, weights))
        self.held_back += len(scores) - len(values)
        self.lowest, self.highest = min(self.lowest, *values, math.inf), max(self.highest, *values, -math.inf)
        self.confidence.add([payload["confidence"] for payload in payloads])
        self.bases.update(
            [
                payload.get("basis") or basis_of(payload["judge_kind"], payload["tier"], payload["judge_model"])
                for payload in payloads
            ]
        )
        self.calibrated += sum([payload.get("calibrated") is True for payload in payloads])
        signals = [payload["signals"] for payload in payloads]
        self.escalated += sum([signal.get("escalated") is True for signal in signals])
        self.fallbacks.update(
            [str(signal["escalation_skipped"]) for signal in signals if "escalation_skipped" in signal]
        )
        return scores

    def add_equal(self, verdict: Mapping[str, Any], times: int) -> None:
        """Count equal verdicts of *times* subjects, each with the payload *verdict* and a score."""
        score: float = verdict["score"]
        self.total += times
        self.kinds[verdict["subject_kind"]] += times
        self.add_times(score, times)
        self.lowest, self.highest = min(self.lowest, score), max(self.highest, score)
        self.confidence.add_times(verdict["confidence"], times)
        self.bases[verdict["basis"]] += times

    def subtract(self, other: Tally) -> None:
        """Remove the verdicts that *other* counts too. *lowest* and *highest* do not change."""
        self.remove_scores(other)
        for name in ("failed", "total", "escalated", "skipped", "calibrated", "held_back"):
            setattr(self, name, getattr(self, name) - getattr(other, name))
        self.confidence.subtract(other.confidence)
        self.kinds -= other.kinds
        self.fallbacks -= other.fallbacks
        self.bases -= other.bases
        self.passes.subtract(other.passes)

    def mean_confidence(self) -> float | None:
        """Return the mean confidence; None without scores."""
        return self.confidence.over(self.scored + self.held_back)

    def basis(self) -> Basis | None:
        """Return the weakest basis of the scores; None without scores."""
        return weakest(self.bases) if self.bases else None

    def by_basis(self) -> dict[Basis, int]:
        """Return the number of scores for each basis, the strongest first."""
        return {basis: self.bases[basis] for basis in BASES if basis in self.bases}


def weights_of(values: Sequence[float | None], weights: Sequence[float] | None) -> Sequence[float] | None:
    """Return the *weights* of the *values* that are not None; None if there are no weights."""
    if weights is None:
        return None
    return [weight for value, weight in zip(values, weights, strict=True) if value is not None]


FAILURES_NAMED = 10
"""Number of rows without a record that :class:`Rows` lists."""


@define
class Rows:
    """Counts of the rows that a task or an extractor made records from, and the first *failures* among them."""

    count: int = 0
    failed: int = 0
    failures: list[Mapping[str, object]] = field(factory=list)
    _tried: bool = False
    _retries: int = 0
    _exhausted: int = 0

    def add(self, event: Event) -> None:
        """Count a record."""
        self.count += 1
        if isinstance(retry := event.payload.get("retry"), Mapping):
            self._retry(retry, failed=False)

    def fail(self, event: Event) -> None:
        """Count a row without a record."""
        self.failed += 1
        if isinstance(retry := event.payload.get("retry"), Mapping):
            self._retry(retry, failed=True)
        if len(self.failures) < FAILURES_NAMED:
            subject = {"subject_kind": event.subject_kind, "subject_id": event.subject_id}
            self.failures.append({**subject, "failure_mode": event.payload["failure_mode"]})

    def _retry(self, retry: Mapping[str, object], *, failed: bool) -> None:
        self._tried = True
        attempts, limit = (retry.get(name) for name in ("attempts", "max_attempts"))
        if isinstance(attempts, int):  # a task may record any value
            self._retries += max(attempts - 1, 0)
            self._exhausted += failed and (not isinstance(limit, int) or attempts >= limit)

    def retry_summary(self) -> dict[str, int] | None:
        """Return the number of requests and retries for rows; None if no row reports retries."""
        summary = {"total_requests": self.count + self.failed, "total_retries": self._retries}
        return summary | {"exhausted": self._exhausted} if self._tried else None


@define
class Group:
    """Terminal events of one subject, one for each label. They are adjacent in the stream."""

    key: tuple[str | None, str | None]
    labels: set[str] = field(factory=set)
    counted: bool = False
    failure: str | None = None
    origin: str | None = None
    skipped: bool = False
    event: Event | None = None

    def fail(self, kind: str, origin: str | None) -> None:
        """Note a failure of the subject, which counts.

        Of several failures the first one names the reason. If a failure of the record has the kind of one of the task, the task caused it.
        """
        self.counted = True
        if self.failure is None:
            self.failure, self.origin = kind, origin
        elif kind == self.failure and origin == TASK and self.origin is not None:
            self.origin = origin


@define
class Watched:
    """Data of a label that the run's score or a clause of its gate uses.

    *flagged* is False while nothing states which subjects pass, which is possible for a criterion or a raw label.
    """

    subjects: int = 0
    scores: ScoreFile = field(factory=ScoreFile)
    passes: Passes = field(factory=Passes)
    flagged: bool = True

    def add(
        self, sessions: Sequence[str | None], scores: Sequence[float | None], passed: Sequence[bool | None],
        weights: Sequence[float] | None = None,
    ) -> None:  # fmt: skip
        """Count subjects with their sessions and whether they *passed*. A failed subject has no score and is open."""
        self.passes.add(sessions, passed, weights)
        self.add_scores(sessions, scores, weights)

    def add_scores(
        self, sessions: Sequence[str | None], scores: Sequence[float | None], weights: Sequence[float] | None
    ) -> None:
        """Count the *scores* that are not None."""
        rows = [(at, score) for at, score in zip(sessions, scores, strict=True) if score is not None]
        self.scores.add(rows, weights_of(scores, weights))

    def subtract(self, other: Watched, *, has_own_passes: bool) -> None:
        """Remove the subjects that *other* counts too. The passes of a metric's label are those of its tally."""
        self.scores.subtract(other.scores)
        if has_own_passes:
            self.passes.subtract(other.passes)

    def coverage(self) -> float | None:
        """Return the share of subjects with a score, or held back from one by the proxies; None without subjects."""
        count = self.passes.count
        return (self.scores.count + self.scores.spared) / count if count else None

    def add_record(
        self, session: str | None, metrics: Any, criterion: str, weights: Sequence[float] | None = None
    ) -> float | None:
        """Count a record's *metrics* for a *criterion* and return its score; None without a finite number. Pass empty *metrics* for a failed record."""
        self.subjects += 1
        scores, flags = (metrics.get(key) or {} for key in ("scores", "score_flags"))
        score: Any = scores.get(criterion)
        flag = flags.get(criterion)
        self.passes.add([session], [None if flag is None else bool(flag)], weights)
        self.flagged = self.flagged or flag is not None
        if type(score) not in (int, float) or not math.isfinite(score):
            return None
        self.add_scores([session], [score], weights)
        return float(score)


def overrun_labels(payload: Mapping[str, Any], task: str | None) -> Iterator[str]:
    """Yield the label of the component whose call cost more than its estimate, by the *payload* of ``spend.settled``.

    For the *task* the payload has the criterion as ``metric``.
    """
    if payload.get("overrun") is True:
        label = payload.get("judge")
        yield str(label if label == task else payload.get("metric", label))


def tier_of(payload: Mapping[str, Any], metric: str) -> str:
    """Return the tier of *metric* in the *payload* of a verdict that lists its value."""
    return next(str(item["tier"]) for item in payload["scores"] if item["metric"] == metric)


def add_names(names: dict[str, set[str]], by_label: Any) -> None:
    """Add the names of *by_label* to *names*, by label."""
    for label, new_names in by_label.items():
        names.setdefault(label, set()).update(new_names)
