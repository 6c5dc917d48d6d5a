"""How likely a model found the numbers of its own verdict: confidence from log probabilities."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dicast import Reply, Token

from .reply import Found


def likelihood(reply: Reply, verdict: Found, keys: Sequence[str]) -> float | None:
    """The probability of the tokens that spell the numbers at *keys*: of several, the geometric mean.

    exp(sum of the logprobs of the tokens that a number lies in). None when the reply has no log probabilities, or they are
    not those of its text.
    """
    tokens = reply.logprobs or ()
    shift = "".join(token.text for token in tokens).find(reply.text)
    if shift < 0 or not tokens:
        return None
    numbers = [verdict.member(key) for key in keys]
    sums = [math.fsum(_logprobs(tokens, one.start + shift, one.end + shift)) for one in numbers]
    found = math.exp(math.fsum(sums) / len(sums))
    return found if found <= 1.0 else None


def _logprobs(tokens: Sequence[Token], start: int, end: int) -> Iterator[float]:
    """The logprobs of the tokens that lie in the text from *start* to *end*, in part or as a whole."""
    at = 0
    for token in tokens:
        if at < end and at + len(token.text) > start:
            yield token.logprob
        at += len(token.text)
