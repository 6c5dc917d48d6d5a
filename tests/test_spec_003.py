"""Metrics of programs and answers in YAML: each metric outside the sandbox, each feature, and the fixed figures."""

from __future__ import annotations

import json
import re

import pytest

from dicast import Failure, Score, metric
from dicast.testing import FakeChatModel, FakeMetric, run_pipeline, sample

SANDBOX = {"SandboxMetric", "TestPassMetric", "VerificationDeltaMetric"}
"""Rows of the index that run what is judged: they come with the sandbox."""

INDEX = [
    "FormatMetric",
    "KeywordMetric",
    "LengthMetric",
    "SyntaxMetric",
    "ToolParamsSchemaMetric",
    "WasRepeatedMetric",
    "LlmJudgeMetric",
    "DiffMetric",
    "SandboxMetric",
    "TestPassMetric",
    "VerificationDeltaMetric",
    "OutcomeCoupledScorer",
    "subtask_planning_metric",
    "subtask_execution_metric",
    "synthesis_metric",
    "tool_step_utility_metric",
    "combined_metric",
]
"""The rows of the index, as the document names them."""


def judged(score):
    """A chat model that gives *score* under whatever seal it is asked."""

    def reply(request):
        (seal,) = re.findall(r"^seal: (\w+)$", request.messages[-1].content, re.MULTILINE)
        return json.dumps({"seal": seal, "rationale": "So.", "score": score, "confidence": 1})

    return FakeChatModel(reply)


CALL = {"tool": "search", "params": {"q": "dicast", "n": 1}}
SCHEMA = "{search: {type: object, required: [q], properties: {q: {type: string}, n: {type: integer}}}}"
PLAN = {"subtasks": [{"id": "1", "action": "edit", "target": "src/lib.rs", "instruction": "Add a function"}]}
SYNTHESIS = {"success": True, "summary": "The function was added.", "modified_files": ["src/lib.rs"], "confidence": 0.9}
STEP = {"step_utility": 0.8, "should_continue": True, "next_action_hint": "run the tests", "confidence": 0.5}
GOOD_STEP = {"step_utility": 0.5, "was_repeated": False, "verification_delta": 2, "params_valid": True}
BAD_STEP = {"step_utility": -1, "was_repeated": True, "verification_delta": -1, "params_valid": False}


def row(output, **fields):
    return sample(output, **fields)


ROWS = [
    # The row, the metric in YAML, its tier, a subject, and the score.
    ("FormatMetric", "proxy/format", "proxy", row(""), 0),
    ("FormatMetric", "proxy/format", "proxy", row("text"), 1),
    ("FormatMetric", "{proxy/format: {require_json: true}}", "proxy", row('{"key":"value"}'), 1),
    ("FormatMetric", "{proxy/format: {require_json: true}}", "proxy", row("{invalid json}"), 0),
    ("FormatMetric", "{proxy/format: {require_non_empty: true, require_json: true, field: answer}}", "proxy", row({"answer": "[1]"}), 1),
    ("KeywordMetric", "{proxy/keywords: {required: [function, return]}}", "proxy", row("a function"), 0.5),
    ("KeywordMetric", "{proxy/keywords: {required: [function], forbidden: [TODO, FIXME]}}", "proxy", row("function # todo"), 0),
    ("KeywordMetric", "{proxy/keywords: {required: [x], field: code}}", "proxy", row({"code": "x", "text": ""}), 1),
    ("LengthMetric", "{proxy/length: {min: 10, max: 1000}}", "proxy", row("0123456789"), 1),
    ("LengthMetric", "{proxy/length: {min: 10, max: 1000, field: summary}}", "proxy", row({"summary": "01234"}), 0.5),
    ("LengthMetric", "{proxy/length: {max: 10}}", "proxy", row("x" * 15), 0.5),
    ("SyntaxMetric", "proxy/syntax", "proxy", row("it's f(x[1]) {fine}"), 1),
    ("SyntaxMetric", "{proxy/syntax: {check_balanced_brackets: true, check_balanced_quotes: false}}", "proxy", row("f(x"), 0),
    ("SyntaxMetric", "{proxy/syntax: {language: python}}", "proxy", row("def f(:"), 0),
    ("SyntaxMetric", "{proxy/syntax: {language: python}}", "proxy", row("def f(): pass"), 1),
    ("ToolParamsSchemaMetric", f"{{proxy/tool_params_schema: {{tools: {SCHEMA}}}}}", "proxy", row(CALL), 1),
    ("ToolParamsSchemaMetric", f"{{proxy/tool_params_schema: {{tools: {SCHEMA}}}}}", "proxy", row({"tool": "search", "params": {}}), 0),
    ("ToolParamsSchemaMetric", f"{{proxy/tool_params_schema: {{tools: {SCHEMA}}}}}", "proxy", row({**CALL, "tool": "fetch"}), 0),
    ("WasRepeatedMetric", "proxy/was_repeated", "proxy", row(CALL, input={"execution_history": []}), 1),
    (
        "WasRepeatedMetric", "proxy/was_repeated", "proxy",
        row(CALL, input={"execution_history": [{"tool": "search", "params": {"n": 1.0, "q": "dicast"}}]}), 0,
    ),
    ("LlmJudgeMetric", "{llm/judge: {model: m, system_prompt: You review code., criteria: [Correctness]}}", "truth", row("x"), 0.75),
    ("DiffMetric", "{diff/match: {strictness: exact}}", "truth", row("a b", reference="a  b"), 0),
    ("DiffMetric", "diff/match", "truth", row("a  b\n", reference="a b"), 1),
    ("DiffMetric", "diff/match", "truth", row("hello there", reference="hello world"), 0.5),
    ("DiffMetric", "{diff/match: {field: answer}}", "truth", row({"answer": "a"}, reference="a"), 1),
    ("DiffMetric", "{diff/match: {strictness: ast_equivalent, language: python}}", "truth", row("f( 'a' ) # x", reference='f("a")'), 1),
    ("DiffMetric", "{diff/match: {strictness: semantic, judge: {llm/judge: {model: m}}}}", "truth", row("four", reference="4"), 0.75),
    ("OutcomeCoupledScorer", "outcome/step_score", "truth", row(GOOD_STEP), 0.9),
    ("OutcomeCoupledScorer", "outcome/step_score", "truth", row(BAD_STEP), 0),
    ("OutcomeCoupledScorer", "{outcome/step_score: {step_utility_weight: 1, repetition_weight: 0, verification_weight: 0, schema_weight: 0}}",
     "truth", row(GOOD_STEP), 0.75),
    ("subtask_planning_metric", "agent_steps/subtask_planning", "proxy", row(PLAN), 1),
    ("subtask_planning_metric", "agent_steps/subtask_planning", "proxy", row({"subtasks": []}), 0.25),
    ("subtask_execution_metric", "agent_steps/subtask_execution", "proxy",
     row({"result": {"command": "cargo test"}, "reasoning": "The tests show whether it holds."}), 1),
    ("subtask_execution_metric", "agent_steps/subtask_execution", "proxy", row({"result": {"command": "a"}, "reasoning": "so"}), 0.66),
    ("synthesis_metric", "agent_steps/synthesis", "proxy", row(SYNTHESIS), 1),
    ("synthesis_metric", "agent_steps/synthesis", "proxy", row({**SYNTHESIS, "confidence": 1.5}), 0.75),
    ("tool_step_utility_metric", "agent_steps/tool_step_utility", "proxy", row(STEP), 1),
    ("tool_step_utility_metric", "agent_steps/tool_step_utility", "proxy", row({**STEP, "next_action_hint": "go"}), 0.75),
    ("combined_metric", "agent_steps/combined", "proxy", row({**PLAN, **SYNTHESIS}), 1),
    ("combined_metric", "agent_steps/combined", "proxy", row(PLAN), 0.6),
    ("combined_metric", "agent_steps/combined", "proxy", row({"subtasks": [], **SYNTHESIS}), 0.55),
    # Beside the index: FeedbackEvaluator, FeedbackMetric and their helpers (behaviours §4.4).
    ("FeedbackMetric", "feedback/retrieval", "proxy", row([1, 2, 4], reference=[1, 2, 3]), 2 / 3),
    ("FeedbackMetric", "feedback/string_similarity", "proxy", row("Hello World", reference="hello world"), 0.95),
    ("FeedbackMetric", "feedback/classification", "proxy", row("spam", reference="spam"), 1),
    ("FeedbackMetric", "{feedback/multi_objective: {objectives: {a: proxy/format, b: {proxy/length: {min: 10}}}, weights: {a: 3}}}",
     "proxy", row("01234"), 0.875),
    ("FeedbackMetric", "{feedback/multi_objective: {objectives: {same: diff/match, found: feedback/classification}}}",
     "proxy", row("hello there", reference="hello world"), 0.25),
    ("FeedbackMetric", "feedback/code_pipeline", "proxy", row({"parse": True, "compile": "E0308"}), 0.25),
]  # fmt: skip


def run(metrics, subjects, *, components=None, **sections):
    named = {"m": judged(0.75), **(components or {})}
    return run_pipeline(
        json.dumps(sections)[:-1] + f"{', ' if sections else ''}metrics: {metrics}}}",
        subjects=subjects,
        components=named,
    )


@pytest.mark.parametrize(
    ("name", "written", "tier", "subject", "score"), ROWS, ids=[f"{n}-{one[0]}" for n, one in enumerate(ROWS)]
)
def test_each_row_of_the_index_works_from_yaml(name, written, tier, subject, score):
    done = run(f"[{written}]", [subject])
    (found,) = done.verdicts
    assert (found.score, found.scores[0]["tier"]) == (pytest.approx(score), tier)
    assert found.scores[0]["details"] or score == 1 or "llm" in written
    assert all(spent == "0" for spent in done.document["cost"].values())


def test_no_row_is_left_out():
    assert {name for name, *_ in ROWS} == {*INDEX, "FeedbackMetric"} - SANDBOX
    assert len(INDEX) == len(set(INDEX)) == 17


# Scoring


def judge(proxies=(), truths=(), *, weights=None, **sections):
    """The verdict on one subject by metrics that always give these values, under the labels p0, p1, … and t0, t1, …."""
    values = {f"{tier}{n}": value for tier, given in (("p", proxies), ("t", truths)) for n, value in enumerate(given)}
    components = {
        label: FakeMetric([Score(one) for one in value] if isinstance(value, list) else Score(value))
        for label, value in values.items()
    }
    slots = {label: {label: {"as": label, "weight": (weights or {}).get(label, 1)}} for label in values}
    tiers = {tier: [slots[label] for label in slots if label[0] == tier[0]] for tier in ("proxy", "truth")}
    (found,) = run(json.dumps(tiers), [sample("x")], components=components, **sections).verdicts
    return found


AGGREGATIONS = [
    ("median", [0.1, 0.5, 0.9], 0.5),
    ("median", [0.1, 0.2, 0.8, 0.9], 0.5),
    ("mean", [0.1, 0.2, 0.9], 0.4),
    ("min", [0.4, 0.2, 0.9], 0.2),
    ("max", [0.4, 0.9, 0.2], 0.9),
    ({"trimmed_mean": 10}, [n / 10 for n in range(10)], 0.45),
    ({"trimmed_mean": 25}, [0.0, 0.5, 0.6, 1.0], 0.55),
    ({"trimmed_mean": 34}, [0.1, 0.2, 0.9], 0.2),
]


@pytest.mark.parametrize(("method", "values", "expected"), AGGREGATIONS)
def test_rollouts_come_to_one_score_by_each_method(method, values, expected):
    found = judge([values], scoring={"rollouts": len(values), "aggregation": method})
    assert (found.score, found.signals["metrics"]["p0"]) == (pytest.approx(expected), pytest.approx(expected))


@pytest.mark.parametrize(("method", "values", "expected"), AGGREGATIONS)
def test_subjects_come_to_one_score_by_each_method(method, values, expected):
    subjects = [sample("x", id=str(n)) for n in range(len(values))]
    components = {"p": FakeMetric([Score(value) for value in values])}
    done = run(
        "[p]",
        subjects,
        components=components,
        scoring={"aggregation": method},
        executor={"dicast/async": {"concurrency": 1}},
    )
    assert done.document["score"]["aggregate"] == pytest.approx(expected)


def test_the_gate_is_each_proxy_and_the_score_the_mean_of_all_that_ran():
    below, at = judge([1, 1, 0.4], [0.1]), judge([1, 1, 0.5], [0.5])
    assert (below.score, below.tier, len(below.scores)) == (pytest.approx(0.8), "proxy", 3)
    assert (at.score, at.tier, len(at.scores)) == (pytest.approx(0.75), "truth", 4)


def test_weights_are_those_of_the_builder():
    assert judge([1.0], [0.8], weights={"t0": 2}).score == pytest.approx(0.866667, abs=1e-6)


def test_num_rollouts_is_another_name_of_rollouts():
    assert len(judge([1], scoring={"threshold": 0.5, "num_rollouts": 3, "aggregation": "median"}).scores) == 3


@metric(tier="truth", cost="600 msat")
async def costly(subject):
    """Costs 600 msat."""
    raise AssertionError("it was asked")


BUDGET = "{proxy: [{a: {as: a}}, {b: {as: b}}], truth: [{costly: {as: costly}}]}"


def dear_run(**scoring):
    components = {"a": FakeMetric(Score(1.0)), "b": FakeMetric(Score(0.6)), "costly": costly()}
    return run(BUDGET, [sample("x")], components=components, scoring=scoring, budget={"run": "100 msat"})


def test_truth_over_the_budget_is_skipped_and_the_proxies_stand():
    (found,) = dear_run().verdicts
    assert (found.score, found.tier, found.skipped) == (0.8, "proxy", ({"metric": "costly", "reason": "run_cap"},))


def test_under_skip_subject_the_subject_is_skipped():
    document = dear_run(on_budget="skip_subject").document
    assert (document["skipped"], document["scored"], document["failed"], document["score"]["mean"]) == (1, 0, 0, None)


def test_a_predictor_that_failed_is_unscored_or_zero_on_request():
    """A failure is no zero, with a missing output."""

    @metric(tier="proxy")
    def there(subject):
        return Score(1.0) if subject.output else Failure("missing_input", "the predictor failed")

    subjects = [sample("x"), sample(None, id="failed")]
    done = run("[there]", subjects, components={"there": there()})
    assert (done.document["scored"], done.document["failed"], done.document["coverage"]) == (1, 1, 0.5)
    zero = run("[{there: {on_failure: zero}}]", subjects, components={"there": there()})
    assert (zero.document["score"]["mean"], zero.document["coverage"]) == (0.5, 1.0)


def test_builders_defaults_are_presets():
    text = "{proxy: [preset/default_proxy], truth: [{preset/default_truth: {model: m}}]}"
    done = run(text, [sample("It is Canberra.", reference="It is Canberra.")], scoring={"rollouts": 3})
    assert list(done.document["metrics"]) == ["proxy/format", "proxy/length", "proxy/syntax", "llm/judge", "diff/match"]
    assert done.verdicts[0].score == pytest.approx((4 + 0.75) / 5)


def test_tasks_and_what_they_expect_come_from_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expected = {"fields": {"x": {"type": "number", "min": 0}}, "required_patterns": ["ok"]}
    tasks = [
        {
            "id": "a",
            "repo": {"source": "."},
            "goal": "g",
            "expected": expected,
            "metadata": {"tags": ["t"], "difficulty": 0.5},
        }
    ]
    (tmp_path / "set.json").write_text(json.dumps({"name": "s", "tasks": tasks}), encoding="utf-8")
    (tmp_path / "out.jsonl").write_text('{"id": "a", "output": {"x": 1, "log": "ok"}}\n', encoding="utf-8")
    done = run_pipeline(
        "source: {tasksets/files: {path: set.json, outputs: out.jsonl, tags: [t], difficulty: [0.4, 0.6]}}\n"
        "metrics: [tasksets/expected]"
    )
    assert [(found.subject_id, found.score) for found in done.verdicts] == [("a", 1.0)]


ALIASES = [
    ("proxy/format: {require_valid_json: true}", "proxy/format: {require_json: true}", "{no", 0.0),
    ("diff/match: {strictness: NormalizedWhitespace}", "diff/match: {strictness: normalized_whitespace}", "a  b", 1.0),
    ("diff/match: {strictness: Exact}", "diff/match: {strictness: exact}", "a  b", 0.0),
]


@pytest.mark.parametrize(("written", "usual", "output", "score"), ALIASES)
def test_the_names_of_the_document_are_taken_and_change_no_fingerprint(written, usual, output, score):
    runs = [
        run_pipeline(f"metrics: [{text}]", subjects=[sample(output, id="1", reference="a b")])
        for text in (written, usual)
    ]
    assert [done.verdicts[0].score for done in runs] == [score, score]
    assert len({done.verdicts[0].fingerprint for done in runs}) == 1
