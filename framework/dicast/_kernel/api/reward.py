"""A pipeline as a reward function: what loops of reinforcement learning call with a batch of completions."""

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
    """Completions that could not be scored; the message says which, and why. They have no reward, also not 0."""


@frozen
class Reward:
    """Scores completions with a pipeline, a run for each batch. It can be pickled where *pipeline* can.

    :param pipeline: a file, YAML text, or a mapping; its source, if it has one, is not read.
    :param on: the label whose score is the reward; by default the one that the run's score is about.
    :param failures: ``raise``: a completion that cannot be scored is a :class:`RewardError`. ``none``: its reward is None, which trainers
        leave out.
    :param overrides: as for :func:`dicast.run`.
    """

    pipeline: Path | str | Mapping[str, object]
    on: str | None = None
    failures: Literal["raise", "none"] = attrs.field(default="raise", validator=attrs.validators.in_(("raise", "none")))
    overrides: Mapping[str, object] = attrs.field(factory=dict)

    @property
    def __name__(self) -> str:
        """What trainers call it in their logs."""
        return self.pipeline.stem if isinstance(self.pipeline, Path) else "dicast"

    def __call__(
        self, completions: Sequence[object], prompts: Sequence[object] | None = None, **columns: object
    ) -> list[float | None]:
        """Return the reward of each of *completions*, in their order: in [0, 1], or on the scale of a metric without a ``range``.

        A completion is text, or a conversation as a list of messages, of which the last one's content counts. *columns* that are lists of the
        same length are the rows' other columns: ``reference`` is what would have been right, all of them are in the context; others are
        left out.

        :raises RewardError: when some cannot be scored.
        :raises RequestError: when the pipeline is wrong; nothing was judged then.
        """
        if not completions:
            return []
        if prompts is not None and len(prompts) != len(completions):
            raise ConfigError(
                f"{len(completions)} completions and {len(prompts)} prompts: there is one of each for a row"
            )
        answers: dict[str, Sequence[Event]] = {}
        rows: dict[str, Any] = {name: one for name, one in columns.items() if _fits(one, len(completions))}
        subjects = []
        for number, completion in enumerate(completions):
            row = {name: column[number] for name, column in rows.items()}
            asked = None if prompts is None else prompts[number]
            found = Subject(
                "candidate", uuid.uuid4().hex, asked, _text(completion), row.get("reference", row.get("expected")), row
            )
            subjects.append(Due(found, answered=_kept(answers, found.id)))
        done = run(self.pipeline, overrides=self.overrides, subjects=subjects, kind="evaluate")
        label = self.on or (done.score or {}).get("label")
        if label is None:
            raise ConfigError(
                "several judges and no metrics: say whose score is the reward, as in Reward(…, on='LABEL')"
            )
        stopped = f"the run was stopped ({done.stopped['reason']})" if done.stopped else "it was not judged"
        found_ = [_reward(answers.get(due.subject.id, ()), label, stopped) for due in subjects]
        failed = [f"{number}: {one}" for number, one in enumerate(found_) if isinstance(one, str)]
        if failed and self.failures == "raise":
            more = f" and {len(failed) - 10} more" if len(failed) > 10 else ""
            raise RewardError(
                f"{len(failed)} of {len(completions)} completions have no reward: {'; '.join(failed[:10])}{more}"
            )
        return [None if isinstance(one, str) else one for one in found_]


def reward(
    pipeline: Path | str | Mapping[str, object],
    *,
    on: str | None = None,
    failures: Literal["raise", "none"] = "raise",
    overrides: Mapping[str, object] | None = None,
) -> Reward:
    """A reward function that scores completions with *pipeline*; see :class:`Reward`."""
    return Reward(pipeline, on, failures, overrides or {})


def _kept(answers: dict[str, Sequence[Event]], id: str) -> Any:
    return lambda events: answers.__setitem__(id, events)


def _fits(column: object, length: int) -> bool:
    return isinstance(column, Sequence) and not isinstance(column, str | bytes) and len(column) == length


def _text(completion: object) -> object:
    """The text that is judged: the last message's where it is a conversation."""
    if isinstance(completion, Sequence) and not isinstance(completion, str | bytes) and completion:
        last = completion[-1]
        if isinstance(last, Mapping) and "content" in last:
            return last["content"]
    return completion


def _reward(events: Sequence[Event], label: str, otherwise: str) -> float | str:
    """The score under *label*, or why there is none."""
    for event in events:
        if event.payload.get("judge") == label:
            if event.type == EVAL_COMPLETED:
                score: Any = event.payload["score"]
                score = event.payload.get("raw") if score is None else score
                return "the proxies held it back" if score is None else float(score)
            if event.type == EVAL_FAILED:
                return f"{event.payload['failure_mode']}: {event.payload['error_message']}"
    return otherwise
