"""The plugin ``fake``: components controlled by the subject's output. Tests install it; it is not imported from here."""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from pathlib import Path
from typing import ClassVar

import attrs

from dicast import Cost, Failure, Interrupted, Judgment, Score, Subject, hookimpl, judge, metric


def log(path: str, text: str) -> None:
    """Append a line that outlives a kill."""
    if path:
        with Path(path).open("a") as file:
            file.write(f"{text}\n")


@metric(tier="proxy")
def act(subject: Subject, *, journal: str = "", moody: str = ""):
    """Act on the output: a number is the score, a word is a way to fail, in a simple way while the file *moody* exists."""
    log(journal, subject.id)
    said = subject.output
    match said:
        case "busy" if moody and Path(moody).exists():
            return Failure("judge_call_failed", "in a mood")
        case "later":
            return Failure("judge_call_failed", "in a mood") if moody and Path(moody).exists() else Score(0.25)
        case "raise":
            raise RuntimeError("on purpose")
        case "exit":
            raise SystemExit(9)
        case "interrupted":
            raise Interrupted("by nobody")
        case "none":
            return None
        case "bare":
            return 0.5
        case "text":
            return "0.5"
        case "high":
            return Score(1.5)
        case "nan":
            return Score(float("nan"))
        case "busy":
            while True:
                pass
        case "stubborn":
            while True:
                try:
                    while True:
                        pass
                except Exception:
                    pass
        case "regex":
            re.match(r"(a+)+$", "a" * 40 + "!")
        case "odd":
            return Score(0.5, signals={"odd": object()})
        case "wordy":
            return Score(0.5, details="failed\nTraceback\n  here")
        case str() if said.startswith("fail:"):
            return Failure(said[5:], "on purpose")
    return Score(float(said))


@metric(tier="truth")
def truth(subject: Subject, *, value: float = 1.0, journal: str = "") -> Score:
    """A truth metric that always says the same."""
    log(journal, subject.id)
    return Score(value)


@metric(tier="proxy")
async def wait(subject: Subject, *, seconds: float = 0.0, journal: str = "", jitter: float = 0.0):
    """Wait, then return the output as the score."""
    log(journal, subject.id)
    if subject.output == "hang":
        await asyncio.Event().wait()
    if subject.output == "raise":
        raise RuntimeError("on purpose")
    await asyncio.sleep(seconds + random.random() * jitter)
    return Score(float(subject.output))


@metric(tier="proxy")
def spin(subject: Subject, *, seconds: float = 0.05, journal: str = "") -> Score:
    """Keep the processor busy, then return the output as the score."""
    log(journal, subject.id)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return Score(float(subject.output))


@metric(tier="truth", cost="0.01 usd")
async def paid(subject: Subject, *, seconds: float = 0.0, journal: str = "", after: str = "") -> Score:
    """A paid call: logged when it is made, and in *after* when it is answered."""
    log(journal, subject.id)
    await asyncio.sleep(seconds)
    log(after, subject.id)
    return Score(float(subject.output), cost=Cost("0.01"))


@judge(cost="0.01 usd")
async def paid_judge(subject: Subject, *, journal: str = "") -> Judgment:
    """A paid judge with nothing to fall back on."""
    log(journal, subject.id)
    return Judgment(float(subject.output), 0.8, "llm", "m-1", Cost("0.01"))


@judge()
def opinion(subject: Subject, *, journal: str = "", rationale: str = "", moody: str = "") -> Judgment | Failure:
    """A judge that returns the output as its verdict, and fails on a word while the file *moody* exists."""
    log(journal, subject.id)
    if moody and Path(moody).exists() and float(subject.output) < 0.5:
        return Failure("judge_call_failed", "in a mood")
    signals = {"rationale_redacted": rationale} if rationale else {}
    return Judgment(float(subject.output), 0.9, "heuristic", signals=signals)


@judge()
def signalling(subject: Subject) -> Judgment:
    """A judge with a long signal before a short one."""
    return Judgment(0.5, 0.5, "hybrid", "m-1", signals={"flags": ["x" * 300], "escalated": True, "rationale_hash": "0"})


@judge(accepts=("turn",))
def turns_only(subject: Subject) -> Judgment:
    """A judge that judges turns and nothing else."""
    return Judgment(0.25, 0.5, "heuristic")


@attrs.frozen
class Leaky:
    """A sink that fails: *at* its ``open``, from its n-th ``write`` on, or at its ``close``.

    :param at: ``open``, ``write`` or ``close``.
    :param after: writes that succeed before.
    """

    wants: ClassVar[tuple[str, ...]] = ("eval.completed",)

    at: str = "write"
    after: int = 0
    _writes: list[int] = attrs.field(factory=list, init=False, eq=False)

    def write(self, events):
        """Write events, with the chosen fault."""
        if self.at == "write" and len(self._writes) >= self.after:
            raise OSError("the pipe burst")
        self._writes.append(len(events))

    def close(self):
        """Close, with the chosen fault."""
        if self.at == "close":
            raise OSError("the lid is stuck")


@attrs.frozen
class EventLog:
    """A sink that writes its events to a file at once, with the id of the process.

    :param path: the file.
    """

    path: str

    def write(self, events):
        """Append the events' types and eval_ids."""
        for event in events:
            log(self.path, f"{os.getpid()} {event.type} {event.subject_id} {event.payload.get('eval_id')}")

    def close(self):
        """Nothing is open."""


@hookimpl
def dicast_metrics():
    """Offer the metrics."""
    return [act, truth, wait, spin, paid]


@hookimpl
def dicast_judges():
    """Offer the judges."""
    return [paid_judge, opinion, signalling, turns_only]


@hookimpl
def dicast_sinks():
    """Offer the sinks."""
    return [Leaky, EventLog]
