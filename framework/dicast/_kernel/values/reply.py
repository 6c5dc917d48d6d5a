"""Stored replies: their JSON form, and their use for a later call with the same request."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import attrs

from ..classes import frozen
from .chat import Reply, Token, Usage
from .score import Cost

# fields that older files do not have, and that are written only with a value
_LATER = {
    "top",
    "finish_reason",
    "media",
    "adapted",
    "cached_input_tokens",
    "cache_written_tokens",
    "reasoning_tokens",
}


@frozen
class KeptReply:
    """A *reply* and the *nonces* of the call that it answered."""

    reply: Reply
    nonces: tuple[str, ...] = ()

    @classmethod
    def of(cls, reply: Mapping[str, Any], nonces: Sequence[str]) -> KeptReply:
        """Read the data of :meth:`plain`; the reply costs nothing when it is used again.

        :raises TypeError: if *reply* has no text, or has an unknown field.
        """
        usage, logprobs = reply.get("usage"), reply.get("logprobs")
        parsed = {
            "usage": None if usage is None else Usage(**usage),
            "logprobs": None if logprobs is None else tuple(map(_token, logprobs)),
            "adapted": tuple(reply.get("adapted", ())),
            "cost": Cost.zero(),
        }
        stored = cls(Reply(**{**reply, **parsed}), tuple(nonces))
        if not all(isinstance(text, str) for text in (stored.reply.text, *stored.nonces)):
            raise TypeError("the text and the nonces of a reply are texts")
        return stored

    def plain(self) -> dict[str, Any]:
        """Return the reply as JSON data, without its cost."""
        reply = attrs.evolve(self.reply, metrics=dict(self.reply.metrics))
        return {"nonces": self.nonces, "reply": attrs.asdict(reply, filter=_is_recorded)}

    def renew(self, nonces: Sequence[str]) -> Reply:
        """Return the reply for a call with other *nonces*: each quoted old nonce becomes the new nonce with the same number.

        The tokens still make up the text; a token with a part of an old nonce may become empty, or longer.
        """
        names = {old: new for old, new in zip(self.nonces, nonces, strict=False) if old and old != new}
        if not names:
            return self.reply
        pattern = re.compile("|".join(map(re.escape, names)))
        text = pattern.sub(lambda match: names[match[0]], self.reply.text)
        tokens = self.reply.logprobs and _renamed(self.reply.logprobs, pattern, names)
        return attrs.evolve(self.reply, text=text, logprobs=tokens)


def _is_recorded(field: attrs.Attribute[Any], value: object) -> bool:
    """Return whether a field is written: not the cost, and no default value of a field that older files do not have."""
    return field.name != "cost" and not (field.name in _LATER and not value)


def _token(token: Mapping[str, Any]) -> Token:
    return Token(token["text"], token["logprob"], tuple(map(_token, token.get("top", ()))))


def _renamed(tokens: Sequence[Token], pattern: re.Pattern[str], names: Mapping[str, str]) -> tuple[Token, ...]:
    text = "".join(token.text for token in tokens)
    letters = list(text)
    for match in pattern.finditer(text):
        letters[match.start() : match.end()] = [names[match[0]], *[""] * (len(match[0]) - 1)]
    rest = iter(letters)
    return tuple(attrs.evolve(token, text="".join(islice(rest, len(token.text)))) for token in tokens)
