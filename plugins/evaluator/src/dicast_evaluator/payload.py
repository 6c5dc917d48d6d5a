"""What an evaluator is sent: document 004, version 2 of the protocol."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from dicast import Subject, columns
from dicast.toolkit.json_values import MISSING

PROTOCOL_VERSION = 2
TASK_MODEL_VARIABLES = ("OPTIMIZE_ANYTHING_TASK_MODEL", "DICAST_TASK_MODEL")
PREFLIGHT_CANDIDATE = "__optimize_anything_preflight__"


def payload(
    candidate: str, example: Mapping[str, object] | None = None, task_model: str | None = None
) -> dict[str, object]:
    """The payload for *candidate*; ``example`` and ``task_model`` are in it only where there are any."""
    found: dict[str, object] = {"_protocol_version": PROTOCOL_VERSION, "candidate": candidate}
    if task_model is not None:
        found["task_model"] = task_model
    if example is not None:
        found["example"] = example
    return found


def of_subject(subject: Subject, task_model: str | None) -> bytes:
    """The payload for *subject* as JSON: its output is the candidate, the row without it the example."""
    return orjson.dumps(payload(subject.text, example_of(subject), task_model))


def example_of(subject: Subject) -> Mapping[str, object] | None:
    """The dataset's record where the row says which one it is (null: none); else its other columns, or None where there are none."""
    own = subject.context.get("example", MISSING)
    if own is None or isinstance(own, Mapping):
        return own
    row = {name: value for name, value in columns(subject).items() if name != "output"}
    return row if row.keys() - {"id"} else None


def environment(task_model: str | None) -> dict[str, str]:
    """The variables that a command gets beside its environment."""
    return {} if task_model is None else dict.fromkeys(TASK_MODEL_VARIABLES, task_model)
