"""Columns of a run's table for readers: the judged content, and the reasons of scores."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .._kernel.values import ALL_METRICS
from .flat import LEVEL, Place, names

VERDICT, ENDING, CONTENT, REASON, RATIONALE = range(LEVEL + 1, LEVEL + 6)
"""The groups of columns that come behind a record's, in their order."""

RECORD = "record"
"""Label under which failures of a task are recorded."""

_NOT_IN_A_COLUMN = re.compile(r"[^A-Za-z0-9_]")

Verdicts = Mapping[str, Mapping[str, Any]]
"""The payloads of the events that ended a subject's verdicts, by label."""


class TableTexts:
    """``input``, ``output`` and ``reference`` if no record has them, ``reason_<label>`` and ``rationale_<label>``.

    The reason of a metric is its explanation of the score, or of a missing score; the reason of a judge is the flags that lowered its score, or its
    failure. Rationales are present if they were captured; without any, there is no column.
    """

    def __init__(self, started: Mapping[str, Any], *, records: bool) -> None:
        self._metrics: tuple[str, ...] = tuple(started["metrics"])
        labels = (*self._metrics, *started["judges"], ALL_METRICS, RECORD)
        columns = dict(zip(labels, column_names(labels), strict=True))
        content = () if records else ("input", "output", "reference")
        self._content: list[tuple[Place, str]] = [((CONTENT, name), name) for name in content]
        self.reasons: dict[str, Place] = {label: (REASON, f"reason_{name}") for label, name in columns.items()}
        self.rationales: dict[str, Place] = {label: (RATIONALE, f"rationale_{name}") for label, name in columns.items()}
        self.places = [place for place, _ in self._content] + [self.reasons[label] for label in labels[:-2]]

    def texts(
        self, content: Mapping[str, Any] | None, verdicts: Verdicts, record: Mapping[str, Any]
    ) -> dict[Place, object]:
        """Return the texts of a row by their places. The code is flat because it runs for every row of a file."""
        texts: dict[Place, object] = {}
        if content is not None:
            for place, name in self._content:
                texts[place] = content[name]
        if "failure_mode" in record:
            texts[self.reasons[RECORD]] = record.get("error")
        for label, payload in verdicts.items():
            if "failure_mode" in payload and "origin" in payload:
                texts[self.reasons[RECORD]] = payload.get("error_message")
            elif "failure_mode" in payload:
                self._add_failure(texts, label, str(payload.get("error_message") or ""))
            elif label == ALL_METRICS:
                self._add_metrics(texts, payload)
            else:
                self._add_judge(texts, label, payload["signals"])
        return texts

    def _add_failure(self, texts: dict[Place, object], label: str, message: str) -> None:
        """Add the reason why there is no verdict; a failure of a single metric goes into this metric's column."""
        if label == ALL_METRICS:
            failing = [metric for metric in self._metrics if message.startswith(f"{metric}: ")]
            label = max(failing, key=len, default=ALL_METRICS)
            message = message.removeprefix(f"{label}: ")
        texts[self.reasons.get(label, (REASON, f"reason_{label}"))] = message

    def _add_judge(self, texts: dict[Place, object], label: str, signals: Mapping[str, Any]) -> None:
        """Add the negative flags of the rubric that a judge found, and its rationale."""
        if flags := signals.get("flags_negative"):
            texts[self.reasons.get(label, (REASON, f"reason_{label}"))] = ", ".join(map(str, flags))
        if text := signals.get("rationale_redacted"):  # a score of another tool has a label that the run did not plan
            texts[self.rationales.get(label, (RATIONALE, f"rationale_{label}"))] = text

    def _add_metrics(self, target: dict[Place, object], payload: Mapping[str, Any]) -> None:
        """Add the reasons of each metric. The texts of several rollouts are on separate lines, without repetition."""
        for spared in payload.get("skipped", ()):
            target[self.reasons[spared["metric"]]] = f"skipped: {spared['reason']}"
        for spared in payload.get("spared", ()):
            target[self.reasons[spared["metric"]]] = "spared by the gate"
        texts: dict[Place, list[str]] = {}
        for score in payload.get("scores", ()):
            if text := score.get("details") or score.get("feedback"):
                texts.setdefault(self.reasons[score["metric"]], []).append(str(text))
            if text := score["signals"].get("rationale_redacted"):
                texts.setdefault(self.rationales[score["metric"]], []).append(str(text))
        for place, lines in texts.items():
            target[place] = lines[0] if len(lines) == 1 else "\n".join(dict.fromkeys(lines))


def data_columns(parts: Mapping[str, Any], columns: Mapping[str, Any]) -> dict[str, object]:
    """Return the columns of the data by their names, as a record has them, without the columns of the subject's *parts*.

    :param columns: the name of its part for each column that became a part, or a list with its value.
    """
    named = {name: part[0] if isinstance(part, list) else parts[part] for name, part in columns.items()}
    values = {**parts["context"], **named}
    # many data sets have a column context
    return {name: value for name, value in values.items() if name == "context" or name not in parts}


def column_names(labels: Iterable[str]) -> list[str]:
    """Return *labels* as distinct column names of ASCII letters, digits and ``_``; repeated names get ``_2``, ``_3`` …."""
    return names((VERDICT, _NOT_IN_A_COLUMN.sub("_", label)) for label in labels)
