"""ROUGE-N by the library rouge-score."""

from __future__ import annotations

import re
from functools import lru_cache

from nltk.tokenize.treebank import TreebankWordTokenizer  # type: ignore[import-untyped]
from rouge_score.rouge_scorer import RougeScorer  # type: ignore[import-untyped]
from rouge_score.tokenizers import Tokenizer  # type: ignore[import-untyped]

_ACRONYM = re.compile(r"(?<![^\W\d_])[a-z]\.[a-z]\.$", re.IGNORECASE)
"""An acronym at the end of a text, with its last dot."""


class _Words(Tokenizer):  # type: ignore[misc]  # as below
    """The tokens of the library's own tokenizer, by one expression in place of three."""

    def tokenize(self, text: str) -> list[str]:
        """Return the tokens of *text*."""
        return re.findall("[a-z0-9]+", text.lower())


class _Treebank(Tokenizer):  # type: ignore[misc]  # the library has no types
    """Words and punctuation marks in lower case."""

    def tokenize(self, text: str) -> list[str]:
        """Return the tokens of *text*."""
        lower = text.lower().strip()
        tokens: list[str] = TreebankWordTokenizer().tokenize(lower)
        if _ACRONYM.search(lower) and tokens[-1:] == ["."]:
            tokens[-2:] = [f"{tokens[-2]}."]
        return tokens


@lru_cache
def _scorer(n: int, tokens: str) -> RougeScorer:
    return RougeScorer([f"rouge{n}"], tokenizer=_Treebank() if tokens == "treebank" else _Words())


def rouge_n(output: str, value: str, n: int, tokens: str) -> float:
    """Return the F1 of the n-grams that *output* and *value* share."""
    return float(_scorer(n, tokens).score(value, output)[f"rouge{n}"].fmeasure)
