"""Live object of ``evaluator/http``: requests to the evaluator, and the results in its replies."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

import attrs
import orjson

from dicast import AccessRefused, ConfigError, Failure, RawScore, Secret, Subject
from dicast.toolkit.endpoint import Address, ClientLimits, options
from dicast.toolkit.endpoint import client as endpoint
from dicast.toolkit.endpoint.faults import ConnectionFault
from dicast.toolkit.http_reply import ReplyRefused

from .options import GRACE_SECONDS
from .payload import of_subject
from .preflight import PREFLIGHT_SECONDS, answer_problem, preflight_payload
from .result import ScoreRange, answer

_NO_ACCESS = (401, 403, 404)
_EXCERPT_CHARS = 500


class HttpOptions(Protocol):
    """Options of ``evaluator/http`` that its client reads."""

    @property
    def url(self) -> str: ...  # noqa: D102
    @property
    def headers(self) -> Mapping[str, Secret]: ...  # noqa: D102
    @property
    def max_output_bytes(self) -> int: ...  # noqa: D102
    @property
    def timeout(self) -> float: ...  # noqa: D102
    @property
    def task_model(self) -> str | None: ...  # noqa: D102
    @property
    def score_range(self) -> ScoreRange: ...  # noqa: D102


class NoReply(Exception):
    """A request without a result, with a message in the protocol's words.

    *kind* is the kind of the Failure, *status* the HTTP status of the server, 0 without a response.
    """

    def __init__(
        self, message: str, kind: str = "judge_call_failed", status: int = 0, *, connected: bool = True
    ) -> None:
        super().__init__(message)
        self.kind, self.status, self.connected = kind, status, connected


@asynccontextmanager
async def connect(component: HttpOptions, concurrency: int) -> AsyncIterator[Client]:
    """Open the live object of *component* for a run that scores up to *concurrency* rows at once."""
    address = Address(component.url, option="url", reply_option="max_output_bytes")
    limits = ClientLimits(timeout=component.timeout, max_reply_bytes=component.max_output_bytes)
    headers, secrets = options.plain_headers(component.headers), options.secret_values(component.headers)
    async with endpoint.connect(address, limits, concurrency, headers=headers, secrets=secrets) as client:
        yield Client(component, client)


@attrs.frozen
class Client:
    """Client that sends rows to the evaluator."""

    options: HttpOptions
    client: endpoint.Client

    @property
    def default_timeout(self) -> float:
        """Seconds until the kernel gives up a call."""
        return self.options.timeout + GRACE_SECONDS

    async def check(self) -> None:
        """Test the evaluator.

        :raises ConfigError: with the problem.
        """
        sent = orjson.dumps(preflight_payload(self.options.task_model))
        where = self.options.url.partition("?")[0]
        try:
            reply = await self.post(sent, PREFLIGHT_SECONDS)
        except NoReply as error:
            is_reached = error.connected or (
                isinstance(error.__cause__, ConnectionFault) and error.__cause__.kind == "certificate"
            )
            hint = "" if is_reached else ". Is the evaluator server running?"
            raise ConfigError(f"evaluator preflight failed for {where}: {error}{hint}") from error
        message = answer_problem(reply, self.options.score_range, "response", "<empty response>", where)
        if message is not None:
            raise ConfigError(f"evaluator preflight failed for {where}: {message}")

    async def score(self, subject: Subject) -> RawScore | Failure:
        """Score *subject*.

        :raises dicast.AccessRefused: for 401, 403 and 404, and when too many rows in a row get no connection.
        """
        return await self.client.reachability.watch(self._score(subject))

    async def _score(self, subject: Subject) -> tuple[RawScore | Failure, bool]:
        """Return the score, and whether the evaluator was reached."""
        try:
            reply = await self.post(of_subject(subject, self.options.task_model), self.options.timeout)
        except NoReply as error:
            if error.status in _NO_ACCESS:
                raise AccessRefused(f"{self.options.url.partition('?')[0]}: {error}") from error
            return Failure(error.kind, str(error), retryable=error.kind == "timeout"), error.connected
        return answer(reply, self.options.score_range, "Response"), True

    async def post(self, data: bytes, seconds: float) -> bytes:
        """Return the body of a reply with a status of 2xx.

        :raises NoReply: for any other result.
        """
        try:
            answer = await self.client.fetch("POST", "", data, seconds=seconds)
        except ReplyRefused as error:
            raise NoReply(self._excerpt(f"{error}"), "judge_output_invalid") from error
        except TimeoutError as error:
            raise NoReply(f"HTTP request timed out after {seconds:g}s", "timeout") from error
        except ConnectionFault as error:
            if error.kind == "silent":
                limit = self.client.limits.connecting
                raise NoReply(
                    f"HTTP request timed out: no connection within {limit:g}s", "timeout", connected=False
                ) from error
            message = f"HTTP request failed: {self._excerpt(str(error))}"
            raise NoReply(message, connected=error.is_connected) from error
        if not 200 <= answer.status < 300:
            body = " ".join(answer.data.decode(errors="replace").split())
            raise NoReply(self._excerpt(f"HTTP {answer.status}: {body}"), status=answer.status)
        return answer.data

    def _excerpt(self, message: str) -> str:
        """Return *message*, cut, without secrets, which a server may repeat."""
        message = self.client.reader.message(message)
        return message if len(message) <= _EXCERPT_CHARS else f"{message[:_EXCERPT_CHARS]}…"
