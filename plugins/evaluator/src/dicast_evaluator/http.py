"""The metric ``evaluator/http``: its options."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import attrs

from dicast import ConfigError, Metric, RunContext, Secret, Within

from .options import EvaluatorOptions

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _check_headers(
    component: object, attribute: attrs.Attribute[Mapping[str, Secret]], headers: Mapping[str, Secret]
) -> None:
    for name, secret in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ConfigError(f"{name!r} cannot be the name of a header")
        if _CONTROL.search(secret.value):
            raise ConfigError(f"the header {name} holds a line break or another character that none can carry")


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
    :param score_range: ``unit``: scores are in [0, 1]. ``any``: they are any numbers, which the slot key ``range`` brings to [0, 1].
    :param preflight: whether it is tried before anything is judged.
    :param max_output_bytes: how long a reply may be, decoded.
    """

    name = "http"

    url: str = attrs.field(kw_only=False)
    headers: Mapping[str, Secret] = attrs.field(factory=dict, validator=_check_headers)
    max_output_bytes: int = attrs.field(default=10_000_000, validator=Within(1, 2**40, "1 or more"))

    def __attrs_post_init__(self) -> None:
        # Not by the field's validator: what that refuses is shown with the value, which may hold a password.
        if "@" in (urlsplit(self.url).netloc if _is_address(self.url) else self.url):
            raise ConfigError("url holds a user name or a password; give them in headers")
        if not _is_address(self.url):
            raise ConfigError(f"invalid value for url, expected an http:// or https:// address, got {self.url!r}")

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Metric]:
        """One client with its connections, for the whole run; the preflight is made here."""
        # aiohttp takes a while to import, and `dicast check` does not need it.
        from .client import connect

        async with connect(self, run.concurrency) as client:
            if self.preflight:
                await client.check()
            yield client
