"""Criteria that a pipeline file names and its task does not have."""

from __future__ import annotations

import json

import pytest

MODEL = '{openai/chat: {base_url: "http://127.0.0.1:1/v1", model: m, price: free}}'
TWO = f"task: {{prompt/chat: {{model: {MODEL}, user: '{{{{ input }}}}', criteria: {{clarity: {{}}, depth: {{}}}}}}}}\n"
ONE = f"task: {{prompt/chat: {{model: {MODEL}, user: '{{{{ input }}}}'}}}}\n"
COMMAND = "task: {task/command: {command: [cat]}}\n"
SCORES = "extractors: [score_extractor/scores]\n"


@pytest.fixture
def errors(shop):
    """Return the errors that ``dicast check`` reports for a pipeline."""
    shop.write("data.jsonl", [{"id": "a", "input": "A question?", "output": "An output."}])

    def check(text):
        return shop.dicast("check", shop.pipeline(text).name, "--json").json["errors"]

    return check


@pytest.mark.parametrize(
    ("before", "option", "path", "value", "near"),
    [
        (TWO, "extractors: [score_extractor/scores: {criteria: [depth, claritty]}]", "extractors[0].criteria[1]", "claritty", "clarity"),
        (TWO, "extractors: [extract/regex: {pattern: (.), criterion: deph}]", "extractors[0].criterion", "deph", "depth"),
        (ONE, "extractors: [extract/label: {labels: {a: 1}, criterion: defaut}]", "extractors[0].criterion", "defaut", "default"),
        (TWO + SCORES, "aggregates: [stats/agreement: {criteria: [clarity, detph]}]", "aggregates[0].criteria[1]", "detph", "depth"),
        (TWO + SCORES, "baseline: {run: last, compare: [stats/paired: {criteria: [detph]}]}", "baseline.compare[0].criteria[0]", "detph", "depth"),
    ],
)  # fmt: skip
def test_a_criterion_that_the_task_does_not_have_is_refused_where_it_stands(errors, before, option, path, value, near):
    (error,) = errors(before + option + "\n")
    line = 2 + before.count("\n")
    assert (error["path"], error["value"], error["hint"]) == (path, value, near)
    assert (error["file"], error["line"], error["column"]) == ("p.yaml", line, option.index(value) + 1)
    assert f"names the criterion {value!r}; choose from " in error["message"]
    assert errors((before + option + "\n").replace(value, near)) == []


@pytest.mark.parametrize(
    "text",
    [
        COMMAND
        + "extractors: [score_extractor/scores: {criteria: [any]}]\naggregates: [stats/agreement: {criteria: [any]}]\n",
        TWO + "metrics: [proxy/format]\naggregates: [stats/agreement: {criteria: [proxy/format]}]\n",
        TWO + SCORES + "aggregates: [stats/agreement: {source_field: ratings, criteria: [any]}]\n",
        TWO
        + "extractors: [extract/regex: {pattern: (.), criterion: depth, into: scores.detail}]\n"
        + "aggregates: [stats/agreement: {criteria: [detail, depth]}]\n",
        ONE
        + "extractors: [extract/json_path: {path: $.scores, criterion: default, into: scores}]\n"
        + "aggregates: [stats/agreement: {criteria: [tone, depth]}]\n",
    ],
    ids=["task that does not say", "scores of verdicts", "another field", "a place of its own", "an object of scores"],
)
def test_a_criterion_is_not_refused_where_the_file_does_not_say_which_there_are(errors, text):
    assert errors(text) == []


@pytest.mark.parametrize(
    "change",
    [
        "task.prompt/chat.criteria: {clarity: {}, depth: {}, tone: {}}",
        "task.criteria.tone: {}",
        "extractors: [extract/regex: {pattern: (.), into: scores.tone}]",
    ],
)
def test_a_criterion_that_another_experiment_of_the_suite_has_is_not_refused(errors, change):
    names = "{criteria: [clarity, depth, tone]}"
    shared = f"aggregates: [stats/agreement: {names}]\nbaseline: {{run: one, compare: [stats/paired: {names}]}}\n"
    suite = f"experiments:\n  one: {{}}\n  two: {{set: {{{change}}}}}\n"
    assert errors(TWO + SCORES + shared + suite) == []


def test_a_criterion_that_no_experiment_of_a_suite_has_is_refused_once(errors):
    suite = "experiments: {one: {}, two: {set: {scoring.threshold: 0.7}}}\n"
    (error,) = errors(TWO + SCORES + "aggregates: [stats/agreement: {criteria: [detph]}]\n" + suite)
    assert (error["value"], error["hint"], error["line"]) == ("detph", "depth", 4)


def test_names_of_scores_that_no_extractor_reads_are_not_said_to_be_there(errors):
    (error,) = errors(
        TWO
        + "metrics: [proxy/format]\nextractors: [extract/regex: {pattern: (.), into: ratings}]\n"
        + "aggregates: [stats/agreement: {criteria: [proxy/format]}]\n"
    )
    assert "there is" not in error["message"]
    assert error["message"].endswith("; choose from clarity, depth")


OWN = """
@attrs.frozen
class Ask:
    criteria: CRITERIA
    def produce(self, subject): ...

@attrs.frozen
class Read:
    writes = ("scores",)
    criteria: CRITERIA
    def extract(self, record): ...

@attrs.frozen
class Sum:
    criteria: CRITERIA
    def add(self, record): ...
    def finish(self): ...

@hookimpl
def dicast_tasks():
    return [Ask]
@hookimpl
def dicast_extractors():
    return [Read]
@hookimpl
def dicast_aggregates():
    return [Sum]
"""


@pytest.mark.parametrize(("kind", "value"), [("str", "clear and deep"), ("int", 3), ("tuple[int, ...]", [1, 2])])
@pytest.mark.parametrize(
    "text",
    [
        TWO + "extractors: [own/read: {criteria: GIVEN}]\naggregates: [stats/agreement: {criteria: [length]}]\n",
        TWO + SCORES + "aggregates: [own/sum: {criteria: GIVEN}]\n",
        "task: {own/ask: {criteria: GIVEN}}\n" + SCORES + "aggregates: [stats/agreement: {criteria: [length]}]\n",
    ],
    ids=["extractor", "aggregate", "task"],
)
def test_what_a_plugin_calls_criteria_counts_only_where_it_is_names(errors, plugin, text, kind, value):
    plugin("own", OWN.replace("CRITERIA", kind))
    assert errors(text.replace("GIVEN", json.dumps(value))) == []


@pytest.mark.parametrize("kind", ["Sequence[str]", "frozenset[str]", "list[str]"])
def test_the_criteria_of_a_plugins_task_are_the_names_in_any_collection(errors, plugin, kind):
    plugin("own", "from collections.abc import Sequence\n" + OWN.replace("CRITERIA", kind))
    text = "task: {own/ask: {criteria: [clarity]}}\nextractors: [score_extractor/scores: {criteria: [lar]}]\n"
    (error,) = errors(text)
    assert (error["value"], error["path"]) == ("lar", "extractors[0].criteria[0]")
    assert errors(text.replace("[lar]", "[clarity]")) == []


def test_an_extractor_that_knows_no_criteria_may_make_any_score(errors, plugin):
    plugin(
        "own",
        """
@attrs.frozen
class Words:
    writes = ("scores",)
    def extract(self, record): ...

@hookimpl
def dicast_extractors():
    return [Words]
""",
    )
    assert errors(TWO + "extractors: [own/words]\naggregates: [stats/agreement: {criteria: [length, tone]}]\n") == []


def test_a_criterion_that_only_the_records_could_tell_is_named_at_the_end(shop):
    shop.write("data.jsonl", [{"id": name, "input": name, "output": name} for name in ("a", "b")])
    answer = """{"responses": {"a": {"content": "1"}, "b": {"content": "2"}}}"""
    text = f"""task: {{task/command: {{command: [echo, '{answer}']}}}}
extractors: [extract/regex: {{pattern: (.)}}]
aggregates: [stats/agreement: {{criteria: [a, b, c]}}]
"""
    first = shop.run(text)
    assert first.json["aggregates"]["stats/agreement"]["unseen"] == ["c"]
    second = shop.run(text + "baseline: {run: last, compare: [stats/paired: {criteria: [a, c]}]}\n")
    assert second.json["comparison"]["stats/paired"]["in_neither"] == ["c"]
    assert "unseen ['c']" in shop.dicast("show", "last", "--full").out


def test_the_gate_is_on_a_criterion_that_the_task_has(errors):
    (error,) = errors(TWO + SCORES + "gate: [{on: clarity, min_score: 3}, {on: dept, min_score: 3}]\n")
    assert (error["path"], error["hint"]) == ("gate[1].on", "depth")
    assert errors(TWO + SCORES + "gate: [{on: clarity, min_score: 3}, {on: depth, max_score: 5}]\n") == []
    assert errors(COMMAND + SCORES + "gate: {on: any, min_score: 3}\n") == []  # it does not say what it answers
