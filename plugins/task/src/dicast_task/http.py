"""The task ``task/http``: its options."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from math import inf

import attrs

from dicast import RunContext, Secret, Task, Within
from dicast.toolkit.endpoint import options


@attrs.frozen
class Http:
    """Posts each row as JSON to an HTTP service, which answers with the output.

    The body is one JSON object with the row's columns: ``id``, ``input``, ``output``, ``reference`` and ``session_id``
    if the row has them, and the others by their names. The answer's body is the output, as text, unless it is a
    JSON object with ``content`` (text, or a JSON value that becomes text; it may have ``metrics`` too), or with
    ``responses``, which are such objects by criterion. An empty answer is a failure.

    Broken and refused connections, 408, 429 and 5xx are tried again, after waits that double from about 0.25 s to 20 s, or after the wait in
    ``Retry-After`` (more than 300 s fails the row). 401, 403 and 404 end the run. Redirects are not followed, and no
    proxy is taken from the environment. The slot key ``timeout`` is the time of all tries together, 600 s by default.

    :param url: the service's address.
    :param headers: further headers; their values are secrets.
    :param retries: how often a row is tried again.
    :param max_output_bytes: the longest answer, decoded. A longer answer fails the row as ``judge_output_invalid``.
    :param security_level: a text that is added to every record, such as ``official``.
    :param determinism_level: likewise, such as ``high``.
    """

    name = "http"

    url: str
    headers: Mapping[str, Secret] = options.headers()
    retries: int = options.retries()
    max_output_bytes: int = attrs.field(default=10_000_000, validator=Within(1, inf, "1 or more"))
    security_level: str | None = attrs.field(default=None, metadata={"counts": False})
    determinism_level: str | None = attrs.field(default=None, metadata={"counts": False})

    def __attrs_post_init__(self) -> None:
        options.check_address(self.url, "url", "headers")

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Task]:
        """Open one client with its connections, for the whole run."""
        # httpx and aiohttp take a while to import, and `dicast check` does not need it.
        from .service import connect

        async with connect(self, run.concurrency) as service:
            yield service
