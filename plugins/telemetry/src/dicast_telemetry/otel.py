"""Sink of spans: OTLP over HTTP."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from math import inf
from typing import Literal
from urllib.parse import urlsplit

import attrs

from dicast import ConfigError, Problem, Query, RunContext, Secret, Within
from dicast.toolkit.http_reply import MAX_REPLY_BYTES

from .collector import Collector, Feed
from .spans import WANTS, Spans

_TRACES, _LOGS = "/v1/traces", "/v1/logs"
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def _check_endpoint(_otel: Otel, _attribute: attrs.Attribute[str], endpoint: str) -> None:
    try:
        parts = urlsplit(endpoint)
        host, user = parts.hostname, parts.username
    except ValueError as error:
        raise ConfigError(f"endpoint {endpoint!r} is not an address: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(f"endpoint is {endpoint!r}; it is a whole address, such as http://localhost:4318/v1/traces")
    if user is not None:
        raise ConfigError("endpoint holds a user name; move credentials to headers, whose values are kept secret")


def _check_headers(
    _otel: Otel, _attribute: attrs.Attribute[Mapping[str, Secret]], headers: Mapping[str, Secret]
) -> None:
    for name, secret in headers.items():
        if not _HEADER.fullmatch(name):
            raise ConfigError(f"headers: {name!r} is not the name of a header")
        if not secret.value.isprintable():
            raise ConfigError(f"headers: the value of {name!r} holds a line end or another control character")


@attrs.frozen
class Otel:
    """A run as a trace: a span for the run, one for each subject below it, and a log event for each evaluation result.

    Spans are sent as OTLP over HTTP (protobuf) to *endpoint* and nowhere else. No environment variable is read, such as ``OTEL_*``. An
    evaluation result is a log event ``gen_ai.evaluation.result``, as the GenAI semantic conventions name it, with its provenance. It has the ids of the
    judged span if the subject came from spans (``otel/spans``), else of the subject's span.
    Texts of subjects, replies and failures are sent only with *content*. An unreachable collector does not stop
    the run: spans that it did not accept count as lost, and the run's exit code is 4. A resumed run sends its spans again with
    the same ids, except spans before an orderly stop that lost nothing.

    :param endpoint: the collector's full address, which usually ends in ``/v1/traces``.
    :param headers: sent with each request, such as ``{authorization: "Bearer ${OTLP_TOKEN}"}``; the values stay secret.
    :param timeout: time limit of one request in seconds.
    :param max_reply_bytes: the longest answer of the collector in bytes, decoded; a longer answer counts as not accepted.
    :param service_name: the resource's ``service.name``.
    :param evaluations: ``logs`` sends evaluation results as log events to *logs_endpoint*; ``span_events`` makes them events of the subjects' spans, for a
        collector that takes traces alone. The default is ``logs`` if the address for log events is known, else ``span_events``.
    :param logs_endpoint: the collector's address for log events; by default *endpoint* with ``/v1/logs`` in place of ``/v1/traces``.
    :param content: also send inputs, outputs, explanations and messages of failures, each cut to 8,192 characters.
    """

    name = "otel"
    wants = WANTS
    rewrites = True

    endpoint: str = attrs.field(validator=_check_endpoint)
    headers: Mapping[str, Secret] = attrs.field(factory=dict, validator=_check_headers)
    timeout: float = attrs.field(
        default=10.0, validator=Within(0, 30, "more than 0 and less than 30 seconds", open=True)
    )
    max_reply_bytes: int = attrs.field(
        default=MAX_REPLY_BYTES, validator=Within(1, inf, "1 or more"), metadata={"counts": False}
    )
    service_name: str = "dicast"
    evaluations: Literal["logs", "span_events"] | None = attrs.field(
        default=None, validator=attrs.validators.in_(("logs", "span_events", None))
    )
    logs_endpoint: str | None = attrs.field(default=None, validator=attrs.validators.optional(_check_endpoint))
    content: bool = False

    def __attrs_post_init__(self) -> None:
        if self.evaluations == "logs" and self._logs_address is None:
            message = f"endpoint does not end in {_TRACES}, so the address for log events is unknown; name it, or use evaluations: span_events"
            raise ConfigError(Problem(message, path="logs_endpoint"))

    @property
    def _logs_address(self) -> str | None:
        """The address for log events, if it is known and wanted."""
        if self.evaluations == "span_events":
            return None
        if self.logs_endpoint is None and self.endpoint.endswith(_TRACES):
            return self.endpoint.removesuffix(_TRACES) + _LOGS
        return self.logs_endpoint

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Feed]:
        """Yield the live sink. Repeated events get the same ids."""
        stops = run.read(Query(run_id=run.run_id, types=("run.stopped",))) if run.resumed else ()
        spans = Spans(
            run.run_id,
            run.name,
            service_name=self.service_name,
            content=self.content,
            stops=[entry.event for entry in stops],
            as_logs=self._logs_address is not None,
        )
        headers = {name: secret.value for name, secret in self.headers.items()}
        connect = partial(Collector.connected, headers=headers, seconds=self.timeout, most=self.max_reply_bytes)
        async with AsyncExitStack() as stack:
            collector, logs = await stack.enter_async_context(connect(self.endpoint)), None
            if self._logs_address is not None:
                logs = await stack.enter_async_context(connect(self._logs_address))
            yield Feed(collector, spans, logs)
