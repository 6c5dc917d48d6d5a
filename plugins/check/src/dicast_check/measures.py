"""Checks by a measure of the text: edit distance, shared n-grams, number of words, phrases of a refusal."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from math import inf
from typing import Any, Literal

import attrs

from dicast import ConfigError, Failure, Score, Subject, Within
from dicast.toolkit.installing import how_to_install

from .check import Answer, Check, best_answer, filled_reference, quoted, text_of
from .refusals import is_refusal
from .texts import TextCheck


def _check_whole(**numbers: object) -> None:
    """Check that each of *numbers* is an integer or None.

    :raises ConfigError: for the first other value.
    """
    for name, value in numbers.items():
        if value is not None and type(value) is not int:
            raise ConfigError(f"{name} is an integer, not {value!r:.80}")


def _needs(module: str, package: str, extra: str, component: str) -> None:
    """Check that *module* is installed.

    :raises ConfigError: if it is not, with the command that installs it.
    """
    if find_spec(module) is None:
        raise ConfigError(f"{component} needs {package}, which is not installed: {how_to_install(extra)}")


@attrs.frozen
class Levenshtein(TextCheck):
    """1 if the edit distance between the output and *value* is at most *threshold*, else 0.

    The distance is the least number of characters to insert, delete or replace. Needs ``dicast[similarity]``.

    :param value: a text, or a template over the row; the reference by default. Of a list in the row, the closest text counts.
    :param threshold: the largest distance that holds; 0 asks for equal texts.
    """

    name = "levenshtein"

    value: object = "{{ reference }}"
    threshold: float = attrs.field(default=5, validator=Within(0, inf, "0 or more"))

    def __attrs_post_init__(self) -> None:
        _needs("rapidfuzz", "rapidfuzz", "similarity", "check/levenshtein")

    def answer(self, output: Any, subject: Subject) -> Answer:
        """Compare the distance with the threshold."""
        from rapidfuzz.distance import Levenshtein as Distance  # imported by few checks

        def compare(reference: object) -> Answer:
            value, text = text_of(reference), text_of(output)
            if self.ignore_case:
                value, text = value.casefold(), text.casefold()
            distance = Distance.distance(text, value)
            why = f"is {distance} edits from {quoted(value)}; the limit is {self.threshold:g}"
            return Answer(distance <= self.threshold, why)

        return best_answer(filled_reference(self.value, subject), output, compare)


@attrs.frozen
class RougeN(Check):
    """1 if ROUGE-N of the output against *value* is at least *threshold*, else 0.

    ROUGE-N is the F1 of shared n-grams (Lin 2004), computed by the library rouge-score, without stemming and without regard to case.
    Needs ``dicast[rouge]``: rouge-score with nltk and numpy, which take some seconds to import on first use.

    :param value: a text, or a template over the row; the reference by default. Of a list in the row, the closest text counts.
    :param n: the length of the n-grams in tokens, 1 to 9.
    :param threshold: the least F1 that holds, in [0, 1].
    :param tokens: how text is split: ``words``, runs of the letters a to z and digits, as in the library; ``treebank``, words of any script
        and punctuation marks by the rules of the Penn Treebank, as in promptfoo.
    """

    name = "rouge_n"
    reads_text = True

    value: object = "{{ reference }}"
    n: int = attrs.field(default=1, validator=Within(1, 9, "from 1 to 9"))
    threshold: float = attrs.field(default=0.75, validator=Within(0, 1, "in [0, 1]"))
    tokens: Literal["words", "treebank"] = "words"

    def __attrs_post_init__(self) -> None:
        if self.tokens not in ("words", "treebank"):
            raise ConfigError(f"tokens is words or treebank, not {self.tokens!r}")
        _check_whole(n=self.n)
        _needs("rouge_score", "rouge-score", "rouge", "check/rouge_n")

    async def score(self, subject: Subject) -> Score | Failure:  # type: ignore[override]  # a run waits for either
        """Return 1 where the F1 reaches the threshold, else 0; in a thread, as long texts take their time."""
        return await asyncio.to_thread(Check.score, self, subject)

    def answer(self, output: Any, subject: Subject) -> Answer:
        """Compare the F1 with the threshold."""
        from .rouge import rouge_n  # slow import that few checks need

        def compare(reference: object) -> Answer:
            value = text_of(reference)
            measure = rouge_n(text_of(output), value, self.n, self.tokens)
            why = f"has ROUGE-{self.n} {measure:.4g} with {quoted(value)}; the limit is {self.threshold:g}"
            return Answer(measure >= self.threshold, why, measure)

        best = best_answer(filled_reference(self.value, subject), output, compare)
        return attrs.evolve(best, value=1 - (best.value or 0.0)) if self.negate else best


@attrs.frozen
class WordCount(Check):
    """1 if the output has at least *min* and at most *max* words, else 0.

    A word is a run of characters without white space.

    :param min: the least number of words.
    :param max: the largest number of words; no limit by default.
    """

    name = "word_count"
    reads_text = True

    min: int = attrs.field(default=0, validator=Within(0, inf, "0 or more"))
    max: int | None = attrs.field(default=None, validator=attrs.validators.optional(Within(0, inf, "0 or more")))

    def __attrs_post_init__(self) -> None:
        _check_whole(min=self.min, max=self.max)
        if self.max is None and self.min == 0:
            raise ConfigError("word_count needs min or max: without them any text holds")
        if self.max is not None and self.max < self.min:
            raise ConfigError(f"word_count: max is {self.max}, below min, which is {self.min}")

    def answer(self, output: Any, subject: Subject) -> Answer:
        """Count the words of *output*."""
        count = len(text_of(output).split())
        limits = f"at least {self.min}" if self.max is None else f"from {self.min} to {self.max}"
        return Answer(
            self.min <= count and (self.max is None or count <= self.max), f"has {count} words; the limits are {limits}"
        )


@attrs.frozen
class IsRefusal(Check):
    """1 if the output reads like a refusal, else 0.

    The text is compared with a list of English phrases that refusals start with or contain (``I'm sorry``, ``as an AI``, ``I can't help``),
    in any case and with any apostrophe. No model is asked: a refusal in other words or in another language is not recognized, and a
    text that quotes such a phrase counts as one. An output of white space only is a refusal; so is an output that is not text.
    """

    name = "is_refusal"
    reads_text = True

    def answer(self, output: Any, subject: Subject) -> Answer:
        """Look for a phrase of a refusal in *output*."""
        refuses = not isinstance(output, str) or is_refusal(output)
        return Answer(refuses, "reads like a refusal" if refuses else "does not read like a refusal")
