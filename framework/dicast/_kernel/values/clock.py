"""Times and ids: ISO 8601 UTC times in milliseconds, and monotonic ULIDs.

A run makes four ids for each subject, so the code is written for speed. A ULID has 48 bits of time and 80 random bits. Here 60 of the random
bits are fixed for a process, and the last 20 count up (https://github.com/ulid/spec, "Monotonicity").
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(high + low for high in _ALPHABET for low in _ALPHABET)
_TIME_CHARACTERS = 10
_LAST = 1 << 20
"""Number of ids that one prefix can have; the last 20 random bits count them."""


def iso(moment: datetime) -> str:
    """Return *moment* (aware) as ``2026-01-31T12:00:00.000Z``."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


class Clock:
    """Source of ids and times. Ids never decrease, even if the system's clock does.

    :param nanoseconds: a function that returns the time since the epoch.
    """

    def __init__(self, nanoseconds: Callable[[], int] = time.time_ns) -> None:
        self._nanoseconds = nanoseconds
        self._ms = -1
        chance = int.from_bytes(os.urandom(10))
        self._chance, self._count = _encode(chance >> 20, 12), chance & (_LAST // 2 - 1)
        self._prefix = self._time = self._second = ""

    def stamp(self) -> tuple[str, str]:
        """Return a new ULID, and its time."""
        ms = self._nanoseconds() // 1_000_000
        if ms > self._ms:
            self._start_millisecond(ms)
        elif self._count + 1 == _LAST:
            self._start_millisecond(self._ms + 1)
        self._count = count = self._count + 1
        return self._prefix + _PAIRS[count >> 10] + _PAIRS[count & 1023], self._time

    def stamps(self, count: int) -> tuple[list[str], str]:
        """Return *count* new ULIDs, 1 or more, and the time of the first."""
        if (ms := self._nanoseconds() // 1_000_000) > self._ms:
            self._start_millisecond(ms)
        start, end = self._count + 1, self._count + count
        if end >= _LAST:
            first, now = self.stamp()
            return [first, *[self.id() for _ in range(count - 1)]], now
        self._count, prefix, low = end, self._prefix, start & 1023
        if end >> 10 == start >> 10:
            prefix += _PAIRS[start >> 10]
            return [prefix + pair for pair in _PAIRS[low : low + count]], self._time
        return [prefix + _PAIRS[number >> 10] + _PAIRS[number & 1023] for number in range(start, end + 1)], self._time

    def three_stamps(self) -> tuple[str, str, str, str]:
        """Return three new ULIDs, and the time of the first, in half the time of :meth:`stamps`."""
        start = self._count + 1
        low = start & 1023
        if low > 1021 or self._nanoseconds() // 1_000_000 > self._ms:
            (first, second, third), now = self.stamps(3)
            return first, second, third, now
        self._count, prefix = start + 2, self._prefix + _PAIRS[start >> 10]
        return prefix + _PAIRS[low], prefix + _PAIRS[low + 1], prefix + _PAIRS[low + 2], self._time

    def id(self) -> str:
        """Return a new ULID, greater than every earlier one."""
        return self.stamp()[0]

    def time(self) -> str:
        """Return the current time in ISO 8601."""
        return iso(self.now())

    def now(self) -> datetime:
        """Return the current time as an aware datetime in UTC."""
        return datetime.fromtimestamp(self._nanoseconds() / 1e9, UTC)

    def day(self) -> str:
        """Return today's date in UTC."""
        return self.now().date().isoformat()

    def after(self, seconds: float) -> str:
        """Return the time *seconds* from now."""
        return iso(self.now() + timedelta(seconds=seconds))

    def _start_millisecond(self, ms: int) -> None:
        if ms // 1000 != self._ms // 1000:
            self._second = datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.")
        self._ms = ms
        self._time = f"{self._second}{ms % 1000:03d}Z"
        self._prefix = "".join([_PAIRS[ms >> place & 1023] for place in (40, 30, 20, 10, 0)]) + self._chance
        self._count &= _LAST // 2 - 1


def derived_id(id_: str, text: str) -> str:
    """Return a ULID with the time of *id_* and the SHA-256 of *text* in place of the random bits."""
    from hashlib import sha256  # imported late: most processes need no such id

    return id_[:_TIME_CHARACTERS] + _encode(int.from_bytes(sha256(text.encode()).digest()[:10]), 16)


def _encode(number: int, width: int) -> str:
    return "".join(_ALPHABET[number >> 5 * place & 31] for place in reversed(range(width)))
