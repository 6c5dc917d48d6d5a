"""Reading replies over HTTP: their size has a limit, and secrets that a server repeats are taken out first."""

from __future__ import annotations

import base64
import math
import re
import zlib
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from json import dumps
from typing import Any
from urllib.parse import quote, quote_plus

import orjson

from .._kernel.values.errors import DicastError

MAX_REPLY_BYTES = 8 * 1024 * 1024
"""The default of ``max_reply_bytes``, the option of every client."""

IDENTITY = {"Accept-Encoding": "identity"}
"""The header that asks for a reply that is not compressed."""

MASK = "***"
_IN_MESSAGES, _IN_REPLIES = 4, 8
"""Characters of a secret, at least: shorter ones stand in for a key (``no``, ``test``), and taking them out would garble words."""
_LONGEST_SECONDS = 366 * 86_400.0
_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class ReplyRefused(DicastError):
    """A reply that is longer than it may be, or compressed in a way that was not asked for."""


class ReplyReader:
    """Reads the replies of one server: at most *most* bytes, without the *secrets* in any usual spelling."""

    def __init__(self, secrets: Iterable[str], most: int = MAX_REPLY_BYTES) -> None:
        self._most = most
        known = {part for secret in secrets for part in (secret.strip(), *_words(secret))}
        self._in_messages = _pattern(known, _IN_MESSAGES)
        self._in_replies = _pattern(known, _IN_REPLIES)

    async def read(
        self, chunks: AsyncIterable[bytes], headers: Mapping[str, str], *, cut: bool = False, masked: bool = True
    ) -> bytes:
        """The whole reply, decoded and masked; with *cut* the beginning of one that is too long, for a complaint.

        Without *masked* it may hold secrets still: for what is no text, and would not be the same after.

        :raises ReplyRefused: when it is too long, or cannot be decoded.
        """
        found, coding = bytearray(), headers.get("Content-Encoding", "").strip().lower()
        async for piece in _decoded(chunks, coding, self._most + 1):
            found += piece
            if len(found) > self._most:
                if not cut:
                    raise ReplyRefused(f"the reply has more than {self._most:,} bytes (max_reply_bytes)")
                del found[self._most :]
                break
        return self.mask(bytes(found)) if masked else bytes(found)

    def mask(self, reply: bytes) -> bytes:
        """*reply* without the secrets, also those that JSON spells with escapes."""
        if self._in_replies is None:
            return reply
        if b"\\u" in reply or b"\\/" in reply:
            try:
                return orjson.dumps(self._masked(orjson.loads(reply)))
            except (orjson.JSONDecodeError, TypeError):  # no JSON, or none that can be written again
                pass
        text = reply.decode(errors="surrogateescape")
        masked = self._in_replies.sub(MASK, text)
        return reply if masked == text else masked.encode(errors="surrogateescape")

    def message(self, text: str) -> str:
        """*text*, which goes into a message, without the secrets."""
        return text if self._in_messages is None else self._in_messages.sub(MASK, text)

    def _masked(self, value: Any) -> Any:
        assert self._in_replies is not None
        if isinstance(value, str):
            return self._in_replies.sub(MASK, value)
        if isinstance(value, list):
            return [self._masked(item) for item in value]
        if isinstance(value, dict):
            return {self._masked(key): self._masked(item) for key, item in value.items()}
        return value


def retry_after(headers: Mapping[str, str]) -> float | None:
    """How many seconds a server asks to wait, by ``Retry-After-Ms`` or ``Retry-After``; None where it says nothing that can be used.

    More than a year is nothing that can be used. Header names are matched as *headers* does, which for HTTP libraries is in any case.
    """
    asked = headers.get("Retry-After", "")
    for text, unit in ((headers.get("Retry-After-Ms", ""), 1e-3), (asked, 1.0)):
        if math.isfinite(seconds := _number(text) * unit):
            return max(0.0, seconds) if seconds <= _LONGEST_SECONDS else None
    until = _moment(asked)
    # By the server's own clock, where it gives the time.
    now = _moment(headers.get("Date", "")) or datetime.now(UTC)
    seconds = 0.0 if until is None else (until - now).total_seconds()
    return None if until is None or seconds > _LONGEST_SECONDS else max(0.0, seconds)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (
        ValueError,
        OverflowError,
        TypeError,
        IndexError,
    ):  # what email.utils raises for a date, an offset, or neither
        return None


async def _decoded(chunks: AsyncIterable[bytes], coding: str, most: int) -> AsyncIterable[bytes]:
    """The pieces of a reply, decoded; none is longer than *most*, so that a few bytes cannot become gigabytes."""
    if coding in ("", "identity"):
        async for chunk in chunks:
            yield chunk
        return
    if coding not in _WINDOW_BITS:
        raise ReplyRefused(f"the reply is compressed as {coding!r:.80}, and identity was asked for")
    decoder = zlib.decompressobj(_WINDOW_BITS[coding])
    async for chunk in chunks:
        try:
            yield decoder.decompress(chunk, most)
        except zlib.error as error:
            raise ReplyRefused(f"the reply says that it is compressed as {coding}, and is not: {error}") from error


def _words(secret: str) -> list[str]:
    """The key in ``Bearer KEY``, which may be repeated alone."""
    return [word for word in secret.split() if len(word) >= _IN_REPLIES]


def _pattern(secrets: Iterable[str], least: int) -> re.Pattern[str] | None:
    """What finds each secret of *least* characters or more; longer spellings first, as one may be a part of another."""
    long = [secret for secret in secrets if len(secret) >= least]
    spellings = {form for secret in long for form in _spellings(secret) if len(form) >= least}
    forms = sorted(spellings, key=len, reverse=True)
    return re.compile("|".join(r"\s+".join(map(re.escape, form.split())) for form in forms)) if forms else None


def _spellings(secret: str) -> Iterator[str]:
    """*secret* as it is, escaped for JSON or a URL, and as a part of base64 text or a hex dump."""
    data = secret.encode(errors="surrogatepass")
    yield secret
    yield from (dumps(secret)[1:-1], dumps(secret, ensure_ascii=False)[1:-1], data.hex())
    yield from (quote(data), quote(data, safe=""), quote_plus(data))
    for before, lost in ((0, 0), (1, 2), (2, 3)):  # where it begins within a group of three bytes
        text = base64.b64encode(bytes(before) + data)
        part = text[lost : (before + len(data)) * 8 // 6].decode()
        yield from (part, part.translate(str.maketrans("+/", "-_")))
