"""A pipeline as a reward function for reinforcement learning, called with a batch of completions."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import attrs

from ..classes import frozen
from ..events import EVAL_COMPLETED, EVAL_FAILED
from ..values import Due, Event, Subject
from ..values.errors import ConfigError, DicastError
from .runs import run


class RewardError(DicastError):
    """Completions that could not be scored. The message names them with the reasons. They have no reward, not even 0."""


@frozen
class Reward:
    """Reward function that scores completions with a pipeline, one run per batch. It can be pickled if *pipeline* can.

    :param pipeline: a file, YAML text, or a mapping; its source, if it has one, is not read.
    :param on: the label whose score is the reward; by default the label of the run's score.
    :param failures: ``raise``: a completion that cannot be scored is a :class:`RewardError`. ``none``: its reward is None, and trainers
        skip it.
    :param overrides: as for :func:`dicast.run`.
    """

    pipeline: Path | str | Mapping[str, object]
    on: str | None = None
    failures: Literal["raise", "none"] = attrs.field(default="raise", validator=attrs.validators.in_(("raise", "none")))
    overrides: Mapping[str, object] = attrs.field(factory=dict)

    @property
    def __name__(self) -> str:
        """The name that trainers log."""
        return self.pipeline.stem if isinstance(self.pipeline, Path) else "dicast"

    def __call__(
        self, completions: Sequence[object], prompts: Sequence[object] | None = None, **columns: object
    ) -> list[float | None]:
        """Return the reward of each completion, in their order: in [0, 1], or on the scale of a metric without a ``range``.

        A completion is text, or a conversation as a list of messages, whose last content is judged. *columns* that are lists of the same
        length become columns of the rows: ``reference`` is the correct answer, and all columns are in the context. Other columns are ignored.

        :raises RewardError: when some completions cannot be scored.
        :raises RequestError: when the pipeline is invalid; nothing was judged then.
        """
        if not completions:
            return []
        if prompts is not None and len(prompts) != len(completions):
            raise ConfigError(
                f"{len(completions)} completions and {len(prompts)} prompts were given; pass one prompt for each completion"
            )
        answers: dict[str, Sequence[Event]] = {}
        rows: dict[str, Any] = {name: item for name, item in columns.items() if _fits(item, len(completions))}
        subjects = []
        for number, completion in enumerate(completions):
            row = {name: column[number] for name, column in rows.items()}
            prompt = None if prompts is None else prompts[number]
            subject = Subject(
                "candidate", uuid.uuid4().hex, prompt, _text(completion), row.get("reference", row.get("expected")), row
            )
            subjects.append(Due(subject, answered=_answer_recorder(answers, subject.id)))
        done = run(self.pipeline, overrides=self.overrides, subjects=subjects, kind="evaluate")
        label = self.on or done.score_label
        if label is None:
            raise ConfigError(
                "the pipeline has several labels; choose the label of the reward with Reward(…, on='LABEL')"
            )
        stopped = f"the run was stopped ({done.stopped['reason']})" if done.stopped else f"it has no verdict of {label}"
        rewards = [_reward(answers.get(due.subject.id, ()), label, stopped) for due in subjects]
        failed = [f"{number}: {item}" for number, item in enumerate(rewards) if isinstance(item, str)]
        if failed and self.failures == "raise":
            suffix = f" and {len(failed) - 10} more" if len(failed) > 10 else ""
            raise RewardError(
                f"{len(failed)} of {len(completions)} completions have no reward: {'; '.join(failed[:10])}{suffix}"
            )
        return [None if isinstance(item, str) else item for item in rewards]


def reward(
    pipeline: Path | str | Mapping[str, object],
    *,
    on: str | None = None,
    failures: Literal["raise", "none"] = "raise",
    overrides: Mapping[str, object] | None = None,
) -> Reward:
    """Return a reward function that scores completions with *pipeline*; see :class:`Reward`."""
    return Reward(pipeline, on, failures, overrides or {})


def _answer_recorder(answers: dict[str, Sequence[Event]], id: str) -> Any:
    return lambda events: answers.__setitem__(id, events)


def _fits(column: object, length: int) -> bool:
    return isinstance(column, Sequence) and not isinstance(column, str | bytes) and len(column) == length


def _text(completion: object) -> object:
    """Return the text to judge: the content of the last message of a conversation."""
    if isinstance(completion, Sequence) and not isinstance(completion, str | bytes) and completion:
        last = completion[-1]
        if isinstance(last, Mapping) and "content" in last:
            return last["content"]
    return completion


def _reward(events: Sequence[Event], label: str, otherwise: str) -> float | str:
    """Return the score under *label*, or a message if there is none."""
    for event in events:
        if event.payload.get("judge") == label:
            if event.type == EVAL_COMPLETED:
                score: Any = event.payload["score"]
                score = event.payload.get("raw") if score is None else score
                return "the gate on proxy metrics failed" if score is None else float(score)
            if event.type == EVAL_FAILED:
                return f"{event.payload['failure_mode']}: {event.payload['error_message']}"
    return otherwise
