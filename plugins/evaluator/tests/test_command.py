"""``evaluator/command``: the payload of the command, and the scores from its answers."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dicast

ECHO = "payload = json.load(sys.stdin); print(json.dumps({'score': 0.5, 'payload': payload, 'env': dict(os.environ)}))"
PLAIN = "sys.stdin.read(); print('{\"score\": 0.5}')"


def metric(command, **options):
    return {"evaluator/command": {"command": command, "preflight": False, **options}}


def test_the_payload_has_version_candidate_example_and_task_model_where_there_are_any(judged, program):
    (score,) = judged(metric(program(ECHO)), {"output": "yes", "input": "q", "context": {"hard": 1}}).scores
    example = {"id": "1", "input": "q", "hard": 1}
    assert score["signals"]["payload"] == {"_protocol_version": 2, "candidate": "yes", "example": example}
    assert "DICAST_TASK_MODEL" not in score["signals"]["env"]
    (score,) = judged(metric(program(ECHO), task_model="a/b"), {"output": {"b": 1, "a": [2]}}).scores
    sent = {"_protocol_version": 2, "candidate": '{"b":1,"a":[2]}', "task_model": "a/b"}
    assert score["signals"]["payload"] == sent
    variables = "DICAST_TASK_MODEL", "OPTIMIZE_ANYTHING_TASK_MODEL"
    assert {score["signals"]["env"][name] for name in variables} == {"a/b"}


def test_the_record_of_a_dataset_is_the_example_as_it_is(judged, program):
    record = {"input": "x", "id": None, "metadata": {"difficulty": "easy"}}
    (score,) = judged(metric(program(ECHO)), {"output": "yes", "input": "q", "context": {"example": record}}).scores
    assert score["signals"]["payload"]["example"] == record


def test_columns_that_are_null_are_in_the_example(judged, program):
    (score,) = judged(metric(program(ECHO)), {"output": "yes", "context": {"hint": None, "example": "x"}}).scores
    assert score["signals"]["payload"]["example"] == {"id": "1", "hint": None, "example": "x"}


def test_side_information_is_kept_whole_and_the_reasoning_is_the_reason(judged, program):
    code = "print(json.dumps({'score': 0.25, 'reasoning': 'short', 'deep': {'list': [1, None, {'x': 'ß'}]}}))"
    (score,) = judged(metric(program(code)), {"output": "a"}).scores
    assert (score["value"], score["details"]) == (0.25, "short")
    assert score["signals"] == {"reasoning": "short", "deep": {"list": [1, None, {"x": "ß"}]}}


@pytest.mark.parametrize(("literal", "value"), [('"0.5"', 0.5), ("true", 1.0), ("false", 0.0), ('" 1 "', 1.0)])
def test_numbers_as_text_and_booleans_are_taken_and_said_so(judged, program, literal, value):
    (score,) = judged(metric(program(f"print('{{\"score\": {literal}}}')")), {"output": "a"}).scores
    assert (score["value"], score["signals"]["coerced"]) == (value, True)


SAYS = {
    "sys.exit('gone wrong')": ("crashed", "Command exited with code 1: gone wrong"),
    "print('no')": ("judge_output_invalid", "Command output is not valid JSON: no"),
    "pass": ("judge_output_invalid", "Command output is not valid JSON: <empty>"),
    "print('{} {}')": ("judge_output_invalid", "Command output is not valid JSON: {} {}"),
    "print('noise'); print('{\"score\": 1}')": ("judge_output_invalid", "Command output is not valid JSON: noise"),
    "os.write(1, b'\\xff{\"score\": 1}')": ("judge_output_invalid", "Command output is not valid JSON"),
    "print('[1]')": ("judge_output_invalid", "Evaluator output must be a JSON object, not an array"),
    "print('{\"value\": 1}')": ("judge_output_invalid", "Evaluator output missing required 'score' field"),
    'print(\'{"score": "high"}\')': ("invalid_score", "Evaluator 'score' must be numeric, got 'high'"),
    "print('{\"score\": null}')": ("invalid_score", "Evaluator 'score' must be numeric, got None"),
    "print('{\"score\": NaN}')": ("invalid_score", "Evaluator 'score' must be finite, got nan"),
    'print(\'{"score": "nan"}\')': ("invalid_score", "Evaluator 'score' must be finite, got 'nan'"),
    "print('{\"score\": 1e999}')": ("invalid_score", "Evaluator 'score' must be finite"),
    "print('{\"score\": 1.01}')": ("invalid_score", "Evaluator 'score' must be between 0.0 and 1.0, got 1.01"),
    "print('x' * 2000)": ("judge_output_invalid", "Command output is too long: it wrote more than 1,000 bytes"),
    "time.sleep(600)": ("timeout", "Command timed out after 0.3s"),
}


@pytest.mark.parametrize("code", SAYS)
def test_what_is_no_result_is_a_failure_in_the_words_of_the_protocol(judged, program, code):
    seconds = 0.3 if "sleep" in code else 30
    ((kind, message),) = judged(metric(program(code), timeout=seconds, max_output_bytes=1000), {"output": "a"}).failures
    assert kind == SAYS[code][0]
    assert message.startswith(SAYS[code][1])


def test_a_missing_executable_and_a_missing_folder_are_failures(judged, tmp_path):
    failure = ("crashed", "Command executable not found: no-such-evaluator")
    assert judged(metric(["no-such-evaluator"]), {"output": "a"}).failures == [failure]
    ((_, message),) = judged(metric([sys.executable], cwd=str(tmp_path / "no")), {"output": "a"}).failures
    assert message.startswith("Command failed to start: there is no folder")


def test_on_failure_zero_scores_0_as_version_1_did(judged, program):
    assert judged(metric(program("sys.exit(1)"), on_failure="zero"), {"output": "a"}).values == [0.0]


def test_any_number_is_brought_to_the_range(judged, program):
    options = {"score_range": "any", "range": [-5, 5]}
    (score,) = judged(metric(program("print('{\"score\": -2.5}')"), **options), {"output": "a"}).scores
    assert score["value"] == 0.25
    failure = ("invalid_score", "7.0 lies outside the declared range [-5, 5]")
    assert judged(metric(program("print('{\"score\": 7}')"), **options), {"output": "a"}).failures == [failure]


def test_any_number_without_a_range_stays_raw(judged, program):
    (score,) = judged(metric(program("print('{\"score\": -250}')"), score_range="any"), {"output": "a"}).scores
    assert (score["value"], score["raw"]) == (None, -250.0)
    nan = metric(program("print('{\"score\": NaN}')"), score_range="any")
    assert judged(nan, {"output": "a"}).failures == [("invalid_score", "Evaluator 'score' must be finite, got nan")]


def test_a_command_may_be_a_text_with_quotes(judged, program):
    python, path = program(PLAIN)
    (score,) = judged(metric(f"'{python}' \"{path}\""), {"output": "a"}).scores
    assert score["value"] == 0.5


@pytest.mark.parametrize("command", ["", [], "  ", "a 'b", ["a\0b"]])
def test_a_command_that_is_none_is_refused(judged, command):
    with pytest.raises(dicast.ConfigError, match="command"):
        judged(metric(command), {"output": "a"})


@pytest.mark.slow
def test_what_a_command_has_started_ends_with_its_time(judged, program, tmp_path):
    note = tmp_path / "pid"
    code = (
        "import subprocess\n"
        "started = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        f"open({str(note)!r}, 'w').write(str(started.pid))\n"
        "time.sleep(600)\n"
    )
    judged(metric(program(code), timeout=6), {"output": "a"})
    process = subprocess.run(["ps", "-o", "stat=", "-p", note.read_text()], capture_output=True, text=True, check=False)
    assert process.stdout.strip()[:1] in {"", "Z"}
