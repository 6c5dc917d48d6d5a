"""Upper bounds of a request's tokens, by the model's own tokenizer if it is known. Nothing is fetched."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import orjson

from dicast import ChatRequest
from dicast.toolkit import media_tokens

_FAMILIES = (
    (re.compile(r"gpt-oss"), "gpt-oss"),
    (re.compile(r"(gpt-4o|gpt-4\.1|gpt-4\.5|gpt-5|chatgpt-4o|o[1345])(?![0-9a-z])"), "o200k_base"),
    (re.compile(r"(gpt-4|gpt-3\.5-turbo)(?![0-9a-z.])"), "cl100k_base"),
    (re.compile(r"gemma-3(?![0-9n])"), "gemma3"),
)
"""Patterns of the beginning of a model's name, after the provider's name (``openai/gpt-4o``), and the model's vocabulary."""

_A_MESSAGE = 8
"""Tokens around a message in a chat template: its role and its ends."""

_A_REQUEST = 32
"""Tokens that a template adds once: the beginning of the reply, and for a schema the words around it."""

_PREAMBLES = {"gpt-oss": 96}
"""Tokens that the chat template of a family adds before all messages: its own system message, with the date and the channels (59 tokens without their
ends), and the headings of instructions and of a schema."""


def most_input_tokens(model: str, request: ChatRequest) -> int:
    """Return the most tokens that the messages, the media and the schema of *request* take.

    Texts are counted by *model*'s tokenizer where it is known and the extra ``tokens`` is installed, else estimated from their bytes;
    media by the rule of the model's family, else by an upper bound.
    """
    vocabulary = next((name for start, name in _FAMILIES if start.match(model.lower().rpartition("/")[2])), "")
    tokenizer = _tokenizer(vocabulary) if vocabulary else None
    if tokenizer is None:
        return media_tokens.most_input_tokens(model, request) + _PREAMBLES.get(vocabulary, 0)
    schema = "" if request.schema is None else orjson.dumps(request.schema).decode()
    counted = sum(_count(tokenizer, message.content, request.nonces) for message in request.messages)
    around = _A_MESSAGE * len(request.messages) + _A_REQUEST + _PREAMBLES.get(vocabulary, 0)
    media = [item for message in request.messages for item in message.media]
    media_count = sum(media_tokens.most_media_tokens(model, item) for item in media)
    return counted + len(tokenizer.encode_ordinary(schema)) + around + media_count


def _count(tokenizer: Any, text: str, nonces: tuple[str, ...]) -> int:
    """Return the tokens of *text*; each character of a nonce counts as a token, so that random words do not change the count."""
    drawn = 0
    for nonce in nonces:
        drawn += text.count(nonce) * len(nonce)
        text = text.replace(nonce, "\n")
    return drawn + len(tokenizer.encode_ordinary(text.encode(errors="replace").decode()))


@lru_cache(8)
def _tokenizer(vocabulary: str) -> Any:
    """Return the tokenizer, or None if its package is not installed."""
    if find_spec("splintr") is None:
        return None
    import splintr  # 20 MB; only models with a price need it

    return splintr.Tokenizer.from_pretrained(vocabulary)
