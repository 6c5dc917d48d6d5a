"""A pipeline as an evaluator: ``dicast evaluator stdin`` and ``dicast evaluator serve``."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

PIPELINE = """
metrics:
  - proxy/keywords: {required: [yes]}
  - diff/match: {as: same}
scoring: {threshold: 0}
"""
DICAST = [sys.executable, "-m", "dicast"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "pipeline.yaml").write_text(PIPELINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DICAST_LEDGER", raising=False)
    return tmp_path


def dicast(*words, **options):
    return subprocess.run([*DICAST, *words], capture_output=True, text=True, check=False, **options)


def judged(payload, *words):
    done = dicast("evaluator", "stdin", "pipeline.yaml", *words, input=json.dumps(payload))
    return done.returncode, json.loads(done.stdout)


def test_stdin_gives_the_score_with_each_metric_s_basis_and_reason(folder):
    code, document = judged({"candidate": "yes", "example": {"expected": "yes!", "input": "q"}, "_protocol_version": 2})
    assert (code, document["score"], document["metrics"]["proxy/keywords"]["score"]) == (0, 0.5, 1.0)
    assert document["metrics"]["same"]["basis"] == "truth"
    assert document["metrics"]["same"]["reason"] in document["reasoning"]


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ([], "the payload must be a JSON object"),
        ({}, "the payload misses the required 'candidate' field"),
        ({"candidate": 1}, "the payload's 'candidate' must be text, got 1"),
        ({"candidate": "a", "_protocol_version": 3}, "the payload's '_protocol_version' must be 1 or 2, got 3"),
        ({"candidate": "a", "example": []}, "the payload's 'example' must be an object, got []"),
    ],
)
def test_stdin_refuses_what_is_no_payload(folder, payload, message):
    assert judged(payload) == (2, {"error": {"kind": "payload", "message": message}})


def test_stdin_says_why_a_candidate_has_no_score(folder):
    code, document = judged({"candidate": "yes"})
    assert (code, document["error"]["kind"]) == (1, "missing_input")


def test_the_label_that_counts_can_be_named(folder):
    (folder / "pipeline.yaml").write_text("judges: [{heuristic/turn: {as: a}}, {heuristic/turn: {as: b}}]\n")
    code, document = judged({"candidate": "yes"}, "--kind", "turn")
    assert code == 2
    assert "choose one with --on: a, b" in document["error"]["message"]


@contextmanager
def served(*words, env=None):
    command = [*DICAST, "evaluator", "serve", "pipeline.yaml", "--port", "0", *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    try:
        line = process.stderr.readline()
        port = int(re.search(r":(\d+)/", line)[1])
        yield port
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=200)
        assert process.returncode == 130, errors
        assert "Traceback" not in errors
    finally:
        process.kill()
        process.communicate()


def request(port, method, path, body=None, headers=()):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=100)
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    connection.request(method, path, data, dict(headers))
    response = connection.getresponse()
    reply = response.status, json.loads(response.read())
    connection.close()
    return reply


def test_payloads_of_both_versions_are_served_from_one_run_and_none_is_lost(folder):
    with served() as port:
        status, first = request(port, "POST", "/", {"candidate": "yes", "example": {"reference": "yes"}})
        assert (status, first["score"]) == (200, 1.0)
        payloads = [
            {"candidate": f"yes {n}" if n % 2 else "no", "example": {"reference": "no"}, "_protocol_version": 2}
            for n in range(300)
        ]
        with ThreadPoolExecutor(20) as pool:
            replies = [*pool.map(lambda payload: request(port, "POST", "/", payload)[1], payloads)]
        assert [item["score"] for item in replies] == [0.5] * 300
        assert {item["run_id"] for item in replies} == {first["run_id"]}
        _, batch = request(port, "POST", "/batch", [*payloads[:3], {"nothing": 1}])
        assert [item.get("score") for item in batch] == [0.5, 0.5, 0.5, None]
        assert request(port, "GET", "/health")[1] == {
            "ok": True, "requests": 305, "scored": 304, "failed": 0, "waiting": 0
        }  # fmt: skip
    verdicts = json.loads(dicast("verdicts", "--json").stdout)["verdicts"]
    assert len(verdicts) == 304
    assert json.loads(dicast("ledger", "verify", "--json").stdout)["ok"]
    read = json.loads(dicast("show", "last", "--json").stdout)["read"]
    assert (read["records"], read["subjects"], read["dropped"]) == (305, {"candidate": 304}, {"bad_payload": 1})


BAD = [
    ("POST", "/", b"", 400, "not valid JSON"),
    ("POST", "/", b'{"candidate": "a"} {}', 400, "not valid JSON"),
    ("POST", "/", b"\xff\xfe", 400, "not valid JSON"),
    ("POST", "/", b"[" * 200_000, 400, "not valid JSON"),
    ("POST", "/", b'{"candidate": NaN}', 400, "must be text"),
    ("POST", "/", b'{"candidate": "' + b"x" * 10_000_000 + b'"}', 413, "more than 10,000,000 bytes"),
    ("POST", "/", rb'{"candidate": "\ud800"}', 400, "cannot be stored as JSON"),
    ("POST", "/", rb'{"candidate": "a", "example": {"\udfff": 1}}', 400, "cannot be stored as JSON"),
    ("POST", "/", b'{"candidate": "a", "example": {"n": ' + b"9" * 400 + b"}}", 400, "cannot be stored as JSON"),
    (
        "POST",
        "/",
        b'{"candidate": "a", "example": {"n": ' + b"[" * 300 + b"]" * 300 + b"}}",
        400,
        "cannot be stored as JSON",
    ),
    ("POST", "/", b'{"candidate": "a", "example": {"x": NaN}}', 400, "payload.example.x is nan"),
    ("POST", "/", b'{"candidate": "a", "example": {"x": [1, 1e999]}}', 400, "payload.example.x.1 is inf"),
    ("POST", "/", b'{"candidate": "a", "task_model": -Infinity}', 400, "payload.task_model is -inf"),
    ("POST", "/batch", b"{}", 400, "a JSON array"),
    ("POST", "/batch", b"[" + b"1," * 10_000 + b"1]", 413, "at most 10,000"),
    ("GET", "/", None, 405, "takes POST"),
    ("POST", "/no", b"{}", 404, "there is no /no"),
]


def test_hostile_requests_are_refused_and_the_server_goes_on(folder):
    with served() as port:
        for method, path, body, status, message in BAD:
            status_found, answer = request(port, method, path, body)
            assert (status_found, message in answer["error"]["message"]) == (status, True), (method, path, answer)
        assert request(port, "POST", "/", b"{}", headers={"Content-Encoding": "gzip"})[0] == 400
        assert request(port, "GET", "/health", headers={"Host": "evil.example"})[0] == 403
        assert request(port, "GET", "/health", headers={"Host": "[::1]"})[0] == 200
        assert request(port, "GET", "/health", headers={"Host": "LocalHost:80"})[0] == 200
        assert request(port, "POST", "/", {"candidate": "a"}, headers={"Origin": "https://evil.example"})[0] == 403
        for data in (b"GARBAGE\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nab", b""):
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(data)
        assert request(port, "POST", "/", {"candidate": "yes", "example": {"reference": "yes"}})[0] == 200
        assert request(port, "POST", "/", {"candidate": "yes"})[0] == 500


def test_a_token_is_asked_for(folder, monkeypatch):
    monkeypatch.setenv("DICAST_EVALUATOR_TOKEN", "sesame")
    with served() as port:
        payload = {"candidate": "yes", "example": {"reference": "yes"}}
        assert request(port, "POST", "/", payload)[0] == 401
        assert request(port, "POST", "/", payload, {"Authorization": "Bearer sesam"})[0] == 401
        assert request(port, "POST", "/", payload, {"Authorization": "Bearer sesame"})[0] == 200
        assert request(port, "GET", "/health")[0] == 200


def test_an_address_of_other_machines_needs_a_token(folder):
    done = dicast("evaluator", "serve", "pipeline.yaml", "--host", "0.0.0.0")
    assert (done.returncode, "set a token in DICAST_EVALUATOR_TOKEN" in done.stderr) == (2, True)


def test_a_port_in_use_is_said(folder):
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        done = dicast("evaluator", "serve", "pipeline.yaml", "--port", str(port))
    assert (done.returncode, f"cannot listen on 127.0.0.1:{port}" in done.stderr) == (2, True)


RAW = """
metrics:
  - proxy/keywords: {required: [yes]}
  - evaluator/command:
      command: [%s, -c, "import json, sys; json.load(sys.stdin); print(json.dumps({'score': 7.5}))"]
      score_range: any
scoring: {threshold: 0.5}
"""


@pytest.fixture
def raw(folder):
    (folder / "pipeline.yaml").write_text(RAW % sys.executable)


def test_stdin_gives_a_raw_score_with_its_scale(raw):
    code, document = judged({"candidate": "yes"}, "--kind", "row")
    assert (code, document["score"], document["scale"]) == (0, 7.5, "raw")
    assert document["metrics"]["evaluator/command"]["score"] == 7.5
    assert "evaluator/command: 7.5" in document["reasoning"]


def test_stdin_gives_no_score_to_a_candidate_that_a_proxy_holds_back_from_a_raw_scale(raw):
    code, document = judged({"candidate": "no"}, "--kind", "row")
    assert (code, document["error"]["kind"]) == (1, "missing_input")
    assert "below scoring.threshold" in document["error"]["message"]


def test_stdin_names_the_kind_where_the_pipeline_judges_no_candidate(folder):
    (folder / "pipeline.yaml").write_text(f"source: {{rows/jsonl: {{path: rows.jsonl}}}}\n{RAW % sys.executable}")
    code, document = judged({"candidate": "yes"})
    assert code == 1
    assert "the pipeline judges no candidate" in document["error"]["message"]
    assert "--kind" in document["error"]["message"]
