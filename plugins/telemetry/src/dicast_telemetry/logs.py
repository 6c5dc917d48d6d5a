"""Evaluation results as log events of the judged spans, as the GenAI semantic conventions have them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

import attrs
from opentelemetry.proto.logs.v1.logs_pb2 import SEVERITY_NUMBER_INFO, LogRecord

from dicast import Event

from .attributes import describe
from .evaluations import Evaluation

_HEX = re.compile(r"[0-9a-f]+")
_TRACE_DIGITS, _SPAN_DIGITS = 32, 16
_NUMBER = re.compile(r"/([1-9]\d{0,8})(?:/|$)", re.ASCII)


@attrs.frozen
class Origin:
    """The judged span: the ids of its trace and of itself, and the id of the response that it recorded."""

    trace_id: bytes
    span_id: bytes
    response_id: str | None = None


def origin_of(read: Event) -> Origin | None:
    """Return the span that a subject came from, None for a subject of another source.

    A source of spans has them in the context of its subjects, as ``otel.spans``: an entry for each turn of the session, in their order. A session
    came from the span of its last turn; the context of a tool cycle has the span of its call alone, if the trace has one.
    """
    content = read.payload.get("content")
    context = content.get("context") if isinstance(content, Mapping) else None
    otel = context.get("otel") if isinstance(context, Mapping) else None
    spans = otel.get("spans") if isinstance(otel, Mapping) else None
    if not isinstance(spans, Sequence) or not spans:
        return None
    entry = spans[_place(read, len(spans))]
    if not isinstance(entry, Mapping):
        return None
    trace_id, span_id, response_id = (entry.get(name) for name in ("trace_id", "span_id", "response_id"))
    if not (_is_id(trace_id, _TRACE_DIGITS) and _is_id(span_id, _SPAN_DIGITS)):
        return None
    response = response_id if isinstance(response_id, str) else None
    return Origin(bytes.fromhex(str(trace_id)), bytes.fromhex(str(span_id)), response)


def _place(read: Event, count: int) -> int:
    """Return the place of the subject's turn, by the number after the id of its session; the last one for a session."""
    session, name = read.session_id or "", read.turn_id or read.subject_id or ""
    match = _NUMBER.match(name, len(session)) if name.startswith(session) else None
    return min(int(match[1]), count) - 1 if match is not None else count - 1


def _is_id(value: object, digits: int) -> bool:
    return isinstance(value, str) and len(value) == digits and _HEX.fullmatch(value) is not None


def log_record(event: Event, evaluation: Evaluation, origin: Origin) -> LogRecord:
    """Return an evaluation result as a log event of the span *origin*."""
    time = nanoseconds(event.time)
    record = LogRecord(
        event_name=evaluation.name,
        time_unix_nano=time,
        observed_time_unix_nano=time,
        severity_number=SEVERITY_NUMBER_INFO,
        trace_id=origin.trace_id,
        span_id=origin.span_id,
    )
    describe(record, {**evaluation.attributes, "gen_ai.response.id": origin.response_id})
    return record


def nanoseconds(time: str) -> int:
    """Return a time in nanoseconds since the epoch, rounded to milliseconds."""
    return round(datetime.fromisoformat(time).timestamp() * 1000) * 1_000_000
