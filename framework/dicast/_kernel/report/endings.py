"""Warnings about outputs and replies that are cut, refused, or ended for an unknown reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..values import MAX_TOKENS, REFUSAL, Event, normalize_stop_reason

_MESSAGES = {
    MAX_TOKENS: (
        "cut_outputs",
        "the token limit cut the output of {}",
    ),
    REFUSAL: ("refused_outputs", "the output of {} is a refusal of the model"),
}


class EndingNotes:
    """Counts of outputs by the reason why they ended, and, by label, of judgments whose replies the token limit cut."""

    def __init__(self) -> None:
        self._outputs: dict[str, Counter[str]] = {MAX_TOKENS: Counter(), REFUSAL: Counter()}
        self._cut: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._unknown: dict[str, Counter[str]] = {}
        self._unmade: Counter[str] = Counter()
        self._newest: tuple[str | None, str | None] | None = None

    def note_output(self, event: Event, ending: str | None) -> None:
        """Count the output of the subject of *event*, whose text ended for the reason *ending*."""
        reason = normalize_stop_reason(ending)
        if reason in self._outputs:
            self._outputs[reason][str(event.subject_kind)] += 1

    def note_verdict(self, label: str, payload: Mapping[str, Any]) -> None:
        """Count a verdict with ``cut_replies`` or with an unknown ``finish_reason`` in its signals."""
        signals = payload.get("signals") or {}
        cut, reason = signals.get("cut_replies"), signals.get("finish_reason")
        self._cut[label] += type(cut) is int and cut > 0
        if isinstance(reason, str):
            self._unknown.setdefault(label, Counter())[reason] += 1

    def note_failure(self, label: str, event: Event) -> None:
        """Count a failure whose last reply was cut. A failed task counts once per subject, because all labels of the subject fail with it."""
        reason = event.payload.get("finish_reason")
        is_cut = isinstance(reason, str) and normalize_stop_reason(reason) == MAX_TOKENS
        if event.payload.get("origin") == "task":
            subject = (event.subject_kind, event.subject_id)
            self._unmade[str(event.subject_kind)] += is_cut and subject != self._newest
            self._newest = subject
            return
        self._cut[label] += is_cut
        self._failed[label] += is_cut

    def subtract(self, other: EndingNotes) -> None:
        """Remove the verdicts and failures that *other* counts too."""
        for label, reasons in other._unknown.items():
            self._unknown[label] -= reasons
        self._unknown = {label: reasons for label, reasons in self._unknown.items() if reasons}
        self._cut -= other._cut
        self._failed -= other._failed
        self._unmade -= other._unmade

    def warnings(self, task: str | None) -> list[dict[str, Any]]:
        """Return one warning for each kind of ending, and for each label with cut replies or unknown reasons; *task* made the outputs."""
        warnings: list[dict[str, Any]] = []
        for reason, (kind, message) in _MESSAGES.items():
            if counts := self._outputs[reason]:
                listed = _listed(counts)
                advice = (
                    f"; raise max_output_tokens of {task}, or max_reasoning_tokens of its model"
                    if task and reason == MAX_TOKENS
                    else ""
                )
                text = f"{message.format(listed)}{advice}"
                warnings.append({"kind": kind, "message": text, "subjects": dict(sorted(counts.items()))})
        if count := self._unmade.total():
            message = (
                f"the token limit cut replies of the task's model: no output of {_listed(self._unmade)}; "
                f"raise max_output_tokens of {task}, or max_reasoning_tokens of its model"
            )
            warnings.append(
                {"kind": "cut_replies", "label": "task", "message": message, "judgments": count, "failed": count}
            )
        for label, count in self._cut.items():
            if count:
                message = (
                    f"the token limit cut replies of {label} in {count:,} judgment{'s' * (count != 1)}, {self._failed[label]:,} of them"
                    " without a verdict; raise max_output_tokens or max_reasoning_tokens"
                )
                warnings.append(
                    {
                        "kind": "cut_replies",
                        "label": label,
                        "message": message,
                        "judgments": count,
                        "failed": self._failed[label],
                    }
                )
        for label, reasons in self._unknown.items():
            listed = ", ".join(f"{reason!r:.40} ({n:,})" for reason, n in reasons.most_common(3))
            message = f"verdicts of {label} have replies that ended for unknown reasons: {listed}"
            warnings.append(
                {"kind": "unknown_finish_reason", "label": label, "message": message, "verdicts": reasons.total()}
            )
        return warnings


def _listed(counts: Counter[str]) -> str:
    """Return the numbers of subjects with their kinds, such as ``2 rows and 1 turn``."""
    return " and ".join(f"{n:,} {kind}{'s' * (n != 1)}" for kind, n in sorted(counts.items()) if n)
