"""Failures in words for a reader. Kinds in the data are named after judges, also for a task's model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_CALLS = {"judge_output_invalid": "reply is invalid", "judge_call_failed": "call failed"}
"""Words for the failures of a model that is no judge."""

_RECORD = "record"
"""Label of failures without a verdict: the task or an extractor made no record."""


def failure_label(failure: Mapping[str, Any]) -> str:
    """Return ``task`` for a failure of the task, else the label that has no verdict."""
    return str(failure.get("origin") or failure["judge"])


def failure_kind(failure: Mapping[str, Any]) -> str:
    """Return the kind of *failure* in words, if it is of a model that is no judge; else the kind in the data."""
    mode = str(failure["failure_mode"])
    return _CALLS.get(mode, mode) if _is_no_judges(failure) else mode


def task_kind(mode: str) -> str:
    """Return the kind *mode* of a failure of the task in words."""
    return f"task: {_CALLS.get(mode, mode)}"


def kind_of_all(mode: str, failures: Sequence[Mapping[str, Any]], count: int) -> str:
    """Return the kind *mode* of *count* subjects' failures in words.

    :param failures: the failures of the kind that the document lists. If it does not list all subjects, the words do not name the task.
    """
    if not failures or not all(map(_is_no_judges, failures)):
        return mode
    subjects = {(failure["subject_kind"], failure["subject_id"]) for failure in failures}
    is_task = len(subjects) >= count and all("origin" in failure for failure in failures)
    return task_kind(mode) if is_task else _CALLS.get(mode, mode)


def _is_no_judges(failure: Mapping[str, Any]) -> bool:
    return "origin" in failure or failure["judge"] == _RECORD
