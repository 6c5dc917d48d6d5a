"""``dicast init --from promptfoo``: the converted and unconverted parts, and that rows pass and fail as in promptfoo."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dicast._kernel.cli import main

from .promptfoo_generator import Generator

EXAMPLES = [Path(__file__).with_name(name) for name in ("promptfoo", "promptfoo_types")]
"""Configurations with the results that promptfoo recorded for them."""

QUIET = {
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
}


@pytest.fixture
def take(tmp_path, monkeypatch, capsys):
    """Take a configuration over: ``take(text, …)`` returns the exit code, the document, the pipeline and the rows."""
    monkeypatch.chdir(tmp_path)

    def run(text, *options):
        (tmp_path / "promptfooconfig.yaml").write_text(text)
        code = main(["init", "--from", "promptfoo", "promptfooconfig.yaml", "--json", *options])
        document = json.loads(capsys.readouterr().out)
        if code:
            return code, document, None, None
        rows = [json.loads(line) for line in (tmp_path / "pipeline.rows.jsonl").read_text().splitlines()]
        return code, document, yaml.safe_load((tmp_path / "pipeline.yaml").read_text()), rows

    return run


def verdicts(capsys):
    """Return for each row of the last run if it passes, in the order of the rows."""
    assert main(["verdicts", "--run", "last", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)["verdicts"]
    return [verdict["score"] == 1 for verdict in sorted(output, key=lambda verdict: int(verdict["subject_id"]))]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_each_row_passes_and_fails_as_promptfoo_recorded_it(example, tmp_path, monkeypatch, capsys):
    for needed in ("rouge_score", "rapidfuzz", "jsonschema_rs") if example.name.endswith("types") else ():
        pytest.importorskip(needed)
    if example.name.endswith("types") and shutil.which("node") is None:
        pytest.skip("Node.js is not installed")
    shutil.copytree(example, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    assert main(["init", "--from", "promptfoo", "promptfooconfig.yaml", "--no-try", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["not_judged"], len(document["not_carried"])) == (0, example.name.endswith("types"))
    assert main(["run", "pipeline.yaml", "--yes", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    recorded = json.loads((example / "results.json").read_text())["results"]
    rows = [json.loads(line) for line in (tmp_path / "pipeline.rows.jsonl").read_text().splitlines()]
    assert [row["output"] for row in rows] == [item["output"] for item in recorded]
    assert verdicts(capsys) == [item["passed"] for item in recorded]
    assert document["score"]["passes"]["passed"] == sum(item["passed"] for item in recorded)


def evaluated(folder):
    """Return the results of promptfoo itself for the configuration in *folder*, in the order of its tests."""
    place = os.environ.get("DICAST_PROMPTFOO")
    program = shutil.which("promptfoo", path=None if place is None else f"{place}/node_modules/.bin")
    if program is None:
        pytest.skip("no promptfoo: npm install --prefix FOLDER promptfoo, and DICAST_PROMPTFOO=FOLDER")
    command = [program, "eval", "--no-cache", "--no-write", "-o", "made.json"]
    options = {"PROMPTFOO_CONFIG_DIR": str(folder / "home"), "PROMPTFOO_PYTHON": sys.executable}
    done = subprocess.run(
        command, cwd=folder, env=os.environ | QUIET | options, capture_output=True, text=True, check=False, timeout=120
    )
    assert (folder / "made.json").exists(), done.stdout + done.stderr
    results = json.loads((folder / "made.json").read_text())["results"]["results"]
    return sorted(results, key=lambda item: item["testIdx"])


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_promptfoo_itself_says_what_was_recorded(example, tmp_path):
    shutil.copytree(example, tmp_path, dirs_exist_ok=True)
    results = [{"output": item["response"]["output"], "passed": item["success"]} for item in evaluated(tmp_path)]
    assert results == json.loads((example / "results.json").read_text())["results"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_generated_assertions_pass_and_fail_as_in_promptfoo(seed, tmp_path, monkeypatch, capsys):
    (tmp_path / "promptfooconfig.yaml").write_text(
        yaml.safe_dump(Generator(seed).configuration(150), allow_unicode=True)
    )
    passed = [item["success"] for item in evaluated(tmp_path)]
    monkeypatch.chdir(tmp_path)
    assert main(["init", "--from", "promptfoo", "promptfooconfig.yaml", "--no-try", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["not_carried"] == []
    main(["run", "pipeline.yaml", "--json"])
    capsys.readouterr()
    assert verdicts(capsys) == passed


SUITE = """
prompts:
  - {label: brief, raw: "Briefly: {{question}}"}
  - '[{"role": "system", "content": "Be kind."}, {"role": "user", "content": "{{question}} {{context}}"}]'
providers:
  - openai:chat:gpt-x
  - {id: "anthropic:messages:claude-x", label: claude, config: {temperature: 0.5, max_tokens: 50, top_k: 3}}
tests:
  - vars: {question: Why?, context: a text}
    assert: [{type: contains, value: because}, {type: llm-rubric, value: is polite}]
"""


def test_prompts_and_providers_become_a_suite(take):
    code, document, pipeline, rows = take(SUITE)
    assert code == 0
    assert list(pipeline["experiments"]) == ["brief-gpt-x", "brief-claude", "prompt2-gpt-x", "prompt2-claude"]
    assert pipeline["experiments"]["prompt2-claude"]["set"]["task"]["prompt/chat"] == {
        "model": {"litellm/chat": {"model": "anthropic/claude-x"}},
        "system": "Be kind.",
        "user": "{{question}} {{context_}}",
        "temperature": 0.5,
        "max_output_tokens": 50,
    }
    (metric,) = pipeline["metrics"]
    (judge,) = metric["check/assertions"]["judges"].items()
    assert judge[0] == "llm_rubric"
    assert judge[1]["llm/judge"]["model"] == {"openai/chat": {"model": "gpt-x"}}
    inputs = {name: rows[0].pop("inputs")[name] for name in ("brief",)}
    assert inputs == {"brief": "Briefly: Why?"}
    assert pipeline["experiments"]["brief-claude"]["set"]["source.rows/jsonl.fields.input"] == "inputs.brief"
    assert rows == [
        {"test": "1", "question": "Why?", "context_": "a text", "assert": [{"check": "contains", "value": "because"}, {"check": "llm_rubric", "value": "is polite"}]}
    ]  # fmt: skip
    assert [(loss["line"], loss["what"]) for loss in document["not_carried"]] == [
        (7, "top_k of anthropic:messages:claude-x")
    ]
    assert document["untried"].startswith("it would ask a model, which may cost money")


def test_named_judge_that_a_provider_asks_is_asked_at_the_providers_address(take):
    text = (
        "prompts: ['{{x}}']\nproviders:\n  - {id: 'openai:chat:m', config: {apiBaseUrl: 'http://127.0.0.1:9/v1'}}\n"
        "tests:\n  - {vars: {x: a}, assert: [{type: llm-rubric, value: is polite}]}\n"
    )
    _, _, pipeline, _ = take(text, "--model", "m")
    (metric,) = pipeline["metrics"]
    judge = metric["check/assertions"]["judges"]["llm_rubric"]["llm/judge"]
    assert judge["model"] == {"openai/chat": {"model": "m", "base_url": "http://127.0.0.1:9/v1", "price": "free"}}


def test_echoes_of_several_prompts_are_rows_of_each_experiment(take, tmp_path, capsys):
    text = "prompts: ['one {{x}}', 'two {{x}}']\nproviders: [echo]\ntests:\n  - {vars: {x: a}, assert: [{type: contains, value: one}]}\n"
    code, document, pipeline, rows = take(text)
    assert document["untried"] == "these are several experiments"
    assert "needs --allow-incomparable" in (tmp_path / "pipeline.yaml").read_text()
    assert (code, rows[0]["outputs"]) == (0, {"prompt1": "one a", "prompt2": "two a"})
    assert main(["run", "pipeline.yaml", "--json"]) == 1
    made = json.loads(capsys.readouterr().out)["experiments"]
    assert [item["gate"]["passed"] for item in made.values()] == [True, False]
    assert list(made) == list(pipeline["experiments"])


def test_what_does_not_go_over_is_listed_with_its_place_and_what_to_do(take, tmp_path, capsys):
    text = (
        "prompts: ['{{x}}']\n"
        "providers: [echo, 'exec:answer.sh']\n"
        "scenarios: []\n"
        "tests:\n"
        "  - vars: {x: a}\n"
        "    options: {prefix: Please}\n"
        "    assert:\n"
        "      - {type: similar, value: b}\n"
        "      - {type: contains, value: '{{ x | upper }}'}\n"
        "      - {type: contains, value: a, transform: output.trim()}\n"
        "      - {type: llm-rubric, value: polite}\n"
        "      - {type: contains, value: a}\n"
        "  - vars: {x: b}\n"
        "  - {vars: {x: a}, assert: [{type: contains, value: a}]}\n"
    )
    code, document, _, rows = take(text)
    assert code == 0
    assert [(loss["line"], loss["what"]) for loss in document["not_carried"]] == [
        (2, "provider exec:answer.sh"),
        (6, "option prefix"),
        (8, "similar"),
        (9, "contains"),
        (10, "contains with transform"),
        (11, "llm-rubric"),
        (13, "a test without an assertion"),
    ]
    assert all(loss["file"] == "promptfooconfig.yaml" and loss["instead"] for loss in document["not_carried"])
    assert (document["tests"], document["not_judged"]) == (3, 2)
    assert [len(row.get("not_carried", ())) for row in rows] == [5, 1, 0]
    written = (tmp_path / "pipeline.yaml").read_text()
    assert "# promptfooconfig.yaml:8: similar; it needs an embedding model" in written
    assert "# 2 tests of 3 are not judged" in written
    assert main(["check", "pipeline.yaml"]) == 0
    capsys.readouterr()
    assert main(["run", "pipeline.yaml", "--json"]) == 3
    run = json.loads(capsys.readouterr().out)
    assert (run["scored"], run["failed"], run["failures"]) == (1, 2, {"source_error": 2})
    assert (run["read"]["failed"], run["coverage"]) == (2, 1 / 3)


@pytest.mark.parametrize(
    ("assertion", "what", "instead"),
    [
        ("{type: regex, value: '(?<=x)y'}", "regex", "check/assertions says: pattern '(?<=x)y' cannot be read by RE2"),
        ("{type: regex, value: '('}", "regex", "check/assertions says: pattern '('"),
        ("{type: cost, threshold: -1}", "cost", "check/assertions says: invalid value for usd, expected 0 or more"),
        ("{type: latency, threshold: soon}", "latency", "its threshold is 'soon': write a number"),
        ("{type: latency}", "latency", "it needs a threshold that is a number"),
        ("{type: contains}", "contains", "it needs a value"),
        ("{type: is-json, value: 'file://schema.json'}", "is-json", "file://schema.json cannot be read"),
        ("{type: is-json, value: {type: nope}}", "is-json", "check/assertions says: schema/type"),
        ("{type: contains, value: b, weight: -3}", "contains of weight -3", "a weight is above 0"),
        ("{type: vibes, value: b}", "vibes", "dicast has no check of this name"),
        ("{type: conatins, value: b}", "conatins", "did you mean contains?"),
        ("{type: contains, value: '{{ env.NAME }}'}", "contains", "its test has no variable env.NAME: write the value itself"),
        ("{type: contains-any, value: [a, '{{ y }}']}", "contains-any", "its test has no variable y: write the value itself"),
    ],
)  # fmt: skip
def test_a_check_that_no_row_can_have_is_said_and_not_written(assertion, what, instead, take):
    text = f"prompts: ['{{{{x}}}}']\nproviders: [echo]\ntests: [{{vars: {{x: a}}, assert: [{{type: contains, value: a}}, {assertion}]}}]\n"
    code, document, _, rows = take(text)
    ((result,), checks) = document["not_carried"], rows[0]["assert"]
    assert (code, result["what"], checks) == (0, what, [{"check": "contains", "value": "a"}])
    assert result["instead"].startswith(instead)
    assert rows[0]["not_carried"] == [f"promptfooconfig.yaml:{result['line']}: {what}; {result['instead']}"]


def test_it_says_so_where_no_test_has_an_assertion(take, tmp_path, capsys):
    """A passed gate then means nothing for promptfoo's tests."""
    assert take("prompts: ['{{x}}']\nproviders: [echo]\ntests: [{vars: {x: a}}]\n")[0] == 0
    assert "# No test has an assertion: this judges only" in (tmp_path / "pipeline.yaml").read_text()
    assert main(["init", "--from", "promptfoo", "promptfooconfig.yaml", "--out", "again.yaml"]) == 0
    assert "\nNo test has an assertion: this judges only that outputs are not empty.\n" in capsys.readouterr().out


def test_two_losses_of_one_line_are_both_listed(take):
    text = (
        "prompts: ['{{x}}']\nproviders: [echo]\n"
        "tests: [{vars: {x: [a, b]}, assert: [{type: contains}, {type: contains, value: 'file://a.txt'}, {type: equals, value: a}]}]\n"
    )
    _, document, _, rows = take(text)
    assert [loss["instead"] for loss in document["not_carried"]] == [
        "it needs a value",
        "file://a.txt cannot be read: a.txt: no such file",
    ]
    assert [len(row["not_carried"]) for row in rows] == [2, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\n", "this is no promptfoo configuration: it has neither prompts nor tests"),
        ("prompts: [a\n", "promptfooconfig.yaml:2:"),
        ("- a\n", "this is no promptfoo configuration"),
        ("prompts: []\ntests: []\n", "there is no test and no prompt"),
        ("prompts: [a]\nproviders: [echo]\ntests: 'https://a.example/sheet'\n", "no test could be read from https://a.example/sheet; write them to a CSV"),
        ("prompts: [a]\nproviders: [echo]\ntests: ['file://a/*.yaml']\n", "promptfooconfig.yaml:3:9: no test could be read from file://a/*.yaml"),
    ],
)  # fmt: skip
def test_what_is_no_configuration_is_refused(text, message, take):
    code, document, _, _ = take(text)
    assert code == 2
    assert message in document["error"]["message"]


def test_rows_are_not_written_over_either(take, tmp_path):
    (tmp_path / "pipeline.rows.jsonl").write_text("mine")
    code, document, _, _ = take(SUITE)
    assert (code, document["error"]["message"]) == (
        2,
        "pipeline.rows.jsonl exists already; choose another name: --out FILE.yaml",
    )
    assert not (tmp_path / "pipeline.yaml").exists()


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        ("description: {a: 1}\n", 0),
        ("providers: [{'openai:m': {config: 3}}, echo]\n", 0),
        ("tests: file://broken.jsonl\n", 2),
        ("tests: [{vars: {x: a}, threshold: most, assert: [{type: contains, value: a, weight: much}, {type: equals, value: a}]}]\n", 0),
    ],
)  # fmt: skip
def test_odd_values_are_left_out_or_refused(odd, message, take, tmp_path):
    (tmp_path / "broken.jsonl").write_text('{"vars": \n')
    components = {
        "prompts": "['{{x}}']",
        "providers": "[echo]",
        "tests": "[{vars: {x: a}, assert: [{type: contains, value: a}]}]",
    }
    text = odd + "".join(f"{name}: {value}\n" for name, value in components.items() if not odd.startswith(name))
    code, document, _, _ = take(text)
    assert (code, "broken.jsonl:1:1: the line is not JSON" in str(document)) == (message, message == 2)


def test_a_scenario_is_its_tests_once_for_each_configuration(take):
    text = (
        "prompts: ['{{who}} {{what}}']\n"
        "providers: [echo]\n"
        "defaultTest: {vars: {who: nobody}, assert: [{type: icontains, value: '{{what}}'}]}\n"
        "scenarios:\n"
        "  - description: greetings\n"
        "    config:\n"
        "      - {vars: {who: Ada, what: hello}, assert: [{type: contains, value: Ada}]}\n"
        "      - {vars: {who: Bo}}\n"
        "    tests:\n"
        "      - {description: low, vars: {what: hi}}\n"
        "      - {vars: {what: bye}, assert: [{type: similar, value: x}]}\n"
        "tests: [{vars: {what: alone}}]\n"
    )
    code, document, _, rows = take(text)
    assert code == 0
    outputs = [row["output"] if "output" in row else row["outputs"] for row in rows]
    assert outputs == ["nobody alone", "Ada hi", "Ada bye", "Bo hi", "Bo bye"]
    assert [len(row.get("assert", ())) for row in rows] == [1, 2, 2, 1, 1]
    assert [bool(row.get("not_carried")) for row in rows] == [False, False, True, False, True]
    assert (document["tests"], document["not_judged"]) == (5, 2)


def test_a_scenario_may_be_in_a_file_and_have_no_tests(take, tmp_path):
    (tmp_path / "scenario.yaml").write_text(
        "config: [{vars: {x: a}, assert: [{type: contains, value: a}]}, {vars: {x: b}}]\n"
    )
    text = "prompts: ['{{x}}']\nproviders: [echo]\nscenarios: ['file://scenario.yaml']\n"
    code, document, _, rows = take(text)
    assert (code, [row["output"] for row in rows]) == (0, ["a", "b"])
    assert document["not_judged"] == 1  # without an assertion


def test_prompts_of_the_same_variables_have_one_input_so_that_compare_answers(take, tmp_path, chat_server, capsys):
    chat_server.answer = "rain"
    text = (
        "prompts: ['Weather? {{log}} {{place}}', 'In one word: {{place}} {{log}}']\n"
        f"providers: [{{id: 'openai:chat:m', config: {{apiBaseUrl: '{chat_server.url}'}}}}]\n"
        "tests:\n"
        "  - {vars: {log: wet, place: Bari}, assert: [{type: icontains, value: rain}, {type: llm-rubric, value: short}]}\n"
    )
    _, _, pipeline, rows = take(text)
    assert rows[0]["input"] == "log: wet\nplace: Bari"
    assert [list(made["set"]) for made in pipeline["experiments"].values()] == [["task"], ["task"]]
    assert "--allow-incomparable" not in (tmp_path / "pipeline.yaml").read_text()
    assert main(["run", "pipeline.yaml", "--json"]) in (0, 1, 3)
    runs = [run["run_id"] for run in json.loads(capsys.readouterr().out)["experiments"].values()]
    assert main(["compare", *runs]) == 0
