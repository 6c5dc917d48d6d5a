"""Reader of a verdict in one token: the probabilities of the possible answers, without the reply's text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import attrs

from dicast import (
    ChatModel,
    ChatRequest,
    Cost,
    Failure,
    Reply,
    Token,
    UnsupportedByModel,
    normalize_stop_reason,
)
from dicast.judging import unread_media

TOP = 20
"""Number of most probable tokens in a request; endpoints report at most 20."""

UNKNOWN = 0.05
"""Largest share of the answer that may belong to words whose probability the endpoint did not report."""

_ROUNDING = 1e-6  # endpoints round log probabilities, so a remaining probability of 0 is not exact
_BLANKS = " \t\r\n\u00a0\u2581\u0120\u010a"  # the last three: blanks as tokenizers spell them
_MARKS = ".,:;!"
_REASONING = ("<think", "<thought", "<reason", "<|channel", "[think")  # how reasoning begins in the templates of models
_MAX_SHOWN = 5


class NoAnswer(ValueError):
    """A distribution that holds no usable answer; the message has the tokens."""


@attrs.define
class Support:
    """The record of a model that has reported the probabilities of tokens before."""

    is_proven: bool = False


@attrs.frozen
class Distribution:
    """Natural logarithms of the probabilities of words at one position.

    :param logprobs: for each word, minus infinity if none of its tokens is among *top*.
    :param top: the tokens that the endpoint reported.
    """

    logprobs: Mapping[str, float]
    top: tuple[Token, ...]

    @property
    def mass(self) -> float:
        """The probability that the reply begins with any of the words."""
        return min(1.0, math.fsum(map(math.exp, self.logprobs.values())))

    @property
    def bound(self) -> float:
        """The logarithm of the largest probability that an unreported token can have."""
        rest = 1.0 - math.fsum(math.exp(token.logprob) for token in self.top)
        return min(*(token.logprob for token in self.top), math.log(max(rest, _ROUNDING)))

    def shares(self) -> Mapping[str, float]:
        """Return the probability of each word, given that the reply is one of the words.

        :raises NoAnswer: if no word is among the tokens, or an unreported word could change a share by more than 0.05.
        """
        highest = max(self.logprobs.values())
        if highest == -math.inf:
            raise self._no_answer(f"the model did not begin with {_listed(self.logprobs, 'or')}")
        weights = {word: math.exp(logprob - highest) for word, logprob in self.logprobs.items()}
        total, missing = math.fsum(weights.values()), [word for word, weight in weights.items() if not weight]
        unknown = len(missing) * math.exp(self.bound - highest) if missing else 0.0
        if unknown > UNKNOWN * (total + unknown):
            most = unknown / (total + unknown)
            listed, verb = _listed(missing, "and"), "is" if len(missing) == 1 else "are"
            raise self._no_answer(
                f"{listed} {verb} not among the {len(self.top)} reported tokens, and may have up to {most:.2f} of the answer"
            )
        return {word: weight / total for word, weight in weights.items()}

    def log_odds(self, word: str, rival: str) -> float:
        """Return ln(P(word) / P(rival)); for an unreported word, with the largest probability that it can have.

        :raises NoAnswer: if both are unreported.
        """
        pair = (self.logprobs[word], self.logprobs[rival])
        if max(pair) == -math.inf:
            raise self._no_answer(f"the model did not begin with {word} or {rival}")
        first, second = (self.bound if logprob == -math.inf else logprob for logprob in pair)
        return first - second

    def _no_answer(self, problem: str) -> NoAnswer:
        """Return the error for *problem*, with the most probable tokens; if the model began to reason, with the options that prevent it."""
        token = max(self.top, key=lambda token: token.logprob)
        if token.text.strip(_BLANKS).casefold().startswith(_REASONING):
            problem = (
                f"the model began with {token.text.strip(_BLANKS)!r}: it reasons before it answers. Switch its reasoning off "
                "(reasoning_effort: none, or the server's option for it), or set form: verdict"
            )
        return NoAnswer(f"{problem}. Most probable tokens: {self.tokens_text}")

    @property
    def tokens_text(self) -> str:
        """The most probable tokens with their probabilities, for a message."""
        ordered = sorted(self.top, key=lambda token: -token.logprob)
        texts = [f"{token.text[: _MAX_SHOWN * 4]!r} {math.exp(token.logprob):.2f}" for token in ordered[:_MAX_SHOWN]]
        return ", ".join([*texts, "…"] if len(ordered) > _MAX_SHOWN else texts)


def distribution(reply: Reply, words: Sequence[str]) -> Distribution:
    """Return the probabilities of *words* at the first token of *reply* that is not blank; the text of the reply is not read.

    A token counts for the one word that it begins, in any letter case and with any blanks around it.

    :raises NoAnswer: if a log probability is above 0 or is not a number.
    """
    first = _first(reply.logprobs or ())
    top = first.top if any(token.text == first.text for token in first.top) else (*first.top, first)
    if not all(token.logprob <= 0.0 for token in top):
        raise NoAnswer("a log probability of the endpoint is above 0 or is not a number")
    sums: dict[str, list[float]] = {word: [] for word in words}
    for token in top:
        if token.logprob > -math.inf and (word := _word(token.text, words)) is not None:
            sums[word].append(token.logprob)
    return Distribution({word: _logsum(logprobs) for word, logprobs in sums.items()}, top)


def _first(tokens: Sequence[Token]) -> Token:
    """Return the first token that is not blank, because a reasoning model may begin its answer with an empty line; else the first token."""
    return next((token for token in tokens if token.text.strip(_BLANKS)), tokens[0])


def _word(token: str, words: Sequence[str]) -> str | None:
    """Return the only word that *token* begins; None if there is none, or several."""
    text = bare_word(token).casefold()
    matches = [word for word in words if text and word.casefold().startswith(text)]
    return matches[0] if len(matches) == 1 else None


def bare_word(text: str) -> str:
    """Return *text* without the blanks around it and the punctuation after it."""
    return text.strip(_BLANKS).rstrip(_MARKS)


def _logsum(logprobs: Sequence[float]) -> float:
    if not logprobs:
        return -math.inf
    highest = max(logprobs)
    return highest + math.log(math.fsum(math.exp(logprob - highest) for logprob in logprobs))


def _listed(words: Iterable[str], conjunction: str) -> str:
    *first_words, last = words
    return f"{', '.join(first_words)} {conjunction} {last}" if first_words else last


@attrs.frozen
class Answer:
    """The *distribution* at the first token of *reply*."""

    distribution: Distribution
    reply: Reply


async def ask_words(
    model: ChatModel, request: ChatRequest, words: Sequence[str], support: Support, form: str
) -> Answer | Failure:
    """Ask for one token, and return the probabilities of *words*; *form* is the option that asks, for messages.

    :raises dicast.UnsupportedByModel: if the first reply has no probabilities: the model does not report any.
    """
    reply = await model.complete(request)
    if isinstance(reply, Failure):
        return reply
    if request.needs_media and (unread := unread_media(request, reply)) is not None:
        return Failure("missing_input", unread, cost=reply.cost)
    if normalize_stop_reason(reply.stop_reason) == "refusal":
        return Failure("refused", "the model refused to judge", cost=reply.cost)
    if not (reply.logprobs and _first(reply.logprobs).top):
        return _without_probabilities(reply, support, form)
    support.is_proven = True
    try:
        return Answer(distribution(reply, words), reply)
    except NoAnswer as error:
        return no_answer(error, reply.cost)


def no_answer(error: NoAnswer, cost: Cost) -> Failure:
    """Return the failure of a judgment whose reply holds no answer."""
    return Failure("judge_output_invalid", f"the reply is no verdict: {error}", cost=cost)


def _without_probabilities(reply: Reply, support: Support, form: str) -> Failure:
    """Return the failure of a reply without probabilities.

    :raises dicast.UnsupportedByModel: if no reply of the model had any before, and this one is not empty.
    """
    lacks = "log probabilities (logprobs)" if not reply.logprobs else "most probable tokens (top_logprobs)"
    if support.is_proven or not (reply.text or reply.logprobs):
        problem = "it is empty" if not reply.text else f"it has no {lacks}"
        return Failure("judge_output_invalid", f"the reply is no verdict: {problem}", cost=reply.cost)
    model = f"the model {reply.model!r}" if reply.model else "the model"
    raise UnsupportedByModel(
        f"{form} needs the probabilities of tokens, and {model} replied without {lacks}. Name a model whose endpoint returns "
        "them, or set form: verdict",
        reply.cost,
    )
