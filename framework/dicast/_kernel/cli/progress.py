"""How far a run is, on stderr; silent where stderr is no terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Self

from ...toolkit.terminal import canvas_of, terminal, text_of, width_of
from ..classes import define
from ..report.fold import Report

EVERY_SECONDS = 0.5

SURE_SECONDS, SURE_SUBJECTS = 3.0, 10
"""How long a rate is measured, and over how many subjects, before it says how much time is left."""

SLOWER = 1.25
"""How many times the time left that was told has to be exceeded until it is told to be more: rates are never quite steady."""

_BAR = 20


@define
class Pace:
    """How fast subjects are judged, and how long the others will take. Those that an earlier process has judged count for neither."""

    _first: tuple[float, int] = (0.0, 0)
    _last: tuple[float, int] | None = None
    _told: float | None = None

    def look(self, judged: int, now: float) -> None:
        """Note how many have been *judged* by *now*, the next experiment of a suite beginning anew."""
        if self._last is None or judged < self._last[1]:
            self._first = self._last = (now, judged)
            self._told = None
        elif judged > self._last[1]:
            self._last = (now, judged)

    def rate(self, now: float) -> float:
        """Subjects a second."""
        (began, before), (_, judged) = self._first, self._last or self._first
        return (judged - before) / (now - began) if now > began else 0.0

    def left(self, expected: int | None, now: float) -> float | None:
        """The seconds that are left, None where that is not sure: too early, or with nothing judged for as long as all before.

        It is told by the rate up to the last that was judged, for many may be judged at once; and it rises only where that has fallen.
        """
        (began, before), (ended, judged) = self._first, self._last or self._first
        taken = ended - began
        if expected is None or taken < SURE_SECONDS or judged - before < SURE_SUBJECTS or now - ended > taken:
            return None
        left = max(0, expected - judged) * taken / (judged - before)
        if self._told is None or not self._told < left <= self._told * SLOWER:
            self._told = left
        return self._told


class Progress:
    """One line that is written over: subjects of all, failures, rate, spend, time left.

    Where stderr is no terminal it has a line for each batch that is sent or has ended, and no others.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = terminal(sys.stderr)
        self._clock, self._pace = clock, Pace()
        self._next = clock() + EVERY_SECONDS
        self._batches: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._stream is not None:
            self._stream.clear()

    def update(self, report: Report) -> None:
        """Show how far *report* is."""
        if self._stream is None:
            for line in self._batch_lines(report):
                print(line, file=sys.stderr, flush=True)
            return
        now = self._clock()
        self._pace.look(report.judged, now)
        if now < self._next:
            return
        self._next = now + EVERY_SECONDS
        self._stream.write_over(_drawn(report, self._pace, now, width_of(self._stream.stream) - 1))

    def _batch_lines(self, report: Report) -> Iterator[str]:
        waiting = {one["key"]: one for one in report.batches.documents() if one["batch_id"] is not None}
        for key, batch in waiting.items():
            if key not in self._batches:
                name = self._batches[key] = batch["batch_id"]
                calls = f"{batch['calls']:,} calls to {batch['model']}"
                yield f"waiting for batch {name}: {calls}; the endpoint ends it by {batch['until']} at the latest"
        for key in [key for key in self._batches if key not in waiting]:
            yield f"batch {self._batches.pop(key)} has ended"


def _drawn(report: Report, pace: Pace, now: float, width: int) -> str:
    """The line, cut where the terminal ends: what is longer could not be written over."""
    from rich.text import Text

    of = "" if report.expected is None else f" of {report.expected:,}"
    line = Text(f"{report.judged:,}{of} judged")
    if report.failed:
        line.append(" · ").append(f"{report.failed:,} failed", "bold red")
    line.append("".join(f" · {one}" for one in _figures(report, pace, now)))
    room = min(_BAR, width - line.cell_len - 1)
    if report.expected and room >= _BAR // 2:
        full = min(room, room * report.judged // report.expected)
        line = Text.assemble(("━" * full, "green"), ("━" * (room - full), "dim"), " ", line)
    line.truncate(max(width, 1), overflow="ellipsis")
    canvas = canvas_of(max(width, 1))
    canvas.print(line, end="")
    return text_of(canvas)


def _figures(report: Report, pace: Pace, now: float) -> Iterator[str]:
    rate = pace.rate(now)
    yield f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"
    if (left := pace.left(report.expected, now)) is not None:
        yield _words(left)
    if waiting := sum(batch["calls"] for batch in report.batches.documents()):
        yield f"{waiting:,} calls wait for a batch"
    yield "spent " + (", ".join(str(cost) for cost in report.spent.values() if not cost.is_zero) or "nothing")


def _words(seconds: float) -> str:
    """How much time is left, as far as it can be known."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s left"
    minutes, seconds = divmod(whole, 60)
    return f"{minutes} min {seconds:02} s left" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min left"
