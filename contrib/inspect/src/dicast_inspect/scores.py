"""Converts scores of a sample into recorded scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dicast import Basis, RecordedScore
from dicast.toolkit.recorded_scores import ScoreScales

Value = Mapping[str, Any]

_NUMBERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Numbers for the letters of Inspect (correct, incorrect, partial, no answer), and for the words that it reads as numbers."""

_GRADED = "model_graded_"
"""Prefix of the names of scorers that ask a model."""


def sample_scores(sample: Value, scales: ScoreScales, graders: Mapping[str, str]) -> Iterator[RecordedScore | None]:
    """Yield the scores of *sample*; a score with several values yields one for each key. *graders* are the models that scorers called."""
    scores = sample.get("scores")
    if not isinstance(scores, dict):  # older logs have one score
        scores = {"score": sample["score"]} if sample.get("score") is not None else {}
    for name, score in scores.items():
        fields = score if isinstance(score, dict) and "value" in score else {"value": score}
        basis, by = _origin(str(name), fields, graders)
        for label, value in _values(str(name), fields["value"]):
            yield scales.score(label, _number(value), basis=basis, reason=fields.get("explanation"), by=by)


def _values(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield the name and the value of each part of a score."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{name}/{key}", "null" if item is None else item
    elif isinstance(value, list):
        for number, item in enumerate(value, 1):
            yield f"{name}/{number}", item
    else:
        yield name, value


def _number(value: object) -> object:
    """Return the number that Inspect uses for *value*; return other values unchanged."""
    if not isinstance(value, str):
        return value
    if value in _NUMBERS or value.lower() in _NUMBERS:
        return _NUMBERS.get(value, _NUMBERS.get(value.lower()))
    try:
        return float(value) if value.strip()[:1] in "+-.0123456789" else value
    except ValueError:
        return value


def _origin(name: str, fields: Value, graders: Mapping[str, str]) -> tuple[Basis, str]:
    """Return the basis of a score and who made it: a person who edited it, a grading model, or the scorer."""
    edits = fields.get("history")
    for edit in reversed(edits if isinstance(edits, list) else []):
        provenance = edit.get("provenance") if isinstance(edit, dict) else None
        author = provenance.get("author") if isinstance(provenance, dict) else None
        if isinstance(author, str) and author:
            return "human", author
    if name.startswith(_GRADED):
        return "model", graders.get(name) or next(iter(graders.values()), name)
    return "recorded", name
