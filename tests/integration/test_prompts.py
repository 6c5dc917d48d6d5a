"""Prompts of a task in the record of the run, and in ``dicast show``."""

from __future__ import annotations

import json

import pytest
from tests.loopback import serve

TEXT = """
task:
  prompt/chat:
    model: {openai/chat: {base_url: "ADDRESS/v1", model: m, price: free, api_key: "KEY"}}
    PROMPT
metrics: [diff/match]
"""
ONE = 'system: "Know cities."\n    user: "Where is {{ city }}?"'
TWO = 'criteria: {place: {user: "Where is {{ city }}?"}, size: {user: "How large is {{ city | upper }}?"}}'


def answer(request):
    request.rfile.read(int(request.headers["content-length"]))
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Turkey"}}
    body = json.dumps({"model": "m", "choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}})
    request.send_response(200)
    request.send_header("content-length", str(len(body)))
    request.end_headers()
    request.wfile.write(body.encode())


@pytest.fixture
def run(shop):
    """Return a function that runs a task with these prompts over one row, and returns the prompts of ``run.started``."""
    shop.write("data.jsonl", [{"id": "t", "city": "Ankara", "reference": "Turkey"}])
    with serve(answer) as address:

        def run(prompt, more="", key="k"):
            text = TEXT.replace("ADDRESS", address).replace("KEY", key)
            done = shop.run(text.replace("PROMPT", prompt) + more)
            assert done.code == 0, done.err
            (start,) = shop.events("run.started")[-1:]
            return start["payload"].get("prompts")

        yield run


def test_a_run_records_its_prompts_once_and_show_fills_them_in(run, shop):
    assert run(ONE) == {"default": {"system": "Know cities.", "user": "Where is {{ city }}?"}}
    shown = shop.dicast("show", "t")
    assert "\nprompt:\n  system: Know cities.\n  user: Where is Ankara?\n" in shown.out
    document = shop.dicast("show", "t", "--json").json["prompts"]
    assert document == {
        "texts": {"default": {"system": "Know cities.", "user": "Where is Ankara?"}},
        "not_filled": None,
    }
    ended = [event["payload"] for event in shop.events("record.completed", "run.completed")]
    assert "Where is" not in json.dumps(ended)


def test_show_prints_the_prompt_of_each_criterion(run, shop):
    assert run(TWO)["size"] == {"user": "How large is {{ city | upper }}?"}
    shown = shop.dicast("show", "t").out
    assert "\nprompt of place:\n  user: Where is Ankara?\n\nprompt of size:\n  user: How large is ANKARA?\n" in shown


def test_a_row_that_the_prompt_lacks_is_shown_with_the_template_and_the_reason(run, shop):
    run('user: "{{ city }}"')
    rows = [{"id": "t", "city": "Ankara", "reference": "Turkey"}, {"id": "u", "reference": "Turkey"}]
    shop.write("data.jsonl", rows)
    shop.dicast("run", "p.yaml")
    shown = shop.dicast("show", "u").out
    assert "\nprompt:\n  user: {{ city }}\n  not filled in: template user: " in shown
    assert "city" in shown.partition("not filled in:")[2].partition("\n")[0]


def test_without_the_plugin_the_template_is_shown_with_the_reason(run, shop, monkeypatch):
    run(ONE)
    monkeypatch.setenv("DICAST_BLOCK", "prompt")
    shown = shop.dicast("show", "t").out
    assert "  user: Where is {{ city }}?\n  not filled in: " in shown


def test_a_ledger_of_digests_has_the_digest_of_a_prompt(run, shop):
    ledger = "ledger: {ledger/sqlite: {path: .dicast/ledger.db, content: digest}}\n"
    first, again, other = (run(prompt, ledger) for prompt in (ONE, ONE, ONE.replace("Where", "What")))
    assert first == again != other
    assert first["default"].keys() == {"digest"}
    assert "not filled in: the ledger keeps digests of texts" in shop.dicast("show", "t").out


def test_the_prompt_of_an_erased_subject_is_a_template(run, shop):
    run(ONE)
    erased = shop.dicast("ledger", "erase", "t", "--reason", "asked")
    assert erased.out.splitlines() == ["3 contents erased"]
    shown = shop.dicast("show", "t").out
    assert "  user: Where is {{ city }}?\n  not filled in: the content of the subject was erased\n" in shown
    assert "Ankara" not in shown.partition("prompt:")[2].partition("output")[0]


def test_an_erasure_reports_the_events_with_texts_as_json(run, shop):
    run(ONE)
    run(ONE, "ledger: {ledger/sqlite: {path: digests.db, content: digest}}\n")
    document = shop.dicast("ledger", "erase", "t", "--reason", "asked", "--json").json
    assert document["events_with_texts"] == {}
    assert "Ankara" not in shop.dicast("ledger", "export").out
    kept = shop.dicast("ledger", "erase", "t", "--reason", "asked", "--ledger", "digests.db", "--json").json
    assert kept["events_with_texts"] == {}


def test_a_secret_in_a_prompt_is_masked(run, shop):
    recorded = run(ONE.replace("Know", "key-4Hj8Lp2M"), key="key-4Hj8Lp2M")
    assert recorded["default"]["system"] == "*** cities."
    assert "key-4Hj8Lp2M" not in shop.dicast("show", "t").out


@pytest.mark.parametrize("is_criterion", [True, False])
def test_a_prompt_is_recorded_with_defaults_and_the_names_of_environment_variables(
    run, shop, monkeypatch, is_criterion
):
    monkeypatch.setenv("MYSECRET", "value-7Qw2Zx9C")
    prompt = 'user: "$${x} ${MYSECRET} ${TONE:-kindly} {{ city }}"'
    if is_criterion:
        prompt = "criteria: {place: {SAME}}".replace("SAME", prompt)
    recorded = run(prompt)
    assert [*recorded.values()] == [{"user": "${x} ${MYSECRET} kindly {{ city }}"}]
    shown = shop.dicast("show", "t").out
    assert "  user: ${x} ${MYSECRET} kindly Ankara\n" in shown
    exported = shop.dicast("ledger", "export").out
    assert "value-7Qw2Zx9C" not in exported


def test_a_prompt_is_recorded_with_the_variables_of_its_experiment(run, shop, monkeypatch):
    monkeypatch.setenv("MYSECRET", "value-7Qw2Zx9C")
    suite = "experiments: {kind: {variables: {TONE: kindly}}}\n"
    assert run('user: "${MYSECRET} ${TONE} {{ city }}"', suite) == {
        "default": {"user": "${MYSECRET} kindly {{ city }}"}
    }


def test_a_task_without_prompts_records_none(shop):
    shop.write("data.jsonl", [{"id": "t", "input": "Turkey", "reference": "Turkey"}])
    assert shop.run("task: {task/command: {command: [cat]}}\nmetrics: [proxy/format]\n").code == 0
    (start,) = shop.events("run.started")
    assert "prompts" not in start["payload"]
