"""Warnings about evidence that judges saw only in part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..values.payloads import evidence_of

_PLURALS = {"image": "images", "audio": "sounds", "file": "files"}


_TASK = "the task's model"
_MARKER_REASON = (
    "a text with type and size, because the model reads no such content or an option of the file leaves it out"
)
_ADVICE = (
    "use a model that reads it, or evidence: {media: show}, which fails these subjects",
    "use a model that reads it, or media: show at the task, which fails these rows",
)


def hidden_media(signals: Mapping[str, Any]) -> Counter[str]:
    """Return the numbers of media, by kind, that a judge saw as markers; judges of a jury see the same media."""
    hidden: Counter[str] = Counter()
    for evidence in evidence_of(signals):
        counts = evidence.get("hidden")
        if isinstance(counts, Mapping):
            hidden |= Counter({str(kind): count for kind, count in counts.items() if type(count) is int})
    return hidden


def listed_media(counts: Mapping[str, int]) -> str:
    """Return numbers with the names of the kinds, such as ``1 file, 2 images``."""
    return ", ".join(f"{count:,} {_name(kind, count)}" for kind, count in sorted(counts.items()))


class EvidenceNotes:
    """Counts, by label, of media that judges saw as markers, and of verdicts with cut evidence."""

    def __init__(self) -> None:
        self._hidden: dict[str, Counter[str]] = {}
        self._cut: Counter[str] = Counter()
        self._limits: dict[str, str] = {}

    def note(self, label: str, payload: Mapping[str, Any]) -> None:
        """Count the evidence of a verdict: ``signals.evidence`` of its *payload*, of each judge of a jury, or of each metric's score."""
        self.note_score(label, payload.get("signals") or {})
        for item in payload.get("scores", ()):
            if item["signals"]:
                self.note_score(item["metric"], item["signals"])

    def note_score(self, label: str, signals: Mapping[str, Any]) -> None:
        """Count the evidence in the *signals* of a score of *label*."""
        found = evidence_of(signals)
        if not found:
            return
        hidden, is_cut = hidden_media(signals), False
        for evidence in found:
            is_cut = is_cut or (type(evidence.get("cut")) is int and evidence["cut"] > 0)
            if isinstance(evidence.get("limit"), str):
                self._limits[label] = evidence["limit"]
        if hidden:
            self._hidden.setdefault(label, Counter()).update(hidden)
        self._cut[label] += is_cut

    def subtract(self, other: EvidenceNotes) -> None:
        """Remove the verdicts that *other* counts too."""
        for label, counts in other._hidden.items():
            self._hidden[label] -= counts
        self._hidden = {label: counts for label, counts in self._hidden.items() if counts}
        self._cut -= other._cut

    def note_record(self, record: Mapping[str, Any]) -> None:
        """Count the media that the model of a task did not read, by the metrics of its responses."""
        hidden: Counter[str] = Counter()
        for response in (record.get("responses") or {"": record.get("response") or {}}).values():
            counts = (response.get("metrics") or {}).get("hidden_media")
            if isinstance(counts, Mapping):  # every criterion sees the same media
                hidden |= Counter({str(kind): count for kind, count in counts.items() if type(count) is int})
        if hidden:
            self._hidden.setdefault(_TASK, Counter()).update(hidden)

    def warnings(self) -> list[dict[str, Any]]:
        """Return one warning for each label and kind of loss."""
        warnings: list[dict[str, Any]] = []
        for label, counts in self._hidden.items():
            message = (
                f"{label} saw markers in place of {listed_media(counts)}: {_MARKER_REASON}; {_ADVICE[label == _TASK]}"
            )
            warnings.append(
                {"kind": "hidden_media", "label": label, "message": message, "hidden": dict(sorted(counts.items()))}
            )
        for label, count in self._cut.items():
            if count:
                message = f"{label} saw cut evidence in {count:,} verdict{'s' * (count != 1)}; " + self._limits.get(
                    label, "max_evidence_chars shows more"
                )
                warnings.append({"kind": "cut_evidence", "label": label, "message": message, "verdicts": count})
        return warnings


def _name(kind: str, count: int) -> str:
    return kind if count == 1 else _PLURALS.get(kind, kind)
