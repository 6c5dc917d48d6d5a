"""Is the output what the reference says?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import attrs
import orjson

from dicast import MISSING, ConfigError, Failure, Score, Subject, check_field, locate

from .lcs import lcs_length

Strictness = Literal["exact", "normalized_whitespace"]

_EQUAL = Score(1.0)
_SHOWN = 40


@attrs.frozen
class Match:
    """1 when the output equals the reference; less, down to 0, by how much of it they share.

    Objects and lists are compared as JSON values. Where only one of output and reference is text, the text is read as
    JSON; for the credit, values are compared as JSON text with sorted keys.

    :param strictness: ``exact``: 1 or 0. ``normalized_whitespace``: 1 when the words are equal, white space aside, else
        2·L/(n+m) of their n and m words, where L is the length of the longest common subsequence.
    :param field: compare only this place in the output, a dotted path (``steps.0.code``) or a JSON pointer
        (``/steps/0/code``), with the whole reference; text is read as JSON to get there. A missing field scores 0.
    """

    name = "match"
    tier = "truth"

    strictness: Strictness = "normalized_whitespace"
    field: str | None = attrs.field(default=None, validator=check_field)

    def __attrs_post_init__(self) -> None:
        if self.strictness not in get_args(Strictness):
            raise ConfigError(f"unknown strictness {self.strictness!r}: it is {' or '.join(get_args(Strictness))}")

    def score(self, subject: Subject) -> Score | Failure:
        """Compare the output of *subject* with its reference; without one the answer is a Failure ``missing_input``."""
        reference = subject.reference
        if reference is None:
            return Failure("missing_input", f"diff/match compares with a reference, and {subject.id!r} has none")
        output = subject.output if self.field is None else locate(subject.output, self.field)
        if output is MISSING:
            return Score(0.0, details=f"the output has no field {self.field!r}")
        if output is None:
            return Score(0.0, details="there is no output")
        output, reference = _alike(output, reference)
        if _equal(output, reference):
            return _EQUAL
        left, right = _text(output), _text(reference)
        return _compare_characters(left, right) if self.strictness == "exact" else _compare_words(left, right)


def _alike(output: object, reference: object) -> tuple[object, object]:
    if isinstance(output, str) and not isinstance(reference, str):
        return _parse(output), reference
    if isinstance(reference, str) and not isinstance(output, str):
        return output, _parse(reference)
    return output, reference


def _parse(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _equal(left: object, right: object) -> bool:
    # In Python True equals 1, in JSON it does not.
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_equal(item, right[key]) for key, item in left.items())
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_equal, left, right))
    return left == right


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _compare_characters(output: str, reference: str) -> Score:
    at = _first_difference(output, reference)
    return Score(0.0, details=f"differs from character {at + 1}: {_show(output[at:])}, not {_show(reference[at:])}")


def _compare_words(output: str, reference: str) -> Score:
    left, right = output.split(), reference.split()
    if left == right:
        return _EQUAL
    at = _first_difference(left, right)
    found, wanted = (_show(" ".join(words[at : at + _SHOWN])) for words in (left, right))
    common = at + lcs_length(left[at:], right[at:])  # what both begin with is in every longest common subsequence
    credit = 2 * common / (len(left) + len(right))
    return Score(credit, details=f"differs from word {at + 1}: {found}, not {wanted}")


def _first_difference(left: Sequence[str], right: Sequence[str]) -> int:
    """How many items both begin with; found by halving, so that the comparing is done in C."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _show(text: str) -> str:
    if not text:
        return "the end"
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
