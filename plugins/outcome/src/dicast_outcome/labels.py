"""The sink of labels to train on: one step a line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import orjson

from dicast import AtomicFile, ConfigError, DicastError, Event, RunContext, nearest

STEP_SCORE = "outcome/step_score"
FACTS = ("step_utility", "tests_before", "tests_after", "verification_delta", "was_repeated", "params_valid")

Key = tuple[str | None, str | None]


@attrs.frozen
class Labels:
    """What came of each step, as JSON lines to train on; ``outcome/labels`` as a source reads them.

    A line has ``id``, ``session_id``, ``step_utility`` (from -1 to 1), ``tests_before``, ``tests_after``,
    ``verification_delta``, ``was_repeated``, ``params_valid`` and ``outcome_score``; what is not known is null. A step that
    could not be scored has none. The file appears under its name when the run ends, also when it is interrupted; until then an
    older one stays.

    :param path: the file to write, replacing what is there; folders above it are made.
    :param metric: the label of the ``outcome/step_score`` that the labels come from: its ``as``, if it has one.
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
        """Open the file for *run*; its path is relative to the pipeline's folder.

        :raises ConfigError: when it cannot be written.
        """
        with AtomicFile(run.base / self.path) as file:
            live = LabelLines(file, self.metric, include_input=self.include_input)
            yield live
            live.close()


class LabelLines:
    """The open file. With *include_input* it holds the inputs of steps that were read and are not yet judged."""

    def __init__(self, file: AtomicFile, metric: str, *, include_input: bool) -> None:
        self.wants = Labels.wants if include_input else ("run.started", "eval.completed")
        self._file = file
        self._metric = metric
        self._inputs: dict[Key, object] | None = {} if include_input else None
        self._started = False
        self._why_not = "outcome/labels was told of steps before run.started, which names their metric"

    def write(self, events: Sequence[Event]) -> int:
        """Write the labels among *events*, or raise and write none of them.

        :raises ConfigError: when the run has no metric of that label.
        :raises DicastError: when the metric of that label is no step score.
        """
        lines: list[bytes] = []
        ended: Key | None = None
        for event in events:
            if event.type == "run.started":
                self._start(event.payload)
            elif not self._started:
                raise DicastError(self._why_not)
            elif event.type == "subject.read":
                self._keep(event)
            else:
                ended = event.subject_kind, event.subject_id
                lines += self._lines(event, ended)
        self._file.write(b"".join(lines))
        self._forget(ended)
        return len(lines)

    def close(self) -> None:
        """Give the file its name. A run that never started, or lacks the metric, leaves what was there."""
        if self._started:
            self._file.commit()

    def _start(self, started: Mapping[str, Any]) -> None:
        labels = list(started["metrics"])
        if self._metric not in labels:
            near = nearest(self._metric, labels)
            meant = f"; did you mean {near!r}?" if near else ""
            has = ", ".join(labels) or "none"
            # Said again of every step that follows: the last word is what the summary shows.
            self._why_not = (
                f"outcome/labels takes its labels from the metric {self._metric!r}, and the run has {has}{meant}"
            )
            raise ConfigError(self._why_not)
        self._started = True

    def _keep(self, event: Event) -> None:
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
            raise DicastError(f"the metric {self._metric!r} is no {STEP_SCORE}: it has no labels for outcome/labels")
        line: dict[str, object] = {"id": event.subject_id, "session_id": event.session_id}
        if self._inputs is not None:
            line["input"] = self._inputs.get(key)
        line |= {name: signals[name] for name in FACTS} | {"outcome_score": score["value"]}
        return [orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)]

    def _forget(self, ended: Key | None) -> None:
        """Drop the inputs of the steps that were read before *ended*: what ends a step comes in the order of reading."""
        if self._inputs and ended in self._inputs:
            for key in list(self._inputs):
                if key == ended:
                    break
                del self._inputs[key]
