"""What the rationales behind low and high scores say."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from math import atanh, sqrt, tanh
from typing import Any

import attrs
import orjson

from dicast import ConfigError, Record, RunContext, Within

from ..numbers.ties import varies
from ..numbers.values import number, plain, quiet
from ..scores.records import mapping, score_of
from ..text.reasons import explained

_WORD = re.compile(r"[^\W\d_]{3,}")
_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*?)```\s*", re.DOTALL)
_STOP_WORDS = frozenset(
    [
        "the",
        "and",
        "for",
        "are",
        "but",
        "not",
        "you",
        "all",
        "any",
        "can",
        "had",
        "her",
        "was",
        "one",
        "our",
        "out",
        "has",
        "him",
        "his",
        "how",
        "its",
        "may",
        "new",
        "now",
        "old",
        "see",
        "two",
        "who",
        "did",
        "get",
        "let",
        "say",
        "she",
        "too",
        "use",
        "that",
        "with",
        "this",
        "from",
        "they",
        "have",
        "been",
        "were",
        "will",
        "would",
        "there",
        "their",
        "what",
        "when",
        "which",
        "your",
        "about",
        "than",
        "then",
        "them",
        "these",
        "those",
        "some",
        "such",
        "only",
        "also",
        "into",
        "more",
        "most",
        "other",
        "over",
        "very",
        "just",
        "because",
        "while",
        "where",
        "being",
        "does",
        "doing",
        "each",
        "few",
        "here",
        "itself",
        "both",
        "between",
        "during",
        "after",
        "before",
        "again",
    ]
)
_HEDGES = re.compile(
    r"\b(?:may|might|maybe|perhaps|possibly|probably|seems?|appears?|somewhat|unclear|uncertain|likely|could)\b",
    re.IGNORECASE,
)
_SURE = re.compile(
    r"\b(?:clearly|definitely|certainly|obviously|undoubtedly|always|never|absolutely|completely)\b", re.IGNORECASE
)
_KEYWORDS = 10


@attrs.frozen
class RationaleAnalysis:
    """What the rationales behind low and high scores say, and whether longer ones come with higher scores.

    A rationale is the text ``rationale`` of a response's metrics, or of its JSON content, with the response's score (``metrics.score``, else the
    content's ``score``, else the record's own). For each criterion: ``n``, the rationales with a score; ``low`` (scores up to *low_max*) and
    ``high`` (from *high_min* on), each with ``n``, its ten most frequent ``keywords`` (``{word, count}``; three letters or more, no stop
    words), ``hedge_rate`` and ``confident_rate``, the shares of rationales with a word such as *might*, or as *clearly*;
    ``mean_length`` in characters; ``effect_size``, Pearson's correlation of length and score, with ``ci_low`` and ``ci_high`` (Fisher's z,
    95 %, from 4 on) and ``length_score_correlation``, the same number; and ``words``. What is not defined is null. The words are English ones.

    :param low_max: up to which score a rationale is one of a low score.
    :param high_min: from which score on it is one of a high score; above *low_max*.
    :param min_length: how many letters a keyword has at least, 3 or more.
    """

    name = "rationale_analysis"

    low_max: float = 2.0
    high_min: float = 4.0
    min_length: int = attrs.field(default=3, validator=Within(3, 50, "from 3 to 50"))

    def __attrs_post_init__(self) -> None:
        if self.low_max >= self.high_min:
            raise ConfigError(f"low_max is {self.low_max:g}, and has to be below high_min, {self.high_min:g}")

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Rationales]:
        """Begin with no record."""
        yield Rationales(self)


@attrs.define
class _Side:
    """The rationales of low scores, or of high ones."""

    count: int = 0
    hedged: int = 0
    sure: int = 0
    words: Counter[str] = attrs.field(factory=Counter)

    def add(self, text: str, least: int) -> None:
        self.count += 1
        self.hedged += _HEDGES.search(text) is not None
        self.sure += _SURE.search(text) is not None
        self.words.update(
            word for word in _WORD.findall(text.lower()) if len(word) >= least and word not in _STOP_WORDS
        )

    def told(self) -> dict[str, Any]:
        ranked = sorted(self.words.items(), key=lambda item: (-item[1], item[0]))[:_KEYWORDS]
        return {
            "n": self.count,
            "keywords": [{"word": word, "count": count} for word, count in ranked],
            "hedge_rate": self.hedged / self.count if self.count else None,
            "confident_rate": self.sure / self.count if self.count else None,
        }


@attrs.define
class _Criterion:
    """What is known of one criterion's rationales."""

    lengths: array[float] = attrs.field(factory=lambda: array("d"))
    scores: array[float] = attrs.field(factory=lambda: array("d"))
    low: _Side = attrs.field(factory=_Side)
    high: _Side = attrs.field(factory=_Side)


class Rationales:
    """Takes records, and counts the words of their rationales."""

    def __init__(self, options: RationaleAnalysis) -> None:
        self._options = options
        self._criteria: dict[str, _Criterion] = {}

    def add(self, record: Record) -> None:
        """Take a record."""
        for criterion, text, score in _rationales(record):
            found = self._criteria.setdefault(criterion, _Criterion())
            found.lengths.append(len(text))
            found.scores.append(score)
            if score <= self._options.low_max:
                found.low.add(text, self._options.min_length)
            elif score >= self._options.high_min:
                found.high.add(text, self._options.min_length)

    def finish(self) -> Mapping[str, object]:
        """The figures by criterion."""
        if not self._criteria:
            return {
                "criteria": {},
                "reason": "no response has a rationale with a score, in its metrics or its JSON content",
            }
        with quiet():
            return {"criteria": {name: _told(one) for name, one in self._criteria.items()}}


def _rationales(record: Record) -> Iterator[tuple[str, str, float]]:
    """The criterion, the text and the score of each rationale."""
    responses = record.get("responses")
    own: Mapping[str, Any] = {} if responses else mapping(record)
    for criterion, response in (responses or {"default": record.get("response") or {}}).items():
        metrics = response.get("metrics") or {}
        text, content = metrics.get("rationale", own.get("rationale")), response.get("content")
        if text is None and (content.__class__ is not str or "rationale" not in content):
            continue  # so with nearly every response of a task that gives no reasons
        said = _content(content)
        text = said.get("rationale") if text is None else text
        if not isinstance(text, str) or not text.strip():
            continue
        scores = (metrics.get("score"), said.get("score"), own.get("score"), mapping(record, "scores").get(criterion))
        score = next((found for one in scores if (found := number(one)) is not None), None)
        score = score_of(record) if score is None else score
        if score is not None:
            yield criterion, text, score


def _content(content: object) -> Mapping[str, Any]:
    """The JSON object that a response's *content* is, alone or in a fence; an empty one where it is none."""
    if isinstance(content, str):
        fenced = _FENCE.fullmatch(content)
        try:
            content = orjson.loads(fenced[1] if fenced else content)
        except orjson.JSONDecodeError:
            return {}
    return content if isinstance(content, Mapping) else {}


def _told(found: _Criterion) -> dict[str, Any]:
    import numpy as np  # 0.1 s, which starting a run does not spend

    lengths, scores = np.frombuffer(found.lengths), np.frombuffer(found.scores)
    count = len(lengths)
    figures: dict[str, Any] = {
        "n": count,
        "low": found.low.told(),
        "high": found.high.told(),
        "mean_length": plain(lengths.mean()),
    }
    figures |= dict.fromkeys(("length_score_correlation", "effect_size", "ci_low", "ci_high"))
    reasons = {"effect_size": "the scores or the lengths are all alike"}
    if count > 1 and varies(lengths) and varies(scores):
        r = plain(np.corrcoef(lengths, scores)[0, 1])
        figures |= {"length_score_correlation": r, "effect_size": r}
        reasons = {"ci_low": f"{count} of the 4 needed"}
        if r is not None and count > 3 and abs(r) < 1:  # its variance is 1/(n - 3)
            reach = 1.959963984540054 / sqrt(count - 3)
            figures |= {"ci_low": tanh(atanh(r) - reach), "ci_high": tanh(atanh(r) + reach)}
            reasons = {}
    return explained({**figures, "words": _words(figures)}, reasons)


def _words(figures: Mapping[str, Any]) -> str:
    parts = ["1 rationale" if figures["n"] == 1 else f"{figures['n']:,} rationales"]
    tops = {side: [one["word"] for one in figures[side]["keywords"][:3]] for side in ("low", "high")}
    parts += [f"{side} scores speak of {', '.join(top)}" for side, top in tops.items() if top]
    low, high = figures["ci_low"], figures["ci_high"]
    if low is not None:
        parts.append(
            "longer ones score higher"
            if low > 0
            else "longer ones score lower"
            if high < 0
            else "length says nothing of the score"
        )
    return "; ".join(parts)
