"""Test of any evaluator with payloads of every kind in the protocol: ``dicast conformance``."""

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
from dicast.toolkit.files import error_reason

from .command import Command, CommandEvaluator
from .http import Http
from .payload import PREFLIGHT_CANDIDATE, payload
from .result import ScoreRange, excerpt, parsed, problem
from .worker import Worker

Kind = Literal["command", "http", "worker"]

_EXCERPT_CHARS = 300
_HUGE = 1_000_000
_PARALLEL = 8
_ODD = "naïve — 你好 \U0001f642 \u202eright to left\u202c \u0000 \t end"


@attrs.frozen
class Received:
    """A reply: its printable text and its value, or the reason for a missing value."""

    text: str
    value: object = None
    failure: str | None = None


@attrs.frozen
class Case:
    """One rule, the payload that tests it, and the reply."""

    name: str
    rule: str
    sent: str
    received: str
    ok: bool
    message: str


Ask = Callable[[Mapping[str, object]], Awaitable[Received]]


@attrs.frozen
class Target:
    """An evaluator to test: a command, or an address."""

    kind: Kind
    place: str
    timeout: float = 30.0
    score_range: ScoreRange = "unit"

    @asynccontextmanager
    async def open_connection(self) -> AsyncIterator[Ask]:
        """Yield the function that sends it a payload.

        :raises ConfigError: when the target is neither a command nor an address.
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
                    return _from_end(await live.ask(orjson.dumps(sent), self.timeout))
                except TimeoutError:
                    return Received("", failure=f"Command timed out after {self.timeout:g}s")
                except (OSError, OutputTooLong) as error:
                    return Received("", failure=f"Command failed: {error_reason(error)}")

            yield call
        else:
            from .workers import Unanswered, Workers

            workers = Workers(Worker(self.place, timeout=self.timeout), Path.cwd(), _PARALLEL)

            async def line(sent: Mapping[str, object]) -> Received:
                try:
                    value = await workers.ask(sent)
                    return Received(orjson.dumps(value).decode()[:_EXCERPT_CHARS], value)
                except Unanswered as error:
                    return Received("", failure=str(error))
                except OSError as error:
                    return Received("", failure=f"Command failed to start: {error.strerror or error}")

            try:
                yield line
            finally:
                await workers.close()


def _from_end(end: CommandEnd) -> Received:
    if end.code:
        errors = excerpt(end.errors, _EXCERPT_CHARS)
        return Received(errors, failure=f"Command exited with code {end.code}")
    return _received(end.output)


def _received(data: bytes) -> Received:
    text = excerpt(data, _EXCERPT_CHARS)
    try:
        return Received(text, parsed(data))
    except ValueError:
        return Received(text, failure="the answer is not valid JSON")


def _payloads() -> Iterator[tuple[str, str, dict[str, object]]]:
    """Yield name, rule and payload of each case with one request."""
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
    """Test the evaluator with every case, one after the other, then several at once.

    :raises ConfigError: when *target* is neither a command nor an address.
    """
    async with target.open_connection() as ask:
        cases = [_case(name, rule, sent, await ask(sent), target) for name, rule, sent in _payloads()]
        repeated = payload("4")
        for name, rule, answers in (
            ("repeated", "The same payload gets a result each time.", [await ask(repeated) for _ in range(3)]),
            ("parallel", f"{_PARALLEL} payloads at once get a result each.", await asyncio.gather(*[ask(payload(str(n))) for n in range(_PARALLEL)])),
        ):  # fmt: skip
            bad = next((reply for reply in answers if _wrong(reply, target)), answers[0])
            cases.append(_case(name, rule, repeated, bad, target))
    return cases


def _wrong(received: Received, target: Target) -> str | None:
    return received.failure or problem(received.value, target.score_range)


def _case(name: str, rule: str, sent: Mapping[str, object], received: Received, target: Target) -> Case:
    message = _wrong(received, target)
    text = orjson.dumps(sent).decode()
    text = text if len(text) <= _EXCERPT_CHARS else f"{text[:_EXCERPT_CHARS]}… ({len(text):,} characters)"
    return Case(name, rule, text, received.text, message is None, message or "")


def document(cases: list[Case]) -> dict[str, Any]:
    """Return the cases as JSON data."""
    return {"ok": all(case.ok for case in cases), "cases": [attrs.asdict(case) for case in cases]}


def markdown(target: Target, cases: list[Case]) -> str:
    """Return the cases as a Markdown table."""
    failed = sum(not case.ok for case in cases)
    lines = [f"# Conformance of {_cell(target.place)}", "", f"{len(cases) - failed} of {len(cases)} cases hold.", ""]
    lines += ["| | case | rule | sent | received | problem |", "|---|---|---|---|---|---|"]
    for case in cases:
        cells = [case.name, case.rule, case.sent, case.received, case.message]
        lines.append(f"| {'ok' if case.ok else 'FAILED'} | {' | '.join(map(_cell, cells))} |")
    return "\n".join([*lines, ""])


def _cell(text: str) -> str:
    """Return *text* as one cell of a table."""
    safe = "".join(letter if letter.isprintable() else " " for letter in text)
    return (
        f"`{safe.replace('`', chr(39)).replace('|', '&#124;')}`" if safe.startswith("{") else safe.replace("|", "\\|")
    )


def refuse_unreachable(cases: list[Case], target: Target) -> None:
    """Refuse a target that never answered.

    :raises ConfigError: with the error of the first case.
    """
    if all(not case.ok and not case.received for case in cases):
        raise ConfigError(f"{target.kind} {target.place} never answered: {cases[0].message}")
