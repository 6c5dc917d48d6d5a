"""The service behind ``task/http``: one client with its connections, and what its answers mean."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from io import BytesIO

import aiohttp
import attrs

from dicast import (
    IDENTITY,
    AccessRefused,
    Answered,
    Failure,
    Reachability,
    ReplyReader,
    ReplyRefused,
    Subject,
    retry_after,
)

from .answers import answered, told
from .http import Http

_NO_ACCESS = (401, 403, 404)
_TRY_AGAIN = (408, 429)
_FAULT = 500
_FIRST_WAIT, _LONGEST_OWN_WAIT, _LONGEST_WAIT = 0.25, 20.0, 300.0
_CONNECT_SECONDS = 20.0
_TOLD = 300
_UNREACHABLE_AT_START, _UNREACHABLE_LATER = 10, 50
_NOT_CONNECTED = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


class Fault(Exception):
    """A try that came to nothing. *again* says whether there may be another, *wait* in how many seconds; *kind* is the Failure's."""

    def __init__(
        self, message: str, *, kind: str = "judge_call_failed", again: bool = False, wait: float | None = None
    ) -> None:
        super().__init__(message)
        self.kind, self.again, self.wait = kind, again, wait


@asynccontextmanager
async def connect(options: Http, concurrency: int) -> AsyncIterator[Service]:
    """The live object of *options* for a run that makes *concurrency* rows at once."""
    headers = {"Content-Type": "application/json", "User-Agent": "dicast", **IDENTITY}
    async with aiohttp.ClientSession(
        headers=headers | {name: secret.value for name, secret in options.headers.items()},
        # How many rows there are at once is for the run to say, not for the pool; how long one may take, too.
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None, connect=_CONNECT_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,  # the reader does it, within its limit
    ) as session:
        at_start = max(_UNREACHABLE_AT_START, concurrency)
        secrets = [secret.value for secret in options.headers.values()]
        reader = ReplyReader(secrets, options.max_output_bytes, "max_output_bytes")
        yield Service(options, session, Reachability(at_start, _UNREACHABLE_LATER, url=options.url), reader)


@attrs.frozen
class Service:
    """Answers rows by posting them."""

    options: Http
    session: aiohttp.ClientSession
    reachability: Reachability
    reader: ReplyReader

    async def produce(self, subject: Subject) -> Answered | Failure:
        """Post *subject*, again if need be.

        :raises dicast.AccessRefused: for 401, 403 and 404, and where too many rows in a row get no connection.
        """
        return await self.reachability.watch(self._produce(subject))

    async def _produce(self, subject: Subject) -> tuple[Answered | Failure, bool]:
        """The answer, and whether the service was reached."""
        data, began, history = told(subject), time.monotonic(), list[Mapping[str, object]]()
        connected = False
        while True:
            try:
                found = await self._post(data)
                break
            except Fault as fault:
                connected = connected or not isinstance(fault.__cause__, _NOT_CONNECTED)
                history.append({"attempt": len(history) + 1, "error": str(fault)})
                if not fault.again or len(history) > self.options.retries:
                    retry = self._retry(history, len(history))
                    return Failure(fault.kind, str(fault), fault.again, retry=retry), connected
                await asyncio.sleep(_wait(len(history)) if fault.wait is None else fault.wait)
        tries = self._retry(history, len(history) + 1) if history else None
        return answered(subject, found, time.monotonic() - began, tries), True

    def _retry(self, history: list[Mapping[str, object]], attempts: int) -> Mapping[str, object]:
        return {"attempts": attempts, "max_attempts": self.options.retries + 1, "history": history}

    async def _post(self, data: bytes) -> bytes:
        try:
            async with self.session.post(self.options.url, data=BytesIO(data), allow_redirects=False) as response:
                fine = 200 <= response.status < 300
                body = await self.reader.read(response.content.iter_any(), response.headers, cut=not fine)
                if not fine:
                    raise self._refusal(response.status, response.headers, body)
                return body
        except ReplyRefused as error:
            raise Fault(self._said(f"{error}"), kind="judge_output_invalid") from error
        except (aiohttp.ClientError, OSError) as error:
            again = not isinstance(error, aiohttp.ClientSSLError)
            if isinstance(error, _NOT_CONNECTED):
                again = again and self.reachability.patient
            raise Fault(self._said(f"{type(error).__name__}: {error}"), again=again) from error

    def _refusal(self, status: int, headers: Mapping[str, str], body: bytes) -> Exception:
        said = self._said(f"HTTP {status}: {' '.join(body.decode(errors='replace').split())}")
        if status in _NO_ACCESS:
            return AccessRefused(said)
        wait = retry_after(headers)
        again = (status in _TRY_AGAIN or status >= _FAULT) and (wait is None or wait <= _LONGEST_WAIT)
        return Fault(said, again=again, wait=wait)

    def _said(self, message: str) -> str:
        """*message* with who said it, without the secrets, which a service may repeat."""
        message = self.reader.message(message)
        cut = message if len(message) <= _TOLD else f"{message[:_TOLD]}…"
        return f"{self.options.url.partition('?')[0]}: {cut}"


def _wait(tries: int) -> float:
    """Seconds before the next try, after so many; spread, so that rows do not come back all at once."""
    return min(_LONGEST_OWN_WAIT, _FIRST_WAIT * 2.0 ** (tries - 1)) * random.uniform(0.75, 1.25)
