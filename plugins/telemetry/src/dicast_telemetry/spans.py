"""What a run's events are as spans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from importlib.metadata import version
from itertools import takewhile
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from dicast import Event
from dicast.toolkit.media import without_content

from .attributes import as_text, describe
from .evaluations import Evaluation, evaluations, scored

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
"""Reasons why a run stopped that make it a failed one; the others are somebody's wish."""

Key = tuple[str | None, str | None]


class Spans:
    """Makes spans of the events of one run; holds those that are not finished.

    A run that is taken up tells everything again. Of its earlier *stops*, what came before the newest at which no sink had lost
    anything is at the collector: of that no span is made again.
    """

    def __init__(
        self, run_id: str, name: str, *, service_name: str, content: bool, stops: Sequence[Event] = ()
    ) -> None:
        self._run_id, self._name, self._content = run_id, name, content
        self._trace = _digest(run_id)[:16]
        self._root = _digest(run_id, "run")[:8]
        self._level: Mapping[str, object] = {}
        self._run: list[Event] = []
        self._subjects: dict[Key, list[Event]] = {}
        own = {"service.name": service_name, "service.version": version("dicast-kernel")}
        self._resource = {**own, "dicast.run.id": run_id, "dicast.run.name": name}
        self._stops = {stop.id for stop in stops}
        self._received = next((stop.id for stop in reversed(stops) if _lost_nothing(stop)), None)

    def add(self, events: Sequence[Event]) -> list[Span]:
        """Take *events*; the spans that are finished with them, which does not depend on how many are told at once."""
        spans: list[Span] = []
        for event in events:
            if event.subject_id is not None:
                spans += self._note(event)
            elif event.id in self._stops:
                self._received = None if event.id == self._received else self._received
            elif event.type in ("run.completed", "run.stopped"):
                spans += [*self._finished(self._whole(event)), self._run_span(event)]
            else:
                self._begin(event)
        return spans

    def request(self, spans: Sequence[Span]) -> ExportTraceServiceRequest:
        """*spans* as a collector takes them."""
        scope = InstrumentationScope(name="dicast", version=str(self._resource["service.version"]))
        group = ResourceSpans()
        describe(group.resource, {**self._resource, **self._level})
        group.scope_spans.append(ScopeSpans(scope=scope, spans=spans))
        return ExportTraceServiceRequest(resource_spans=[group])

    def _note(self, event: Event) -> list[Span]:
        key = event.subject_kind, event.subject_id
        before = [key] if key in self._subjects else []  # read anew, as a live source has it
        if event.type in ENDS:
            before = self._before(key, event)
        spans = self._finished(before)
        self._subjects.setdefault(key, []).append(event)
        return spans

    def _before(self, key: Key, end: Event) -> list[Key]:
        """What is finished with the first *end* of a subject: what was read before it, for subjects end in this order.

        A subject that is judged again is told late, after others that were read later and have not ended.
        """
        read = self._subjects.get(key, [end])[0].id
        return [other for other in takewhile(key.__ne__, self._subjects) if self._subjects[other][0].id <= read]

    def _whole(self, last: Event) -> list[Key]:
        """What is finished with the run; what a stopped one has not judged yet is left to the process that takes it up."""
        over = last.type == "run.completed"
        return [key for key, events in self._subjects.items() if over or events[-1].type in ENDS]

    def _begin(self, event: Event) -> None:
        self._run.append(event)
        if event.type == "run.started":
            names = ("security_level", "determinism_level")
            self._level = {f"dicast.{name}": event.payload[name] for name in names if event.payload.get(name)}

    def _finished(self, keys: Iterable[Key]) -> list[Span]:
        done = [(key, self._subjects.pop(key)) for key in keys]
        return [] if self._received else [self._subject_span(key, events) for key, events in done]

    def _subject_span(self, key: Key, events: Sequence[Event]) -> Span:
        kind, subject_id = key
        first = events[0]
        span = self._span(str(kind), _digest(self._run_id, str(kind), str(subject_id), first.id)[:8], events)
        span.parent_span_id = self._root
        told: dict[str, object] = {"dicast.subject.kind": kind, "dicast.subject.id": subject_id}
        told |= {"session.id": first.session_id, **self._level}
        for event in events:
            told |= self._told(event)
            for evaluation in evaluations(event, content=self._content):
                _add_event(span, event, evaluation)
        newest = {event.payload.get("judge"): event for event in events if event.type in ENDS}
        for event in newest.values():  # a failure that was retried with success is none
            if event.type.endswith(".failed"):
                span.status.code = Status.STATUS_CODE_ERROR
                span.status.message = str(event.payload.get("failure_mode"))
        describe(span, told)
        return span

    def _told(self, event: Event) -> dict[str, object]:
        payload: Mapping[str, Any] = event.payload
        if event.type == "subject.read":
            return self._contents(payload.get("content") or {}, "input", "output") if self._content else {}
        if event.type == "record.completed":
            shown = self._contents({"output": (payload.get("response") or {}).get("content")}, "output")
            return scored(payload) | (shown if self._content else {})
        if event.type == "record.failed" and self._content:
            return {"dicast.error.message": _cut(payload.get("error"))}
        return {}

    @staticmethod
    def _contents(content: Mapping[str, Any], *names: str) -> dict[str, object]:
        """The texts of *content* as the conventions have them: the messages of a conversation."""
        shown: dict[str, object] = {}
        for name in names:
            if (value := content.get(name)) is not None:
                role = "user" if name == "input" else "assistant"
                part = {"type": "text", "content": _cut(value)}
                shown[f"gen_ai.{name}.messages"] = as_text([{"role": role, "parts": [part]}])
        return shown

    def _run_span(self, last: Event) -> Span:
        events = [*self._run, last]
        span = self._span("dicast run", self._root, events)
        payload: Mapping[str, Any] = last.payload
        started: Mapping[str, Any] = next((event.payload for event in events if event.type == "run.started"), {})
        told: dict[str, object] = {"dicast.run.id": self._run_id, "dicast.run.name": self._name, **self._level}
        told["dicast.suite.id"] = (started.get("suite") or {}).get("id")
        told |= {f"dicast.fingerprint.{name}": value for name, value in started.get("fingerprints", {}).items()}
        told |= {
            f"dicast.{name}": payload.get(name) for name in ("subjects", "scored", "failed", "skipped", "coverage")
        }
        told |= {
            f"dicast.score.{name}": (payload.get("score") or {}).get(name) for name in ("mean", "ci_low", "ci_high")
        }
        told |= {
            f"dicast.cost.{unit}": amount for unit, amount in payload.get("cost", {}).items() if unit in ("usd", "msat")
        }
        told["dicast.gate.passed"] = (payload.get("gate") or {}).get("passed")
        if payload.get("reason") is not None:  # an early stop is an end like any other, and has one
            told["dicast.stopped.reason"] = payload["reason"]
            if payload.get("reason") in _FAULTS:
                span.status.code = Status.STATUS_CODE_ERROR
                span.status.message = str(payload["reason"])
        describe(span, told)
        self._add_findings(span, events)
        return span

    @staticmethod
    def _add_findings(span: Span, events: Sequence[Event]) -> None:
        for event in events:
            if event.type in ("aggregate.completed", "comparison.completed"):
                payload: Mapping[str, Any] = event.payload
                kind = event.type.partition(".")[0]
                told = {f"dicast.{kind}.{name}": payload.get(name) for name in ("label", "name", "baseline", "result")}
                _add_event(span, event, Evaluation(f"dicast.{kind}", told))

    def _span(self, name: str, span_id: bytes, events: Sequence[Event]) -> Span:
        return Span(
            trace_id=self._trace,
            span_id=span_id,
            name=name,
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=_nanoseconds(events[0].time),
            end_time_unix_nano=_nanoseconds(events[-1].time),
        )


def _add_event(span: Span, event: Event, found: Evaluation) -> None:
    describe(span.events.add(name=found.name, time_unix_nano=_nanoseconds(event.time)), found.told)


def _lost_nothing(stop: Event) -> bool:
    payload: Mapping[str, Any] = stop.payload
    sinks = payload.get("sinks") or {}
    return bool(sinks) and not any(sink["lost"] for sink in sinks.values())


def _digest(*parts: str) -> bytes:
    """Ids that a resumed run has again, and no other run."""
    return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).digest()


def _nanoseconds(time: str) -> int:
    return round(datetime.fromisoformat(time).timestamp() * 1000) * 1_000_000


def _cut(value: object) -> str:
    return as_text(without_content(value))[:_CHARS]
