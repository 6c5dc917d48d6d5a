"""Trying anybody's evaluator with payloads of every kind the protocol allows: ``dicast conformance``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import attrs
import orjson

from dicast import ConfigError, RunContext
from dicast.toolkit.command import CommandEnd, OutputTooLong

from .command import Command, CommandEvaluator
from .http import Http
from .payload import PREFLIGHT_CANDIDATE, payload
from .result import ScoreRange, parsed, problem, shown
from .worker import Worker

Kind = Literal["command", "http", "worker"]

_SHOWN = 300
_HUGE = 1_000_000
_AT_ONCE = 8
_ODD = "naïve — 你好 \U0001f642 \u202eright to left\u202c \u0000 \t end"


@attrs.frozen
class Received:
    """What came back: its text as it can be shown, its value, and why there is none."""

    text: str
    value: object = None
    failure: str | None = None


@attrs.frozen
class Case:
    """One rule, what was sent to try it, and what came back."""

    name: str
    rule: str
    sent: str
    received: str
    ok: bool
    message: str


Ask = Callable[[Mapping[str, object]], Awaitable[Received]]


@attrs.frozen
class Target:
    """An evaluator to try: a command, or an address."""

    kind: Kind
    place: str
    timeout: float = 30.0
    score_range: ScoreRange = "unit"

    @asynccontextmanager
    async def asked(self) -> AsyncIterator[Ask]:
        """How to ask it.

        :raises ConfigError: when it is nothing that can be asked.
        """
        run = RunContext("conformance", "conformance", Path.cwd())
        if self.kind == "http":
            from .client import NoReply, connect

            async with connect(Http(self.place, timeout=self.timeout), run.concurrency) as client:

                async def post(sent: Mapping[str, object]) -> Received:
                    try:
                        return _received(await client.post(orjson.dumps(sent), self.timeout))
                    except NoReply as error:
                        return Received("", failure=str(error))

                yield post
        elif self.kind == "command":
            live = CommandEvaluator(Command(self.place, timeout=self.timeout), Path.cwd())

            async def call(sent: Mapping[str, object]) -> Received:
                try:
                    return _ended(await live.ask(orjson.dumps(sent), self.timeout))
                except TimeoutError:
                    return Received("", failure=f"Command timed out after {self.timeout:g}s")
                except (OSError, OutputTooLong) as error:
                    return Received("", failure=f"Command failed: {error}")

            yield call
        else:
            from .workers import Unanswered, Workers

            workers = Workers(Worker(self.place, timeout=self.timeout), Path.cwd(), _AT_ONCE)

            async def line(sent: Mapping[str, object]) -> Received:
                try:
                    value = await workers.ask(sent)
                    return Received(orjson.dumps(value).decode()[:_SHOWN], value)
                except Unanswered as error:
                    return Received("", failure=str(error))
                except OSError as error:
                    return Received("", failure=f"Command failed to start: {error.strerror or error}")

            try:
                yield line
            finally:
                await workers.close()


def _ended(end: CommandEnd) -> Received:
    if end.code:
        said = shown(end.errors, _SHOWN)
        return Received(said, failure=f"Command exited with code {end.code}")
    return _received(end.output)


def _received(data: bytes) -> Received:
    text = shown(data, _SHOWN)
    try:
        return Received(text, parsed(data))
    except ValueError:
        return Received(text, failure="the answer is not valid JSON")


def _payloads() -> Iterator[tuple[str, str, dict[str, object]]]:
    """Name, rule and payload of each case with one request."""
    example = {"input": "What is 2 + 2?", "expected": "4", "metadata": {"difficulty": "easy"}}
    yield "version 1", "An evaluator that reads only the candidate remains valid.", {"candidate": "4"}
    yield "version 2", "_protocol_version is 2 and may be ignored.", payload("4")
    yield "preflight", "The candidate of the preflight gets a result like any other.", payload(PREFLIGHT_CANDIDATE)
    yield "task model", "task_model is metadata.", payload("4", None, "provider/model")
    yield "example", "In dataset mode the payload has an example.", payload("4", example, "provider/model")
    yield "unknown keys", "Unknown keys are ignored.", {**payload("4", example), "_later": {"version": 3}, "extra": [1]}
    yield "empty candidate", "A candidate may be empty.", payload("", example)
    yield "long candidate", "A candidate may be long.", payload("x" * _HUGE)
    yield "unicode", "Payloads are UTF-8; a candidate is any text.", payload(_ODD, {"input": _ODD})
    odd: dict[str, object] = {"input": None, "expected": [1, {"a": None}], "metadata": "none", "": 0}
    yield "odd example", "No field names or types of an example are fixed.", payload("4", odd)
    yield "empty example", "An example may be an empty object.", payload("4", {})


async def conformance(target: Target) -> list[Case]:
    """Try the evaluator with every case, one after the other, then several at once.

    :raises ConfigError: when *target* is nothing that can be asked.
    """
    async with target.asked() as ask:
        cases = [_case(name, rule, sent, await ask(sent), target) for name, rule, sent in _payloads()]
        same = payload("4")
        for name, rule, answers in (
            ("repeated", "The same payload gets a result each time.", [await ask(same) for _ in range(3)]),
            ("parallel", f"{_AT_ONCE} payloads at once get a result each.", await asyncio.gather(*[ask(payload(str(n))) for n in range(_AT_ONCE)])),
        ):  # fmt: skip
            bad = next((one for one in answers if _wrong(one, target)), answers[0])
            cases.append(_case(name, rule, same, bad, target))
    return cases


def _wrong(received: Received, target: Target) -> str | None:
    return received.failure or problem(received.value, target.score_range)


def _case(name: str, rule: str, sent: Mapping[str, object], received: Received, target: Target) -> Case:
    message = _wrong(received, target)
    text = orjson.dumps(sent).decode()
    text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text):,} characters)"
    return Case(name, rule, text, received.text, message is None, message or "")


def document(cases: list[Case]) -> dict[str, Any]:
    """The cases as JSON data."""
    return {"ok": all(case.ok for case in cases), "cases": [attrs.asdict(case) for case in cases]}


def markdown(target: Target, cases: list[Case]) -> str:
    """The cases as a table for a report."""
    failed = sum(not case.ok for case in cases)
    lines = [f"# Conformance of {_cell(target.place)}", "", f"{len(cases) - failed} of {len(cases)} cases hold.", ""]
    lines += ["| | case | rule | sent | received | what is wrong |", "|---|---|---|---|---|---|"]
    for case in cases:
        cells = [case.name, case.rule, case.sent, case.received, case.message]
        lines.append(f"| {'ok' if case.ok else 'FAILED'} | {' | '.join(map(_cell, cells))} |")
    return "\n".join([*lines, ""])


def _cell(text: str) -> str:
    """*text* in one cell of a table."""
    safe = "".join(letter if letter.isprintable() else " " for letter in text)
    return (
        f"`{safe.replace('`', chr(39)).replace('|', '&#124;')}`" if safe.startswith("{") else safe.replace("|", "\\|")
    )


def refuse_unreachable(cases: list[Case], target: Target) -> None:
    """Refuse a target that never answered at all.

    :raises ConfigError: with what was said.
    """
    if all(not case.ok and not case.received for case in cases):
        raise ConfigError(f"{target.kind} {target.place} never answered: {cases[0].message}")
