"""Runs of one pipeline by the direct and by the general way, for comparisons: scripted metrics, masked results, counted calls."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import re
import signal
import time
from collections.abc import Container
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from unittest import mock

import attrs
import orjson

from dicast import (
    Cost,
    EndpointUnreachable,
    Failure,
    Interrupted,
    InvalidScore,
    Judgment,
    LedgerError,
    Score,
)
from dicast._kernel.asking import quick_unit
from dicast._kernel.report import fold
from dicast._kernel.run import direct
from dicast._kernel.run.request import Request
from dicast._kernel.stream import sinks, stream
from dicast._kernel.values.judged import JudgedRow
from dicast.testing import MemoryLedger, run_pipeline
from dicast.testing.pipeline import LEDGER

_VARIABLE = re.compile(r'[0-9A-HJKMNP-TV-Z]{26}|"\d{4}-\d\d-\d\dT[\d:.]+Z"|"judge_latency_ms":\d+|0x[0-9a-f]+')

CLASS_OF_RAW = Score(None, raw=3.5)


class Unwritable:
    """A value that is not JSON."""


def mutate_context(subject):
    subject.context["seen"] = True


def mutate_output(subject):
    subject.output["seen"] = True


def raising(error):
    def act(subject):
        raise error

    return act


class Later:
    """An awaitable of an answer, which may be left unawaited."""

    def __init__(self, answer):
        self._answer = answer

    def __await__(self):
        yield from asyncio.sleep(0).__await__()
        return self._answer


SIGNALS = (
    {},
    {"n": 1},
    {"rationale_redacted": "because", "scope": "ledger"},
    {"evidence": {"hidden": {"image": 2}, "cut": 3, "limit": "more"}},
    {"cut_replies": 2, "finish_reason": "odd", "escalated": True, "escalation_skipped": "cap"},
    {"nan": float("nan")},
)

ACTS = {
    "unwritable signals": lambda _: Score(0.5, signals={"a": Unwritable()}),
    "signals of another type": lambda _: Score(0.5, signals=["a"]),
    "no signals": lambda _: Score(0.5, signals=None),
    "details of another type": lambda _: Score(0.5, details=5),
    "no details": lambda _: Score(0.5, details=None),
    "half a letter": lambda _: Score(0.5, details="\ud800"),
    "feedback": lambda _: Score(0.25, feedback="shorter", details="long"),
    "price": lambda _: Score(0.5, cost=Cost("0.001")),
    "price in msat": lambda _: Score(0.5, cost=Cost(7, "msat", "v1")),
    "price of zero": lambda _: Score(0.5, cost=Cost("0.00")),
    "unknown price": lambda _: Score(0.5, cost=Cost.unknown()),
    "raw": lambda _: CLASS_OF_RAW,
    "value with raw": lambda _: Score(0.5, raw=50.0),
    "failure": lambda _: Failure("refused", "no comment"),
    "retryable failure": lambda _: Failure("judge_call_failed", "busy", retryable=True),
    "failure with a price": lambda _: Failure("refused", "no comment", cost=Cost("0.002")),
    "failure with half a letter": lambda _: Failure("refused", "\ud800"),
    "throttled failure": lambda _: Failure("throttled_no_heuristic", "cap", throttled_reason="run_cap"),
    "error": raising(ValueError("broken")),
    "out of range": lambda _: Score(1.5),
    "not a number": lambda _: Score(float("nan")),
    "invalid score": raising(InvalidScore("no score")),
    "endpoint lost": raising(EndpointUnreachable("http://127.0.0.1:9 does not answer")),
    "nothing": lambda _: None,
    "number": lambda _: 0.75,
    "bool": lambda _: True,
    "text": lambda _: "0.5",
    "judgment": lambda _: Judgment(0.5),
    "awaitable": lambda _: Later(Score(0.625)),
    "awaitable failure": lambda _: Later(Failure("refused", "later")),
    "changed context": mutate_context,
    "changed output": mutate_output,
    "changed attribute": lambda subject: setattr(subject, "output", "x"),
    "stop iteration": raising(StopIteration("end")),
}
"""Behavior of a metric by name: every kind of answer that is not a plain score."""


def interrupted_while_it_works(_):
    signal.raise_signal(signal.SIGINT)
    time.sleep(2)
    return Score(0.5)


ENDS = {
    "cancelled": raising(asyncio.CancelledError()),
    "exit": raising(SystemExit(3)),
    "generator exit": raising(GeneratorExit()),
    "interrupted": raising(Interrupted("stop")),
    "keyboard interrupt": raising(KeyboardInterrupt()),
    "signal": interrupted_while_it_works,
}
"""Behavior of a metric, by name, that may end the run."""


@attrs.frozen
class Scripted:
    """A metric that answers by script: an item of *answers* for each subject, by the number in its id."""

    name: str
    answers: tuple
    calls: list = attrs.field(eq=False, repr=False)
    needs_output: object = False
    tier = "proxy"

    def answer(self, subject):
        self.calls.append((self.name, subject.id))
        answer = self.answers[int(re.sub(r"\D", "", subject.id) or 0) % len(self.answers)]
        return answer if isinstance(answer, Score) else (ACTS | ENDS)[answer](subject)


class Plain(Scripted):
    def score(self, subject):
        return self.answer(subject)


class Slow(Scripted):
    def score(self, subject):
        time.sleep(0.12)
        return self.answer(subject)


class Waiting(Scripted):
    async def score(self, subject):
        await asyncio.sleep(0)
        return self.answer(subject)


class Priced(Scripted):
    def score(self, subject):
        return self.answer(subject)

    def estimate(self, subject):
        return Cost("0.001")


class Together(Scripted):
    def score(self, subject):
        return self.answer(subject)

    def score_batch(self, subjects):
        return [self.answer(subject) for subject in subjects]


class Late(Scripted):
    def score(self, subject):
        time.sleep(0.03)
        return self.answer(subject)


@attrs.frozen
class QuickJudge:
    """A judge that answers at once, and fails for every third subject."""

    accepts = ()
    needs_output = False

    def judge(self, subject, children=()):
        return Failure("refused", "no") if subject.id.endswith(("2", "5", "8")) else Judgment(0.5)


FORMS = (Plain, Plain, Plain, Plain, Waiting, Priced, Together)


@attrs.frozen
class Recorder:
    """A sink that keeps copies of its events.

    With the *fault* ``full`` it fails, with ``once`` its first attempt fails, with ``interrupt`` it ends the run; with ``changes`` it
    changes its events.
    """

    name: str
    wants: tuple
    fault: str = ""
    lines: list = attrs.field(factory=list, eq=False, repr=False)
    attempts: list = attrs.field(factory=list, eq=False, repr=False)

    def write(self, events):
        self.attempts.append(len(events))
        if self.fault == "full" or (self.fault == "once" and len(self.attempts) == 1):
            raise OSError("disk full")
        if self.fault == "interrupt" and len(self.attempts) == 3:
            raise KeyboardInterrupt
        lines = [line(event) for event in events]
        for event in events if self.fault == "changes" else ():
            event.payload["changed"] = True
            for name in ("scores", "skipped", "content"):
                if name in event.payload:
                    event.payload[name].clear()
        self.lines.extend(lines)

    def close(self):
        pass


@attrs.frozen
class FaultyLedger:
    """A ledger in memory whose appends with a number in *faults* fail."""

    faults: Container[int] = ()
    error: type[Exception] = LedgerError
    rows: MemoryLedger = attrs.field(init=False, factory=MemoryLedger, eq=False, repr=False)

    @asynccontextmanager
    async def open(self, run=None, create=True):
        async with self.rows.open(run, create) as live:
            append, numbers = live.append, itertools.count()

            def append_or_fail(events):
                if next(numbers) in self.faults:
                    raise self.error("disk full")
                return append(events)

            live.append = append_or_fail
            yield live

    def texts(self):
        """Return the events as JSON texts."""
        return [row.text.decode() for row in self.rows._book.rows]


@attrs.frozen
class Outcome:
    """Masked result of a run: its document or its error, exit code, events, deliveries to sinks, calls, and the number of direct rows."""

    document: object
    exit_code: object
    events: tuple
    delivered: tuple
    calls: tuple
    direct: int = attrs.field(eq=False)


def line(event):
    """Return *event* as JSON text; the order of keys counts."""
    return orjson.dumps(attrs.asdict(event)).decode()


def masked_head(document):
    """Return *document* as JSON text without the digest of the chain, which depends on ids and times."""
    ledger = document["ledger"]
    return orjson.dumps({**document, "ledger": {**ledger, "head": {**ledger["head"], "digest": None}}}).decode()


class Mask:
    """Replacement of ids by the order of their first appearance, and of times and durations by a fixed text."""

    def __init__(self):
        self._ids, self._numbers = {}, itertools.count()

    def __call__(self, text):
        return _VARIABLE.sub(self._replaced, text)

    def _replaced(self, match):
        text = match[0]
        if len(text) == 26 and text.isalnum():
            return self._ids.setdefault(text, f"ID-{next(self._numbers)}")
        if "latency" in text:
            return '"judge_latency_ms":0'
        return '"MASKED"' if text.startswith('"') else "MASKED"


@attrs.frozen
class Case:
    """A pipeline with its subjects: *forms* and *answers* of metrics, *options* of their slots, *sections* of the file.

    Events are passed on after *seconds*: 0 passes them on after each subject, infinity with a full batch or at the end. The appends in
    *faults* raise *error*.
    """

    subjects: tuple
    forms: tuple
    answers: tuple
    options: tuple
    sections: dict
    sinks: tuple = ()
    truths: int = 0
    seconds: float = math.inf
    faults: Container[int] = ()
    error: type[Exception] = LedgerError

    def run(self, *, general):
        """Run the case, by the general way alone if *general*."""
        calls, ledger = [], FaultyLedger(self.faults, self.error)
        components = {LEDGER: ledger, "judge": QuickJudge()}
        for number, (form, answers) in enumerate(zip(self.forms, self.answers, strict=True)):
            components[f"m{number}"] = form(f"m{number}", answers, calls)
        recorders = {f"s{number}": Recorder(f"s{number}", *sink) for number, sink in enumerate(self.sinks)}
        entries = [{f"m{n}": {"as": f"m{n}", **options}} for n, options in enumerate(self.options)]
        cut = len(entries) - self.truths
        metrics = {"proxy": entries[:cut], "truth": entries[cut:]}
        text = json.dumps({"name": "case", "metrics": metrics, "sinks": [*recorders], **self.sections})
        mask, document, exit_code = Mask(), None, None
        with switched(general=general, seconds=self.seconds) as counted:
            try:
                done = run_pipeline(text, subjects=self.subjects, components={**components, **recorders})
            except BaseException as error:  # compared
                document = f"{type(error).__name__}: {error}"
            else:
                document, exit_code = masked_head(done.document), done.exit_code
        events = tuple(map(mask, ledger.texts()))
        document = mask(document)
        delivered = tuple(tuple(map(mask, recorder.lines)) for recorder in recorders.values())
        return Outcome(document, exit_code, events, delivered, tuple(calls), counted.count)

    def both(self):
        """Return the outcomes of the direct and of the general way."""
        return self.run(general=False), self.run(general=True)


@attrs.define
class Counted:
    count: int = 0


class switched:  # noqa: N801  # a context manager
    """Count the rows of the direct way during the block; with *general* no row takes it. Events are passed on after *seconds*."""

    def __init__(self, *, general, seconds=math.inf):
        self._general, self._counted = general, Counted()
        original = direct.DirectRows.judged

        def judged(rows, due, read):
            row = original(rows, due, read)
            self._counted.count += isinstance(row, JudgedRow)
            return row

        self._patches = [mock.patch.object(direct.DirectRows, "judged", judged)]
        self._patches.append(mock.patch.object(sinks, "PAUSE_SECONDS", 0.0))
        self._patches.append(mock.patch.object(stream, "SECONDS", seconds))
        self._patches.append(mock.patch.object(quick_unit, "KNOWN_VERDICTS", 2))
        self._patches.append(mock.patch.object(fold, "BATCH", 3))
        self._patches.append(mock.patch("dicast.testing.pipeline.Request", partial(Request, signals=True)))
        if general:
            self._patches.append(mock.patch.object(direct, "direct_rows", return_value=None))

    def __enter__(self):
        for patch in self._patches:
            patch.start()
        return self._counted

    def __exit__(self, *raised):
        for patch in self._patches:
            patch.stop()


@contextmanager
def failing_at(number, owner, name):
    """Let the call with this *number* of the method *name* of *owner* fail."""
    numbers, method = itertools.count(1), getattr(owner, name)

    def failing(*arguments):
        if next(numbers) == number:
            raise ZeroDivisionError("a defect")
        return method(*arguments)

    with mock.patch.object(owner, name, failing):
        yield
