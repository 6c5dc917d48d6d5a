"""The receiver in one process: requests, their answers, and the conversations that come of them."""

from __future__ import annotations

import gzip
import http.client
import json
import time
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

import attrs
import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from dicast import ConfigError, DataError, Secret
from dicast.toolkit.listening import ListenAddress
from dicast.toolkit.reception import Reception
from dicast.toolkit.session_reading import Failed
from dicast_otel import Receiver

NOW = 1e12
LOCAL = ListenAddress("127.0.0.1", 0)


def _text(role, text):
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def chat(trace="a", id="1", parent=None, *, question="Hi", answer="Ho", session=None):
    """Return a span of a model in OTLP's JSON."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([_text("user", question)]),
        "gen_ai.output.messages": json.dumps([_text("assistant", answer)]),
        **({} if session is None else {"session.id": session}),
    }
    return {
        "traceId": trace * 32,
        "spanId": id * 16,
        **({} if parent is None else {"parentSpanId": parent * 16}),
        "name": "chat",
        "startTimeUnixNano": f"17000000{ord(id)}000000000",
        "endTimeUnixNano": f"17000000{ord(id)}500000000",
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }


def request(*spans):
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


class Server:
    """An open receiver with a client. *reports* has its lines for the user."""

    def __init__(self, receiver, reports):
        self.receiver, self.reports = receiver, reports
        self.address = urlsplit(reports[0].split()[-1]) if reports else None

    def post(self, body, kind="application/json", path="/v1/traces", **headers):
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(http.client.HTTPConnection(self.address.hostname, self.address.port, timeout=100)) as connection:
            connection.request("POST", path, data, {"Content-Type": kind, **fields})
            answer = connection.getresponse()
            return answer.status, answer.read()

    def sessions(self, now=NOW):
        """Return the due conversations as texts, and note that they are in the ledger."""
        received = self.receiver.sessions(now)
        result = {}
        for item in received:
            session = item.session
            if isinstance(session, Failed):
                result[session.id, item.is_over] = session.reason
            else:
                result[session.id, item.is_over] = [turn.texts() for turn in session.turns]
        self.receiver.settle()
        return result


@pytest.fixture
def serve(tmp_path):
    """Return a context manager that opens a receiver with options; its data stay for the next one."""

    @contextmanager
    def open(*, address=LOCAL, **options):
        reports: list[str] = []
        reception = Reception(address, tmp_path / "spool.db", lambda _, call_id: call_id, reports.append, lambda: None)
        with Receiver(**{"settle_seconds": 0, "idle_seconds": 60, **options}).receiving(reception) as receiver:
            receiver.sessions(0.0)  # the watch asks at once; its time counts from here
            yield Server(receiver, reports)

    return open


ONE = {("a" * 32, False): [("Hi", "Ho")]}


@pytest.mark.parametrize("is_compressed", [False, True])
@pytest.mark.parametrize("kind", ["application/json", "application/x-protobuf"])
def test_a_request_is_stored_before_its_answer(serve, kind, is_compressed):
    document = request(chat())
    hexed = json.loads(
        json.dumps(document).replace("a" * 32, "qqqqqqqqqqqqqqqqqqqqqg==").replace("1" * 16, "ERERERERERE=")
    )
    data = (
        json.dumps(document).encode()
        if kind.endswith("json")
        else ParseDict(hexed, ExportTraceServiceRequest()).SerializeToString()
    )
    headers = {"Content_Encoding": "gzip"} if is_compressed else {}
    with serve() as server:
        status, answer = server.post(gzip.compress(data) if is_compressed else data, kind, **headers)
        assert status == 200
        assert answer == (b"{}" if kind.endswith("json") else b"")
    with serve() as server:  # a new process
        assert server.sessions() == ONE


def test_the_real_exporter_is_understood(serve):
    with serve() as server:
        exporter = OTLPSpanExporter(f"{server.address.geturl()}", compression=Compression.Gzip, timeout=60)
        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(exporter))
        with provider.get_tracer("test").start_as_current_span("chat") as span:
            span.set_attribute("gen_ai.input.messages", json.dumps([_text("user", "Hi")]))
            span.set_attribute("gen_ai.output.messages", json.dumps([_text("assistant", "Ho")]))
        assert provider.force_flush()
        provider.shutdown()
        assert [*server.sessions().values()] == [[("Hi", "Ho")]]


def test_a_conversation_comes_again_until_it_is_in_the_ledger(serve):
    with serve() as server:
        server.post(request(chat()))
        assert len(server.receiver.sessions(NOW)) == 1
    with serve() as server:
        assert server.sessions() == ONE
        assert server.receiver.unread == 0
        assert server.sessions() == {("a" * 32, True): [("Hi", "Ho")]}
        assert server.sessions() == {}


def test_a_span_that_is_sent_again_changes_nothing(serve):
    with serve() as server:
        server.post(request(chat()))
        server.post(request(chat()))
        assert server.sessions() == ONE
        server.post(request(chat()))
        assert server.receiver.unread == 0


def test_a_trace_waits_for_its_root(serve):
    with serve(idle_seconds=60) as server:
        server.post(request(chat(id="2", parent="1")))
        assert server.sessions(time.time() + 30) == {}
        server.post(request(chat(id="1", question="Hi", answer="Ho")))
        assert [*server.sessions(time.time() + 1)] == [("a" * 32, False)]


def test_a_trace_without_its_root_comes_when_it_is_idle(serve):
    with serve(idle_seconds=60) as server:
        server.post(request(chat(id="2", parent="1")))
        assert server.sessions(time.time() + 61) == ONE


def test_a_session_goes_on_in_another_trace(serve):
    with serve() as server:
        server.post(request(chat(session="s")))
        assert server.sessions(time.time() + 1) == {("s", False): [("Hi", "Ho")]}
        server.post(request(chat(trace="b", id="2", question="More", answer="Here", session="s")))
        assert server.sessions(time.time() + 1) == {("s", False): [("Hi", "Ho"), ("More", "Here")]}
        assert server.sessions() == {("s", True): [("Hi", "Ho"), ("More", "Here")]}


def test_spans_of_other_work_are_counted(serve):
    other = {**chat(), "attributes": []}
    with serve() as server:
        server.post(request(other))
        assert server.sessions() == {}
        assert server.receiver.unread == 0
    assert server.reports[-1] == "left out or marked: 1 spans of other work"


def test_a_conversation_without_messages_is_failed_once(serve):
    bare = {**chat(), "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}]}
    with serve() as server:
        server.post(request(bare))
        ((_, reason),) = server.sessions().items()
        assert "records no messages" in reason
        assert server.sessions() == {}


@pytest.mark.parametrize(
    ("body", "headers", "status", "message"),
    [
        (b"{", {}, 400, "not JSON"),
        (b"[]", {}, 400, "resourceSpans"),
        ({"resourceLogs": []}, {}, 400, "resourceLogs"),
        (request({"traceId": "zz", "spanId": "1"}), {}, 400, "neither hex nor base64 at resourceSpans[0].scopeSpans[0].spans[0].traceId"),
        (b"\x0a\xff\xff", {"kind": "application/x-protobuf"}, 400, "protobuf"),
        (b"x", {"kind": "text/plain"}, 415, "application/x-protobuf"),
        (b"x", {"Content_Encoding": "br"}, 415, "gzip"),
        (b"not compressed", {"Content_Encoding": "gzip"}, 400, "header"),
        (gzip.compress(b"{}" + b" " * 9999, mtime=0)[:-9], {"Content_Encoding": "gzip"}, 400, "cut"),
        (gzip.compress(b" " * 3_000_000, mtime=0), {"Content_Encoding": "gzip"}, 413, "after decompression"),
        (b" " * 2_000_001, {}, 413, "2,000,000 bytes"),
        (request(*(chat(id=id) for id in "1234")), {}, 413, "3 spans, not 4"),
        (b"{}", {"path": "/v1/logs"}, 404, "POST /v1/traces"),
        (b"{}", {"Origin": "https://example.com"}, 403, "example.com"),
        (b"{}", {"Host": "example.com"}, 421, "example.com"),
    ],
)  # fmt: skip
def test_a_wrong_request_is_refused_and_the_next_one_is_taken(serve, body, headers, status, message):
    with serve(max_request_bytes=2_000_000, max_request_spans=3) as server:
        code, answer = server.post(body, **headers)
        assert (code, message in answer.decode()) == (status, True), answer
        assert server.post(request(chat()))[0] == 200
        assert server.sessions() == ONE


def test_spans_without_ids_are_rejected_in_the_answer(serve):
    wrong = {**chat(id="2"), "spanId": "0" * 16}
    with serve() as server:
        status, answer = server.post(request(chat(), wrong))
        assert status == 200
        partial = json.loads(answer)["partialSuccess"]
        assert partial == {"rejectedSpans": "1", "errorMessage": "spans rejected: 1 without a trace id and a span id"}
        assert server.sessions() == ONE


def test_spans_over_the_limit_of_a_trace_are_rejected_in_the_answer(serve):
    data = request(*(chat(id=id) for id in "123"))
    with serve(max_trace_spans=2) as server:
        encoded = json.loads(json.dumps(data).replace("a" * 32, "qqqqqqqqqqqqqqqqqqqqqg=="))
        for span in encoded["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            span["spanId"] = {"1": "ERERERERERE=", "2": "IiIiIiIiIiI=", "3": "MzMzMzMzMzM="}[span["spanId"][0]]
        _, answer = server.post(
            ParseDict(encoded, ExportTraceServiceRequest()).SerializeToString(), "application/x-protobuf"
        )
        assert ExportTraceServiceResponse.FromString(answer).partial_success.rejected_spans == 1


def test_a_full_spool_asks_to_send_later(serve):
    with serve(max_spool_bytes=10) as server:
        assert server.post(request(chat()))[0] == 200
        status, answer = server.post(request(chat(trace="b")))
        assert (status, b"again later" in answer) == (503, True)
        server.sessions()
        assert server.post(request(chat(trace="b")))[0] == 200


def test_a_token_is_needed_where_it_is_set(serve):
    with serve(token=Secret("correct horse")) as server:
        assert server.post(request(chat()))[0] == 401
        assert server.post(request(chat()), Authorization="Bearer wrong")[0] == 401
        assert server.post(request(chat()), Authorization="Bearer correct horse")[0] == 200


def test_an_address_for_other_machines_needs_a_token(serve):
    with (
        pytest.raises(ConfigError, match="other machines reach --otlp 0.0.0.0"),
        serve(address=ListenAddress("0.0.0.0", 0)),
    ):
        pass


def test_a_run_is_told_to_watch():
    with pytest.raises(DataError, match="dicast watch FILE --otlp 4318"):
        Receiver().check()


def test_the_time_in_which_the_receiver_was_closed_does_not_count(serve, tmp_path):
    with serve() as server:
        server.post(request(chat(id="2", parent="1")))
    reception = Reception(None, tmp_path / "spool.db", lambda _, call_id: call_id, print, lambda: None)
    opened = attrs.evolve(reception, address=LOCAL)
    with Receiver(idle_seconds=60).receiving(opened) as receiver:
        assert receiver.sessions(NOW) == []
        assert receiver.sessions(NOW + 59) == []
        assert len(receiver.sessions(NOW + 61)) == 1
    with Receiver().receiving(reception) as receiver:  # --once
        assert len(receiver.sessions(NOW)) == 1


@pytest.mark.parametrize(
    ("scan", "shown"),
    [("mask", "[masked: aws-key]"), ("warn", "AKIA4QK7ZN2XWB6TPHLM"), ("off", "AKIA4QK7ZN2XWB6TPHLM")],
)
def test_secrets_are_counted_or_masked(serve, scan, shown):
    with serve(scan=scan) as server:
        server.post(request(chat(question="My key is AKIA4QK7ZN2XWB6TPHLM")))
        assert server.sessions() == {("a" * 32, False): [(f"My key is {shown}", "Ho")]}
        assert server.sessions() == {("a" * 32, True): [(f"My key is {shown}", "Ho")]}
    assert any("1 aws-key in conversations" in report for report in server.reports) == (scan != "off")


@pytest.mark.parametrize("has_contents", [True, False])
def test_a_failed_call_is_a_turn_that_is_received(serve, has_contents):
    span = chat()
    keep = ("gen_ai.operation.name", *(["gen_ai.input.messages"] if has_contents else []))
    span["attributes"] = [item for item in span["attributes"] if item["key"] in keep]
    span["status"] = {"code": 2, "message": "HTTP 500"}
    with serve() as server:
        server.post(request(span))
        (received,) = server.receiver.sessions(NOW)
        (turn,) = received.session.turns
        payload = turn.events[-1].payload
        assert (payload["ended_by"], turn.texts()[0]) == ("model_failure", "Hi" if has_contents else None)
