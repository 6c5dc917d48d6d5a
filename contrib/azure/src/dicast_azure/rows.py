"""Builds the rows of an experiment from a run's events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs

from dicast import ONLY, Entry, Event, Query

from .suite import Suite

RECORDS = ("record.completed", "record.failed")
_FAILURES = 3
"""Most failures in ``experiment_complete``."""


@attrs.frozen
class Row:
    """One row. *time* is in nanoseconds since 1970. A row with a *value* is a metric, any other row an event."""

    name: str
    time: int
    fields: Mapping[str, object]
    value: int | None = None


class Rows:
    """Builds the rows of one run, and counts its requests.

    A resumed run replays all events. *stops* are its earlier stops; rows before the newest stop without a loss in any sink have arrived,
    and are not built again. *read* reads the results of the suite's other runs from the ledger.
    """

    def __init__(
        self, run_id: str, experiment: str, read: Callable[[Query], Iterator[Entry]], stops: Sequence[Event] = ()
    ) -> None:
        self._stops = {stop.id for stop in stops}
        self._received = next((stop.id for stop in reversed(stops) if _lost_nothing(stop)), None)
        self._common: dict[str, object] = {"experiment": experiment, "run_id": run_id}
        self._experiment = experiment
        self._read = read
        self._suite: Suite | None = None
        self._sequence = 0
        self._aggregates: dict[str, object] = {}

    def add(self, event: Event) -> Sequence[Row]:
        """Add *event*, and return its rows. If it raises an error, the same event may be added again."""
        if event.id in self._stops:
            self._received = None if event.id == self._received else self._received
            return ()
        sequence = self._sequence
        try:
            rows = tuple(self._of(event))
        except BaseException:
            self._sequence = sequence
            raise
        return () if self._received else rows

    def _of(self, event: Event) -> Iterator[Row]:
        payload: Mapping[str, Any] = event.payload
        if event.type == "run.started":
            yield from self._start(event, payload)
        elif event.type == "record.completed":
            yield from self._responses(event, payload)
        elif event.type == "record.failed":
            yield from self._failure(event, payload)
        elif event.type == "aggregate.completed":
            self._aggregates[str(payload["label"])] = payload["result"]
        elif event.type == "comparison.completed":
            fields = {"baseline": payload.get("baseline"), **payload["result"]}
            yield self._row(f"baseline_{self._experiment}_{payload['label']}", event, fields)
        else:
            yield from self._end(event, payload)
            yield from self._summary(event)

    def _start(self, event: Event, payload: Mapping[str, Any]) -> Iterator[Row]:
        levels = {name: payload.get(name) for name in ("security_level", "determinism_level")}
        self._common |= {name: level for name, level in levels.items() if level}
        if payload.get("suite"):
            self._suite = Suite(payload["suite"], self._experiment)
            self._common |= {"suite": payload["suite"]["id"]}
            if self._suite.begins:
                yield from self._preflight(event, self._suite.described)
        fields = {name: payload.get(name) for name in ("task", "metrics", "judges", "fingerprints", "limit")}
        yield self._row("experiment_start", event, fields)

    def _preflight(self, event: Event, fields: Mapping[str, Any]) -> Iterator[Row]:
        yield self._row("suite_preflight", event, fields)
        yield attrs.evolve(self._row("experiment_count", event, {}), value=fields["experiment_count"])

    def _responses(self, event: Event, record: Mapping[str, Any]) -> Iterator[Row]:
        responses = record.get("responses") or {ONLY: record.get("response") or {}}
        for criterion, response in responses.items():
            request = self._request(event, criterion)
            metrics = response.get("metrics") or {}
            yield self._row("llm_request", event, request)
            fields = {"duration": metrics.get("latency_seconds"), **request, **_prefixed(metrics)}
            yield self._row("llm_response", event, fields)

    def _failure(self, event: Event, payload: Mapping[str, Any]) -> Iterator[Row]:
        request = self._request(event, None)
        failed = {**request, "error": payload.get("failure_mode")}
        yield self._row("llm_request", event, request)
        yield self._row("llm_response", event, failed)
        retry = payload.get("retry") or {}
        if retry and retry.get("attempts") == retry.get("max_attempts"):
            attempt_counts = {name: retry.get(name) for name in ("attempts", "max_attempts")}
            yield self._row("llm_retry_exhausted", event, {**failed, **attempt_counts})

    def _end(self, event: Event, payload: Mapping[str, Any]) -> Iterator[Row]:
        if self._aggregates:
            yield self._row(f"experiment_{self._experiment}_aggregates", event, self._aggregates)
        keys = ("subject_kind", "subject_id", "judge", "failure_mode")
        failed = [{key: failure.get(key) for key in keys} for failure in payload.get("failed_subjects", ())[:_FAILURES]]
        fields = {
            "rows": payload.get("subjects"),
            "failures": payload.get("failed"),
            **{
                f"cost_{unit}": amount
                for unit, amount in (payload.get("cost") or {}).items()
                if unit in ("usd", "msat")
            },
            "aggregates": self._aggregates or None,
            "failures_detail": failed or None,
            "stopped": payload.get("reason"),
        }
        yield self._row("experiment_complete", event, fields)

    def _summary(self, event: Event) -> Iterator[Row]:
        if self._suite and event.type == "run.completed" and (summary := self._suite.summary(event, self._read)):
            yield self._row("suite_summary", event, summary)

    def _request(self, event: Event, criterion: str | None) -> dict[str, object]:
        self._sequence += 1
        sequence = f"az-{self._sequence}"
        about = {"subject_id": event.subject_id, "session_id": event.session_id, "criterion": criterion}
        return {"sequence": sequence, "azure_sequence": sequence, **about}

    def _row(self, name: str, event: Event, properties: Mapping[str, object]) -> Row:
        fields = {"timestamp": event.time, "event_id": event.id, **self._common, **properties}
        return Row(name, _nanoseconds(event.time), {key: value for key, value in fields.items() if value is not None})


def _lost_nothing(stop: Event) -> bool:
    payload: Mapping[str, Any] = stop.payload
    sinks = payload.get("sinks") or {}
    return bool(sinks) and not any(sink["lost"] for sink in sinks.values())


def _prefixed(metrics: Mapping[str, object]) -> dict[str, object]:
    return {f"metric_{key}": value for key, value in metrics.items()}


def _nanoseconds(time: str) -> int:
    return round(datetime.fromisoformat(time).timestamp() * 1000) * 1_000_000
