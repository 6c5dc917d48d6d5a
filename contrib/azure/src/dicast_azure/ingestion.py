"""Sends rows to an ingestion endpoint through Microsoft's exporter."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from dicast import DicastError
from dicast.toolkit.http_reply import ReplyReader

from .rows import Row

_EVENT = "microsoft.custom_event.name"
"""Attribute with the name of a custom event; it makes a log record such an event."""

_ENVIRONMENT: Mapping[str, str | None] = {
    "APPLICATIONINSIGHTS_CONTROLPLANE_DISABLED": "true",
    "APPLICATIONINSIGHTS_STATSBEAT_DISABLED_ALL": "true",
    "APPLICATIONINSIGHTS_SDKSTATS_DISABLED": "true",
    "APPLICATIONINSIGHTS_CONNECTION_STRING": None,
    "APPLICATIONINSIGHTS_METRICS_TO_LOGANALYTICS_ENABLED": None,
}
"""Variables that the exporter reads when it is created; None means unset. Only they keep it from contacting other hosts."""


class IngestionError(DicastError):
    """The ingestion endpoint did not accept a request."""


class Ingestion:
    """Client of the endpoint in *connection_string*. *seconds* is the time limit of a request; *reader* reads the reply."""

    def __init__(self, connection_string: str, seconds: float, reader: ReplyReader) -> None:
        # Slow import: it takes a second and loads most of azure-core.
        from azure.monitor.opentelemetry.exporter import AzureMonitorLogExporter, AzureMonitorMetricExporter

        from .transport import Session

        options: dict[str, Any] = {
            "connection_string": connection_string,
            "credential": None,
            "timeout": seconds,
            "read_timeout": seconds,
            "disable_offline_storage": True,
            "instrumentation_collection": True,  # the exporter then sends no statistics of its own
            "max_envelopes_per_second": 0,  # no limit, above which it would drop events
            "retry_total": 0,  # the kernel retries
            "redirect_max": 0,
            "use_env_settings": False,
        }
        self._sessions = Session(reader, seconds), Session(reader, seconds)
        with _environment(_ENVIRONMENT):
            self._events = AzureMonitorLogExporter(**options, transport=self._sessions[0].transport())
            self._metrics = AzureMonitorMetricExporter(**options, transport=self._sessions[1].transport())

    def send(self, rows: Sequence[Row]) -> None:
        """Send *rows*, in one request for events and one for metrics.

        :raises IngestionError: if the endpoint did not accept all rows.
        """
        from opentelemetry.sdk._logs.export import LogRecordExportResult  # imported here, because it is slow
        from opentelemetry.sdk.metrics.export import MetricExportResult

        events = [_record(row) for row in rows if row.value is None]
        metrics = [_metric(row) for row in rows if row.value is not None]
        is_accepted = not events or self._events.export(events) is LogRecordExportResult.SUCCESS
        if is_accepted and metrics:
            is_accepted = self._metrics.export(_metrics_data(metrics)) is MetricExportResult.SUCCESS
        if not is_accepted:
            refused = next((session.refused for session in self._sessions if session.refused), None)
            why = "see the logger azure.monitor" if refused is None else str(refused)
            raise IngestionError(f"the ingestion endpoint did not accept {len(rows)} rows; {why}")

    def close(self) -> None:
        """Close the connections."""
        self._events.client.close()
        self._metrics.client.close()


def _record(row: Row) -> Any:
    from opentelemetry._logs import LogRecord  # imported here, because it is slow
    from opentelemetry.sdk._logs import ReadableLogRecord

    record = LogRecord(timestamp=row.time, attributes={**_properties(row), _EVENT: row.name})
    return ReadableLogRecord(record, _resource())


def _metric(row: Row) -> Any:
    from opentelemetry.sdk.metrics.export import Gauge, Metric, NumberDataPoint  # imported here, because it is slow

    assert row.value is not None
    return Metric(row.name, None, None, Gauge([NumberDataPoint(_properties(row), row.time, row.time, row.value)]))


def _metrics_data(metrics: Sequence[Any]) -> Any:
    from opentelemetry.sdk.metrics.export import (  # imported here, because it is slow
        MetricsData,
        ResourceMetrics,
        ScopeMetrics,
    )

    nowhere: Any = None  # with a scope the exporter would read the environment for its name
    return MetricsData([ResourceMetrics(_resource(), [ScopeMetrics(nowhere, metrics, "")], "")])


def _resource() -> Any:
    from opentelemetry.sdk.resources import Resource  # imported here, because it is slow

    return Resource({"service.name": "dicast"})


def _properties(row: Row) -> dict[str, str]:
    return {key: _as_text(value) for key, value in row.fields.items()}


def _as_text(value: object) -> str:
    value = _plain(value) if isinstance(value, Decimal) else value
    text = value if isinstance(value, str) else json.dumps(value, default=_plain, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode()


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    return format(value, "f") if isinstance(value, Decimal) else str(value)


@contextmanager
def _environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Set *variables* in the process's environment while the exporter reads it."""
    before = {name: os.environ.pop(name, None) for name in variables}
    os.environ.update({name: value for name, value in variables.items() if value is not None})
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
