"""How alike are output and reference, as texts?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec

import attrs

from dicast import ConfigError, Failure, Problem, Score, Subject, nearest
from dicast.toolkit.installing import how_to_install
from dicast.toolkit.json_values import check_field
from dicast.toolkit.references import References

from .excerpts import contrast
from .sides import Sides, compare_sides, text_sides
from .texts import alike, written

MOST_WORK = 10**11
"""The largest number of pairs of characters to compare, by the scorers' own measure: a few seconds that cannot be interrupted."""

MOST_CHARACTERS = 20_000_000
"""The largest number of characters of both texts together: WRatio reads them many times."""

Measure = Callable[[int, int], int]


def _product(first: int, other: int) -> int:
    return first * other


def _windows(first: int, other: int) -> int:
    """Return the cost of a comparison of every window of the longer text with the shorter text."""
    return first * other * max(1, min(first, other) // 8)


def _transpositions(first: int, other: int) -> int:
    """Return the cost of a scorer that does not process 64 characters at once, unlike the others."""
    return first * other * 150


def _sum(first: int, other: int) -> int:
    return first + other


_SCORERS: Mapping[str, Measure] = {
    "ratio": _product,
    "QRatio": _product,
    "WRatio": _windows,
    "token_ratio": _product,
    "token_sort_ratio": _product,
    "token_set_ratio": _product,
    "partial_ratio": _windows,
    "partial_token_ratio": _windows,
    "partial_token_sort_ratio": _windows,
    "partial_token_set_ratio": _windows,
    "Levenshtein": _product,
    "OSA": _product,
    "DamerauLevenshtein": _transpositions,
    "Indel": _product,
    "LCSseq": _product,
    "Jaro": _product,
    "JaroWinkler": _product,
    "Hamming": _sum,
    "Prefix": _sum,
    "Postfix": _sum,
}
"""rapidfuzz's scorers, and what their time grows with."""


def _scorer(scorer: str) -> str:
    """rapidfuzz's own name of the scorer *scorer*, whose case and underscores do not matter."""
    names = {_bare(name): name for name in _SCORERS}
    return names.get(_bare(scorer), scorer)


def _check_scorer(_: object, __: object, scorer: str) -> None:
    if scorer not in _SCORERS:
        wrong = f"unknown scorer {scorer!r}; rapidfuzz has {', '.join(_SCORERS)}"
        raise ConfigError(Problem(wrong, value=scorer, hint=nearest(scorer, _SCORERS)))


def _bare(name: str) -> str:
    return str(name).replace("_", "").lower()


@attrs.frozen
class Similarity:
    """The similarity of output and reference as texts, from 0 to 1, by one of rapidfuzz's scorers.

    Equal texts score 1. A value that is no text is compared as JSON text with sorted keys. Case and white space count. Needs the
    extra ``dicast[similarity]``.

    :param scorer: rapidfuzz's name of the scorer. Of ``rapidfuzz.fuzz``: ``ratio`` (the share of characters in common, in their
        order), ``partial_ratio`` (of the best-fitting part of the longer text), ``token_sort_ratio``, ``token_set_ratio``, ``token_ratio``
        (words in any order), their ``partial_`` forms, ``WRatio`` and ``QRatio``. Of ``rapidfuzz.distance``, normalized:
        ``Levenshtein``, ``DamerauLevenshtein``, ``OSA``, ``Indel``, ``LCSseq``, ``Jaro``, ``JaroWinkler``, ``Hamming``, ``Prefix``, ``Postfix``.
    :param field: compare only this place in the output, a dotted path (``steps.0.text``) or a JSON pointer
        (``/steps/0/text``), with the whole reference; text is read as JSON to get there. A missing field scores 0.
    :param references: the comparison with a list of references: ``any``, the best score counts; ``all``, the mean of their
        scores; ``whole``, the list is one value. Next to an output that is a list, the list is one value. Blank references in a list are
        left out.
    """

    name = "similarity"
    tier = "truth"

    scorer: str = attrs.field(default="ratio", converter=_scorer, validator=_check_scorer)
    field: str | None = attrs.field(default=None, validator=check_field)
    references: References = attrs.field(default="any", metadata={"later": True})

    def __attrs_post_init__(self) -> None:
        if find_spec("rapidfuzz") is None:
            raise ConfigError(f"diff/similarity needs rapidfuzz: {how_to_install('similarity')}")

    def score(self, subject: Subject) -> Score | Failure:
        """Compare the output of *subject*, or its field, with its reference."""
        sides_ = text_sides(subject, self.field, "diff/similarity", self.references)
        if not isinstance(sides_, Sides):
            return sides_
        return compare_sides(sides_, self.references, self._compare)

    def _compare(self, sides_: Sides) -> Score | Failure:
        output, reference = map(written, alike(sides_))
        if output is None or reference is None:
            side = "output" if output is None else "reference"
            why = "is nested too deep, or holds what is not JSON, so that it cannot be written as text"
            return Failure("missing_input", f"diff/similarity: the {side} of {sides_.whose} {why}")
        if output == reference:
            return Score(1.0, signals={"scorer": self.scorer, "equal": True})
        lengths = len(output), len(reference)
        if sum(lengths) > MOST_CHARACTERS or _SCORERS[self.scorer](*lengths) > MOST_WORK:
            sizes = "{:,} and {:,} characters".format(*lengths)
            why = f"output and reference of {sides_.whose} have {sizes}, too many for {self.scorer}"
            return Failure("timeout", f"diff/similarity: {why}; choose a place with field, or another scorer")
        value = _likeness(self.scorer, output, reference)
        signals = {"scorer": self.scorer, "equal": False}
        return Score(value, details=f"{value:.4g} alike: {contrast(output, reference)}", signals=signals)


def _likeness(scorer: str, output: str, reference: str) -> float:
    # rapidfuzz takes 30 ms to import, and few runs need it
    fuzz = import_module("rapidfuzz.fuzz")
    if hasattr(fuzz, scorer):
        return float(getattr(fuzz, scorer)(output, reference)) / 100
    return float(getattr(import_module("rapidfuzz.distance"), scorer).normalized_similarity(output, reference))
