"""``dicast conformance``: a good evaluator passes every rule; a bad one gets the broken rules."""

from __future__ import annotations

import json
import shlex

import pytest
from click.testing import CliRunner

from dicast_evaluator.cli import conformance

GOOD = "payload = json.load(sys.stdin); print(json.dumps({'score': min(1, len(payload['candidate']) / 10)}))"
LINES = (
    "for line in sys.stdin:\n    sent = json.loads(line)\n"
    "    print(json.dumps({'id': sent['id'], 'score': 0.5}), flush=True)\n"
)


def tried(*words):
    done = CliRunner().invoke(conformance, [*words, "--json"], standalone_mode=False)
    return done.return_value, json.loads(done.stdout) if done.stdout else done.exception


def failed(document):
    return {case["name"] for case in document["cases"] if not case["ok"]}


def test_a_good_command_and_worker_hold_every_rule(program):
    assert failed(tried("command", shlex.join(program(GOOD)))[1]) == set()
    code, document = tried("worker", shlex.join(program(LINES)))
    assert (code, document["ok"], len(document["cases"])) == (0, True, 13)


BAD = {
    "if not payload['candidate']: sys.exit('empty')": {"empty candidate"},
    "payload['example']['input']": {"version 1", "version 2", "preflight", "task model", "long candidate", "empty example", "repeated", "parallel"},
    "assert payload.get('_protocol_version') == 2": {"version 1"},
    "assert set(payload) <= {'_protocol_version', 'candidate', 'example', 'task_model'}": {"unknown keys"},
    "payload['candidate'].encode('ascii')": {"unicode"},
    "assert len(payload['candidate']) < 100000": {"long candidate"},
    "assert isinstance(payload.get('example', {}).get('metadata', {}), dict)": {"odd example"},
}  # fmt: skip


@pytest.mark.parametrize("check", BAD)
def test_a_rule_that_is_broken_is_named(program, check):
    code, document = tried(
        "command", shlex.join(program(f"payload = json.load(sys.stdin)\n{check}\nprint('{{\"score\": 1}}')"))
    )
    assert (code, failed(document)) == (1, BAD[check])


def test_a_server_is_tried_over_http(service):
    service.answer = lambda payload: {"score": 2} if "example" in payload else {"score": 1}
    code, document = tried("http", service.url)
    assert code == 1
    broken = next(case for case in document["cases"] if case["name"] == "example")
    assert broken["message"] == "evaluator output 'score' must be between 0.0 and 1.0"
    assert json.loads(broken["received"]) == {"score": 2}
    assert tried("http", service.url, "--score-range", "any")[0] == 0


def test_a_target_that_never_answers_is_a_wrong_request():
    assert "never answered: Command failed" in str(tried("command", "no-such-evaluator")[1])


def test_the_report_is_a_markdown_table(program):
    done = CliRunner().invoke(
        conformance, ["command", shlex.join(program("print('a|b')")), "--markdown"], standalone_mode=False
    )
    rows = [line for line in done.stdout.splitlines() if line.startswith("| FAILED")]
    assert len(rows) == 13
    assert all(row.replace("\\|", "").count("|") == 7 for row in rows)
