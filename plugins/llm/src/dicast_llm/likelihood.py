"""Confidence from log probabilities: the probability that the model gave the numbers of its verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dicast import Reply, Token
from dicast.judging import ReplyObject

_ABOVE = 1.0
"""A log probability that rounding cannot explain; some endpoints report values just above 0."""


class NoLikelihood(ValueError):
    """A reply whose tokens do not show the probability of its verdict; the message has the reason."""


def likelihood(reply: Reply, verdict: ReplyObject, keys: Sequence[str]) -> float:
    """Return the probability of the tokens that spell the numbers at *keys*; for several numbers the geometric mean.

    It is exp(sum of the logprobs of the tokens that a number lies in).

    :raises NoLikelihood: if the reply has no log probabilities, they do not belong to its text, or they are above 0.
    """
    tokens = reply.logprobs or ()
    if not tokens:
        raise NoLikelihood("the model reported none")
    numbers = [verdict.member(key) for key in keys]
    spelled = "".join(token.text for token in tokens)
    shift = _shift(spelled, reply.text, min(number.start for number in numbers), max(number.end for number in numbers))
    parts = [[*_logprobs(tokens, number.start + shift, number.end + shift)] for number in numbers]
    if not all(logprob < _ABOVE for logprobs in parts for logprob in logprobs):
        raise NoLikelihood("the reported ones are above 0")
    probability = math.exp(math.fsum(map(math.fsum, parts)) / len(parts))
    if not probability <= 1.0:
        raise NoLikelihood("the reported ones are above 0")
    return probability


def _shift(spelled: str, text: str, start: int, end: int) -> int:
    """Return the distance between the part of *text* from *start* to *end* and the same part in *spelled*, the text of the tokens.

    A character that is split between tokens is spelled differently in the tokens (as bytes, or as replacement characters). So it
    suffices that both texts agree from *start* to their ends, or from their beginnings to *end*.
    """
    if (place := spelled.rfind(text[start:])) >= 0:
        return place - start
    if (place := spelled.find(text[:end])) >= 0:
        return place
    raise NoLikelihood("the tokens do not match the text")


def _logprobs(tokens: Sequence[Token], start: int, end: int) -> Iterator[float]:
    """Yield the logprobs of the tokens that lie in the text from *start* to *end*, in part or as a whole."""
    at = 0
    for token in tokens:
        if at < end and at + len(token.text) > start:
            yield token.logprob
        at += len(token.text)
