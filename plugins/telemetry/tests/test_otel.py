from __future__ import annotations

import asyncio
import json
import socket
import time
from decimal import Decimal
from math import isfinite

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from dicast import ConfigError, Entry, Event, RunContext, Secret, Subject
from dicast.testing import FakeChatModel, FakeJudge, run_pipeline
from dicast_telemetry import Otel, spans
from dicast_telemetry.attributes import describe

RESULT = "gen_ai.evaluation.result"
RUN = "01JZ0000000000000000000000"
SECRETS = ["the input's words", "the output's words", "the reply's words", "why it failed"]


def event(type, payload, id=None, number=1, session=None) -> Event:
    time_ = f"2026-01-02T03:04:{number:02d}.678Z"
    return Event(f"{number:026d}", type, time_, RUN, payload, session, None, "row" if id else None, id)


STARTED = event("run.started", {"fingerprints": {"data": "d1g", "task": "t1k"}, "security_level": "official"})
COMPLETED = event("run.completed", {"subjects": 2, "scored": 1, "score": {"mean": 0.5}, "cost": {"usd": Decimal("0.10"), "msat": 0},
                                "gate": {"passed": True}}, number=9)  # fmt: skip
VERDICT = {
    "eval_id": "E1", "judge": "metrics", "score": 0.75, "confidence": 0.9, "judge_kind": "llm", "judge_model": "qwen3-8b",
    "judge_cost_usd": "0.0001", "judge_cost_msat": None, "judge_latency_ms": 12, "rubric_id": "row-llm-v1", "rubric_version": "1",
    "fingerprint": "f1", "tier": "truth", "truth_reason": "gate", "propensity": 1.0, "judge_pricing_version": "2026-01",
    "signals": {"rationale_redacted": "the reply's words"},
    "scores": [{"metric": "proxy/format", "value": 1.0, "tier": "proxy", "weight": 1.0, "rollout": 0, "confidence": 1.0,
                "details": "the output's words"}],
}  # fmt: skip
RECORD = {
    "row": {"id": "q1", "input": "the input's words"},
    "response": {"content": "the reply's words", "metrics": {"prompt_tokens": 7, "completion_tokens": 3}},
    "metrics": {"score": 4, "scores": {"tone": 0.25, "none": None}, "score_flags": {"tone": False}},
}
READ = event("subject.read", {"content": {"input": "the input's words", "output": "the output's words"}}, "q1", 2, "s1")
SUBJECT = [READ, event("record.completed", RECORD, "q1", 3, "s1"), event("eval.completed", VERDICT, "q1", 4, "s1")]
FAILED = [
    event("subject.read", {}, "q2", 2),
    event(
        "eval.failed",
        {"eval_id": "E2", "judge": "metrics", "failure_mode": "timeout", "error_message": "why it failed"},
        "q2",
        5,
    ),
]


def send(receiver, *batches, run=None, **options) -> list[int]:
    async def go() -> list[int]:
        async with Otel(receiver.url, **options).open(run or RunContext(RUN, "nightly")) as live:
            return [await live.write(batch) for batch in batches] + [await live.close()]

    return asyncio.run(go())


@pytest.fixture(autouse=True)
def run_context(monkeypatch):
    """Create contexts without a folder."""
    original = RunContext
    monkeypatch.setitem(
        globals(), "RunContext", lambda run_id, name, **options: original(run_id, name, None, **options)
    )


def results(receiver, span) -> dict[str, dict[str, object]]:
    logs = [log for log in receiver.logs() if log.span_id == span.span_id and log.event_name == RESULT]
    attributes_of_events = [receiver.attributes(log) for log in logs]
    return {str(attributes["gen_ai.evaluation.name"]): attributes for attributes in attributes_of_events}


def test_a_run_is_a_trace_with_a_span_a_subject_below_it(receiver):
    assert send(receiver, [STARTED, *SUBJECT], [*FAILED, COMPLETED]) == [0, 3, 0]
    first, second, run = receiver.spans()
    assert run.name == "dicast run"
    assert run.parent_span_id == b""
    assert len(run.trace_id) == 16
    assert {span.trace_id for span in receiver.spans()} == {run.trace_id}
    assert first.parent_span_id == second.parent_span_id == run.span_id
    assert len({span.span_id for span in receiver.spans()}) == 3
    assert (first.start_time_unix_nano, first.end_time_unix_nano) == (1767323042678000000, 1767323044678000000)
    assert (run.start_time_unix_nano, run.end_time_unix_nano) == (1767323041678000000, 1767323049678000000)


def test_a_verdict_is_an_evaluation_result_with_its_provenance(receiver):
    send(receiver, [STARTED, *SUBJECT, COMPLETED])
    span = receiver.span("row")
    results_by_name = results(receiver, span)
    assert results_by_name["metrics"] == {
        "gen_ai.evaluation.name": "metrics",
        "gen_ai.evaluation.score.value": 0.75,
        "dicast.eval.id": "E1",
        "dicast.judge.kind": "llm",
        "dicast.judge.model": "qwen3-8b",
        "dicast.judge.latency_ms": 12,
        "dicast.rubric.id": "row-llm-v1",
        "dicast.rubric.version": "1",
        "dicast.fingerprint": "f1",
        "dicast.tier": "truth",
        "dicast.truth_reason": "gate",
        "dicast.propensity": 1.0,
        "dicast.confidence": 0.9,
        "dicast.cost.usd": "0.0001",
        "dicast.pricing_version": "2026-01",
    }
    assert results_by_name["proxy/format"]["gen_ai.evaluation.score.value"] == 1.0
    assert results_by_name["proxy/format"]["dicast.tier"] == "proxy"
    attributes = receiver.attributes(span)
    assert attributes["dicast.subject.id"] == "q1"
    assert attributes["session.id"] == "s1"
    assert attributes["gen_ai.usage.input_tokens"] == 7


ORIGINS = [
    {"trace_id": f"{number}" * 32, "span_id": f"{number}" * 16, "response_id": f"r{number}"} for number in (1, 2)
]


def judged_turn(id, kind="turn", turn=None, spans=ORIGINS):
    content = {"input": None, "output": "x", "context": {"otel": {"spans": spans}}}
    read = event("subject.read", {"content": content}, id, 2, "s")
    fields = {"subject_kind": kind, "turn_id": turn}
    return [evolve(item, **fields) for item in (read, event("eval.completed", VERDICT, id, 4, "s"))]


@pytest.mark.parametrize(
    ("judged", "origin"),
    [
        (judged_turn("s/1"), ORIGINS[0]),
        (judged_turn("s/2"), ORIGINS[1]),
        (judged_turn("c1", "tool_cycle", "s/1"), ORIGINS[0]),
        (judged_turn("s", "session"), ORIGINS[1]),
    ],
)
def test_a_result_is_a_log_event_of_the_judged_span(receiver, judged, origin):
    send(receiver, [STARTED, *judged, COMPLETED])
    logs = receiver.logs()
    assert len(logs) == 2
    for log in logs:
        assert log.event_name == RESULT
        assert (log.trace_id.hex(), log.span_id.hex()) == (origin["trace_id"], origin["span_id"])
        assert receiver.attributes(log)["gen_ai.response.id"] == origin["response_id"]
        assert log.time_unix_nano == log.observed_time_unix_nano == 1767323044678000000
    [run] = [span for span in receiver.spans() if span.name == "dicast run"]
    assert run.trace_id.hex() != origin["trace_id"]


@pytest.mark.parametrize(
    "spans",
    [[], None, [{}], [{"trace_id": "x" * 32, "span_id": "1" * 16}], [{"trace_id": "1" * 32, "span_id": 5}], ["a"]],
)
def test_a_subject_of_another_source_has_its_results_at_its_own_span(receiver, spans):
    send(receiver, [STARTED, *judged_turn("s/1", spans=spans), COMPLETED])
    span = receiver.span("turn")
    assert {(log.trace_id, log.span_id) for log in receiver.logs()} == {(span.trace_id, span.span_id)}


def test_results_are_events_of_the_subject_s_span_where_a_collector_takes_traces_alone(receiver):
    send(receiver, [STARTED, *SUBJECT, COMPLETED], evaluations="span_events")
    assert not receiver.log_requests
    assert [event.name for event in receiver.span("row").events].count(RESULT) == 4


def test_log_events_go_to_their_own_address(receiver):
    other = receiver.url.replace("/v1/traces", "/otlp")
    with pytest.raises(ConfigError, match="endpoint does not end in /v1/traces"):
        Otel(other, evaluations="logs")
    Otel(other, logs_endpoint="http://127.0.0.1:9/logs")
    Otel(other, evaluations="span_events")


def test_results_are_events_of_spans_if_the_address_for_log_events_is_unknown(receiver):
    receiver.url = receiver.url.replace("/v1/traces", "/otlp")
    send(receiver, [STARTED, *SUBJECT, COMPLETED])
    assert not receiver.log_requests
    assert [event.name for event in receiver.span("row").events].count(RESULT) == 4


def test_scores_read_out_of_a_record_are_results_too_with_their_flag(receiver):
    send(receiver, [STARTED, *SUBJECT, COMPLETED])
    results_by_name = results(receiver, receiver.span("row"))
    assert results_by_name["tone"]["gen_ai.evaluation.score.value"] == 0.25
    assert results_by_name["tone"]["gen_ai.evaluation.score.label"] == "fail"
    assert "gen_ai.evaluation.score.value" not in results_by_name["none"]


def test_a_failure_is_an_error_and_no_score(receiver):
    send(receiver, [STARTED, *FAILED, COMPLETED])
    span = receiver.span("row")
    assert (span.status.code, span.status.message) == (2, "timeout")
    assert results(receiver, span)["metrics"] == {
        "gen_ai.evaluation.name": "metrics",
        "error.type": "timeout",
        "dicast.eval.id": "E2",
    }


def test_the_run_says_what_it_came_to_and_by_what_it_may_be_compared(receiver):
    aggregate_event = event(
        "aggregate.completed", {"label": "stats", "name": "stats/score_stats", "result": {"mean": 0.5}}, number=8
    )
    send(receiver, [STARTED, *SUBJECT, aggregate_event, COMPLETED])
    run = receiver.span("dicast run")
    attributes = receiver.attributes(run)
    assert attributes["dicast.fingerprint.data"] == "d1g"
    assert (attributes["dicast.subjects"], attributes["dicast.score.mean"], attributes["dicast.cost.usd"]) == (
        2,
        0.5,
        "0.10",
    )
    assert attributes["dicast.gate.passed"] is True
    [aggregate] = run.events
    assert aggregate.name == "dicast.aggregate"
    assert json.loads(receiver.attributes(aggregate)["dicast.aggregate.result"]) == {"mean": 0.5}


def test_the_run_says_to_which_suite_it_belongs_where_it_belongs_to_one(receiver):
    for suite in ({"id": "suite1", "experiments": ["plain", "strict"]}, None):
        send(receiver, [event("run.started", {**STARTED.payload, "suite": suite}), COMPLETED])
    assert [receiver.attributes(span).get("dicast.suite.id") for span in receiver.spans()] == ["suite1", None]


def test_the_security_level_is_on_every_span_and_on_the_resource(receiver):
    send(receiver, [STARTED, *SUBJECT, COMPLETED])
    assert [receiver.attributes(span)["dicast.security_level"] for span in receiver.spans()] == ["official", "official"]
    [group] = receiver.requests[0].resource_spans
    assert receiver.attributes(group.resource)["dicast.security_level"] == "official"
    assert receiver.attributes(group.resource)["service.name"] == "dicast"


def test_a_run_that_a_fault_stopped_is_an_error_and_one_that_somebody_stopped_is_none(receiver):
    for number, reason in enumerate(["refused_by_provider", "endpoint_unreachable", "early_stop"]):
        send(receiver, [STARTED, event("run.stopped", {"reason": reason, "cost": {}, "gate": {}}, number=5 + number)])
    *faults, early = receiver.spans()
    assert ([span.status.code for span in faults], early.status.code) == ([2, 2], 0)
    assert receiver.attributes(early)["dicast.stopped.reason"] == "early_stop"


def test_an_early_stop_is_told_of_a_run_that_has_completed(receiver):
    reason = {"reason": "early_stop", "stopped": {"reason": "early_stop"}}
    send(receiver, [STARTED, event("run.completed", {**COMPLETED.payload, **reason}, number=9)])
    [span] = receiver.spans()
    assert (span.status.code, receiver.attributes(span)["dicast.stopped.reason"]) == (0, "early_stop")


def test_no_text_is_sent_unless_it_is_asked_for(receiver):
    send(receiver, [STARTED, *SUBJECT, *FAILED, COMPLETED])
    sent = b"".join(request.SerializeToString() for request in [*receiver.requests, *receiver.log_requests])
    assert not [text for text in SECRETS if text.encode() in sent]
    receiver.requests.clear()
    send(receiver, [STARTED, *SUBJECT, *FAILED, COMPLETED], content=True)
    sent = b"".join(request.SerializeToString() for request in [*receiver.requests, *receiver.log_requests])
    assert [text for text in SECRETS if text.encode() in sent] == SECRETS
    span = next(span_ for span_ in receiver.spans() if receiver.attributes(span_).get("dicast.subject.id") == "q1")
    [message] = json.loads(receiver.attributes(span)["gen_ai.input.messages"])
    assert message == {"role": "user", "parts": [{"type": "text", "content": "the input's words"}]}
    assert results(receiver, span)["metrics"]["gen_ai.evaluation.explanation"] == "the reply's words"


def test_headers_are_sent_and_nothing_is_read_from_the_environment(receiver, monkeypatch):
    elsewhere = "http://127.0.0.1:9/v1/traces"
    for name in ("ENDPOINT", "TRACES_ENDPOINT"):
        monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{name}", elsewhere)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-leak=1")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "leak=1")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "leak")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    send(receiver, [STARTED, COMPLETED], headers={"Authorization": Secret("Bearer abc")})
    assert receiver.headers[0]["authorization"] == "Bearer abc"
    assert receiver.headers[0]["content-type"] == "application/x-protobuf"
    assert "x-leak" not in receiver.headers[0]
    assert b"leak" not in receiver.requests[0].SerializeToString()


def test_a_batch_that_failed_is_sent_once_when_told_again(receiver):
    receiver.answers = [503]

    async def go() -> int:
        async with Otel(receiver.url).open(RunContext(RUN, "nightly")) as live:
            batch = [STARTED, *SUBJECT, COMPLETED]
            with pytest.raises(Exception, match="503"):
                await live.write(batch)
            return await live.write(batch)

    assert asyncio.run(go()) == 2
    assert len(receiver.spans()) == 2


@pytest.mark.parametrize("name", ["log_record", "describe", "without_content"])
@pytest.mark.parametrize("failing", range(1, 4))
def test_a_batch_whose_conversion_failed_is_converted_and_sent_by_the_next_try(receiver, monkeypatch, name, failing):
    original, calls = getattr(spans, name), []

    def failed_once(*arguments):
        calls.append(arguments)
        if len(calls) == failing:
            raise TimeoutError("the conversion took too long")
        return original(*arguments)

    events = [STARTED, *SUBJECT, *FAILED, COMPLETED]
    monkeypatch.setattr(spans, name, failed_once)

    async def go() -> int:
        async with Otel(receiver.url, content=True).open(RunContext(RUN, "nightly")) as live:
            with pytest.raises(TimeoutError):
                await live.write(events)
            return await live.write(events)

    assert asyncio.run(go()) == 3
    assert subjects(receiver) == ["q1", "q2", "dicast run"]
    assert len(receiver.logs()) == 5


def test_what_was_sent_of_a_batch_is_not_sent_again(receiver):
    receiver.answers = [200, 429]
    events = [event_ for number in range(700) for event_ in (event("eval.completed", VERDICT, f"q{number}", 3),)]

    async def go() -> int:
        async with Otel(receiver.url).open(RunContext(RUN, "nightly")) as live:
            batch = [STARTED, *events, COMPLETED]
            with pytest.raises(Exception, match="429"):
                await live.write(batch)
            return await live.write(batch)

    assert asyncio.run(go()) == 701
    assert len({span.span_id for span in receiver.spans()}) == len(receiver.spans()) == 701


def test_a_lost_batch_does_not_come_back_with_the_next(receiver):
    receiver.answers = [500, 500]  # spans and log events are sent at once, in any order

    async def go() -> int:
        async with Otel(receiver.url).open(RunContext(RUN, "nightly")) as live:
            with pytest.raises(Exception, match="500"):
                await live.write([STARTED, *SUBJECT, *FAILED])
            return await live.write([COMPLETED])

    assert asyncio.run(go()) == 2
    assert [receiver.attributes(span).get("dicast.subject.id") for span in receiver.spans()] == ["q2", None]


def test_a_redirect_is_not_followed(receiver):
    receiver.answers = [307]
    with pytest.raises(Exception, match="307"):
        send(receiver, [STARTED, COMPLETED])
    assert receiver.requests == []


def test_spans_that_the_collector_refuses_are_said(receiver):
    receiver.rejected = 2
    with pytest.raises(Exception, match="refused 2 spans: 'too many'"):
        send(receiver, [STARTED, *SUBJECT, COMPLETED])


def test_an_answer_that_is_too_long_counts_as_not_taken(receiver):
    receiver.body = bytes(10_001)
    with pytest.raises(
        Exception,
        match=r"answered with a reply that cannot be read: the reply has more than 10,000 bytes \(max_reply_bytes\)",
    ):
        send(receiver, [STARTED, COMPLETED], max_reply_bytes=10_000)
    assert receiver.headers[0]["accept-encoding"] == "identity"


@pytest.mark.parametrize("status", [200, 401])
def test_a_header_that_the_collector_repeats_is_in_no_message(receiver, status):
    receiver.answers, receiver.rejected, receiver.told_too = [status], 1, "bad sk-12345678 here"
    receiver.body = None if status == 200 else b"bad sk-12345678 here"
    with pytest.raises(Exception, match=r"bad \*\*\* here"):
        send(receiver, [STARTED, COMPLETED], headers={"Authorization": Secret("Bearer sk-12345678")})


def test_a_collector_that_does_not_answer_is_not_waited_for_each_time(receiver):
    receiver.answers = [0, 0, 0]

    async def go() -> float:
        async with Otel(receiver.url, timeout=1.1).open(RunContext(RUN, "nightly")) as live:
            with pytest.raises(Exception, match="could not be reached"):
                await live.write([STARTED, *SUBJECT, COMPLETED])
            began = time.monotonic()
            for _ in range(3):
                with pytest.raises(Exception, match="not asked again"):
                    await live.write([STARTED, *SUBJECT, COMPLETED])
            return time.monotonic() - began

    assert asyncio.run(go()) < 3


def stopped(lost=0, number=6) -> Event:
    sinks = {"out": {"written": 9, "lost": 0}, "telemetry/otel": {"written": 1, "lost": lost}}
    return event("run.stopped", {"reason": "interrupted", "sinks": sinks, "cost": {}, "gate": {}}, number=number)


def taken_up(*stops) -> RunContext:
    """Return the context of a run that is resumed after these stops."""
    return RunContext(RUN, "nightly", resumed=True, read=lambda query: iter([Entry(1, stop, "", "") for stop in stops]))


def judged(*ids) -> list[Event]:
    """Return events of subjects that are read, and then end in the same order."""
    read = [event("subject.read", {}, id, 10 + number) for number, id in enumerate(ids)]
    return read + [event("eval.completed", VERDICT, id, 40 + number) for number, id in enumerate(ids)]


def subjects(receiver) -> list[object]:
    return [receiver.attributes(span).get("dicast.subject.id", span.name) for span in receiver.spans()]


def test_what_is_told_again_is_sent_again_as_it_was(receiver):
    events = [STARTED, *judged("a", "b", "c"), COMPLETED]
    send(receiver, events[:5])
    assert subjects(receiver) == []
    send(receiver, events, run=taken_up())
    send(receiver, *([event_] for event_ in events), run=taken_up())
    assert subjects(receiver) == ["a", "b", "c", "dicast run"] * 2
    sent = receiver.spans()
    assert sent[:4] == sent[4:]
    assert len({span.span_id for span in sent}) == 4


def test_what_came_before_an_orderly_stop_is_sent_again_only_where_a_sink_had_lost_something(receiver):
    for lost, again in ((0, ["b", "c"]), (1, ["a", "b", "c"])):
        receiver.requests.clear()
        first, second = judged("a", "b", "c"), stopped(lost)
        send(receiver, [STARTED, *first[:5], second])
        assert subjects(receiver) == ["a", "b", "dicast run"]  # c has not ended
        receiver.requests.clear()
        # That b was told with the stop itself, nobody has written down.
        send(receiver, [STARTED, *first[:5], second, first[5], COMPLETED], run=taken_up(second))
        assert subjects(receiver) == [*again, "dicast run"]


def test_of_two_stops_the_newest_that_lost_nothing_counts(receiver):
    stops = stopped(0, 6), stopped(0, 7), stopped(3, 8)
    parts = [judged(f"{name}1", f"{name}2") for name in "abcd"]
    events = [STARTED, *parts[0], stops[0], *parts[1], stops[1], *parts[2], stops[2], *parts[3], COMPLETED]
    send(receiver, events, run=taken_up(*stops))
    assert subjects(receiver) == ["b2", "c1", "c2", "d1", "d2", "dicast run"]


def test_a_subject_that_is_judged_again_has_the_span_it_had_and_what_stands_is_no_error(receiver):
    read, end = FAILED
    opened = [event("subject.read", {}, "q3", 3), event("subject.read", {}, "q4", 4)]
    send(receiver, [STARTED, read, *opened, end, event("eval.completed", VERDICT, "q3", 6)])
    again = [read, end, event("eval.completed", VERDICT, "q2", 7)]
    ends = [event("eval.completed", VERDICT, id, 8) for id in ("q3", "q4")]
    send(receiver, [STARTED, *opened], *([event_] for event_ in again), [*ends, COMPLETED], run=taken_up())
    assert subjects(receiver) == ["q2", "q3", "q4", "q2", "dicast run"]
    first, *later_spans = [
        span for span in receiver.spans() if receiver.attributes(span).get("dicast.subject.id") == "q2"
    ]
    assert [span.span_id for span in later_spans] == [first.span_id]
    assert (first.status.code, later_spans[0].status.code) == (2, 0)
    assert [log.span_id for log in receiver.logs()].count(first.span_id) == 1 + 3


def test_a_subject_that_comes_again_has_a_span_each_time_however_it_is_told(receiver):
    read = [event("subject.read", {}, "t1", number) for number in (2, 5)]
    other = event("subject.read", {}, "t2", 4)
    ends = [event("eval.completed", VERDICT, id, number) for id, number in (("t1", 3), ("t2", 6), ("t1", 7))]
    events = [STARTED, read[0], ends[0], other, read[1], *ends[1:], COMPLETED]
    send(receiver, events)
    send(receiver, *([event_] for event_ in events))
    assert subjects(receiver) == ["t1", "t2", "t1", "dicast run"] * 2
    ids = [span.span_id for span in receiver.spans()]
    assert ids[:4] == ids[4:]
    assert len(set(ids)) == 4


@pytest.mark.parametrize("endpoint", ["localhost:4318", "grpc://x:4317", "http://", "http://[", "/v1/traces"])
def test_an_endpoint_is_a_whole_address(endpoint):
    with pytest.raises(ConfigError, match="endpoint"):
        Otel(endpoint)


def test_who_one_is_does_not_belong_into_the_address():
    with pytest.raises(ConfigError, match="headers") as caught:
        Otel("http://me:hunter2@localhost/v1/traces")
    assert "hunter2" not in str(caught.value)


def test_a_header_may_not_hold_a_line_end():
    with pytest.raises(ConfigError, match="line end") as caught:
        Otel("http://localhost/v1/traces", headers={"a": Secret("x\r\nhunter2: 1")})
    assert "hunter2" not in str(caught.value)


def test_an_unreachable_collector_stops_nothing_and_what_is_lost_is_counted():
    subjects = [Subject("row", str(number)) for number in range(5)]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}/v1/traces"
        text = f"metrics: [judge]\nsinks: [{{telemetry/otel: {{endpoint: '{endpoint}'}}}}]\n"
        done = run_pipeline(text, subjects=subjects, components={"judge": FakeJudge()})
    assert done.exit_code == 4
    assert done.document["scored"] == 5
    status = done.document["sinks"]["telemetry/otel"]
    # For each subject subject.read and eval.completed, then run.completed; run.started alone makes no span.
    assert (status["written"], status["lost"]) == (0, 11)
    assert "could not be reached" in status["error"]


def test_a_whole_run_arrives(receiver):
    text = f"name: nightly\nmetrics: [judge]\nsinks: [{{telemetry/otel: {{endpoint: '{receiver.url}'}}}}]\n"
    done = run_pipeline(
        text, subjects=[Subject("row", str(number)) for number in range(5)], components={"judge": FakeJudge()}
    )
    assert done.exit_code == 0
    assert done.document["sinks"]["telemetry/otel"] == {"written": 6, "lost": 0}
    scores = {verdict.subject_id: verdict.score for verdict in done.verdicts}
    spans = [span for span in receiver.spans() if span.name == "row"]
    sent = {
        receiver.attributes(span)["dicast.subject.id"]: results(receiver, span)["metrics"][
            "gen_ai.evaluation.score.value"
        ]
        for span in spans
    }
    assert sent == scores


VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.decimals()
    | st.lists(st.text(), max_size=2)
)


@given(st.dictionaries(st.text(), VALUES))
def test_every_value_can_be_sent(payload_value):
    span = Span()
    describe(span, payload_value)
    assert Span.FromString(span.SerializeToString()) == span
    left_out = [
        value for value in payload_value.values() if value is None or (isinstance(value, float) and not isfinite(value))
    ]
    assert len(span.attributes) + len(left_out) == len(payload_value)


EXPERIMENT = """
name: nightly
task: {{prompt/chat: {{model: fake, criteria: {{tone: {{user: "tone of {{{{ input }}}}"}}, truth: {{user: "truth of {{{{ input }}}}"}}}}}}}}
extractors: [score_extractor/scores: {{key: score, threshold: 0.5}}]
aggregates: [stats/score_stats]
sinks: [{{telemetry/otel: {{endpoint: '{url}'}}}}]
"""


def test_an_experiment_arrives_as_its_ledger_has_it(receiver):
    fake = FakeChatModel(lambda request: json.dumps({"score": len(request.messages[-1].content) / 20}))
    done = run_pipeline(
        EXPERIMENT.format(url=receiver.url),
        subjects=[Subject("row", "a" * number, input="a" * number) for number in range(1, 6)],
        components={"fake": fake},
    )
    assert done.document["sinks"]["telemetry/otel"] == {"written": 6, "lost": 0}
    sent = {
        receiver.attributes(span)["dicast.subject.id"]: {
            name: record["gen_ai.evaluation.score.value"] for name, record in results(receiver, span).items()
        }
        for span in receiver.spans()
        if span.name == "row"
    }
    assert sent == {record.subject_id: record.payload["metrics"]["scores"] for record in done.of("record.completed")}
    [aggregate] = receiver.span("dicast run").events
    result = json.loads(receiver.attributes(aggregate)["dicast.aggregate.result"])
    assert result == done.document["aggregates"]["stats/score_stats"]


@pytest.mark.parametrize("seconds", [0.0, -1.0, 30.0, 60.0])
def test_a_timeout_out_of_its_bounds_is_refused_with_what_is_expected(seconds):
    with pytest.raises(ConfigError, match=f"timeout, expected more than 0 and less than 30 seconds, got {seconds}"):
        Otel("http://127.0.0.1:9/v1/traces", timeout=seconds)
