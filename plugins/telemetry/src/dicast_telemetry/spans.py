"""Spans from a run's events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from itertools import takewhile
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from dicast import Event
from dicast.toolkit.media import without_content

from .attributes import as_text, describe
from .evaluations import Evaluation, evaluations, scored
from .logs import Origin, log_record, nanoseconds, origin_of

ENDS = ("record.completed", "record.failed", "eval.completed", "eval.failed")
WANTS = (
    "run.started",
    "subject.read",
    *ENDS,
    "aggregate.completed",
    "comparison.completed",
    "run.completed",
    "run.stopped",
)
_CHARS = 8192
_FAULTS = ("refused_by_provider", "endpoint_unreachable", "unsupported_by_model", "ledger_failed")
"""Reasons of a stop that count as failures; other reasons are requests of a user."""

Key = tuple[str | None, str | None]


class Spans:
    """Builder of the spans of one run; it holds the events of unfinished spans.

    A resumed run replays all events. Events before its newest earlier stop in *stops* at which no sink had lost anything are already at the
    collector, and no span is built from them again. With *as_logs* the evaluation results are log events, else events of the subjects' spans.
    """

    def __init__(
        self,
        run_id: str,
        name: str,
        *,
        service_name: str,
        content: bool,
        stops: Sequence[Event] = (),
        as_logs: bool = True,
    ) -> None:
        self._run_id, self._name, self._content, self._as_logs = run_id, name, content, as_logs
        self._logs: list[LogRecord] = []
        self._trace = _digest(run_id)[:16]
        self._root = _digest(run_id, "run")[:8]
        self._level: Mapping[str, object] = {}
        self._run: list[Event] = []
        self._subjects: dict[Key, list[Event]] = {}
        service = {"service.name": service_name, "service.version": version("dicast-kernel")}
        self._resource = {**service, "dicast.run.id": run_id, "dicast.run.name": name}
        self._stops = {stop.id for stop in stops}
        self._received = next((stop.id for stop in reversed(stops) if _lost_nothing(stop)), None)

    def add(self, events: Sequence[Event]) -> list[Span]:
        """Add *events*, and return the spans that they finish. The result does not depend on the size of batches."""
        spans: list[Span] = []
        for event in events:
            if event.subject_id is not None:
                spans += self._note(event)
            elif event.id in self._stops:
                self._received = None if event.id == self._received else self._received
            elif event.type in ("run.completed", "run.stopped"):
                run = self._run_span(event)
                spans += [*self._finished(self._left_at_end(event)), run]
            else:
                self._begin(event)
        return spans

    def take_logs(self) -> list[LogRecord]:
        """Return the log events of the spans since the last call."""
        logs, self._logs = self._logs, []
        return logs

    def request(self, spans: Sequence[Span]) -> ExportTraceServiceRequest:
        """Return a request with *spans*."""
        group = ResourceSpans(scope_spans=[ScopeSpans(scope=self._scope(), spans=spans)])
        describe(group.resource, {**self._resource, **self._level})
        return ExportTraceServiceRequest(resource_spans=[group])

    def log_request(self, logs: Sequence[LogRecord]) -> ExportLogsServiceRequest:
        """Return a request with log events."""
        group = ResourceLogs(scope_logs=[ScopeLogs(scope=self._scope(), log_records=logs)])
        describe(group.resource, {**self._resource, **self._level})
        return ExportLogsServiceRequest(resource_logs=[group])

    def _scope(self) -> InstrumentationScope:
        return InstrumentationScope(name="dicast", version=str(self._resource["service.version"]))

    def _note(self, event: Event) -> list[Span]:
        key = event.subject_kind, event.subject_id
        before = [key] if key in self._subjects else []  # read again by a live source
        if event.type in ENDS:
            before = self._before(key, event)
        spans = self._finished(before)
        self._subjects.setdefault(key, []).append(event)
        return spans

    def _before(self, key: Key, end: Event) -> list[Key]:
        """Return the subjects that the first *end* of a subject finishes: all read before it, since subjects end in order.

        A subject that is judged again ends late, after other subjects that were read later and have not ended.
        """
        read = self._subjects.get(key, [end])[0].id
        return [other for other in takewhile(key.__ne__, self._subjects) if self._subjects[other][0].id <= read]

    def _left_at_end(self, last: Event) -> list[Key]:
        """Return the subjects that the end of the run finishes. Unjudged subjects of a stopped run are left to the resumed run."""
        over = last.type == "run.completed"
        return [key for key, events in self._subjects.items() if over or events[-1].type in ENDS]

    def _begin(self, event: Event) -> None:
        self._run.append(event)
        if event.type == "run.started":
            names = ("security_level", "determinism_level")
            self._level = {f"dicast.{name}": event.payload[name] for name in names if event.payload.get(name)}

    def _finished(self, keys: Sequence[Key]) -> list[Span]:
        """Remove the subjects of *keys* and return their spans. If a span cannot be built, all of them remain."""
        logs: list[LogRecord] = []
        spans = [] if self._received else [self._subject_span(key, self._subjects[key], logs) for key in keys]
        for key in keys:
            del self._subjects[key]
        self._logs += logs
        return spans

    def _subject_span(self, key: Key, events: Sequence[Event], logs: list[LogRecord]) -> Span:
        kind, subject_id = key
        first = events[0]
        span = self._span(str(kind), _digest(self._run_id, str(kind), str(subject_id), first.id)[:8], events)
        span.parent_span_id = self._root
        attributes: dict[str, object] = {"dicast.subject.kind": kind, "dicast.subject.id": subject_id}
        attributes |= {"session.id": first.session_id, **self._level}
        origin = origin_of(first)
        for event in events:
            attributes |= self._attributes(event)
            for evaluation in evaluations(event, content=self._content):
                if self._as_logs:
                    logs.append(log_record(event, evaluation, origin or Origin(span.trace_id, span.span_id)))
                else:
                    _add_event(span, event, evaluation)
        newest = {event.payload.get("judge"): event for event in events if event.type in ENDS}
        for event in newest.values():  # a failure retried with success does not count
            if event.type.endswith(".failed"):
                span.status.code = Status.STATUS_CODE_ERROR
                span.status.message = str(event.payload.get("failure_mode"))
        describe(span, attributes)
        return span

    def _attributes(self, event: Event) -> dict[str, object]:
        payload: Mapping[str, Any] = event.payload
        if event.type == "subject.read":
            return self._contents(payload.get("content") or {}, "input", "output") if self._content else {}
        if event.type == "record.completed":
            texts = self._contents({"output": (payload.get("response") or {}).get("content")}, "output")
            return scored(payload) | (texts if self._content else {})
        if event.type == "record.failed" and self._content:
            return {"dicast.error.message": _cut(payload.get("error"))}
        return {}

    @staticmethod
    def _contents(content: Mapping[str, Any], *names: str) -> dict[str, object]:
        """Return the texts of *content* in the conventions' form: messages of a conversation."""
        messages: dict[str, object] = {}
        for name in names:
            if (value := content.get(name)) is not None:
                role = "user" if name == "input" else "assistant"
                part = {"type": "text", "content": _cut(value)}
                messages[f"gen_ai.{name}.messages"] = as_text([{"role": role, "parts": [part]}])
        return messages

    def _run_span(self, last: Event) -> Span:
        events = [*self._run, last]
        span = self._span("dicast run", self._root, events)
        payload: Mapping[str, Any] = last.payload
        started: Mapping[str, Any] = next((event.payload for event in events if event.type == "run.started"), {})
        attributes: dict[str, object] = {"dicast.run.id": self._run_id, "dicast.run.name": self._name, **self._level}
        attributes["dicast.suite.id"] = (started.get("suite") or {}).get("id")
        attributes |= {f"dicast.fingerprint.{name}": value for name, value in started.get("fingerprints", {}).items()}
        attributes |= {
            f"dicast.{name}": payload.get(name) for name in ("subjects", "scored", "failed", "skipped", "coverage")
        }
        attributes |= {
            f"dicast.score.{name}": (payload.get("score") or {}).get(name) for name in ("mean", "ci_low", "ci_high")
        }
        attributes |= {
            f"dicast.cost.{unit}": amount for unit, amount in payload.get("cost", {}).items() if unit in ("usd", "msat")
        }
        attributes["dicast.gate.passed"] = (payload.get("gate") or {}).get("passed")
        if payload.get("reason") is not None:  # an early stop is a normal end with a reason
            attributes["dicast.stopped.reason"] = payload["reason"]
            if payload.get("reason") in _FAULTS:
                span.status.code = Status.STATUS_CODE_ERROR
                span.status.message = str(payload["reason"])
        describe(span, attributes)
        self._add_findings(span, events)
        return span

    @staticmethod
    def _add_findings(span: Span, events: Sequence[Event]) -> None:
        for event in events:
            if event.type in ("aggregate.completed", "comparison.completed"):
                payload: Mapping[str, Any] = event.payload
                kind = event.type.partition(".")[0]
                attributes = {
                    f"dicast.{kind}.{name}": payload.get(name) for name in ("label", "name", "baseline", "result")
                }
                _add_event(span, event, Evaluation(f"dicast.{kind}", attributes))

    def _span(self, name: str, span_id: bytes, events: Sequence[Event]) -> Span:
        return Span(
            trace_id=self._trace,
            span_id=span_id,
            name=name,
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=nanoseconds(events[0].time),
            end_time_unix_nano=nanoseconds(events[-1].time),
        )


def _add_event(span: Span, event: Event, evaluation: Evaluation) -> None:
    describe(span.events.add(name=evaluation.name, time_unix_nano=nanoseconds(event.time)), evaluation.attributes)


def _lost_nothing(stop: Event) -> bool:
    payload: Mapping[str, Any] = stop.payload
    sinks = payload.get("sinks") or {}
    return bool(sinks) and not any(sink["lost"] for sink in sinks.values())


def _digest(*parts: str) -> bytes:
    """Return an id that depends only on *parts*, so that a resumed run has the same ids."""
    return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).digest()


def _cut(value: object) -> str:
    return as_text(without_content(value))[:_CHARS]
