"""Failures in words for a reader. Kinds in the data are named after judges, also for a task's model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_WORDS = {
    "judge_call_failed": "a call to a model failed",
    "judge_output_invalid": "a model's reply is no verdict",
    "throttled_no_heuristic": "the remaining budget is too small",
    "subject_not_found": "the judged part does not exist",
    "rubric_invalid": "the rubric cannot be used",
    "timeout": "no answer in time",
    "crashed": "a component raised an error",
    "refused": "a model's policy refused the content",
    "invalid_score": "a score is missing, or outside [0, 1]",
    "missing_input": "the row lacks an output, a reference or another part",
    "checks_failed": "the checks before the measurement did not pass",
    "source_error": "the record failed where it was recorded",
}
"""Words for the kinds of failures."""

_CALLS = {"judge_output_invalid": "reply is invalid", "judge_call_failed": "call failed"}
"""Words for the failures of a model that is no judge."""

LASTING = frozenset(("source_error", "missing_input", "subject_not_found"))
"""Kinds of failures of the data, which another judgment of the same data repeats."""

TASK = "task"
"""Origin of the failure of a task."""

NO_JUDGE = "record"
"""Origin of the failure of a task or an extractor, without any judge of the record."""

Failed = Mapping[str, Any]
"""Failure in a run's document, in the answer of a query, or in the payload of an event."""


def failure_words(kind: str, origin: str | None = None) -> str:
    """Return words for the *kind* of a failure; the kind itself if it has none, as a kind of an older version.

    :param origin: ``task`` for a failure of the task, ``record`` for one of a task or an extractor without any judge, None for other failures.
    """
    words = (_CALLS if origin else {}).get(kind) or _WORDS.get(kind, kind)
    return f"{TASK}: {words}" if origin == TASK else words


def failure_counts(failures: Mapping[str, int]) -> str:
    """Return the number of *failures* of each kind, with words for the kind; empty without failures."""
    return ", ".join(f"{count:,} {_with_words(kind)}" for kind, count in failures.items())


def failures_text(done: Mapping[str, Any]) -> str:
    """Return the numbers of failed subjects in the document *done*, by the component that failed and by kind; empty without failures."""
    return ", ".join(f"{count:,} {words}" for words, count, _ in counted_failures(done))


def counted_failures(done: Mapping[str, Any]) -> Iterator[tuple[str, int, list[str] | None]]:
    """Yield words for each component that failed and its kind of failure, the number of failed subjects, and the path of the number in the document *done*.

    The path is None for a number that the document has only as a difference.
    """
    for kind, origin, count in failure_numbers(done):
        words = _with_words(kind)
        path = ["failures_by_origin", origin, kind] if origin else ["failures", kind]
        text = task_kind(kind) if origin == TASK else _CALLS.get(kind, words) if origin else words
        yield text, count, path if origin or count == done["failures"][kind] else None


def may_pass_again(done: Mapping[str, Any]) -> bool:
    """Return whether another judgment of the failed subjects in the document *done* may succeed. It cannot if every failure is a fault of the data.

    True for a run without a document, which has not ended.
    """
    failures = done.get("failures")
    return failures is None or not failures or not LASTING.issuperset(failures)


def open_text(clause: Mapping[str, Any]) -> str:
    """Return the number of subjects without a verdict that the interval of *clause* counts both ways, after a blank; empty without any.

    The interval of the label leaves these subjects out.
    """
    count = clause.get("open", 0)
    return f" with {count:,} open subject{'s' * (count > 1)} counted both ways" if count else ""


def failure_numbers(done: Mapping[str, Any]) -> Iterator[tuple[str, str | None, int]]:
    """Yield each kind of failure in the document *done* with the origin of the failures, as for :func:`failure_words`, and their number."""
    origins: Mapping[str, Mapping[str, int]] = done.get("failures_by_origin", {})
    for kind, count in done["failures"].items():
        numbers = {origin: counts[kind] for origin, counts in origins.items() if kind in counts}
        rest = count - sum(numbers.values())
        yield from ((kind, origin, number) for origin, number in numbers.items())
        yield from [(kind, None, rest)] if rest else []


def failure_origin(failure: Failed) -> str | None:
    """Return the origin of *failure*, as for :func:`failure_words`."""
    return failure.get("origin") or (NO_JUDGE if failure.get("judge") == NO_JUDGE else None)


def failure_label(failure: Failed) -> str:
    """Return ``task`` for a failure of the task, else the label that has no verdict."""
    return str(failure.get("origin") or failure["judge"])


def failure_kind(failure: Failed) -> str:
    """Return the kind of *failure* in words, if it is of a model that is no judge; else the kind in the data."""
    mode = str(failure["failure_mode"])
    return _CALLS.get(mode, mode) if failure_origin(failure) else mode


def failure_text(failure: Failed) -> str:
    """Return the kind of *failure* in words; a failure of the task starts with ``task:``."""
    return task_kind(str(failure["failure_mode"])) if failure_origin(failure) == TASK else failure_kind(failure)


def task_kind(mode: str) -> str:
    """Return the kind *mode* of a failure of the task in words."""
    return f"{TASK}: {_CALLS.get(mode, mode)}"


def _with_words(kind: str) -> str:
    return f"{kind} ({_WORDS[kind]})" if kind in _WORDS else kind
