"""The columns of a run's table that are for readers: what was judged, and why it scored as it did."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .flat import LEVEL, Place, names

VERDICT, ENDING, CONTENT, REASON, RATIONALE = range(LEVEL + 1, LEVEL + 6)
"""The groups of columns that come behind a record's, in their order."""

METRICS, RECORD = "metrics", "record"
"""The labels of what all metrics together, and a task, are said to have failed for."""

_NOT_IN_A_COLUMN = re.compile(r"[^A-Za-z0-9_]")

Ended = Mapping[str, Mapping[str, Any]]
"""The payloads of the events that ended a subject's verdicts, by label."""


class TableTexts:
    """``input``, ``output`` and ``reference`` where no record has them, ``reason_<label>`` and ``rationale_<label>``.

    A metric's reason is what it said of its score, or why it has none; a judge's are the flags that lowered its score, or why it failed. A rationale is there where
    it was captured, and no row without one has the column.
    """

    def __init__(self, started: Mapping[str, Any], *, records: bool) -> None:
        self._metrics: tuple[str, ...] = tuple(started["metrics"])
        labels = (*self._metrics, *started["judges"], METRICS, RECORD)
        columns = dict(zip(labels, column_names(labels), strict=True))
        content = () if records else ("input", "output", "reference")
        self._content: list[tuple[Place, str]] = [((CONTENT, name), name) for name in content]
        self.reasons: dict[str, Place] = {label: (REASON, f"reason_{name}") for label, name in columns.items()}
        self.rationales: dict[str, Place] = {label: (RATIONALE, f"rationale_{name}") for label, name in columns.items()}
        self.places = [place for place, _ in self._content] + [self.reasons[label] for label in labels[:-2]]

    def found(self, content: Mapping[str, Any] | None, ended: Ended, record: Mapping[str, Any]) -> dict[Place, object]:
        """The texts of a row, by their places. Written flat: it is asked for every row of a file."""
        found: dict[Place, object] = {}
        if content is not None:
            for place, name in self._content:
                found[place] = content[name]
        if "failure_mode" in record:
            found[self.reasons[RECORD]] = record.get("error")
        for label, said in ended.items():
            if "failure_mode" in said:
                self._add_failure(found, label, str(said.get("error_message") or ""))
            elif label == METRICS:
                self._add_metrics(found, said)
            else:
                self._add_judge(found, label, said["signals"])
        return found

    def _add_failure(self, found: dict[Place, object], label: str, message: str) -> None:
        """Why there is no verdict: a metric's own message where the failure is one metric's."""
        if label == METRICS:
            own = [metric for metric in self._metrics if message.startswith(f"{metric}: ")]
            label = max(own, key=len, default=METRICS)
            message = message.removeprefix(f"{label}: ")
        found[self.reasons[label]] = message

    def _add_judge(self, found: dict[Place, object], label: str, signals: Mapping[str, Any]) -> None:
        """The flags that lowered a judge's score, which rubrics name, and its rationale."""
        if flags := signals.get("flags_negative"):
            found[self.reasons[label]] = ", ".join(map(str, flags))
        if text := signals.get("rationale_redacted"):
            found[self.rationales[label]] = text

    def _add_metrics(self, found: dict[Place, object], said: Mapping[str, Any]) -> None:
        """What each metric said; the texts of several rollouts a line each, those that are alike once."""
        for one in said.get("skipped", ()):
            found[self.reasons[one["metric"]]] = f"skipped: {one['reason']}"
        for one in said.get("spared", ()):
            found[self.reasons[one["metric"]]] = "spared by the gate"
        texts: dict[Place, list[str]] = {}
        for score in said.get("scores", ()):
            if text := score.get("details") or score.get("feedback"):
                texts.setdefault(self.reasons[score["metric"]], []).append(str(text))
            if text := score["signals"].get("rationale_redacted"):
                texts.setdefault(self.rationales[score["metric"]], []).append(str(text))
        for place, some in texts.items():
            found[place] = some[0] if len(some) == 1 else "\n".join(dict.fromkeys(some))


def column_names(labels: Iterable[str]) -> list[str]:
    """Make *labels* fit for a column name: ASCII letters, digits and ``_``; a repeated one gets ``_2``, ``_3`` …."""
    return names((VERDICT, _NOT_IN_A_COLUMN.sub("_", label)) for label in labels)
