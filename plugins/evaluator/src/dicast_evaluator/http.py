"""The metric ``evaluator/http``: its options."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import attrs

from dicast import Metric, RunContext, Secret, Within
from dicast.toolkit.endpoint import options

from .options import EvaluatorOptions


@attrs.frozen(kw_only=True)
class Http(EvaluatorOptions):
    """Score with an evaluator behind HTTP: the payload is posted as JSON, ``{"score": …}`` is the reply.

    Payload and reply are as in ``evaluator/command``: version 2 of the evaluator protocol. A status
    other than 2xx is a Failure, and so is a missing reply; redirects are not followed, and proxy variables are ignored. 401, 403
    and 404 end the run, and so do many rows in a row without a connection. A request is sent once; the slot key ``retries`` repeats it.

    Before judging starts, dicast sends it one preflight candidate.

    :param url: the evaluator's address.
    :param headers: further headers; their values are secrets.
    :param timeout: time limit of one reply in seconds.
    :param task_model: the model whose work is judged, named in the payload.
    :param score_range: ``unit``: scores are in [0, 1]. ``any``: any finite numbers. The slot key ``range`` maps them to [0, 1]; without it they stay raw.
    :param preflight: whether it is tested before judging starts.
    :param max_output_bytes: the longest reply in bytes, decoded.
    """

    name = "http"

    url: str = attrs.field(kw_only=False)
    headers: Mapping[str, Secret] = options.headers()
    max_output_bytes: int = attrs.field(default=10_000_000, validator=Within(1, 2**40, "1 or more"))

    def __attrs_post_init__(self) -> None:
        options.check_address(self.url, "url", "headers")

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Metric]:
        """Yield one client with its connections for the whole run, after the preflight."""
        # Importing httpx and aiohttp is slow, and `dicast check` does not need them.
        from .client import connect

        async with connect(self, run.concurrency) as client:
            if self.preflight:
                await client.check()
            yield client
