"""Processes behind ``evaluator/worker``: assignment of rows, and recovery from an ended or silent process."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import attrs
import orjson

from dicast import Failure, RawScore, Subject

from .options import GRACE_SECONDS, command_words
from .payload import environment, of_subject
from .preflight import PREFLIGHT_SECONDS, missing, preflight_payload, refused, warn_if_coerced
from .process import Gone, Process
from .result import BadResult, ScoreRange, problem, read


class WorkerOptions(Protocol):
    """Options of ``evaluator/worker`` that its workers read."""

    @property
    def command(self) -> str | tuple[str, ...]: ...  # noqa: D102
    @property
    def workers(self) -> int: ...  # noqa: D102
    @property
    def cwd(self) -> Path | None: ...  # noqa: D102
    @property
    def env(self) -> Mapping[str, str]: ...  # noqa: D102
    @property
    def max_line_bytes(self) -> int: ...  # noqa: D102
    @property
    def timeout(self) -> float: ...  # noqa: D102
    @property
    def task_model(self) -> str | None: ...  # noqa: D102
    @property
    def score_range(self) -> ScoreRange: ...  # noqa: D102


class Unanswered(Exception):
    """A worker that ended, or was silent for too long, before it answered.

    *blamed* is true for the row on which it worked; *used* is true if the worker had answered other rows before.
    """

    def __init__(self, message: str, kind: str, *, blamed: bool, used: bool) -> None:
        super().__init__(message)
        self.kind, self.blamed, self.used = kind, blamed, used


@attrs.define(eq=False)
class _Place:
    """Slot of one worker. A row that is sent alone holds the lock *alone*; other rows wait for it."""

    process: Process | None = None
    alone: asyncio.Lock = attrs.field(factory=asyncio.Lock)
    waiting: dict[int, asyncio.Future[dict[str, Any]]] = attrs.field(factory=dict)
    timer: asyncio.TimerHandle | None = None
    late: int | None = None


class Workers:
    """Live object that sends rows to the workers."""

    def __init__(self, options: WorkerOptions, base: Path, concurrency: int) -> None:
        self._options, self._words = options, command_words(options.command)
        self._folder = base if options.cwd is None else options.cwd
        self._env = {**options.env, **environment(options.task_model)}
        self._ids = count(1)
        self._places = [_Place() for _ in range(options.workers)]
        self._seconds = options.timeout
        # a row may wait for earlier rows, and be sent twice
        self.default_timeout = 2 * options.timeout * math.ceil(concurrency / options.workers) + GRACE_SECONDS

    async def check(self) -> None:
        """Test a worker.

        :raises ConfigError: with the problem.
        """
        detail = missing(self._words, self._folder)
        if detail is None:
            self._seconds = min(PREFLIGHT_SECONDS, self._options.timeout)
            try:
                value = await self._ask(self._places[0], preflight_payload(self._options.task_model))
                detail = problem(value, self._options.score_range)
                warn_if_coerced(value, self._options.score_range, " ".join(self._words))
            except Unanswered as error:
                detail = str(error)
            except OSError as error:
                detail = f"command failed to start: {error.strerror or error}"
            self._seconds = self._options.timeout
        if detail is not None:
            raise refused(self._words, self._folder, detail)

    async def ask(self, payload: Mapping[str, object]) -> dict[str, Any]:
        """Return a worker's answer to *payload*.

        :raises Unanswered: when there is none.
        """
        return await self._ask(self._places[0], dict(payload))

    async def score(self, subject: Subject) -> RawScore | Failure:
        """Score *subject*."""
        payload = orjson.loads(of_subject(subject, self._options.task_model))
        place = min(self._places, key=lambda candidate: len(candidate.waiting))
        try:
            try:
                value = await self._ask(place, payload)
            except Unanswered as error:
                if error.blamed:
                    return Failure(error.kind, str(error), retryable=True)
                value = await self._ask_alone(place, payload)
            return read(value, self._options.score_range).as_score()
        except Unanswered as error:
            return Failure(error.kind, str(error), retryable=True)
        except BadResult as error:
            return Failure(error.kind, str(error))
        except FileNotFoundError:
            return Failure("crashed", f"Command executable not found: {self._words[0]}")
        except OSError as error:
            return Failure("crashed", f"Command failed to start: {error.strerror or error}")

    async def _ask_alone(self, place: _Place, payload: dict[str, Any]) -> dict[str, Any]:
        """Send *payload* again, without other rows in the worker. The end of a worker that had answered other rows before does not count."""
        async with place.alone:
            try:
                return await self._ask(place, payload, alone=True)
            except Unanswered as error:
                if error.blamed or not error.used:
                    raise
                return await self._ask(place, payload, alone=True)

    async def _ask(self, place: _Place, payload: dict[str, Any], *, alone: bool = False) -> dict[str, Any]:
        """Return the answer of the worker at *place*.

        :raises Unanswered: when there is none.
        """
        while not alone and place.alone.locked():
            async with place.alone:  # wait for rows that are sent alone
                pass
        number = next(self._ids)
        answer = asyncio.get_running_loop().create_future()
        place.waiting[number] = answer
        try:
            process = await self._process(place)
            if not answer.done():
                process.send(orjson.dumps({"id": number, **payload}) + b"\n")
                self._watch(place)
            value: dict[str, Any] = await answer
            return value
        finally:
            place.waiting.pop(number, None)
            if not place.waiting:
                self._unwatch(place)

    async def _process(self, place: _Place) -> Process:
        if place.process is None or place.process.over:
            place.process = Process(
                lambda value: self._take(place, value),
                lambda gone: self._on_end(place, gone),
                self._options.max_line_bytes,
            )
            place.process.started = asyncio.ensure_future(place.process.start(self._words, self._folder, self._env))
        process = place.process
        assert process.started is not None  # above
        await asyncio.shield(process.started)
        return process

    def _take(self, place: _Place, value: dict[str, Any]) -> None:
        """Pass a line of a worker to its row."""
        number = value.pop("id", None)
        answer = place.waiting.pop(number, None) if type(number) is int else None
        if answer is not None and not answer.done():
            assert place.process is not None  # it has answered
            place.process.answered = True
            answer.set_result(value)
            self._unwatch(place)
            if place.waiting:
                self._watch(place)

    def _watch(self, place: _Place) -> None:
        """End the worker if it gives no result within the time limit."""
        if place.timer is None:
            place.timer = asyncio.get_running_loop().call_later(self._seconds, self._overtime, place)

    def _unwatch(self, place: _Place) -> None:
        if place.timer is not None:
            place.timer.cancel()
            place.timer = None

    def _overtime(self, place: _Place) -> None:
        place.timer, place.late = None, next(iter(place.waiting), None)
        if place.process is not None:
            place.process.kill()

    def _on_end(self, place: _Place, gone: Gone) -> None:
        """Report the end of a worker to its waiting rows."""
        late, place.late = place.late, None
        for number, answer in [*place.waiting.items()]:
            if not answer.done():
                answer.set_exception(self._unanswered(gone, late, blamed=number == late))
        self._unwatch(place)

    def _unanswered(self, gone: Gone, late: int | None, *, blamed: bool) -> Unanswered:
        kind, message = "crashed", f"Command exited with code {gone.code} before it answered"
        if late is not None:
            kind, message = "timeout", f"Command timed out after {self._seconds:g}s"
        elif gone.too_long:
            kind, message = "judge_output_invalid", f"Command output is too long: {gone.too_long}"
        elif gone.errors:
            message += f": {gone.errors}"
        return Unanswered(message, kind, blamed=blamed, used=gone.answered)

    async def close(self) -> None:
        """End the workers."""
        running = [place.process for place in self._places if place.process is not None]
        await asyncio.gather(*(process.close() for process in running))
