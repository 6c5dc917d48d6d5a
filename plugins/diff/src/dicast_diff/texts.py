"""Two texts compared character by character, or word by word."""

from __future__ import annotations

import json
from collections.abc import Mapping

import orjson

from dicast import Failure, Score
from dicast.toolkit.json_values import read_json

from .excerpts import LONGEST, excerpt, first_difference
from .lcs import lcs_length
from .sides import Sides
from .values import differences

EQUAL = Score(1.0)

MOST_WORK = 10**12
"""The largest number of pairs of words to compare, after the common beginning of both texts: about half a minute."""


def alike(sides: Sides) -> tuple[object, object]:
    """Output and reference; where only one of them is text, it is read as JSON."""
    output, reference = sides.output, sides.reference
    if isinstance(output, str) and not isinstance(reference, str):
        return parse(output), reference
    if isinstance(reference, str) and not isinstance(output, str):
        return output, parse(reference)
    return output, reference


def parse(text: str) -> object:
    """Return the JSON value of *text*, or the text itself if it is no JSON."""
    try:
        return read_json(text)
    except orjson.JSONDecodeError:
        return text


def written(value: object) -> str | None:
    """Return *value* as text: a text itself, any other value as JSON with sorted keys; None if it is nested too deeply."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, default=repr)
    except (RecursionError, TypeError, ValueError):
        return None


def compare_exactly(sides: Sides) -> Score | Failure:
    """1 for the same text or the same JSON value, else 0."""
    output, reference = alike(sides)
    if isinstance(output, str) and isinstance(reference, str):
        if output == reference:
            return EQUAL
        at = first_difference(output, reference)
        actual, expected = _escaped(output[at : at + LONGEST + 1]), _escaped(reference[at : at + LONGEST + 1])
        return unequal(f"{_start(sides, f'differs from character {at + 1}: {actual}')}, not {expected}")
    difference = next(differences(output, reference), None)
    return EQUAL if difference is None else unequal(f"differs at {difference}")


def compare_words(sides: Sides) -> Score | Failure:
    """1 for the same words or the same JSON value, else by the longest common subsequence of the words."""
    output, reference = alike(sides)
    if not (isinstance(output, str) and isinstance(reference, str)):
        difference = next(differences(output, reference), None)
        if difference is None:
            return EQUAL
        texts = written(output), written(reference)
        if None in texts:
            why = f"nested too deep, or not JSON, so that its words cannot be counted; it differs at {difference}"
            return Failure("missing_input", f"the output or the reference of {sides.whose} is {why}")
        output, reference = texts
    return _credit(str(output).split(), str(reference).split(), sides)


def _credit(left: list[str], right: list[str], sides: Sides) -> Score | Failure:
    if left == right:
        return EQUAL
    at = first_difference(left, right)
    work = (len(left) - at) * (len(right) - at)
    if work > MOST_WORK:
        sizes = f"{len(left):,} words against {len(right):,}"
        advice = "are too many to align; use strictness: exact, or field"
        return Failure("timeout", f"diff/match: output and reference of {sides.whose}, {sizes}, {advice}")
    actual, expected = (_escaped(" ".join(words[at : at + LONGEST])) for words in (left, right))
    common = at + lcs_length(left[at:], right[at:])  # what both begin with is in every longest common subsequence
    counts = {"common_words": common, "output_words": len(left), "reference_words": len(right)}
    credit = 2 * common / (len(left) + len(right))
    return unequal(f"{_start(sides, f'differs from word {at + 1}: {actual}')}, not {expected}", credit, counts)


def _start(sides: Sides, difference: str) -> str:
    """Return how details begin: with the words for an output without text, else with *difference*."""
    return sides.emptiness or difference


def unequal(details: str, value: float = 0.0, signals: Mapping[str, object] | None = None) -> Score:
    """Return the score of unequal values."""
    return Score(value, details=details, signals=signals or {})


def _escaped(text: str) -> str:
    return excerpt(text) if text else "the end"
