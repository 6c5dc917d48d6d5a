"""Words for the kinds of failures."""

from __future__ import annotations

from collections.abc import Mapping

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


def failure_words(kind: str) -> str:
    """Return words for the *kind* of a failure; the kind itself if it has none, as a kind of an older version."""
    return _WORDS.get(kind, kind)


def failure_counts(failures: Mapping[str, int]) -> str:
    """Return the number of *failures* of each kind, with words for the kind; empty without failures."""
    return ", ".join(
        f"{count:,} {kind}" + (f" ({_WORDS[kind]})" if kind in _WORDS else "") for kind, count in failures.items()
    )
