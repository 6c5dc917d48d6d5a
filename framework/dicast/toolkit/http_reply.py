"""Reading of HTTP replies: their size has a limit, and secrets that a server repeats are masked."""

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
"""The most bytes that are read of an error message."""

_LONGEST_SECONDS = 366 * 86_400.0
_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class ReplyRefused(DicastError):
    """A reply that is too long, or compressed although the request did not allow it."""


class ReplyReader:
    """Reader of one server's replies: at most *most* bytes, with the *secrets* masked in any usual spelling.

    *option* is the name of the limit in the pipeline file.
    """

    def __init__(self, secrets: Iterable[str], most: int = MAX_REPLY_BYTES, option: str = "max_reply_bytes") -> None:
        self._most, self._option = most, option
        self._mask = Mask(secrets)
        self.message = self._mask.message

    async def read(
        self, chunks: AsyncIterable[bytes], headers: Mapping[str, str], *, cut: bool = False, masked: bool = True
    ) -> bytes:
        """Return the complete reply, decoded and masked; with *cut*, return the beginning of a reply that cannot be read completely, for a complaint.

        Without *masked* it may contain secrets: for content that is not text, which masking would change.

        :raises ReplyRefused: when it is too long, or cannot be decoded.
        """
        intake = _Intake(headers, self._most, self._option, cut)
        if not intake.full:
            async for chunk in chunks:
                if intake.add(chunk):
                    break
        return self._mask.reply(intake.data) if masked else intake.data

    def read_now(self, chunks: Iterable[bytes], headers: Mapping[str, str], *, cut: bool = False) -> bytes:
        """Return the same as ``read``, for clients that wait in a thread."""
        intake = _Intake(headers, self._most, self._option, cut)
        if not intake.full:
            any(map(intake.add, chunks))
        return self._mask.reply(intake.data)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, from ``Retry-After-Ms`` or ``Retry-After``; None without a valid value.

    More than a year is not valid. *headers* decides whether the case of header names matters; in HTTP libraries it does not.
    """
    header = headers.get("Retry-After", "")
    for text, unit in ((headers.get("Retry-After-Ms", ""), 1e-3), (header, 1.0)):
        if math.isfinite(seconds := _number(text) * unit):
            return max(0.0, seconds) if seconds <= _LONGEST_SECONDS else None
    until = _moment(header)
    # By the server's own clock, if it sends the time.
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
    """Buffer for the pieces of a reply; it holds at most *most* bytes, and briefly one piece more."""

    def __init__(self, headers: Mapping[str, str], most: int, option: str, cut: bool) -> None:
        self._coding = headers.get("Content-Encoding", "").strip().lower()
        self._most, self._option, self._cut, self._content = most, option, cut, bytearray()
        if cut:
            self._most = min(most, _COMPLAINT_BYTES)
        plain, is_known = self._coding in ("", "identity"), self._coding in _WINDOW_BITS
        self._decoder = zlib.decompressobj(_WINDOW_BITS[self._coding]) if is_known else None
        self.full = not plain and not is_known
        if self.full and not cut:
            raise ReplyRefused(f"the reply is compressed as {self._coding!r:.80}, and identity was asked for")

    @property
    def data(self) -> bytes:
        return bytes(self._content)

    def add(self, chunk: bytes) -> bool:
        """Append *chunk*, and return whether reading can stop.

        :raises ReplyRefused: if the reply is too long or cannot be decoded, unless it may be cut.
        """
        self._content += self._decoded(chunk)
        if len(self._content) > self._most:
            if not self._cut:
                raise ReplyRefused(f"the reply has more than {self._most:,} bytes ({self._option})")
            del self._content[self._most :]
            self.full = True
        return self.full

    def _decoded(self, chunk: bytes) -> bytes:
        """Return *chunk* decoded up to the limit, so that a few bytes cannot become gigabytes."""
        if self._decoder is None:
            return chunk
        try:
            return self._decoder.decompress(chunk, self._most + 1)
        except zlib.error as error:
            if not self._cut:
                message = f"the reply says that it is compressed as {self._coding}, and is not: {error}"
                raise ReplyRefused(message) from error
            self.full = True
            return b""
