"""What is noted of a subject and of a label while a run's events pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs

from .spool import Passes, ScoreFile


@attrs.define
class Group:
    """The terminal events of one subject, one a label, which stand together in the stream."""

    key: tuple[str | None, str | None]
    labels: set[str] = attrs.field(factory=set)
    counted: bool = False
    failure: str | None = None
    skipped: bool = False


@attrs.define
class Watched:
    """All that is known of a label that the run's score, or a clause of its gate, is about.

    *flagged* is False as long as nothing says which subjects pass, as it may be with a criterion.
    """

    scores: ScoreFile = attrs.field(factory=ScoreFile)
    passes: Passes = attrs.field(factory=Passes)
    flagged: bool = True

    def add(self, sessions: Sequence[str | None], scores: Sequence[float | None]) -> None:
        """Count subjects with their sessions; one that failed has no score."""
        self.passes.add(sessions, scores)
        self.scores.add([(at, score) for at, score in zip(sessions, scores, strict=True) if score is not None])

    def coverage(self) -> float | None:
        """The share of subjects that have a score, or were kept from one by the proxies; None without any."""
        count = self.passes.count
        return (self.scores.count + self.scores.spared) / count if count else None

    def add_record(self, session: str | None, metrics: Any, criterion: str) -> None:
        """Take what a record's *metrics* say of a *criterion* into account; one that failed says nothing."""
        scores, flags = (metrics.get(key) or {} for key in ("scores", "score_flags"))
        score: Any = scores.get(criterion)
        flag = flags.get(criterion)
        self.passes.add([session], [None if flag is None else float(flag)])
        self.flagged = self.flagged or flag is not None
        if type(score) in (int, float) and math.isfinite(score):
            self.scores.add([(session, score)])
