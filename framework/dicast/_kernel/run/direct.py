"""Direct way of a run: rows whose metrics answer at once and for free, judged in batches.

Such a row needs no task, no money and no turn of the event loop. Its three events are one value until a ledger or a sink needs them. Any
other subject, and any row with an odd answer, goes the general way at its place in the order; answers that it has are not asked for again.
"""

from __future__ import annotations

import time
from typing import Any

from ..asking.paid_calls import DirectAnswers, RunServices
from ..asking.quick_unit import QuickUnit
from ..stream.content import content_and_text
from ..stream.stream import Stream
from ..values import PARENTS, Due
from ..values.judged import JudgedMaker, JudgedRow
from .begin import RowStart
from .plan import Plan
from .window import Window

_FAMILIES = frozenset((*PARENTS, *PARENTS.values()))
"""Kinds with verdicts on their parts."""

_TRIGGER = "batch"


class DirectRows:
    """Judge of the rows of one run."""

    def __init__(self, plan: Plan, services: RunServices, stream: Stream) -> None:
        self._plan, self._services, self._stream = plan, services, stream
        self._makers: dict[str, tuple[QuickUnit, JudgedMaker] | None] = {}

    def accepts(self, due: Due) -> bool:
        """Return whether the subject may be judged directly."""
        subject = due.subject
        return (
            due.failure is None
            and not due.recorded
            and due.from_run is None
            and due.answered is None
            and due.finish_reason is None
            and due.trigger == _TRIGGER
            and subject.weight == 1
            and subject.events == ()
            and not subject.trail.stop
            and not self._services.budget.highest_costs
            and self._maker(subject.kind) is not None
        )

    def _maker(self, kind: str) -> tuple[QuickUnit, JudgedMaker] | None:
        try:
            return self._makers[kind]
        except KeyError:
            maker = self._makers[kind] = self._new_maker(kind)
            return maker

    def _new_maker(self, kind: str) -> tuple[QuickUnit, JudgedMaker] | None:
        units = self._plan.units_for(kind)
        quick = QuickUnit.of(units[0], self._services, kind) if len(units) == 1 and kind not in _FAMILIES else None
        if quick is None:
            return None
        unit = units[0]
        started = {"judge": unit.label, "trigger": _TRIGGER, **unit.planned(kind)}
        labels = tuple(call.slot.label for call in quick.calls)
        return quick, JudgedMaker(self._stream.run_id, kind, unit.label, started, labels, unit.keeps_texts)

    def start_of(self, due: Due) -> RowStart:
        """Return the start of the row of *due*.

        :raises DataError: if the content is not JSON.
        """
        stream = self._stream
        read, text = content_and_text(due, stream.run_id)
        eval_id, first, second, time_ = stream.clock.three_stamps()
        return RowStart(read, eval_id, (first, second), time_, text)

    def judged(self, due: Due, row_start: RowStart) -> JudgedRow | DirectAnswers:
        """Judge the row of *due*, and return it; with an odd answer, return the answers so far.

        :raises Interrupted: if the run has to stop.
        """
        subject = due.subject
        entry = self._maker(subject.kind)
        assert entry is not None  # the row was accepted
        quick, maker = entry
        began = time.perf_counter()
        answers, is_odd, has_notes = quick.ask(subject)
        verdict = None if is_odd else quick.verdict(answers, subject)
        seconds = time.perf_counter() - began
        if verdict is None:
            return quick.handed_over(answers, seconds)
        read, eval_id, (first, second), start, text = row_start
        last, end = self._stream.clock.stamp()
        ids, times = (first, second, last), (start, end)
        return JudgedRow(
            maker, subject, read, verdict, answers, eval_id, ids, times, int(seconds * 1000), has_notes, text
        )


def direct_rows(plan: Plan, services: RunServices, stream: Stream) -> DirectRows | None:
    """Return the judge of rows; None if no row of *plan* can be judged directly."""
    return DirectRows(plan, services, stream) if plan.inline and services.spool is None else None


class DirectWindow(Window):
    """Window that judges rows directly, and other subjects the general way."""

    def __init__(self, plan: Plan, services: RunServices, stream: Stream, *arguments: Any, **options: Any) -> None:
        super().__init__(plan, services, stream, *arguments, **options)
        is_plain = self._producer is None and self._observers is None
        self._rows = direct_rows(plan, services, stream) if is_plain else None

    async def _take(self, due: Due) -> None:
        rows, stream = self._rows, self._stream
        if rows is None or self._window or not rows.accepts(due):
            await super()._take(due)
            return
        self._end_if_asked()
        row_start = rows.start_of(due)
        try:
            result = rows.judged(due, row_start)
        except BaseException:  # the run ends, and its events show the started row
            await self._starter.start(due, row_start)
            raise
        if isinstance(result, JudgedRow):
            stream.emit_judged(result)
        else:
            job = await self._starter.start(due, row_start)
            job.ready = result
            await self._judge(job)
        if stream.due:
            await self._flush()
