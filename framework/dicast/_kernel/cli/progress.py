"""Progress of a run on stderr; silent if stderr is no terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Self

from ...toolkit.printable import one_line
from ...toolkit.terminal import canvas_of, print_wrapped, terminal, text_of, width_of
from ..classes import define
from ..report.fold import Report

EVERY_SECONDS = 0.5

SURE_SECONDS, SURE_SUBJECTS = 3.0, 10
"""Seconds and subjects that a rate is measured over before the time left is shown."""

SLOWER = 1.25
"""Factor by which the time left must exceed the shown time before a larger one is shown, because rates vary."""

_BAR = 20


@define
class Pace:
    """Rate of judging and time left. Subjects judged by an earlier process count for neither."""

    _first: tuple[float, int] = (0.0, 0)
    _last: tuple[float, int] | None = None
    _estimate: float | None = None

    def look(self, judged: int, now: float) -> None:
        """Record the number of subjects *judged* by *now*. A smaller number starts the next experiment of a suite."""
        if self._last is None or judged < self._last[1]:
            self._first = self._last = (now, judged)
            self._estimate = None
        elif judged > self._last[1]:
            self._last = (now, judged)

    def rate(self, now: float) -> float:
        """Return the number of subjects per second."""
        (first_time, first_judged), (_, judged) = self._first, self._last or self._first
        return (judged - first_judged) / (now - first_time) if now > first_time else 0.0

    def left(self, expected: int | None, now: float) -> float | None:
        """Return the seconds left.

        None if the run is younger than :data:`SURE_SECONDS`, has judged fewer than :data:`SURE_SUBJECTS`, or has stalled: the time since the last
        judged subject exceeds the time before it. The rate ends at the last judged subject, because many subjects may be judged at once.
        The time left rises only if the rate falls.
        """
        (first_time, first_judged), (last_time, judged) = self._first, self._last or self._first
        elapsed = last_time - first_time
        if (
            expected is None
            or elapsed < SURE_SECONDS
            or judged - first_judged < SURE_SUBJECTS
            or now - last_time > elapsed
        ):
            return None
        seconds = max(0, expected - judged) * elapsed / (judged - first_judged)
        if self._estimate is None or not self._estimate < seconds <= self._estimate * SLOWER:
            self._estimate = seconds
        return self._estimate


class Progress:
    """One line that is overwritten: judged subjects, failures, rate, spend, time left.

    If stderr is no terminal, it prints only the notices of the report, and one line for each batch that is sent or has ended.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = terminal(sys.stderr)
        self._clock, self._pace = clock, Pace()
        self._next = clock() + EVERY_SECONDS
        self._batches: dict[str, str] = {}
        self.notices: set[str] = set()
        """The notices that were printed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._stream is not None:
            self._stream.clear()

    def update(self, report: Report) -> None:
        """Show the progress of *report*; print its new notices."""
        for notice in dict.fromkeys(report.notices):
            if notice not in self.notices:
                self.notices.add(notice)
                self._notify(f"warning: {notice}")
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

    def _notify(self, text: str) -> None:
        if self._stream is not None:
            self._stream.clear()
        print_wrapped(one_line(text), err=True)

    def _batch_lines(self, report: Report) -> Iterator[str]:
        waiting = {
            document["key"]: document for document in report.batches.documents() if document["batch_id"] is not None
        }
        for key, batch in waiting.items():
            if key not in self._batches:
                name = self._batches[key] = batch["batch_id"]
                calls = f"{batch['calls']:,} calls to {batch['model']}"
                yield f"waiting for batch {name}: {calls}; the endpoint completes it by {batch['until']}"
        for key in [key for key in self._batches if key not in waiting]:
            yield f"batch {self._batches.pop(key)} has ended"


def _drawn(report: Report, pace: Pace, now: float, width: int) -> str:
    """Return the line, cut to *width*, because a longer line could not be overwritten."""
    from rich.text import Text

    total = "" if report.expected is None else f" of {report.expected:,}"
    line = Text(f"{report.judged:,}{total} judged")
    if report.failed:
        line.append(" · ").append(f"{report.failed:,} failed", "bold red")
    line.append("".join(f" · {figure}" for figure in _figures(report, pace, now)))
    bar = min(_BAR, width - line.cell_len - 1)
    if report.expected and bar >= _BAR // 2:
        full = min(bar, bar * report.judged // report.expected)
        line = Text.assemble(("━" * full, "green"), ("━" * (bar - full), "dim"), " ", line)
    line.truncate(max(width, 1), overflow="ellipsis")
    canvas = canvas_of(max(width, 1))
    canvas.print(line, end="")
    return text_of(canvas)


def _figures(report: Report, pace: Pace, now: float) -> Iterator[str]:
    rate = pace.rate(now)
    yield f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"
    if (seconds := pace.left(report.expected, now)) is not None:
        yield _words(seconds)
    if waiting := sum(batch["calls"] for batch in report.batches.documents()):
        yield f"{waiting:,} calls wait for a batch"
    yield "spent " + (", ".join(str(cost) for cost in report.spent.values() if not cost.is_zero) or "nothing")


def _words(seconds: float) -> str:
    """Return the time left as text."""
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s left"
    minutes, seconds = divmod(rounded, 60)
    return f"{minutes} min {seconds:02} s left" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min left"
