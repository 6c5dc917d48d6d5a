"""The metric ``evaluator/http``: its options."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import attrs

from dicast import Metric, RunContext, Secret, Within
from dicast.toolkit.http_address import check_headers, check_url

from .options import EvaluatorOptions


@attrs.frozen(kw_only=True)
class Http(EvaluatorOptions):
    """Scores with an evaluator behind HTTP: the payload is posted as JSON, ``{"score": …}`` is the reply.

    The payload is version 2 of the evaluator protocol, as for ``evaluator/command``, and so is what is made of the reply. Another status
    than 2xx is a Failure, and so is no reply in time; redirects are not followed, and no proxy is taken from the environment. 401, 403
    and 404 end the run, and so do many rows in a row without a connection. Nothing is asked twice: the slot key ``retries`` does so.

    Before anything is judged it is asked once about a candidate of the preflight's own.

    :param url: the evaluator's address.
    :param headers: further headers; their values are secrets.
    :param timeout: seconds that one reply may take.
    :param task_model: the model whose work is judged, which the payload names.
    :param score_range: ``unit``: scores are in [0, 1]. ``any``: any finite numbers. The slot key ``range`` maps them to [0, 1]; without it they stay raw.
    :param preflight: whether it is tried before anything is judged.
    :param max_output_bytes: how long a reply may be, decoded.
    """

    name = "http"

    url: str = attrs.field(kw_only=False)
    headers: Mapping[str, Secret] = attrs.field(factory=dict, validator=check_headers)
    max_output_bytes: int = attrs.field(default=10_000_000, validator=Within(1, 2**40, "1 or more"))

    def __attrs_post_init__(self) -> None:
        check_url(self.url)

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Metric]:
        """One client with its connections, for the whole run; the preflight is made here."""
        # httpx and aiohttp take a while to import, and `dicast check` does not need it.
        from .client import connect

        async with connect(self, run.concurrency) as client:
            if self.preflight:
                await client.check()
            yield client
