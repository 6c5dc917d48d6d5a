"""Payload for an evaluator: version 2 of the evaluator protocol."""

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
    """Return the payload for *candidate*; ``example`` and ``task_model`` are left out if they are None."""
    fields: dict[str, object] = {"_protocol_version": PROTOCOL_VERSION, "candidate": candidate}
    if task_model is not None:
        fields["task_model"] = task_model
    if example is not None:
        fields["example"] = example
    return fields


def of_subject(subject: Subject, task_model: str | None) -> bytes:
    """Return the payload for *subject* as JSON: its output is the candidate, the row without it the example."""
    return orjson.dumps(payload(subject.text, example_of(subject), task_model))


def example_of(subject: Subject) -> Mapping[str, object] | None:
    """Return the record of the dataset: the column ``example`` if it is an object or null, else the row without its output.

    None for null, and for a row with an id only.
    """
    example = subject.context.get("example", MISSING)
    if example is None or isinstance(example, Mapping):
        return example
    row = {name: value for name, value in columns(subject).items() if name != "output"}
    return row if row.keys() - {"id"} else None


def environment(task_model: str | None) -> dict[str, str]:
    """Return the variables that a command gets in addition to its environment."""
    return {} if task_model is None else dict.fromkeys(TASK_MODEL_VARIABLES, task_model)
