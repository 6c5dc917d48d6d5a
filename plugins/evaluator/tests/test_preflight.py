"""Problems of an evaluator are reported before judging starts, in the protocol's order and words."""

from __future__ import annotations

import json
import logging
import os
import sys

import pytest

import dicast


def refusal(judged, name, **options):
    with pytest.raises(dicast.ConfigError) as caught:
        judged({f"evaluator/{name}": options}, {"output": "a"})
    return str(caught.value)


ANSWERS = {
    "sys.exit('no key')": "command exited with code 1: no key",
    "print('hello')": "command output is not valid JSON: hello",
    "pass": "command output is not valid JSON: <empty stdout>",
    "print('[]')": "evaluator output must be a JSON object",
    "print('{}')": "evaluator output missing required 'score' field",
    "print('{\"score\": 2}')": "evaluator output 'score' must be between 0.0 and 1.0",
}


@pytest.mark.parametrize("code", ANSWERS)
def test_an_answer_that_is_no_result_is_refused(judged, program, tmp_path, code):
    command = program(code)
    message = refusal(judged, "command", command=command, cwd=str(tmp_path))
    assert f"evaluator preflight failed for command '{' '.join(command)}' (cwd: {tmp_path}): {ANSWERS[code]}" in message


def test_what_is_missing_is_named_in_order(judged, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    cwd = str(tmp_path)
    messages = [
        (["no-such"], str(tmp_path / "no"), "working directory does not exist"),
        (["no-such"], str(tmp_path / "file"), "working directory is not a directory"),
        (["no-such", "no.py"], cwd, "executable not found: no-such"),
        (["./no-such"], cwd, "executable not found: ./no-such"),
        (["bash", "no.sh"], cwd, "script not found: no.sh"),
        ([sys.executable.rpartition("/")[0] + "/python3", "folder"], cwd, "script is a directory: folder"),
    ]
    for command, folder, expected in messages:
        if os.sep in command[0] and command[0].endswith("python3") and not os.path.exists(command[0]):
            continue
        assert expected in refusal(judged, "command", command=command, cwd=folder)


def test_a_command_that_says_nothing_is_refused_after_its_time(judged, program, monkeypatch):
    monkeypatch.setattr("dicast_evaluator.preflight.PREFLIGHT_SECONDS", 0.3)
    assert "command timed out after 0.3s" in refusal(judged, "command", command=program("time.sleep(600)"))


def test_the_candidate_is_the_protocol_s_own(judged, program, tmp_path):
    code = "open('sent', 'a').write(sys.stdin.read() + '\\n'); print('{\"score\": 1}')"
    options = {"command": program(code), "cwd": str(tmp_path), "task_model": "m"}
    assert judged({"evaluator/command": options}, {"output": "a"}).values == [1.0]
    first, second = map(json.loads, (tmp_path / "sent").read_text().splitlines())
    assert first == {"_protocol_version": 2, "candidate": "__optimize_anything_preflight__", "task_model": "m"}
    assert second["candidate"] == "a"


def test_a_score_that_is_no_number_is_warned_of(judged, program, caplog):
    with caplog.at_level(logging.WARNING):
        judged({"evaluator/command": {"command": program('print(\'{"score": "1"}\')')}}, {"output": "a"})
    assert "answers its score as text or a boolean" in caplog.text


def test_nothing_is_judged_and_nothing_is_in_the_ledger_when_it_fails(program, tmp_path):
    ledger = tmp_path / "ledger.db"
    pipeline = {
        "metrics": [{"evaluator/command": {"command": program("sys.exit(1)")}}],
        "ledger": {"ledger/sqlite": {"path": str(ledger)}},
    }
    with pytest.raises(dicast.ConfigError):
        dicast.run(pipeline, subjects=[dicast.Subject("row", "1", output="a")])
    assert dicast.read_ledger(ledger, lambda live: live.head()) is None


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((500, b"broken"), "HTTP 500: broken"),
        (b"hello", "response is not valid JSON: hello"),
        (b"", "response is not valid JSON: <empty response>"),
        ({"value": 1}, "evaluator output missing required 'score' field"),
    ],
)
def test_a_server_that_answers_no_result_is_refused(judged, service, answer, message):
    service.answer = answer
    assert f"evaluator preflight failed for {service.url}: {message}" in refusal(judged, "http", url=service.url)


def test_a_server_that_is_not_there_is_asked_for(judged, service):
    url = service.url
    service.stop()
    message = refusal(judged, "http", url=url)
    assert "(Connection refused)" in message
    assert "Is the evaluator server running?" in message
    service._thread.join()


def test_a_server_that_is_there_is_not_asked_for(judged, service):
    message = refusal(judged, "http", url=service.url.replace("http:", "https:"))
    assert "HTTP request failed: " in message
    assert "Is the evaluator server running?" not in message


def test_a_worker_is_tried_likewise(judged, program):
    code = "for line in sys.stdin: print(json.dumps({'id': json.loads(line)['id']}), flush=True)"
    assert "evaluator output missing required 'score' field" in refusal(judged, "worker", command=program(code))
    message = refusal(judged, "worker", command=program("sys.exit('no model')"))
    assert "Command exited with code 1 before it answered: no model" in message
