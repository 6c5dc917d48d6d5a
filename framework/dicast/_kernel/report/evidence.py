"""Warnings about the evidence that judges did not see whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

_PLURALS = {"image": "images", "audio": "sounds", "file": "files"}


class EvidenceNotes:
    """Counts by label the media that judges saw as markers, and the verdicts whose evidence was cut."""

    def __init__(self) -> None:
        self._hidden: dict[str, Counter[str]] = {}
        self._cut: Counter[str] = Counter()

    def note(self, label: str, payload: Mapping[str, Any]) -> None:
        """Count the evidence of a verdict, which its *payload* describes in ``signals.evidence``."""
        evidence = (payload.get("signals") or {}).get("evidence")
        if not isinstance(evidence, Mapping):
            return
        if isinstance(hidden := evidence.get("hidden"), Mapping):
            self._hidden.setdefault(label, Counter()).update(
                {str(kind): count for kind, count in hidden.items() if type(count) is int}
            )
        cut = evidence.get("cut")
        self._cut[label] += type(cut) is int and cut > 0

    def warnings(self) -> list[dict[str, Any]]:
        """Return one warning for each label and kind of loss."""
        warnings: list[dict[str, Any]] = []
        for label, counts in self._hidden.items():
            media = ", ".join(f"{count:,} {_name(kind, count)}" for kind, count in sorted(counts.items()))
            message = f"{label} saw markers in place of {media}"
            warnings.append(
                {"kind": "hidden_media", "label": label, "message": message, "hidden": dict(sorted(counts.items()))}
            )
        for label, count in self._cut.items():
            if count:
                message = (
                    f"{label} saw cut evidence in {count:,} verdict{'s' * (count != 1)}; max_evidence_chars shows more"
                )
                warnings.append({"kind": "cut_evidence", "label": label, "message": message, "verdicts": count})
        return warnings


def _name(kind: str, count: int) -> str:
    return kind if count == 1 else _PLURALS.get(kind, kind)
