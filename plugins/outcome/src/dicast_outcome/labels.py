"""The sink of training labels: a line for each step."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import orjson

from dicast import ConfigError, DicastError, Event, RunContext, nearest
from dicast.toolkit.atomic_file import AtomicFile

STEP_SCORE = "outcome/step_score"
FACTS = ("step_utility", "tests_before", "tests_after", "verification_delta", "was_repeated", "params_valid")

Key = tuple[str | None, str | None]


@attrs.frozen
class Labels:
    """The outcome of each step as JSON lines for training. The source ``outcome/labels`` reads them.

    A line has ``id``, ``session_id``, ``step_utility`` (from -1 to 1), ``tests_before``, ``tests_after``,
    ``verification_delta``, ``was_repeated``, ``params_valid`` and ``outcome_score``; unknown values are null. A step without a
    score has no line. The file gets its name when the run ends or is interrupted; until then an older file remains.

    :param path: the file to write or replace; missing folders are created.
    :param metric: the label of the ``outcome/step_score`` with the labels: its ``as``, if it has one.
    :param include_input: write the step's ``input`` too. It is the user's content.
    """

    name = "labels"
    wants = ("run.started", "subject.read", "eval.completed", "eval.failed")
    rewrites = True

    path: Path = attrs.field(converter=Path)
    metric: str = STEP_SCORE
    include_input: bool = False

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[LabelLines]:
        """Open the file for *run*; a relative path starts at the pipeline's folder.

        :raises ConfigError: if the file cannot be written.
        """
        with AtomicFile(run.base / self.path) as file:
            live = LabelLines(file, self.metric, include_input=self.include_input)
            yield live
            live.close()


class LabelLines:
    """The open file. With *include_input* it stores the input of each step until the step is judged."""

    def __init__(self, file: AtomicFile, metric: str, *, include_input: bool) -> None:
        self.wants = Labels.wants if include_input else ("run.started", "eval.completed")
        self._file = file
        self._metric = metric
        self._inputs: dict[Key, object] | None = {} if include_input else None
        self._started = False
        self._refusal = "outcome/labels received steps before run.started, which names their metric"

    def write(self, events: Sequence[Event]) -> int:
        """Write the labels of *events*; after an error none is written.

        :raises ConfigError: if the run has no metric with the label.
        :raises DicastError: if the metric with the label is not a step score.
        """
        lines: list[bytes] = []
        end: Key | None = None
        for event in events:
            if event.type == "run.started":
                self._start(event.payload)
            elif not self._started:
                raise DicastError(self._refusal)
            elif event.type == "subject.read":
                self._store_input(event)
            else:
                end = event.subject_kind, event.subject_id
                lines += self._lines(event, end)
        self._file.write(b"".join(lines))
        self._drop_inputs(end)
        return len(lines)

    def close(self) -> None:
        """Give the file its name. A run that did not start, or lacks the metric, leaves an older file in place."""
        if self._started:
            self._file.commit()

    def _start(self, started: Mapping[str, Any]) -> None:
        labels = list(started["metrics"])
        if self._metric not in labels:
            near = nearest(self._metric, labels)
            hint = f"; did you mean {near!r}?" if near else ""
            metrics = ", ".join(labels) or "none"
            # Every later step raises this message too, because the summary shows the last one.
            self._refusal = f"outcome/labels reads the metric {self._metric!r}, and the run has {metrics}{hint}"
            raise ConfigError(self._refusal)
        self._started = True

    def _store_input(self, event: Event) -> None:
        if self._inputs is not None:
            content: Any = event.payload["content"]
            self._inputs[event.subject_kind, event.subject_id] = content["input"]

    def _lines(self, event: Event, key: Key) -> list[bytes]:
        scores: Sequence[Mapping[str, Any]] = event.payload.get("scores", ())  # type: ignore[assignment]  # JSON
        # Rollouts of one output have one label.
        score = next((score for score in scores if score["metric"] == self._metric), None)
        if score is None:
            return []
        signals = score["signals"]
        if not signals.keys() >= set(FACTS):
            raise DicastError(f"the metric {self._metric!r} is not {STEP_SCORE}: it has no labels for outcome/labels")
        line: dict[str, object] = {"id": event.subject_id, "session_id": event.session_id}
        if self._inputs is not None:
            line["input"] = self._inputs.get(key)
        line |= {name: signals[name] for name in FACTS} | {"outcome_score": score["value"]}
        return [orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)]

    def _drop_inputs(self, end: Key | None) -> None:
        """Drop the inputs of the steps before *end*. Steps end in the order of reading."""
        if self._inputs and end in self._inputs:
            for key in list(self._inputs):
                if key == end:
                    break
                del self._inputs[key]
