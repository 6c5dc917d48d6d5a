"""Reading replies over HTTP: their size has a limit, and secrets that a server repeats are taken out first."""

from __future__ import annotations

import math
import zlib
from collections.abc import AsyncIterable, Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from .._kernel.values.errors import DicastError
from .masking import Mask

MAX_REPLY_BYTES = 8 * 1024 * 1024
"""The default of ``max_reply_bytes``, the option of every client."""

IDENTITY = {"Accept-Encoding": "identity"}
"""The header that asks for a reply that is not compressed."""

_COMPLAINT_BYTES = 65_536
"""How much is read of what says that something went wrong."""

_LONGEST_SECONDS = 366 * 86_400.0
_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class ReplyRefused(DicastError):
    """A reply that is longer than it may be, or compressed in a way that was not asked for."""


class ReplyReader:
    """Reads the replies of one server: at most *most* bytes, without the *secrets* in any usual spelling.

    *option* is what the limit is called in the pipeline file.
    """

    def __init__(self, secrets: Iterable[str], most: int = MAX_REPLY_BYTES, option: str = "max_reply_bytes") -> None:
        self._most, self._option = most, option
        self._mask = Mask(secrets)
        self.message = self._mask.message

    async def read(
        self, chunks: AsyncIterable[bytes], headers: Mapping[str, str], *, cut: bool = False, masked: bool = True
    ) -> bytes:
        """The whole reply, decoded and masked; with *cut* the beginning of one that cannot be read whole, for a complaint.

        Without *masked* it may hold secrets still: for what is no text, and would not be the same after.

        :raises ReplyRefused: when it is too long, or cannot be decoded.
        """
        intake = _Intake(headers, self._most, self._option, cut)
        if not intake.full:
            async for chunk in chunks:
                if intake.add(chunk):
                    break
        return self._mask.reply(intake.data) if masked else intake.data

    def read_now(self, chunks: Iterable[bytes], headers: Mapping[str, str], *, cut: bool = False) -> bytes:
        """What ``read`` does, for clients that wait in a thread."""
        intake = _Intake(headers, self._most, self._option, cut)
        if not intake.full:
            any(map(intake.add, chunks))
        return self._mask.reply(intake.data)


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
    except (ValueError, OverflowError, TypeError, IndexError):  # for a date, an offset, or neither
        return None


class _Intake:
    """Takes a reply in, a piece after the other; holds at most *most* bytes of it, and a piece more for a moment."""

    def __init__(self, headers: Mapping[str, str], most: int, option: str, cut: bool) -> None:
        self._coding = headers.get("Content-Encoding", "").strip().lower()
        self._most, self._option, self._cut, self._found = most, option, cut, bytearray()
        if cut:
            self._most = min(most, _COMPLAINT_BYTES)
        plain, known = self._coding in ("", "identity"), self._coding in _WINDOW_BITS
        self._decoder = zlib.decompressobj(_WINDOW_BITS[self._coding]) if known else None
        self.full = not plain and not known
        if self.full and not cut:
            raise ReplyRefused(f"the reply is compressed as {self._coding!r:.80}, and identity was asked for")

    @property
    def data(self) -> bytes:
        return bytes(self._found)

    def add(self, chunk: bytes) -> bool:
        """Take *chunk* in; whether nothing more is to be read."""
        self._found += self._decoded(chunk)
        if len(self._found) > self._most:
            if not self._cut:
                raise ReplyRefused(f"the reply has more than {self._most:,} bytes ({self._option})")
            del self._found[self._most :]
            self.full = True
        return self.full

    def _decoded(self, chunk: bytes) -> bytes:
        """*chunk*, decoded as far as is of interest, so that a few bytes cannot become gigabytes."""
        if self._decoder is None:
            return chunk
        try:
            return self._decoder.decompress(chunk, self._most + 1)
        except zlib.error as error:
            if not self._cut:
                said = f"the reply says that it is compressed as {self._coding}, and is not: {error}"
                raise ReplyRefused(said) from error
            self.full = True
            return b""
