"""Words and lengths of the rationales for low and high scores."""

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
from ..numbers.values import ignore_float_warnings, json_number, parse_number
from ..scores.records import read_metrics, record_score
from ..text.reasons import with_reasons

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
    """Words in the rationales for low and high scores, and the correlation of length and score.

    A rationale is the text ``rationale`` of a response's metrics, or of its JSON content. Its score is that of the response (``metrics.score``,
    else the content's ``score``, else the record's own). For each criterion: ``n``, the rationales with a score; ``low`` (scores up to *low_max*) and
    ``high`` (from *high_min* on), each with ``n``, its ten most frequent ``keywords`` (``{word, count}``; three letters or more, no stop
    words), ``hedge_rate`` and ``confident_rate``, the shares of rationales with a word such as *might*, or as *clearly*;
    ``mean_length`` in characters; ``effect_size``, Pearson's correlation of length and score, with ``ci_low`` and ``ci_high`` (Fisher's z,
    95 %, from 4 rationales on) and ``length_score_correlation``, the same number; and ``words``. An undefined figure is null. The word lists are English.

    :param low_max: the highest score that counts as low.
    :param high_min: the lowest score that counts as high; above *low_max*.
    :param min_length: the least number of letters of a keyword, 3 or more.
    """

    name = "rationale_analysis"

    low_max: float = 2.0
    high_min: float = 4.0
    min_length: int = attrs.field(default=3, validator=Within(3, 50, "from 3 to 50"))

    def __attrs_post_init__(self) -> None:
        if self.low_max >= self.high_min:
            raise ConfigError(f"low_max is {self.low_max:g}; it has to be below high_min, {self.high_min:g}")

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Rationales]:
        """Yield a collector without records."""
        yield Rationales(self)


@attrs.define
class _Side:
    """Counts of the rationales for low scores, or for high scores."""

    count: int = 0
    hedged: int = 0
    sure: int = 0
    words: Counter[str] = attrs.field(factory=Counter)

    def add(self, text: str, min_length: int) -> None:
        self.count += 1
        self.hedged += _HEDGES.search(text) is not None
        self.sure += _SURE.search(text) is not None
        self.words.update(
            word for word in _WORD.findall(text.lower()) if len(word) >= min_length and word not in _STOP_WORDS
        )

    def figures(self) -> dict[str, Any]:
        ranked = sorted(self.words.items(), key=lambda item: (-item[1], item[0]))[:_KEYWORDS]
        return {
            "n": self.count,
            "keywords": [{"word": word, "count": count} for word, count in ranked],
            "hedge_rate": self.hedged / self.count if self.count else None,
            "confident_rate": self.sure / self.count if self.count else None,
        }


@attrs.define
class _Criterion:
    """Lengths, scores and word counts of one criterion's rationales."""

    lengths: array[float] = attrs.field(factory=lambda: array("d"))
    scores: array[float] = attrs.field(factory=lambda: array("d"))
    low: _Side = attrs.field(factory=_Side)
    high: _Side = attrs.field(factory=_Side)


class Rationales:
    """Collector of the words of rationales."""

    def __init__(self, options: RationaleAnalysis) -> None:
        self._options = options
        self._criteria: dict[str, _Criterion] = {}

    def add(self, record: Record) -> None:
        """Add a record."""
        for criterion, text, score in _rationales(record):
            entry = self._criteria.setdefault(criterion, _Criterion())
            entry.lengths.append(len(text))
            entry.scores.append(score)
            if score <= self._options.low_max:
                entry.low.add(text, self._options.min_length)
            elif score >= self._options.high_min:
                entry.high.add(text, self._options.min_length)

    def finish(self) -> Mapping[str, object]:
        """Return the figures by criterion."""
        if not self._criteria:
            return {
                "criteria": {},
                "reason": "no response has a rationale with a score, in its metrics or its JSON content",
            }
        with ignore_float_warnings():
            return {"criteria": {name: _figures(entry) for name, entry in self._criteria.items()}}


def _rationales(record: Record) -> Iterator[tuple[str, str, float]]:
    """Yield the criterion, the text and the score of each rationale."""
    responses = record.get("responses")
    record_metrics: Mapping[str, Any] = {} if responses else read_metrics(record)
    for criterion, response in (responses or {"default": record.get("response") or {}}).items():
        metrics = response.get("metrics") or {}
        text, content = metrics.get("rationale", record_metrics.get("rationale")), response.get("content")
        if text is None and (content.__class__ is not str or "rationale" not in content):
            continue  # most responses of a task without rationales end here
        answer = _parse_content(content)
        text = answer.get("rationale") if text is None else text
        if not isinstance(text, str) or not text.strip():
            continue
        scores = (
            metrics.get("score"),
            answer.get("score"),
            record_metrics.get("score"),
            read_metrics(record, "scores").get(criterion),
        )
        score = next((value for candidate in scores if (value := parse_number(candidate)) is not None), None)
        score = record_score(record) if score is None else score
        if score is not None:
            yield criterion, text, score


def _parse_content(content: object) -> Mapping[str, Any]:
    """Return the JSON object in a response's *content*, alone or in a fence; an empty mapping if the content is not a JSON object."""
    if isinstance(content, str):
        fenced = _FENCE.fullmatch(content)
        try:
            content = orjson.loads(fenced[1] if fenced else content)
        except orjson.JSONDecodeError:
            return {}
    return content if isinstance(content, Mapping) else {}


def _figures(entry: _Criterion) -> dict[str, Any]:
    import numpy as np  # 0.1 s, which starting a run does not spend

    lengths, scores = np.frombuffer(entry.lengths), np.frombuffer(entry.scores)
    count = len(lengths)
    figures: dict[str, Any] = {
        "n": count,
        "low": entry.low.figures(),
        "high": entry.high.figures(),
        "mean_length": json_number(lengths.mean()),
    }
    figures |= dict.fromkeys(("length_score_correlation", "effect_size", "ci_low", "ci_high"))
    reasons = {"effect_size": "all scores or all lengths are equal"}
    if count > 1 and varies(lengths) and varies(scores):
        r = json_number(np.corrcoef(lengths, scores)[0, 1])
        figures |= {"length_score_correlation": r, "effect_size": r}
        reasons = {"ci_low": f"{count} of the 4 needed"}
        if r is not None and count > 3 and abs(r) < 1:  # its variance is 1/(n - 3)
            reach = 1.959963984540054 / sqrt(count - 3)
            figures |= {"ci_low": tanh(atanh(r) - reach), "ci_high": tanh(atanh(r) + reach)}
            reasons = {}
    return with_reasons({**figures, "words": _words(figures)}, reasons)


def _words(figures: Mapping[str, Any]) -> str:
    parts = ["1 rationale" if figures["n"] == 1 else f"{figures['n']:,} rationales"]
    tops = {side: [keyword["word"] for keyword in figures[side]["keywords"][:3]] for side in ("low", "high")}
    parts += [f"{side} scores mention {', '.join(top)}" for side, top in tops.items() if top]
    low, high = figures["ci_low"], figures["ci_high"]
    if low is not None:
        parts.append(
            "longer rationales score higher"
            if low > 0
            else "longer rationales score lower"
            if high < 0
            else "no evidence that length and score are related"
        )
    return "; ".join(parts)
