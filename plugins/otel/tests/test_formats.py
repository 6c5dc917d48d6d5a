"""The same spans, written by the real SDK, in every format of a file."""

from __future__ import annotations

import base64
import gzip
import json
import random
import subprocess
import sys

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status, StatusCode

from dicast import DataError
from dicast.toolkit.beginning import read_beginning
from dicast.toolkit.detection import detected
from dicast_otel import Spans

LINES = ["user: Hi", 'call look {"n": 12345678901}', "failed no such place", "assistant: Ho"]


def _message(role, **part):
    return {"role": role, "parts": [part]}


@pytest.fixture(scope="module")
def recorded():
    """The spans of an agent with a tool that failed, as the SDK gives them to its exporters."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("agent")
    question = _message("user", type="text", content="Hi")
    call = _message("assistant", type="tool_call", id="c1", name="look", arguments={"n": 12345678901})
    answer = _message("assistant", type="text", content="Ho")
    with tracer.start_as_current_span(
        "invoke_agent", attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "talk"}
    ):
        with tracer.start_as_current_span("chat", attributes={"gen_ai.operation.name": "chat"}) as span:
            span.set_attribute("gen_ai.input.messages", json.dumps([question]))
            span.set_attribute("gen_ai.output.messages", json.dumps([call]))
            span.set_attribute("gen_ai.usage.input_tokens", 9_007_199_254_740_993)
        with tracer.start_as_current_span("execute_tool look") as span:
            span.set_attributes(
                {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.call.id": "c1"}
            )
            span.set_status(Status(StatusCode.ERROR, "no such place"))
        with tracer.start_as_current_span("chat", attributes={"gen_ai.operation.name": "chat"}) as span:
            reply = _message("tool", type="tool_call_response", id="c1", response="no such place")
            span.set_attribute("gen_ai.input.messages", json.dumps([question, call, reply]))
            span.set_attribute("gen_ai.output.messages", json.dumps([answer]))
    return exporter.get_finished_spans()


def _hex(document):
    """Return the JSON of protobuf with ids as hex, as OTLP's JSON has them."""
    if isinstance(document, dict):
        ids = ("traceId", "spanId", "parentSpanId")
        return {key: base64.b64decode(value).hex() if key in ids else _hex(value) for key, value in document.items()}
    return [_hex(item) for item in document] if isinstance(document, list) else document


def _jaeger(document):
    """Return Jaeger's JSON of a request of OTLP."""
    spans = []
    for span in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        tags = []
        for pair in span["attributes"]:
            ((kind, value),) = pair["value"].items()
            names = {"stringValue": "string", "intValue": "int64", "boolValue": "bool", "doubleValue": "float64"}
            tags.append({"key": pair["key"], "type": names[kind], "value": value})
        if span.get("status", {}).get("code") == "STATUS_CODE_ERROR":
            tags.append({"key": "otel.status_code", "type": "string", "value": "ERROR"})
            tags.append({"key": "otel.status_description", "type": "string", "value": span["status"]["message"]})
        parent = span.get("parentSpanId")
        spans.append(
            {
                "traceID": span["traceId"],
                "spanID": span["spanId"],
                "operationName": span["name"],
                "references": [{"refType": "CHILD_OF", "traceID": span["traceId"], "spanID": parent}] if parent else [],
                "startTime": int(span["startTimeUnixNano"]) // 1000,
                "duration": (int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])) // 1000,
                "tags": tags,
                "logs": [],
                "processID": "p1",
            }
        )
    return {"data": [{"traceID": spans[0]["traceID"], "spans": spans, "processes": {"p1": {"serviceName": "shop"}}}]}


def _files(recorded):
    request = encode_spans(recorded)
    data = request.SerializeToString()
    document = MessageToDict(request)
    hexed = _hex(document)
    halves = [encode_spans([span]) for span in recorded]
    snake = MessageToDict(request, preserving_proto_field_name=True)
    legacy = {
        "batches": [
            {
                "resource": {},
                "instrumentationLibrarySpans": [{"spans": hexed["resourceSpans"][0]["scopeSpans"][0]["spans"]}],
            }
        ]
    }
    return {
        "OTLP JSON, hex": json.dumps(hexed).encode(),
        "OTLP JSON, base64": json.dumps(document, indent=2).encode(),
        "OTLP JSON, snake case": json.dumps(snake).encode(),
        "OTLP JSON, a request a line": b"".join(json.dumps(_hex(MessageToDict(half))).encode() + b"\n" for half in halves),
        "OTLP JSON, an array of requests": json.dumps([_hex(MessageToDict(half)) for half in halves], indent=1).encode(),
        "OTLP JSON, gzip": gzip.compress(json.dumps(hexed).encode()),
        "OTLP JSON, spans in a list": json.dumps(hexed["resourceSpans"][0]["scopeSpans"][0]["spans"]).encode(),
        "OTLP protobuf": data,
        "OTLP protobuf, gzip": gzip.compress(data),
        "OTLP protobuf, requests in a row": b"".join(half.SerializeToString() for half in halves),
        "OTLP protobuf, requests after their lengths": b"".join(
            len(part := half.SerializeToString()).to_bytes(4, "big") + part for half in halves
        ),
        "Tempo": json.dumps(legacy).encode(),
        "Tempo, second API": json.dumps({"trace": hexed}).encode(),
        "Jaeger": json.dumps(_jaeger(hexed), indent=4).encode(),
        "Jaeger, one trace": json.dumps(_jaeger(hexed)["data"][0]).encode(),
        "spans of Python, a list": json.dumps([json.loads(span.to_json()) for span in recorded]).encode(),
        "spans of Python, in a row": "\n".join(span.to_json() for span in recorded).encode(),
        "spans of Python, one a line": "\n".join(span.to_json(indent=None) for span in recorded).encode(),
        "spans by operation": json.dumps({span.name + span.get_span_context().span_id.to_bytes(8, "big").hex(): [json.loads(span.to_json())] for span in recorded}).encode(),
    }  # fmt: skip


FORMATS = 19


@pytest.mark.parametrize("number", range(FORMATS))
def test_every_format_has_the_same_conversation(number, recorded, read, tmp_path):
    files = _files(recorded)
    assert len(files) == FORMATS
    name, data = list(files.items())[number]
    path = tmp_path / "spans"
    path.write_bytes(data)
    reading = read(path)
    assert reading.sessions == {"talk": LINES}, name
    assert reading.payloads("llm.call_completed")[0]["usage"] == {"input_tokens": 9_007_199_254_740_993}
    assert not reading.counts.marked
    detection = detected(read_beginning(path, "utf-8"))
    assert detection is not None
    assert detection.component == "otel/spans"
    assert name.split(",")[0].replace("spans of Python", "spans of an SDK").replace("spans by operation", "spans of an SDK by operation") in (
        detection.title, detection.title.removesuffix(" JSON"), detection.title.removesuffix(" export"), detection.title.replace("a span of ", ""),
    )  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["Jaeger", "OTLP JSON, base64", "OTLP JSON, an array of requests", "OTLP protobuf, requests after their lengths"],
)
def test_a_file_may_be_longer_than_the_longest_record(name, recorded, read, tmp_path):
    path = tmp_path / "spans"
    data = _files(recorded)[name]
    if name.startswith("OTLP JSON, base64"):
        document = json.loads(data)
        document["resourceSpans"] += [{"scopeSpans": [{"spans": [{"traceId": "f" * 32, "spanId": f"{n:016x}", "name": "x" * 2000}]}]} for n in range(20)]  # fmt: skip
        data = json.dumps(document, indent=2).encode()
    elif name == "Jaeger":
        document = json.loads(data)
        document["data"] += [{"traceID": "e" * 32, "spans": [{"traceID": "e" * 32, "spanID": f"{n}", "operationName": "x" * 3000}], "processes": {}} for n in range(20)]  # fmt: skip
        data = json.dumps(document, indent=2).encode()
    path.write_bytes(data)
    reading = read(path, max_line_bytes=len(data) - 1)
    assert reading.sessions == {"talk": LINES}


def test_a_wrong_value_of_a_document_is_named_by_its_number(recorded, tmp_path):
    document = json.loads(_files(recorded)["Jaeger"])
    trace = document["data"][0]
    document["data"].append({**trace, "spans": [*trace["spans"], {**trace["spans"][0], "startTime": "soon"}]})
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")
    with pytest.raises(DataError) as error, Spans(path).reading() as live:
        live.check()
    (problem,) = error.value.problems
    assert problem.path == f"data[1].spans[{len(trace['spans'])}].startTime"


@pytest.mark.parametrize("size", [1, 7, 40, 200])
def test_a_cut_file_is_refused(size, recorded, tmp_path):
    data = encode_spans(recorded).SerializeToString()
    path = tmp_path / "cut.pb"
    path.write_bytes(data[:-size])
    with pytest.raises(DataError), Spans(path).reading() as live:
        live.check()


@pytest.mark.parametrize(
    "text",
    [
        '{"messages": [{"role": "user", "content": "hi"}]}',
        '{"id": "1", "output": "x"}',
        "\n\n{}\n",
        "a,b\n1,2\n",
        '[{"name": "x", "attributes": {}}]',
    ],
)
def test_other_files_are_not_detected(text, tmp_path):
    path = tmp_path / "file"
    path.write_text(text)
    assert Spans.detect(read_beginning(path, "utf-8")) is None


def test_init_writes_a_pipeline_for_spans(recorded, tmp_path):
    (tmp_path / "spans.json").write_bytes(_files(recorded)["OTLP JSON, hex"])
    command = [sys.executable, "-m", "dicast", "init", "spans.json"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    (written,) = tmp_path.glob("*.yaml")
    assert "otel/spans" in written.read_text()


VALUES = [
    None,
    True,
    -1,
    3.5,
    "",
    "{",
    '[{"role": 5}]',
    '{"messages": 3}',
    [],
    {},
    [None],
    {"a": {"b": [1]}},
    [{"type": "x"}],
    10**30,
    {"value": None},
]


def _changed(value, chance):
    """Return *value* with one random change somewhere, also inside of JSON in a text."""
    if isinstance(value, str) and value[:1] in ("{", "[") and chance.random() < 0.7:
        return json.dumps(_changed(json.loads(value), chance))
    if not isinstance(value, dict | list) or not value or chance.random() < 0.1:
        return chance.choice(VALUES)
    copy = value.copy()
    place = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
    if isinstance(copy, dict) and chance.random() < 0.2:
        del copy[place]
    else:
        copy[place] = _changed(copy[place], chance)
    return copy


def _subjects_or_refusal(path):
    """Read a file; return the message if it is refused, else an empty text. Subjects and counts are there."""
    try:
        with Spans(path, subjects=["turn", "tool_cycle", "session"]).reading() as live:
            live.check()
            return "" if list(live.subjects()) and live.read_counts().records else "no subjects"
    except DataError as error:
        return str(error)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("OTLP JSON, hex", lambda span: span.update(startTimeUnixNano="9" * 20)),
        ("OTLP JSON, hex", lambda span: span["attributes"].append({"key": "k", "value": {"intValue": "9" * 20}})),
        ("Jaeger", lambda span: span.update(startTime=10**17)),
        ("spans of Python, a list", lambda span: span.update(start_time=[10**10, 0])),
    ],
    ids=["time", "attribute", "microseconds", "seconds"],
)
def test_an_integer_of_more_than_64_bits_is_a_fault_with_its_place(name, change, recorded, tmp_path):
    document, path = json.loads(_files(recorded)[name]), tmp_path / "spans.json"
    change(_first_span(document))
    path.write_text(json.dumps(document))
    assert "needs more than 64 bits" in _subjects_or_refusal(path)


def _first_span(value):
    if isinstance(value, dict) and {"spanId", "spanID", "spanContext", "context"} & value.keys():
        return value
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((span for item in values if (span := _first_span(item)) is not None), None)


@pytest.mark.parametrize("seed", range(4))
def test_any_change_of_a_file_is_read_or_refused_with_its_place(seed, recorded, tmp_path):
    files = _files(recorded)
    names = ["OTLP JSON, hex", "Jaeger", "Tempo", "spans of Python, a list"]
    chance = random.Random(seed)
    path = tmp_path / "spans.json"
    for _ in range(40):
        path.write_text(json.dumps(_changed(json.loads(files[names[seed]]), chance)))
        assert _subjects_or_refusal(path) == "" or path.name in _subjects_or_refusal(path)


def test_a_trace_of_mlflow_has_the_calls_of_its_tools(tmp_path, read):
    def span(id, name, type_, parent=None, **fields):
        ids = {"trace_id": "v1yscsIva2at3/XVnO0tpw==", "span_id": id, "parent_span_id": parent}
        attributes = {key: json.dumps(value) for key, value in {"mlflow.spanType": type_, **fields}.items()}
        start = 1795764194649989339 + int.from_bytes(base64.b64decode(id)[-1:]) * 1000
        status = {"code": "STATUS_CODE_OK", "message": ""}
        return {**ids, "name": name, "start_time_unix_nano": start, "end_time_unix_nano": start + 500, "status": status,
                "events": [], "attributes": attributes}  # fmt: skip

    question = [{"role": "user", "content": "Weather?"}]
    ids = [base64.b64encode(bytes([0, 0, 0, 0, 0, 0, 0, number])).decode() for number in (1, 2, 3)]
    inputs, outputs = {"mlflow.spanInputs": {"messages": question}}, {"mlflow.spanOutputs": "It is 22C."}
    spans = [
        span(ids[0], "agent", "AGENT", **inputs, **outputs),
        span(ids[1], "weather", "TOOL", ids[0], **{"mlflow.spanInputs": {"city": "Rome"}, "mlflow.spanOutputs": "22C"}),
    ]
    spans[0]["end_time_unix_nano"] += 9000
    path = tmp_path / "traces.jsonl"
    info = {"trace_id": "tr-1", "state": "OK", "trace_metadata": {"mlflow.trace.session": "talk"}}
    path.write_text(json.dumps({"info": info, "data": {"spans": spans}}) + "\n")
    reading = read(path)
    assert [*reading.sessions] == ["talk"]
    assert reading.only == ["user: Weather?", 'call weather {"city": "Rome"}', "result 22C", "assistant: It is 22C."]
