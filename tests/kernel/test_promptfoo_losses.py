"""``dicast init --from promptfoo``: lost assertions never count as passed; large or odd configurations are refused."""

from __future__ import annotations

import json
from pathlib import Path
from time import process_time

import pytest
import yaml

from dicast._kernel.cli import main
from dicast._promptfoo.kinds import CARRIED, INSTEAD


@pytest.fixture
def take(tmp_path, monkeypatch, capsys):
    """Take over a configuration with echoed prompts: ``take(tests, …)`` returns the exit code, the document and the rows."""
    monkeypatch.chdir(tmp_path)

    def run(tests, extra="", options=()):
        (tmp_path / "promptfooconfig.yaml").write_text(
            f"prompts: ['{{{{x}}}}']\nproviders: [echo]\n{extra}\ntests:\n{tests}\n"
        )
        code = main(["init", "--from", "promptfoo", "promptfooconfig.yaml", "--no-try", "--json", *options])
        document = json.loads(capsys.readouterr().out)
        path = tmp_path / "pipeline.rows.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()] if not code else None
        return code, document, rows

    return run


def ran(capsys, *options):
    """Return the exit code and the document of a run of the pipeline."""
    code = main(["run", "pipeline.yaml", "--json", *options])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("kind", [*INSTEAD, "not-similar", "no-such-type"])
def test_a_test_that_lost_its_only_assertion_never_passes_on_the_shared_ones(kind, take, capsys):
    shared = "defaultTest: {assert: [{type: contains, value: a}]}"
    tests = f"  - {{vars: {{x: a}}, assert: [{{type: '{kind}', value: a, threshold: 0.5}}]}}\n  - vars: {{x: a}}"
    code, document, rows = take(tests, shared)
    assert (code, document["not_judged"]) == (0, 1)
    ((loss,),) = ([one["what"] for one in document["not_carried"]],)
    assert loss == kind
    assert "not_carried" in rows[0]
    code, run = ran(capsys)
    assert (code, run["scored"], run["failed"], run["failures"]) == (3, 1, 1, {"source_error": 1})
    assert run["score"]["passes"]["passed"] == 1


@pytest.mark.parametrize(
    "part",
    [
        "assertScoringFunction: file://score.js",
        "options: {transform: output.trim()}",
        "options: {prefix: a}",
        "provider: openai:gpt-x",
        "providers: [echo]",
        "prompts: [one]",
        "providerOutput: b",
        "threshold: 7",
    ],
)
def test_a_test_whose_output_or_verdict_would_differ_is_not_judged(part, take, capsys):
    code, document, rows = take(f"  - {{vars: {{x: a}}, {part}, assert: [{{type: contains, value: a}}]}}")
    assert (code, document["not_judged"], len(rows[0]["not_carried"])) == (0, 1, 1)
    code, run = ran(capsys)
    assert (code, run["scored"], run["failures"]) == (3, 0, {"source_error": 1})


def test_a_part_of_the_default_test_is_lost_in_all_tests(take):
    _, document, rows = take(
        "  - vars: {x: a}\n  - vars: {x: b}",
        "defaultTest: {assertScoringFunction: file://s.js, assert: [{type: contains, value: a}]}",
    )
    assert document["not_judged"] == 2
    assert all("assertScoringFunction of a test" in row["not_carried"][0] for row in rows)


def test_a_set_that_lost_an_assertion_is_lost_with_its_test(take):
    tests = "  - {vars: {x: a}, assert: [{type: assert-set, assert: [{type: similar, value: b}, {type: contains, value: a}]}]}"
    _, document, _ = take(tests)
    assert (document["not_judged"], [loss["what"] for loss in document["not_carried"]]) == (1, ["similar"])


def test_every_type_of_promptfoo_goes_over_or_has_a_reason():
    """The types of promptfoo 0.121.20."""
    known_values = (
        "agent-rubric answer-relevance assert-set bleu classifier contains contains-all contains-any contains-html contains-json contains-sql contains-xml context-faithfulness"
        " context-recall context-relevance conversation-relevance cost equals factuality finish-reason g-eval gleu guardrails human icontains icontains-all icontains-any is-html"
        " is-json is-refusal is-sql is-valid-function-call is-valid-openai-function-call is-valid-openai-tools-call is-xml javascript latency levenshtein llm-rubric max-score meteor"
        " model-graded-closedqa model-graded-factuality moderation perplexity perplexity-score pi python regex rouge-n ruby search-rubric select-best similar similar:cosine similar:dot"
        " similar:euclidean skill-used starts-with tool-call-f1 trace-error-spans trace-span-count trace-span-duration trajectory:goal-success trajectory:step-count"
        " trajectory:tool-args-match trajectory:tool-sequence trajectory:tool-used webhook word-count"
    )
    assert set(known_values.split()) == {*CARRIED, *INSTEAD, "assert-set"}
    assert not set(CARRIED) & set(INSTEAD)


def test_each_test_has_rubrics_of_its_own_and_others_have_none(take, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    tests = (
        "  - {vars: {x: a}, assert: [{type: llm-rubric, value: 'names {{x}}', threshold: 0.8, weight: 2}]}\n"
        "  - {vars: {x: b}, assert: [{type: contains, value: b}]}\n"
        "  - {vars: {x: c}, assert: [{type: factuality, value: c is a letter}, {type: model-graded-closedqa, value: is one letter}, {type: not-llm-rubric, value: rude, provider: openai:gpt-y}]}\n"
    )
    _, document, rows = take(tests, options=("--model", "gpt-4o-mini"))
    assert document["not_carried"] == []
    assert [row["assert"] for row in rows] == [
        [{"check": "llm_rubric", "value": "names {{x}}", "threshold": 0.8, "weight": 2}],
        [{"check": "contains", "value": "b"}],
        [{"check": "factuality", "value": "c is a letter"}, {"check": "closedqa", "value": "is one letter"}, {"check": "llm_rubric", "value": "rude", "negate": True}],
    ]  # fmt: skip
    (metric,) = yaml.safe_load(Path("pipeline.yaml").read_text())["metrics"]
    judges = metric["check/assertions"]["judges"]
    assert sorted(judges) == ["closedqa", "factuality", "llm_rubric"]
    assert [judges[name]["llm/judge"]["rubric"] for name in sorted(judges)] == [
        "closedqa-v1",
        "factuality-v1",
        "criterion-v1",
    ]
    assert [row["input"] for row in rows] == ["a", "b", "c"]  # the prompt, as judges see it
    assert main(["check", "pipeline.yaml"]) == 0


def test_an_assertion_that_names_a_grader_asks_that_model(take):
    tests = "  - {vars: {x: a}, assert: [{type: llm-rubric, value: kind, provider: 'openai:gpt-y'}, {type: llm-rubric, value: kind}]}"
    _, document, rows = take(tests, "defaultTest: {options: {provider: 'openai:gpt-x'}}")
    assert document["not_carried"] == []
    assert [item["check"] for item in rows[0]["assert"]] == ["llm_rubric:openai-gpt-y", "llm_rubric"]
    _, document, _ = take(tests.replace("openai:gpt-y", "exec:grade.sh"), options=("--out", "again.yaml"))
    assert [loss["instead"] for loss in document["not_carried"]] == [
        "dicast has no model for its grader exec:grade.sh: name one with --model NAME",
        "name the model that judges: --model NAME",
    ]


def test_graders_of_one_name_at_two_addresses_are_two_judges(take):
    at = "provider: {{text: {{id: 'openai:chat:m', config: {{apiBaseUrl: 'http://127.0.0.1:{port}/v1'}}}}}}"
    asserts = [f"{{type: llm-rubric, value: kind, {at.format(port=port)}}}" for port in (1, 2, 1)]
    _, document, rows = take(f"  - {{vars: {{x: a}}, assert: [{', '.join(asserts)}]}}")
    assert document["not_carried"] == []
    assert [item["check"] for item in rows[0]["assert"]] == [
        "llm_rubric:openai-chat-m",
        "llm_rubric:openai-chat-m-2",
        "llm_rubric:openai-chat-m",
    ]
    assert main(["check", "pipeline.yaml"]) == 0


@pytest.mark.parametrize(
    "named", ["openai:embedding:text-embedding-3", "openai:image:dall-e", "python:ask.py", "https://a.example/ask"]
)
def test_a_provider_that_is_no_chat_model_is_listed(named, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text(
        f"prompts: ['{{{{x}}}}']\nproviders: ['{named}', 'openai:gpt-4o-mini']\ntests: [{{vars: {{x: a}}}}]\n"
    )
    assert main(["init", "--from", "promptfoo", "c.yaml", "--json"]) == 0
    assert [loss["what"] for loss in json.loads(capsys.readouterr().out)["not_carried"]] == [f"provider {named}"]


def test_lists_of_variables_that_make_too_many_rows_are_refused_at_once(take, tmp_path):
    values = json.dumps([f"v{number}" for number in range(1000)])
    code, document, _ = take(f"  - vars: {{x: {values}, y: {values}, z: {values}}}")
    assert code == 2
    message = document["error"]["message"]
    assert (
        "promptfooconfig.yaml:5:5: the lists of variables make 1,000,000,000 rows, and 100,000 are the most" in message
    )
    assert "x: 1,000, y: 1,000, z: 1,000" in message
    assert not (tmp_path / "pipeline.yaml").exists()


def test_tests_that_are_too_many_together_are_refused(take):
    values = json.dumps([f"v{number}" for number in range(300)])
    code, document, _ = take(f"  - vars: {{x: {values}, y: {values}}}\n  - vars: {{x: {values}, y: {values}}}")
    assert (code, "make 180,000 rows" in document["error"]["message"]) == (2, True)


@pytest.mark.parametrize(
    ("assertion", "reason"),
    [
        ("{type: javascript, value: context.prompt.length > 3}", "its code reads prompt of promptfoo's context; rows have vars alone"),
        ("{type: python, value: 'context[\"provider\"] == 1'}", "its code reads provider"),
        ("{type: python, value: 'context.get(\"test\")'}", "its code reads test"),
        ("{type: python, value: 'output ==='}", "it is not Python"),
        ("{type: javascript, value: file://none.js}", "none.js: no such file"),
        ("{type: javascript, value: file://check.ts}", "check.ts is no file of javascript that dicast can call"),
        ("{type: javascript, value: file://reads.js}", "its code reads metadata"),
        ("{type: contains, value: file://value.py}", "its value comes from the code file://value.py"),
        ("{type: not-factuality, value: a}", "promptfoo reads not-factuality as factuality"),
        ("{type: regex, value: '(?i)abc'}", "JavaScript reads this pattern in another way"),
        ("{type: contains, value: true}", "its value is a text"),
        ("{type: starts-with, value: ''}", "its value is an empty text"),
        ("{type: equals, value: null}", "it needs a value"),
        ("{type: word-count, value: {min: 3, max: 2}}", "check/assertions says: word_count: max is 2, below min"),
        ("{type: word-count, value: some}", "its value is a number, or has min and max"),
        ("{type: contains-any, value: '\"a'}", "its value cannot be read as a list: a quote is not closed"),
        ("{type: is-json, value: 'a text'}", "its schema is not an object"),
        ("{type: assert-set, threshold: 2, assert: [{type: contains, value: a}]}", "its threshold is 2; a threshold is in [0, 1]"),
        ("{$ref: '#/assertionTemplates/none'}", "$ref: there is nothing at #/assertionTemplates/none"),
    ],
)  # fmt: skip
def test_an_assertion_that_cannot_be_the_same_is_lost_with_its_reason(assertion, reason, take, tmp_path):
    (tmp_path / "check.ts").write_text("")
    (tmp_path / "reads.js").write_text("module.exports = (output, c) => c.metadata.x;")
    _, document, rows = take(f"  - {{vars: {{x: a}}, assert: [{assertion}, {{type: contains, value: a}}]}}")
    (loss,) = document["not_carried"]
    assert reason in loss["instead"]
    assert document["not_judged"] == len(rows) == 1


def test_code_waits_for_consent_and_runs_with_it(take, capsys, tmp_path):
    tests = '  - {vars: {x: abc, id: \'7\'}, assert: [{type: python, value: \'len(output) == 3 and context["vars"]["id"] == "7"\'}]}'
    _, document, rows = take(tests)
    assert document["code"] == ["pipeline.checks.py"]
    assert rows[0]["vars"] == {"x": "abc", "id": "7"}
    text = (tmp_path / "pipeline.yaml").read_text()
    assert "\n# trust: [pipeline.checks.py]\n" in text
    assert main(["run", "pipeline.yaml"]) == 2
    capsys.readouterr()
    assert ran(capsys, "--yes")[0] == 0
    (tmp_path / "pipeline.yaml").write_text(text.replace("# trust:", "trust:"))
    assert ran(capsys)[0] == 0


def test_no_code_of_the_configuration_runs_while_it_is_read(take, tmp_path):
    (tmp_path / "mark.py").write_text(
        "open('ran', 'w')\ndef get_assert(output, context):\n    return True\ndef get_var(*names):\n    return {'output': 'a'}\n"
    )
    tests = "  - {vars: {x: file://mark.py}, assert: [{type: python, value: file://mark.py}, {type: python, value: \"open('ran', 'w')\"}]}"
    code, document, _ = take(tests + "\n  - file://mark.py")
    assert (code, [loss["what"] for loss in document["not_carried"]]) == (
        0,
        ["variable x from file://mark.py", "tests from file://mark.py"],
    )
    assert not (tmp_path / "ran").exists()


def test_files_of_tests_variables_and_prompts_are_found_by_patterns(take, tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.test.yaml").write_text(
            f"- {{vars: {{x: {name}}}, assert: [{{type: contains, value: o}}]}}\n"
        )
        (tmp_path / f"{name}.txt").write_text(f"{name}\n")
    (tmp_path / "vars.json").write_text('{"x": "three"}')
    _, document, rows = take(
        "  - '*.test.yaml'\n  - {vars: {x: 'file://*.txt'}, assert: [{type: contains, value: o}]}\n  - {vars: vars.json, assert: [{type: contains, value: e}]}"
    )
    assert document["not_carried"] == []
    assert [row["x"] for row in rows] == ["one", "two", "one", "two", "three"]


def test_providers_with_transforms_and_values_that_a_prompt_would_print_otherwise_are_lost(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text(
        "prompts: ['{{x}}']\nproviders: [{id: 'openai:gpt-x', transform: output.trim()}, 'openai:gpt-y']\n"
        "tests: [{vars: {x: [1, 2]}, assert: [{type: contains, value: a}]}, {vars: {x: 3}, assert: [{type: contains, value: a}]}]\n"
    )
    assert main(["init", "--from", "promptfoo", "c.yaml", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [loss["what"] for loss in document["not_carried"]] == [
        "provider openai:gpt-x with transform",
        "variable x: 1,2",
    ]
    assert document["not_judged"] == 1


@pytest.mark.parametrize(
    ("cell", "item"),
    [
        ("contains: a", {"check": "contains", "value": "a"}),
        ("not-contains-any: a , b", {"check": "contains_any", "value": ["a", "b"], "negate": True}),
        ("levenshtein: kit", {"check": "levenshtein", "value": "kit", "threshold": 0.75}),
        ("levenshtein(4): kit", {"check": "levenshtein", "value": "kit", "threshold": 4}),
        ("latency: 500", {"check": "max_latency", "value": 0.00075}),
        ("is-refusal", {"check": "is_refusal"}),
        ("plain: text", {"check": "equals", "value": "plain: text"}),
        (
            "javascript: 1",
            {
                "check": "javascript",
                "file": "pipeline.checks.cjs",
                "function": "assert_1",
                "above": 0,
                "complete": True,
            },
        ),
    ],
)
def test_a_cell_of_a_csv_file_is_read_as_promptfoo_reads_it(cell, item, take, tmp_path):
    (tmp_path / "t.csv").write_text(f'x,__expected\na,"{cell}"\n')
    _, _, rows = take("  - file://t.csv")
    assert rows[0]["assert"] == [item]


def test_the_page_has_every_type():
    page = (Path(__file__).parents[2] / "docs" / "start" / "promptfoo.md").read_text()
    missing = [kind for kind in (*CARRIED, *INSTEAD, "assert-set") if f"`{kind}`" not in page]
    assert missing == []


def test_prompts_and_tests_are_read_in_every_form(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("one {{x}}\n---\ntwo {{x}}\n")
    (tmp_path / "b.json").write_text('[{"role": "user", "content": "three {{x}}"}]')
    (tmp_path / "t.csv").write_text("x,__expected\na,contains: a\n")
    configuration = {
        "prompts": {"a.txt": "first", "b.json": "second"},
        "providers": "openai:gpt-4o-mini",
        "tests": "t.csv",
    }
    (tmp_path / "c.json").write_text(json.dumps(configuration))
    assert main(["init", "--from", "promptfoo", "c.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["not_carried"] == []
    experiments = yaml.safe_load((tmp_path / "pipeline.yaml").read_text())["experiments"]
    assert [item["set"]["task"]["prompt/chat"]["user"] for item in experiments.values()] == [
        "one {{x}}",
        "two {{x}}",
        "three {{x}}",
    ]
    assert list(experiments) == ["first", "first_2", "second"]


def test_a_prompt_that_cannot_be_read_is_listed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text(
        "prompts: [none.txt, {label: empty}, make.py, {raw: '{{x}}', config: {a: 1}}]\nproviders: [echo]\n"
        "tests: [{vars: {x: a}, assert: [{type: contains, value: a}]}]\n"
    )
    assert main(["init", "--from", "promptfoo", "c.yaml", "--json", "--no-try"]) == 0
    losses = [loss["what"] for loss in json.loads(capsys.readouterr().out)["not_carried"]]
    assert sorted(losses) == ["config of a prompt", "prompt make.py", "prompt none.txt", "prompt {'label': 'empty'}"]


@pytest.mark.parametrize(
    "text",
    ["{{" * 30_000, "{%" * 30_000, "{{a}}" * 30_000, "const a = 1;" + "\\" * 100_000, "( a, {" * 20_000],
    ids=["braces", "blocks", "names", "backslashes", "parameters"],
)
def test_the_time_to_read_a_text_grows_with_the_text_alone(take, text):
    value = json.dumps(text)
    start = process_time()
    take(f"  - vars: {{x: a}}\n    assert: [{{type: javascript, value: {value}}}, {{type: contains, value: {value}}}]")
    assert process_time() - start < 5


def test_variables_that_multiply_to_gigabytes_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    test = {"vars": {"a": "x" * 100_000, "b": "{{a}}" * 1000}, "assert": [{"type": "equals", "value": "{{b}}" * 1000}]}
    (tmp_path / "pf.json").write_text(json.dumps({"prompts": ["{{b}}"], "providers": ["echo"], "tests": [test]}))
    assert main(["init", "--from", "promptfoo", "pf.json", "--no-try"]) == 2
    assert "becomes longer than 16,777,216 characters" in capsys.readouterr().err
