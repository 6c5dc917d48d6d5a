"""The client behind ``evaluator/http``: one session with its connections, and what the replies mean."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO

import aiohttp
import attrs
import orjson

from dicast import (
    IDENTITY,
    AccessRefused,
    ConfigError,
    Failure,
    RawScore,
    Reachability,
    ReplyReader,
    ReplyRefused,
    Subject,
)

from .http import Http
from .options import GRACE_SECONDS
from .payload import of_subject
from .preflight import PREFLIGHT_SECONDS, answer_problem, preflight_payload
from .result import answer

_NO_ACCESS = (401, 403, 404)
_UNREACHABLE_AT_START, _UNREACHABLE_LATER = 10, 50
_NOT_CONNECTED = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_SHOWN = 500


class NoReply(Exception):
    """A request that brought no result, in the protocol's words. *kind* is the Failure's, *status* the server's."""

    def __init__(
        self, message: str, kind: str = "judge_call_failed", status: int = 0, *, connected: bool = True
    ) -> None:
        super().__init__(message)
        self.kind, self.status, self.connected = kind, status, connected


@asynccontextmanager
async def connect(options: Http, concurrency: int) -> AsyncIterator[Client]:
    """The live object of *options* for a run that asks about *concurrency* rows at once."""
    headers = {"Content-Type": "application/json", "User-Agent": "dicast", **IDENTITY}
    async with aiohttp.ClientSession(
        headers=headers | {name: secret.value for name, secret in options.headers.items()},
        # How many rows there are at once is for the run to say, not for the pool.
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,  # the reader does it, within its limit
    ) as session:
        secrets = [secret.value for secret in options.headers.values()]
        reader = ReplyReader(secrets, options.max_output_bytes, "max_output_bytes")
        at_start = max(_UNREACHABLE_AT_START, concurrency)
        yield Client(options, session, Reachability(at_start, _UNREACHABLE_LATER, url=options.url), reader)


@attrs.frozen
class Client:
    """Asks the evaluator about rows."""

    options: Http
    session: aiohttp.ClientSession
    reachability: Reachability
    reader: ReplyReader

    @property
    def default_timeout(self) -> float:
        """Seconds until the kernel gives a call up."""
        return self.options.timeout + GRACE_SECONDS

    async def check(self) -> None:
        """Try the evaluator.

        :raises ConfigError: saying what is wrong.
        """
        sent = orjson.dumps(preflight_payload(self.options.task_model))
        where = self.options.url.partition("?")[0]
        try:
            reply = await self.post(sent, PREFLIGHT_SECONDS)
        except NoReply as error:
            there = error.connected or isinstance(error.__cause__, aiohttp.ClientSSLError)
            hint = "" if there else ". Is the evaluator server running?"
            raise ConfigError(f"evaluator preflight failed for {where}: {error}{hint}") from error
        found = answer_problem(reply, self.options.score_range, "response", "<empty response>", where)
        if found is not None:
            raise ConfigError(f"evaluator preflight failed for {where}: {found}")

    async def score(self, subject: Subject) -> RawScore | Failure:
        """Ask about *subject*.

        :raises dicast.AccessRefused: for 401, 403 and 404, and where too many rows in a row get no connection.
        """
        return await self.reachability.watch(self._score(subject))

    async def _score(self, subject: Subject) -> tuple[RawScore | Failure, bool]:
        """The answer, and whether the evaluator was reached."""
        try:
            reply = await self.post(of_subject(subject, self.options.task_model), self.options.timeout)
        except NoReply as error:
            if error.status in _NO_ACCESS:
                raise AccessRefused(f"{self.options.url.partition('?')[0]}: {error}") from error
            return Failure(error.kind, str(error), retryable=error.kind == "timeout"), error.connected
        return answer(reply, self.options.score_range, "Response"), True

    async def post(self, data: bytes, seconds: float) -> bytes:
        """The body of a reply with a status of 2xx.

        :raises NoReply: for all else.
        """
        limit = aiohttp.ClientTimeout(total=seconds)
        try:
            async with self.session.post(
                self.options.url, data=BytesIO(data), allow_redirects=False, timeout=limit
            ) as response:
                fine = 200 <= response.status < 300
                body = await self.reader.read(response.content.iter_any(), response.headers, cut=not fine)
        except ReplyRefused as error:
            raise NoReply(self._said(f"{error}"), "judge_output_invalid") from error
        except TimeoutError as error:
            connected = not isinstance(error, _NOT_CONNECTED)
            raise NoReply(f"HTTP request timed out after {seconds:g}s", "timeout", connected=connected) from error
        except (aiohttp.ClientError, OSError) as error:
            connected = not isinstance(error, _NOT_CONNECTED)
            what = "connection refused" if isinstance(error.__cause__, ConnectionRefusedError) else type(error).__name__
            raise NoReply(self._said(f"HTTP request failed: {what}: {error}"), connected=connected) from error
        if not fine:
            said = " ".join(body.decode(errors="replace").split())
            raise NoReply(self._said(f"HTTP {response.status}: {said}"), status=response.status)
        return body

    def _said(self, message: str) -> str:
        """*message* without the secrets, which a server may repeat."""
        message = self.reader.message(message)
        return message if len(message) <= _SHOWN else f"{message[:_SHOWN]}…"
