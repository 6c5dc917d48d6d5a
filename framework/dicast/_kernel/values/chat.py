"""Requests to chat models, their replies, and the costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Literal

import attrs
import orjson

from ..classes import frozen
from .answer import ReadyAnswer
from .score import _ZERO, Cost

Role = Literal["system", "user", "assistant"]

MEDIA_KINDS = ("image", "audio", "file")
"""The kinds of :class:`Media`."""

_MTOK = Decimal(1_000_000)
_SPARSE = bytes(range(ord("a"), ord("z") + 1)) + b" "  # several of these bytes make one token
_LETTERS_A_TOKEN = 2.5
_DENSE = bytes(set(range(256)) - set(_SPARSE))  # each of these bytes may be a token
_NOISE_LETTERS = 16  # words of this length may be random letters, such as base64
_TOKENS_A_WORD = 1.1
_NOISE_LETTERS_A_TOKEN = 1.5
_TOKENS_A_MESSAGE = 16
_IMAGE_TOKENS = 16_384  # the models that count most scale an image down to as many
_SOUND_BYTES_A_TOKEN = 20  # 50 tokens a second, at 8 kbit a second
_MOST_BYTES = 20_000_000
_MOST_TOKENS = 2_000_000  # no model reads more
_not_negative = attrs.validators.optional(attrs.validators.ge(Decimal(0)))


@frozen
class Media:
    """An image, a sound or a file in a message.

    :param kind: ``image``, ``audio`` or ``file``.
    :param media_type: the IANA type, such as ``image/png``.
    :param marker: the text for models that do not read media, such as ``[image/png, 48 kB]``.
    :param data: the content in base64, without a data URL's prefix; None if *url* has the address of the content.
    :param url: the address of the content, which the endpoint fetches.
    :param name: the name of the file, if known.
    """

    kind: Literal["image", "audio", "file"]
    media_type: str
    marker: str
    data: str | None = None
    url: str | None = None
    name: str | None = None

    def key(self) -> dict[str, Any]:
        """Return the JSON data that identifies the content: its kind, type and SHA-256 or address."""
        from hashlib import sha256

        source = {"url": self.url} if self.data is None else {"sha256": sha256(self.data.encode()).hexdigest()}
        return {"kind": self.kind, "media_type": self.media_type, **source}

    @property
    def size(self) -> int:
        """The number of bytes of the content; for an address, the largest size that is expected."""
        return _MOST_BYTES if self.data is None else len(self.data) * 3 // 4

    @property
    def most_tokens(self) -> int:
        """An upper bound of the tokens that a model of any family counts for the content."""
        match self.kind:
            case "image":
                return _IMAGE_TOKENS
            case "audio":
                return math.ceil(self.size / _SOUND_BYTES_A_TOKEN)
        return min(_IMAGE_TOKENS + self.size, _MOST_TOKENS)


@frozen
class Message:
    """One message of a conversation.

    :param content: the whole text; each of the media is a marker in it.
    :param cache: whether this message ends the part that is equal in every request, for prompt caching.
    :param parts: the texts and media in order, if there are media. A model that reads media sends these in place of *content*.
    :param role: ``system``, ``user`` or ``assistant``.
    """

    role: Role
    content: str
    cache: bool = False
    parts: tuple[str | Media, ...] = ()

    @classmethod
    def of_parts(cls, role: Role, parts: Iterable[str | Media], *, cache: bool = False) -> Message:
        """Return a message of *parts*; its content has the marker of each of the media."""
        items: list[str | Media] = []
        for part in parts:
            if isinstance(part, str) and items and isinstance(last := items[-1], str):
                items[-1] = last + part
            elif part:
                items.append(part)
        content = "".join(item if isinstance(item, str) else item.marker for item in items)
        return cls(role, content, cache, tuple(items) if any(isinstance(item, Media) for item in items) else ())

    @property
    def media(self) -> tuple[Media, ...]:
        """The media in order."""
        return tuple(part for part in self.parts if isinstance(part, Media))


@frozen
class ChatRequest:
    """Request to a chat model.

    :param messages: the messages in order; a system message comes first.
    :param max_output_tokens: the maximum length of the reply.
    :param temperature: None leaves it to the model's own options.
    :param schema: the JSON Schema of the reply, for endpoints that accept one.
    :param logprobs: whether the log probabilities of the reply's tokens are needed.
    :param top_logprobs: the number of most probable tokens for each token of the reply; it needs *logprobs*.
    :param needs_media: whether the model must read the media: then markers in their place are useless.
    :param nonces: texts in the messages that are drawn anew for each call (seals, delimiters); :meth:`key` leaves them out.
    :param attempt: the number of earlier, unusable replies to the same request in one judgment.
    :param rollout: the number of the judgment's repetition; the kernel sets it.
    :param label: the task's criterion of the request; :meth:`key` leaves it out.
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
    top_logprobs: int = 0
    needs_media: bool = False

    @property
    def input_tokens(self) -> int:
        """Upper estimate of the tokens in messages, media and schema, from their bytes alone, without a tokenizer.

        A token is estimated as 2.5 small ASCII letters or blanks, 1.5 letters in words longer than 15, and one byte of other text, with at least
        1.1 tokens for each word. This is more than current tokenizers count in prose and code, and about twice as much in English and in random
        letters.
        """
        schema = b"" if self.schema is None else orjson.dumps(self.schema)
        return _tokens(schema) + sum(
            _TOKENS_A_MESSAGE
            + _tokens(self._plain(message.content))
            + sum(media.most_tokens for media in message.media)
            for message in self.messages
        )

    def _plain(self, text: str) -> bytes:
        """Return *text* as bytes, with a text of the same length for each nonce, so that calls do not differ by their nonces."""
        for nonce in self.nonces:
            text = text.replace(nonce, "0" * len(nonce))
        return text.encode(errors="replace")

    def key(self) -> dict[str, Any]:
        """Return everything that decides the reply except the model, as JSON data; each nonce is replaced by its number."""
        messages = [self._message_key(message) for message in self.messages]
        return {"messages": messages, **{name: getattr(self, name) for name in _DECIDING}, **self._later_options()}

    def _message_key(self, message: Message) -> dict[str, Any]:
        key: dict[str, Any] = {"role": message.role, "content": self._without_nonces(message.content)}
        if message.parts:
            key["media"] = [media.key() for media in message.media]
        return key

    def _later_options(self) -> dict[str, Any]:
        """Return the options that recorded replies of older versions do not have, without default values."""
        return {} if not self.top_logprobs else {"top_logprobs": self.top_logprobs}

    def digest(self, model: Mapping[str, Any]) -> str:
        """Return the SHA-256, in hex, of :meth:`key` and of *model*, the identity of the model with its options."""
        from hashlib import sha256  # OpenSSL takes 2 ms to load

        return sha256(orjson.dumps([self.key(), model], option=orjson.OPT_SORT_KEYS)).hexdigest()

    def _without_nonces(self, text: str) -> str:
        for number, nonce in enumerate(self.nonces):
            text = text.replace(nonce, f"\0{number}\0")
        return text


_DECIDING = tuple(
    field.name
    for field in attrs.fields(ChatRequest)
    if field.name not in ("messages", "nonces", "label", "top_logprobs", "needs_media")
)
"""Fields that decide a reply in addition to the messages. A new field of the request is part of its key unless it is left out here."""


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
    """Number of tokens of a call, as the endpoint counted them.

    :param input_tokens: all tokens of the request, including cached ones.
    :param output_tokens: all tokens that are billed as output, including reasoning.
    :param cached_input_tokens: the part of the input that was read from a prompt cache.
    :param cache_written_tokens: the part of the input that was written to a prompt cache.
    :param reasoning_tokens: the part of the output that is reasoning.
    """

    input_tokens: int
    output_tokens: int
    cached_input_tokens: int = 0
    cache_written_tokens: int = 0
    reasoning_tokens: int = 0


@frozen
class Token:
    """A token of a reply with its natural log probability.

    :param top: the most probable tokens at this position, if the request has ``top_logprobs``.
    :param text: the text of the token.
    :param logprob: the natural logarithm of its probability, 0 or less.
    """

    text: str
    logprob: float
    top: tuple[Token, ...] = ()


@frozen
class Reply(ReadyAnswer):
    """Reply of a chat model.

    :param text: the whole text; empty if there is none.
    :param model: the model that answered, as the endpoint names it.
    :param stop_reason: ``end_turn``, ``stop_sequence``, ``max_tokens``, ``refusal``, or another word of the endpoint.
    :param usage: None if the endpoint does not count tokens.
    :param cost: the cost of all tries of this call.
    :param logprobs: the tokens of *text* in order; None if they were not requested or are not available.
    :param metrics: further figures of the model about this call, as JSON data.
    :param retry: the tries, as JSON data: ``{attempts, max_attempts, history: [{attempt, error}]}`` with each failed try, numbered
        from 1; None if the first try succeeded.
    :param finish_reason: the endpoint's own word for *stop_reason*; None if it gives none.
    :param media: the number of media in the request that the model read, by kind; empty for a model that reads none.
    :param adapted: the names of the request's parameters that the endpoint refused and that were left out or translated.
    """

    text: str
    model: str | None = None
    stop_reason: str | None = "end_turn"
    usage: Usage | None = None
    cost: Cost = _ZERO
    logprobs: tuple[Token, ...] | None = None
    metrics: Mapping[str, object] = attrs.field(factory=dict)
    retry: Mapping[str, Any] | None = None
    finish_reason: str | None = None
    media: Mapping[str, int] = attrs.field(factory=dict)
    adapted: tuple[str, ...] = ()


@frozen
class Price:
    """Price of a model, in usd per million tokens.

    :param cached_input_per_mtok: for input that was read from a prompt cache; the full price of input by default.
    :param cache_write_per_mtok: for input that was written to a prompt cache; the full price of input by default.
    :param input_per_mtok: for a million tokens of input; 0 or more.
    :param output_per_mtok: for a million tokens of output; 0 or more.
    """

    input_per_mtok: Decimal = attrs.field(validator=attrs.validators.ge(Decimal(0)))
    output_per_mtok: Decimal = attrs.field(validator=attrs.validators.ge(Decimal(0)))
    cached_input_per_mtok: Decimal | None = attrs.field(default=None, validator=_not_negative)
    cache_write_per_mtok: Decimal | None = attrs.field(default=None, validator=_not_negative)

    def cost(self, usage: Usage, version: str | None = None) -> Cost:
        """Return the cost of *usage*; *version* names the price list, by default the prices themselves."""
        cached, written = usage.cached_input_tokens, usage.cache_written_tokens
        amount = (
            self.input_per_mtok * (usage.input_tokens - cached - written)
            + self._or_full(self.cached_input_per_mtok) * cached
            + self._or_full(self.cache_write_per_mtok) * written
            + self.output_per_mtok * usage.output_tokens
        ) / _MTOK
        if not amount:
            return Cost.zero()
        return Cost(amount, "usd", version or f"{self.input_per_mtok:f}/{self.output_per_mtok:f} usd per Mtok")

    def most(self, usage: Usage) -> Cost:
        """Return the highest cost of *usage*, if any part of the input may be written to a prompt cache."""
        is_higher = self._or_full(self.cache_write_per_mtok) > self.input_per_mtok
        return self.cost(attrs.evolve(usage, cache_written_tokens=usage.input_tokens) if is_higher else usage)

    def _or_full(self, price: Decimal | None) -> Decimal:
        return self.input_per_mtok if price is None else price
