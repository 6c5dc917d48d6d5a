"""What is asked of a chat model, what it replies, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal

import attrs
import orjson

from ..classes import frozen
from .score import _ZERO, Cost

Role = Literal["system", "user", "assistant"]

COMPLETE = (None, "end_turn", "stop_sequence", "stop")
"""The stop reasons of a reply that is whole; None where the endpoint does not say. ``stop`` is what some call ``end_turn``."""

_MTOK = Decimal(1_000_000)
_SPARSE = bytes(range(ord("a"), ord("z") + 1)) + b" "
_LETTERS_A_TOKEN = 2.5
_DENSE = bytes(set(range(256)) - set(_SPARSE))
_NOISE_LETTERS = 16
_TOKENS_A_WORD = 1.1
_NOISE_LETTERS_A_TOKEN = 1.5
_TOKENS_A_MESSAGE = 16


@frozen
class Message:
    """One message of a conversation. *cache* marks the end of what is the same in every request, for prompt caching."""

    role: Role
    content: str
    cache: bool = False


@frozen
class ChatRequest:
    """A question to a chat model.

    :param messages: in order; a system message stands first.
    :param max_output_tokens: the reply ends there at the latest.
    :param temperature: None leaves it to the model's own options.
    :param schema: the JSON Schema that the reply is to follow, where the endpoint takes one.
    :param logprobs: whether the log probabilities of the reply's tokens are wanted.
    :param nonces: texts in the messages that are drawn anew for each call (seals, delimiters); :meth:`key` leaves them out.
    :param attempt: how often the same was asked before in one judgment, because the reply was of no use.
    :param rollout: which repetition of the judgment this is part of; the kernel sets it.
    :param label: which of a task's criteria is asked about; :meth:`key` leaves it out.
    """

    messages: tuple[Message, ...]
    max_output_tokens: int = 256
    temperature: float | None = None
    schema: Mapping[str, Any] | None = None
    logprobs: bool = False
    nonces: tuple[str, ...] = ()
    attempt: int = 0
    rollout: int = 0
    label: str = ""

    @property
    def input_tokens(self) -> int:
        """An upper estimate of the tokens in messages and schema, from their bytes alone: no tokenizer is asked.

        A token is taken to be 2.5 small ASCII letters or blanks, 1.5 letters in words longer than 15, and one byte of anything
        else, but no less than 1.1 a word. That is more than the tokenizers of current models find in prose and
        code, about twice as much in English, and in letters at random.
        """
        schema = b"" if self.schema is None else orjson.dumps(self.schema)
        return _tokens(schema) + sum(
            _TOKENS_A_MESSAGE + _tokens(self._plain(message.content)) for message in self.messages
        )

    def _plain(self, text: str) -> bytes:
        """*text* as bytes, with a text of the same length for each nonce, so that no two calls differ by what was drawn."""
        for nonce in self.nonces:
            text = text.replace(nonce, "0" * len(nonce))
        return text.encode(errors="replace")

    def key(self) -> dict[str, Any]:
        """Everything that decides the reply but the model, as JSON data; each nonce is replaced by its number."""
        messages = [
            {"role": message.role, "content": self._without_nonces(message.content)} for message in self.messages
        ]
        return {"messages": messages, **{name: getattr(self, name) for name in _DECIDING}}

    def digest(self, model: Mapping[str, Any]) -> str:
        """The SHA-256, in hex, of :meth:`key` and of what says which *model* is asked, and how."""
        from hashlib import sha256  # OpenSSL takes 2 ms to load

        return sha256(orjson.dumps([self.key(), model], option=orjson.OPT_SORT_KEYS)).hexdigest()

    def _without_nonces(self, text: str) -> str:
        for number, nonce in enumerate(self.nonces):
            text = text.replace(nonce, f"\0{number}\0")
        return text


_DECIDING = tuple(
    field.name for field in attrs.fields(ChatRequest) if field.name not in ("messages", "nonces", "label")
)
"""What decides a reply beside the messages: what is added to a request belongs to its key unless it is named here."""


def _tokens(data: bytes) -> int:
    words = data.split()
    longest = max(map(len, words), default=0)
    long = [word for word in words if len(word) >= _NOISE_LETTERS] if longest >= _NOISE_LETTERS else []
    noise = len(b"".join(long).translate(None, _DENSE))
    dense = len(data.translate(None, _SPARSE))
    sparse = (len(data) - dense - noise) / _LETTERS_A_TOKEN + noise / _NOISE_LETTERS_A_TOKEN
    return max(math.ceil(len(words) * _TOKENS_A_WORD), dense + math.ceil(sparse))


@frozen
class Usage:
    """How many tokens a call took, as the endpoint counted them; those read from a prompt cache are among the input."""

    input_tokens: int
    output_tokens: int


@frozen
class Token:
    """A token of a reply with its natural log probability."""

    text: str
    logprob: float


@frozen
class Reply:
    """What a chat model answered.

    :param text: the whole text; empty when there is none.
    :param model: the model that answered, as the endpoint names it.
    :param stop_reason: ``end_turn``, ``stop_sequence``, ``max_tokens``, ``refusal``, or what else the endpoint says.
    :param usage: None when the endpoint does not count.
    :param cost: what all tries of this call cost together.
    :param logprobs: the tokens of *text* in order; None where they were not asked for or are not to be had.
    :param metrics: what else the model reports about this call, as JSON data.
    :param retry: how the model tried, as JSON data: ``{attempts, max_attempts, history: [{attempt, error}]}`` with each try that
        came to nothing, numbered from 1; None where the first one was the answer.
    """

    text: str
    model: str | None = None
    stop_reason: str | None = "end_turn"
    usage: Usage | None = None
    cost: Cost = _ZERO
    logprobs: tuple[Token, ...] | None = None
    metrics: Mapping[str, object] = attrs.field(factory=dict)
    retry: Mapping[str, Any] | None = None


@frozen
class Price:
    """What a model costs, in usd per million tokens."""

    input_per_mtok: Decimal = attrs.field(validator=attrs.validators.ge(Decimal(0)))
    output_per_mtok: Decimal = attrs.field(validator=attrs.validators.ge(Decimal(0)))

    def cost(self, usage: Usage, version: str | None = None) -> Cost:
        """What *usage* costs; *version* names the price list, by default the two prices."""
        amount = (self.input_per_mtok * usage.input_tokens + self.output_per_mtok * usage.output_tokens) / _MTOK
        if not amount:
            return Cost.zero()
        return Cost(amount, "usd", version or f"{self.input_per_mtok:f}/{self.output_per_mtok:f} usd per Mtok")
