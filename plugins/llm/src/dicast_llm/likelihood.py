"""How likely a model found the numbers of its own verdict: confidence from log probabilities."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dicast import Reply, Token
from dicast.judging import ReplyObject

_ABOVE = 1.0
"""A log probability that rounding cannot explain; some endpoints report values just above 0."""


class NoLikelihood(ValueError):
    """A reply's tokens do not say how likely its verdict was; the message says why."""


def likelihood(reply: Reply, verdict: ReplyObject, keys: Sequence[str]) -> float:
    """The probability of the tokens that spell the numbers at *keys*: of several, the geometric mean.

    exp(sum of the logprobs of the tokens that a number lies in).

    :raises NoLikelihood: when the reply has no log probabilities, they are not those of its text, or they are above 0.
    """
    tokens = reply.logprobs or ()
    if not tokens:
        raise NoLikelihood("the model told none")
    numbers = [verdict.member(key) for key in keys]
    spelled = "".join(token.text for token in tokens)
    shift = _shift(spelled, reply.text, min(one.start for one in numbers), max(one.end for one in numbers))
    parts = [[*_logprobs(tokens, one.start + shift, one.end + shift)] for one in numbers]
    if not all(logprob < _ABOVE for logprobs in parts for logprob in logprobs):
        raise NoLikelihood("those that the model told are above 0")
    found = math.exp(math.fsum(map(math.fsum, parts)) / len(parts))
    if not found <= 1.0:
        raise NoLikelihood("those that the model told are above 0")
    return found


def _shift(spelled: str, text: str, start: int, end: int) -> int:
    """How much further on the part of *text* from *start* to *end* stands in *spelled*, what the tokens spell.

    A character that is split between tokens is spelled otherwise than it is in the text (as bytes, or as replacement
    characters); so it is enough that the text agrees from the part on, or else up to it.
    """
    if (found := spelled.rfind(text[start:])) >= 0:
        return found - start
    if (found := spelled.find(text[:end])) >= 0:
        return found
    raise NoLikelihood("the tokens do not match the text")


def _logprobs(tokens: Sequence[Token], start: int, end: int) -> Iterator[float]:
    """The logprobs of the tokens that lie in the text from *start* to *end*, in part or as a whole."""
    at = 0
    for token in tokens:
        if at < end and at + len(token.text) > start:
            yield token.logprob
        at += len(token.text)
