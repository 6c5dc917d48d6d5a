from __future__ import annotations

import asyncio
import gzip
import json
import os
import sys
import time
from pathlib import Path

import orjson
import pytest
import stamina
from hypothesis import given
from hypothesis import strategies as st

from dicast import AccessRefused, Answered, ConfigError, Failure, RunContext, Secret, Subject
from dicast.testing import run_pipeline
from dicast.testing.pipeline import Bench
from dicast_task import Command, Http
from dicast_task.answers import answered

ROW = Subject("row", "q1", input={"question": "2 + 2?"}, reference="4", context={"category": "math", "hint": None})
COLUMNS = {"id": "q1", "input": {"question": "2 + 2?"}, "reference": "4", "category": "math"}


def produce(task, folder, subject=ROW):
    async def work():
        async with task.open(RunContext("run", "test", folder)) as live:
            return await live.produce(subject)

    return asyncio.run(work())


def python(code):
    return Command((sys.executable, "-c", code))


def refused(tmp_path, name, **options):
    with pytest.raises(ConfigError) as caught:
        Bench(tmp_path).build("task", f"task/{name}", options)
    return str(caught.value)


# answers


def test_an_answer_is_text_or_an_object_with_content():
    assert answered(ROW, b"four\n", 0.5).responses["default"] == {
        "content": "four", "metrics": {"latency_seconds": 0.5}
    }  # fmt: skip
    answer = answered(ROW, b'{"content": {"n": 4}, "metrics": {"score": 0.5, "latency_seconds": 9}}', 0.5)
    assert answer.output == '{"n":4}'
    assert answer.responses["default"]["metrics"] == {"score": 0.5, "latency_seconds": 9}
    assert answered(ROW, b'{"n": 4}', 0.5).output == '{"n": 4}'
    assert answered(ROW, b"{not json", 0.5).output == "{not json"


def test_an_answer_may_have_a_response_for_each_criterion():
    answer = answered(
        ROW, b'{"responses": {"a": {"content": "x"}, "b": {"content": "y", "metrics": {"score": 1}}}}', 0.5
    )
    assert answer.output == "x"
    assert answer.responses == {
        "a": {"content": "x", "metrics": {"latency_seconds": 0.5}},
        "b": {"content": "y", "metrics": {"score": 1}},
    }


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b'{"content": null}', "is empty"),
        (b'{"content": ""}', "is empty"),
        (b"\xff", "not UTF-8"),
        (b'{"content": "x", "metric": {}}', "did you mean 'metrics'?"),
        (b'{"content": "x", "model": "m"}', "put it under metrics"),
        (b'{"content": "x", "metrics": [1]}', "metrics that are no object"),
        (b'{"responses": {}}', "by criterion"),
        (b'{"responses": [1]}', "by criterion"),
        (b'{"responses": {"a": {"content": "x"}}, "content": "y"}', "by criterion"),
        (b'{"responses": {"a.b": {"content": "x"}}}', "no dots"),
        (b'{"responses": {"a": "x"}}', "the response 'a' is 'x'"),
    ],
)
def test_an_answer_that_is_none_is_a_failure_that_says_why(data, message):
    failure = answered(ROW, data, 0.5)
    assert failure.kind == "judge_output_invalid"
    assert message in failure.message


def test_what_python_writes_for_no_number_is_null_in_an_answer():
    data = b'{"content": "x", "metrics": {"score": NaN, "low": -Infinity, "cost": 1}}'
    answer = answered(ROW, data, 0.5)
    assert answer.output == "x"
    assert answer.responses["default"]["metrics"] == {"latency_seconds": 0.5, "score": None, "low": None, "cost": 1}
    for text in ('{"a": NaN}', '{"content": NaN, }', '{"content": "\\ud800"}', '{"content": ' + "[" * 100_000):
        assert answered(ROW, text.encode(), 0.5).output == text


@given(st.binary() | st.recursive(st.none() | st.text(), lambda inner: st.dictionaries(st.sampled_from(["content", "metrics", "responses", "a"]), inner)).map(orjson.dumps))  # fmt: skip
def test_any_answer_is_an_output_or_a_failure(data):
    answer = answered(ROW, data, 0.5)
    assert isinstance(answer, Failure) or (answer.output is not None and answer.responses)


# task/command


def test_a_command_gets_the_row_as_json_and_its_output_is_the_rows(tmp_path):
    answer = produce(Command(("cat",)), tmp_path)
    assert isinstance(answer, Answered)
    assert json.loads(answer.output) == COLUMNS
    assert 0 <= answer.responses["default"]["metrics"]["latency_seconds"] < 60


def test_a_command_may_be_a_text_for_the_shell_and_starts_in_the_pipelines_folder(tmp_path):
    (tmp_path / "answer.txt").write_text("four\n")
    assert produce(Command("cat > /dev/null; cat answer.txt | tr a-z A-Z"), tmp_path).output == "FOUR"


def test_a_large_row_and_a_large_answer_pass_through(tmp_path):
    row = Subject("row", "q1", input="x" * 3_000_000)
    assert len(produce(Command(("cat",)), tmp_path, row).output) > 3_000_000


def test_a_command_need_not_read_its_row(tmp_path):
    row = Subject("row", "q1", input="x" * 3_000_000)
    assert produce(Command(("echo", "four")), tmp_path, row).output == "four"


@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        ("import sys; sys.exit('no key')", "crashed", "the exit code is 1: no key"),
        ("import sys; sys.stderr.write('x' * 10**6 + 'end'); sys.exit(3)", "crashed", "xxend"),
        ("import os; os.kill(os.getpid(), 9)", "crashed", "it was ended by signal 9"),
        ("pass", "judge_output_invalid", "the answer is empty"),
        ("print('x' * 20_000_000)", "judge_output_invalid", "more than 10,000,000 bytes"),
        ("while True: print('x' * 1000)", "judge_output_invalid", "more than 10,000,000 bytes"),
    ],
)
def test_a_command_that_has_no_answer_is_a_failure_that_says_why(tmp_path, code, kind, message):
    failure = produce(python(code), tmp_path)
    assert failure.kind == kind
    assert message in failure.message
    assert len(failure.message) < 1000


def test_a_command_that_cannot_be_started_is_a_failure(tmp_path):
    failure = produce(Command(("./no-such-command",)), tmp_path)
    assert (failure.kind, failure.message) == (
        "crashed", "./no-such-command could not be started: No such file or directory"
    )  # fmt: skip


def test_what_a_command_has_started_ends_with_its_time(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run_pipeline(
        """
task: {task/command: {command: "sleep 60 & echo $! > pid; wait", timeout: 0.5}}
""",
        subjects=[ROW],
    )
    assert done.document["failures"] == {"timeout": 1}
    wait_for_the_end_of(int((tmp_path / "pid").read_text()))


@pytest.mark.slow
@pytest.mark.parametrize("left", ["sleep 60 & echo $! > pid", "setsid sleep 200 &"])
def test_what_a_command_leaves_running_does_not_hold_its_row(tmp_path, left):
    async def work():
        async with Command(f"({left}); echo hi; echo late >&2").open(RunContext("run", "test", tmp_path)) as live:
            return await live.produce(ROW)

    start = time.monotonic()
    assert asyncio.run(work()).output == "hi"
    assert time.monotonic() - start < 50
    if (tmp_path / "pid").exists():
        wait_for_the_end_of(int((tmp_path / "pid").read_text()))


def test_a_cancelled_command_leaves_nothing_behind(tmp_path):
    async def work():
        async with Command("sleep 60 & echo $! > pid; wait").open(RunContext("run", "test", tmp_path)) as live:
            call = asyncio.create_task(live.produce(ROW))
            while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():  # noqa: ASYNC110  # a file
                await asyncio.sleep(0.01)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    asyncio.run(work())
    wait_for_the_end_of(int((tmp_path / "pid").read_text()))


def wait_for_the_end_of(child):
    for _ in range(10_000):
        try:
            if ") Z " in Path(f"/proc/{child}/stat").read_text():
                return  # ended; who has adopted it has not noticed yet
            os.kill(child, 0)
        except (FileNotFoundError, ProcessLookupError):
            return
        time.sleep(0.01)
    pytest.fail("the command's child still runs")


@pytest.mark.parametrize("command", ["", [], [""], ["no-such-command-here"]])
def test_a_command_that_is_none_is_refused_when_the_pipeline_is_built(tmp_path, command):
    assert "command" in refused(tmp_path, "command", command=command)


# task/http


@pytest.fixture
def no_waits():
    with stamina.set_testing(True, attempts=100, cap=True):
        yield


def test_a_row_is_posted_as_json_and_the_answer_is_its_output(service, tmp_path):
    service.script('{"content": "four", "metrics": {"score": 1}}')
    answer = produce(Http(service.url, headers={"Authorization": Secret("Bearer key")}), tmp_path)
    assert answer.output == "four"
    assert answer.responses["default"]["metrics"]["score"] == 1
    assert service.bodies == [COLUMNS]
    assert service.headers[0]["authorization"] == "Bearer key"
    assert service.headers[0]["content-type"] == "application/json"


def test_a_large_row_is_posted_whole(service, tmp_path):
    service.script("four")
    assert produce(Http(service.url), tmp_path, Subject("row", "q1", input="x" * 3_000_000)).output == "four"
    assert len(service.bodies[0]["input"]) == 3_000_000


def test_faults_that_may_pass_are_tried_again_and_told(service, tmp_path, no_waits):
    service.script(500, (429, {"Retry-After": "0"}, b""), "four")
    response = produce(Http(service.url), tmp_path).responses["default"]
    assert response["content"] == "four"
    assert (response["retry"]["attempts"], response["retry"]["max_attempts"]) == (3, 4)
    assert "HTTP 500: set to fail" in response["retry"]["history"][0]["error"]


def test_a_fault_that_lasts_fails_the_row(service, tmp_path, no_waits):
    service.script(503)
    failure = produce(Http(service.url, retries=2), tmp_path)
    assert (failure.kind, failure.retryable, len(service.bodies)) == ("judge_call_failed", True, 3)
    assert failure.message == f"{service.url}: HTTP 503: set to fail (3 tries)"
    assert failure.retry["attempts"] == 3


@pytest.mark.parametrize("answer", [400, 422, (302, {"Location": "/"}, b""), (429, {"Retry-After": "3600"}, b"")])
def test_other_refusals_are_not_tried_again(service, tmp_path, answer):
    service.script(answer)
    failure = produce(Http(service.url), tmp_path)
    assert (failure.kind, len(service.bodies)) == ("judge_call_failed", 1)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_no_access_ends_the_run(service, tmp_path, status):
    service.script((status, {}, b"your key sk-123456 is wrong"))
    with pytest.raises(AccessRefused, match=rf"HTTP {status}: your key \*\*\* is wrong"):
        produce(Http(service.url, headers={"X-Key": Secret("sk-123456")}), tmp_path)


def test_an_unreachable_service_fails_the_row(tmp_path, no_waits):
    failure = produce(Http("http://127.0.0.1:9/", retries=1), tmp_path)
    assert (failure.kind, failure.retry["attempts"]) == ("judge_call_failed", 2)
    assert "127.0.0.1:9" in failure.message


def test_an_answer_longer_than_allowed_fails_the_row(service, tmp_path):
    service.script("x" * 1001)
    failure = produce(Http(service.url, max_output_bytes=1000), tmp_path)
    assert (failure.kind, failure.retryable, len(service.bodies)) == ("judge_output_invalid", False, 1)
    assert "more than 1,000 bytes (max_output_bytes)" in failure.message
    assert service.headers[0]["accept-encoding"] == "identity"


def test_an_answer_that_unpacks_to_more_than_allowed_fails_the_row(service, tmp_path):
    service.script((200, {"Content-Encoding": "gzip"}, gzip.compress(bytes(1_000_000))))
    failure = produce(Http(service.url, max_output_bytes=10_000), tmp_path)
    assert (failure.kind, "more than 10,000 bytes" in failure.message) == ("judge_output_invalid", True)


def test_an_answer_that_repeats_a_header_is_kept_without_it(service, tmp_path):
    service.script("your key is sk-123456")
    answer = produce(Http(service.url, headers={"X-Key": Secret("Bearer sk-123456")}), tmp_path)
    assert answer.output == "your key is ***"


def test_a_refusal_longer_than_an_answer_may_be_is_a_refusal(service, tmp_path, no_waits):
    service.script((503, {}, b"x" * 1001))
    failure = produce(Http(service.url, retries=1, max_output_bytes=1000), tmp_path)
    assert (failure.kind, failure.retryable, len(service.bodies)) == ("judge_call_failed", True, 2)
    assert "HTTP 503: xxx" in failure.message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "ftp://x/"}, "http:// or https://"),
        ({"url": "http://user:hunter2@x/"}, "give them as headers"),
        ({"url": "http://x/", "headers": {"a b": "x"}}, "cannot be the name of a header"),
        ({"url": "http://x/", "headers": {"X-Key": "sk-1\n"}}, "the header X-Key holds a line break"),
    ],
)
def test_wrong_addresses_and_headers_are_refused_without_their_secrets(tmp_path, options, message):
    refusal = refused(tmp_path, "http", **options)
    assert message in refusal
    assert "hunter2" not in refusal
    assert "sk-1" not in refusal


# a run


def test_a_run_over_rows_judges_what_a_command_answers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "add.py").write_text(
        "import json, sys\n"
        "row = json.load(sys.stdin)\n"
        "total = sum(map(int, row['input'].split('+')))\n"
        "print(json.dumps({'responses': {'sum': {'content': str(total), 'metrics': {'score': 1}},"
        " 'said': {'content': 'It is ' + str(total) + '.', 'metrics': {'score': 0.5}}}}))\n"
    )
    done = run_pipeline(
        f"""
task: {{task/command: {{command: [{sys.executable}, add.py], determinism_level: high}}}}
metrics: [diff/match]
extractors: [score_extractor/scores, extract/regex: {{pattern: "[0-9]+", criterion: said, into: number}}]
""",
        subjects=[Subject("row", "a", input="2+2", reference="4"), Subject("row", "b", input="1+2", reference="4")],
    )
    assert [verdict.score for verdict in done.verdicts] == [1.0, 0.0]
    record = done.of("record.completed")[0].payload
    assert record["metrics"]["scores"] == {"sum": 1.0, "said": 0.5}
    assert record["metrics"]["number"] == 4
    assert record["determinism_level"] == "high"
