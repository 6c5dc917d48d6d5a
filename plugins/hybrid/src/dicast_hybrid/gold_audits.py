"""Audits by people: kept verdicts that wait for a label, and new labels in the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import attrs

from dicast import Entry, Query
from dicast.reading import place_of_label, retracted_labels

LABEL_GIVEN = "label.given"

Key = tuple[str, str]
"""A subject's kind and id."""


class Waiting(NamedTuple):
    """A kept verdict that is selected for an audit: its step, score, subject and session, and the digest of the judged output."""

    step: int
    score: float
    subject: Key
    session: str | None
    output: str | None = None

    def is_about(self, output: object) -> bool:
        """Return whether a label with the digest *output* is about the verdict. A label without a digest is about every output."""
        return output is None or self.output in (None, output)

    @property
    def who(self) -> str:
        """The session, or the subject if it has no session. Only the first audit with the same text counts."""
        return f"session {self.session}" if self.session is not None else " ".join(self.subject)


@attrs.define
class GoldAudits:
    """The verdicts of the calibration *digest* that wait for labels. *read* returns rows of the ledger.

    Only labels after the verdict count, because the calibration has used the labels before it.
    """

    read: Callable[[Query], Iterator[Entry]]
    digest: str
    _waiting: dict[Key, tuple[Waiting, int]] = attrs.field(factory=dict)
    _seen: int = 0

    def read_waiting(self) -> None:
        """Read the selected verdicts of older runs from the ledger."""
        first = None
        for entry in self.read(Query(types=("eval.completed",))):
            payload: Mapping[str, Any] = entry.event.payload
            signals = payload.get("signals") or {}
            audit, decision = signals.get("audit") or {}, signals.get("calibration") or {}
            if audit.get("against") == "gold" and decision.get("digest") == self.digest:
                first = entry.seq if first is None else first
                subject = str(payload["subject_kind"]), str(payload["subject_id"])
                session, output = entry.event.session_id, audit.get("output_digest")
                drawn = Waiting(int(decision["stage"]), float(payload["score"]), subject, session, output)
                self._waiting.setdefault(subject, (drawn, entry.seq))
        last = next(iter(self.read(Query(newest_first=True, limit=1))), None)
        self._seen = first if first is not None else last.seq if last is not None else 0

    def add(self, drawn: Waiting) -> None:
        """Add a verdict; only the first verdict of a subject counts."""
        self._waiting.setdefault(drawn.subject, (drawn, self._seen))

    def labeled(self) -> Iterator[tuple[Waiting, float]]:
        """Yield each verdict with its label, for labels since the last call."""
        entries = list(self.read(Query(types=(LABEL_GIVEN,), after=self._seen)))
        retracted = retracted_labels(self) if entries else frozenset()
        for entry in entries:
            payload: Mapping[str, Any] = entry.event.payload
            self._seen = entry.seq
            if place_of_label(entry.event) in retracted:
                continue
            kind, id = str(payload.get("subject_kind") or ""), str(payload["subject"])
            keys = [(kind, id)] if kind else [key for key in self._waiting if key[1] == id]
            for key in keys:
                drawn, since = self._waiting.get(key, (None, 0))
                if drawn is not None and entry.seq > since and drawn.is_about(payload.get("output_digest")):
                    del self._waiting[key]
                    yield drawn, float(payload["score"])
