from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Score
from dicast.testing import run_pipeline, sample
from dicast_agent_steps import Combined, SubtaskExecution, SubtaskPlanning, Synthesis, ToolStepUtility

METRICS = [SubtaskPlanning, SubtaskExecution, Synthesis, ToolStepUtility, Combined]

EDIT = {"id": "1", "action": "edit", "target": "lib.rs", "instruction": "Add function"}
RUN = {"id": "2", "action": "bash", "target": "", "instruction": "Run the tests"}
SYNTHESIS = {
    "success": True,
    "summary": "Added the function and its tests.",
    "modified_files": ["src/lib.rs"],
    "confidence": 0.9,
}
STEP = {"step_utility": 0.7, "should_continue": False, "next_action_hint": "Run the tests", "confidence": 1}
EXECUTION = {"result": {"old_string": "a", "new_string": "b"}, "reasoning": "The name was misspelt in two places."}


def judged(metric, output) -> Score:
    return metric.score(sample(output))


def value(metric, output) -> float:
    return judged(metric, output).value


def plan(**changes) -> dict:
    """A plan of one edit, with *changes* to it; a key that is changed to ... is left out."""
    return {"subtasks": [{key: item for key, item in (EDIT | changes).items() if item is not ...}]}


def failed(score: Score) -> list[str]:
    """The checks that did not pass."""
    return [name for name, passed in score.signals.items() if passed is False]


# Every metric


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("output", "message"),
    [
        (None, "the output is null, not an object"),
        ("", "the output is text that is not JSON"),
        ("no JSON", "the output is text that is not JSON"),
        ("\ud800", "the output is text that is not JSON"),
        (b"\xff\x00", "the output is bytes, not an object"),
        (7, "the output is 7, not an object"),
        ("[" * 100_000, "the output is text that is not JSON"),
    ],
    ids=["none", "empty", "prose", "surrogate", "binary", "number", "deep"],
)
def test_an_output_that_is_no_object_scores_0_and_fails_every_check(metric, output, message):
    score = judged(metric(), output)
    assert score.value == 0.0
    assert message in score.details
    assert True not in score.signals.values()
    assert len(failed(score)) == {SubtaskExecution: 3, Combined: 8}.get(metric, 4)


@pytest.mark.parametrize("metric", METRICS)
def test_a_field_names_where_the_object_stands(metric):
    output = {"subtasks": [EDIT], **EXECUTION, **SYNTHESIS, **STEP}
    assert value(metric(), output) == value(metric(field="a.0"), {"a": [output]}) == pytest.approx(1)
    assert value(metric(field="/a/0"), json.dumps({"a": [json.dumps(output)]})) == pytest.approx(1)
    missing = judged(metric(field="a.1"), {"a": [output]})
    assert (missing.value, missing.details) == (0.0, "the output has no field 'a.1'")
    assert judged(metric(field="a"), {"a": 3}).details == "the output's field 'a' is 3, not an object"


@pytest.mark.parametrize("metric", METRICS)
def test_an_empty_field_is_refused(metric):
    with pytest.raises(ConfigError, match="field is empty"):
        metric(field="")


@pytest.mark.parametrize("metric", METRICS)
def test_values_of_100_000_levels_and_100_mb_are_shown_short(metric):
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    huge = "x" * 100_000_000
    for hostile in (deep, huge, {"a": deep}, float("nan"), 10**400, "\ud800", b"\xff", [b"\xff"], [huge]):
        names = ("subtasks", "result", "reasoning", "success", "summary", "modified_files", "confidence", "step_utility",
                 "should_continue", "next_action_hint")  # fmt: skip
        output = dict.fromkeys(names, hostile) | {"plan": [dict.fromkeys(EDIT, hostile)]}
        began = time.process_time()
        scores = [judged(metric(), output), judged(metric(field="plan"), output)]
        assert time.process_time() - began < 2
        assert all(0 <= score.value < 1 and len(score.details) < 1_000 for score in scores)
        for score in scores:
            score.details.encode()


texts = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(["true", "0.5", "[]", "a/b", "Add"])
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*EDIT, "old_string", "new_string", "command"]) | texts, inner, max_size=4)
    ),
    max_leaves=8,
)
plans = st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(EDIT, anything)))
KEYS = ["subtasks", *EXECUTION, *SYNTHESIS, *STEP, "step_utility_norm"]
outputs = anything | st.dictionaries(st.sampled_from(KEYS), anything | plans)


@pytest.mark.slow
@given(outputs)
def test_any_output_gets_a_score_that_its_checks_add_up_to(output):
    for metric in METRICS:
        score, again = judged(metric(), output), judged(metric(), output)
        assert 0.0 <= score.value <= 1.0
        assert (score.value, score.details, score.signals) == (again.value, again.details, again.signals)
        assert (score.value == pytest.approx(1)) == (not failed(score)) == (score.details == "")
        checks = [passed for passed in score.signals.values() if isinstance(passed, bool)]
        weights = {SubtaskExecution: [0.33, 0.33, 0.34], Combined: [0.15] * 4 + [0.1] * 4}.get(metric, [0.25] * 4)
        earned = [weight for weight, passed in zip(weights, checks, strict=True) if passed]
        assert score.value == pytest.approx(sum(earned))


@pytest.mark.slow
@given(outputs.filter(lambda output: not isinstance(output, str)))
def test_json_text_scores_as_what_it_says(output):
    for metric in METRICS:
        assert value(metric(), json.dumps(output)) == value(metric(), output)


# agent_steps/subtask_planning


def test_a_plan_that_can_be_carried_out_scores_1():
    score = judged(SubtaskPlanning(), {"subtasks": [EDIT, RUN]})
    assert (score.value, score.details) == (1.0, "")
    assert score.signals == {
        "subtasks_valid": True,
        "actions_valid": True,
        "targets_valid": True,
        "instructions_actionable": True,
    }


@pytest.mark.parametrize("empty", [{"subtasks": []}, {"subtasks": "[]"}, [], "[]", '{"subtasks": []}'])
def test_an_empty_plan_earns_a_quarter(empty):
    score = judged(SubtaskPlanning(), empty)
    assert (score.value, score.details) == (0.25, "subtasks is empty")
    assert failed(score) == ["actions_valid", "targets_valid", "instructions_actionable"]


@pytest.mark.parametrize("output", [{"subtasks": json.dumps([EDIT])}, [EDIT], json.dumps([EDIT]), json.dumps(plan())])
def test_a_plan_may_be_json_text_or_the_list_itself(output):
    assert value(SubtaskPlanning(), output) == 1.0


@pytest.mark.parametrize("key", EDIT)
def test_every_subtask_needs_its_four_keys(key):
    score = judged(SubtaskPlanning(), {"subtasks": [EDIT, *plan(**{key: ...})["subtasks"]]})
    assert score.details.startswith(f"subtasks.1 lacks {key}")
    assert "subtasks_valid" in failed(score)


@pytest.mark.parametrize("subtasks", ["no JSON", 3, None, {"0": EDIT}, "{}"])
def test_subtasks_that_are_no_list_score_0(subtasks):
    score = judged(SubtaskPlanning(), {"subtasks": subtasks})
    assert score.value == 0.0
    assert score.details.startswith("subtasks is ")


def test_a_subtask_that_is_no_object_fails_every_check_and_is_named_once():
    score = judged(SubtaskPlanning(), {"subtasks": [EDIT, "Add a function"]})
    assert (score.value, score.details) == (0.0, "subtasks.1 is 'Add a function', not an object")


@pytest.mark.parametrize("action", ["delete", "Edit", "", None, 1, ["edit"]])
def test_an_unknown_action_fails_actions_and_targets(action):
    score = judged(SubtaskPlanning(), plan(action=action))
    assert failed(score) == ["actions_valid", "targets_valid"]
    assert "subtasks.0.action is" in score.details


@pytest.mark.parametrize(
    ("target", "passes"),
    [
        ("lib.rs", True),
        ("src/main", True),
        ("http/server.py", True),
        ("httpd.conf", True),
        ("./größe.txt", True),
        ("the main file", False),
        ("src/my file.rs", False),
        ("a.py\tb.py", False),
        ("Makefile", False),
        ("", False),
        ("http://example.org/a.py", False),
        ("https://example.org/a.py", False),
        ("HTTPS://example.org", False),
        (None, False),
        (["a.py"], False),
    ],
)
@pytest.mark.parametrize("action", ["read", "edit"])
def test_the_target_of_a_read_or_edit_is_a_path(target, passes, action):
    assert value(SubtaskPlanning(), plan(target=target, action=action)) == (1.0 if passes else 0.75)


@pytest.mark.parametrize("target", ["", None, "anything at all", 3])
def test_a_command_needs_no_path(target):
    assert value(SubtaskPlanning(), plan(action="bash", target=target)) == 1.0


@pytest.mark.parametrize(
    ("instruction", "passes"),
    [
        ("Add function", True),
        ("add", True),
        ("  RUN the tests", True),
        ("1. Fix the bug", True),
        ("**Update** it", True),
        ("Fix: the bug", True),
        ("Address the bug", True),  # begins with the letters of "add", and behaviours 4.4 asks for no more
        ("Setting up", True),
        ("2) Refactoring of it", True),
        ("Please add it", False),
        ("Ad", False),
        ("Do something", False),
        ("The function is to be added", False),
        ("", False),
        ("  ", False),
        ("123", False),
        (None, False),
        (5, False),
    ],
)
def test_an_instruction_begins_with_the_letters_of_a_verb(instruction, passes):
    assert value(SubtaskPlanning(), plan(instruction=instruction)) == (1.0 if passes else 0.75)


def test_more_verbs_are_added_to_those_that_are_known():
    for metric in (SubtaskPlanning(more_verbs=["Replace"]), Combined(more_verbs=["Replace"])):
        for instruction in ("replace it", "add it"):
            assert metric.score(sample(plan(instruction=instruction))).signals["instructions_actionable"] is True
    assert value(SubtaskPlanning(), plan(instruction="replace it")) == 0.75


@pytest.mark.parametrize(
    ("verbs", "message"), [("replace", r"write \[replace\]"), (["set up"], "'set up'"), ([""], "''")]
)
def test_more_verbs_are_a_list_of_single_words(verbs, message):
    for metric in (SubtaskPlanning, Combined):
        with pytest.raises(ConfigError, match=message):
            metric(more_verbs=verbs)


def test_the_details_name_the_first_subtask_of_each_fault():
    subtasks = [EDIT, EDIT | {"target": "there"}, EDIT | {"action": "fly"}, EDIT | {"instruction": "Maybe"}]
    assert judged(SubtaskPlanning(), {"subtasks": subtasks}).details == (
        "subtasks.2.action is 'fly', not read, edit or bash; "
        "subtasks.1.target is 'there', not a path: it needs a / or a . and no blank; "
        "subtasks.3.instruction is 'Maybe', which does not begin with a known verb; see more_verbs"
    )


# agent_steps/subtask_execution


@pytest.mark.parametrize(
    "result",
    [
        {"old_string": "a", "new_string": ""},
        '{"old_string": "fn old()", "new_string": "fn new()"}',
        {"command": "cargo test"},
        {"command": ["cargo", "test"]},
        '"what was read"',
    ],
)
def test_a_result_with_an_edit_a_command_or_content_scores_1(result):
    score = judged(SubtaskExecution(), EXECUTION | {"result": result})
    assert score.value == 1.0
    assert score.signals == {"result_valid": True, "edit_or_command_present": True, "reasoning_substantive": True}


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"old_string": "a"}, 0.67),
        ({"old_string": 1, "new_string": 2}, 0.67),
        ({"command": " "}, 0.67),
        ({"command": None}, 0.67),
        ({"command": []}, 0.67),
        ({}, 0.67),
        ([1], 0.67),
        (True, 0.67),
        ('""', 0.67),
        ("{broken", 0.34),
        ("plain text", 0.34),
        ("null", 0.34),
        (None, 0.34),
    ],
)
def test_a_result_without_anything_to_apply_loses_a_third_or_two(result, expected):
    assert value(SubtaskExecution(), EXECUTION | {"result": result}) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("reasoning", "passes"),
    [
        ("x" * 20, True),
        ("x" * 19, False),
        ("é" * 10, True),
        (" " * 40, False),
        ("x" * 19 + " ", False),
        (None, False),
        (20, False),
    ],
)
def test_reasoning_is_text_of_20_bytes(reasoning, passes):
    score = judged(SubtaskExecution(), EXECUTION | {"reasoning": reasoning})
    assert score.signals["reasoning_substantive"] is passes
    assert score.value == pytest.approx(1.0 if passes else 0.66)


def test_what_is_missing_is_named():
    assert judged(SubtaskExecution(), {}).details == "result is missing; reasoning is missing"


# agent_steps/synthesis


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("success", [True, False, "true", "FALSE"], [None, 1, 0, "yes", "", "true ", ["true"]]),
        ("summary", ["x" * 15, "é" * 8], [None, "x" * 14, " " * 15, 15, ["x" * 15]]),
        ("modified_files", [[], ["a.py", "b.py"], "[]", '["a.py"]'], [None, "a.py", {}, "{}", [1], [""], [None], "[1]"]),
        ("confidence", [0, 1, 0.5, "0.5", "1", ".5", "1e-3"],
         [None, True, -0.1, 1.1, "high", "nan", "inf", "1_0", "0x1", "", " 0.5", float("nan"), float("inf"), [0.5]]),
    ],
)  # fmt: skip
def test_each_statement_is_a_quarter_of_the_synthesis(name, good, bad):
    for item in good:
        assert (item, value(Synthesis(), SYNTHESIS | {name: item})) == (item, 1.0)
    for item in bad:
        score = judged(Synthesis(), SYNTHESIS | {name: item})
        assert (repr(item), score.value) == (repr(item), 0.75)
        assert [check.partition("_")[0] for check in failed(score)] == [name.partition("_")[0]]
        assert name in score.details


def test_every_check_of_the_synthesis_is_named():
    assert judged(Synthesis(), {"success": "true"}).signals == {
        "success_boolean": True,
        "summary_substantive": False,
        "modified_files_valid": False,
        "confidence_calibrated": False,
    }


# agent_steps/tool_step_utility


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("step_utility", [0, 0.5, 1, "0.5"], [None, -0.5, 1.5, True, "high"]),
        ("should_continue", [True, "True"], [None, 1, "maybe"]),
        ("next_action_hint", ["x" * 6], [None, "x" * 5, 6]),
        ("confidence", [0.0, "1.0"], [None, -1]),
    ],
)
def test_each_part_is_a_quarter_of_the_assessment(name, good, bad):
    for item in good:
        assert (item, value(ToolStepUtility(), STEP | {name: item})) == (item, 1.0)
    for item in bad:
        assert (item, value(ToolStepUtility(), STEP | {name: item})) == (item, 0.75)


def test_the_utility_from_0_to_1_goes_before_the_one_from_minus_1():
    assert value(ToolStepUtility(), STEP | {"step_utility": -0.5, "step_utility_norm": 0.25}) == 1.0
    assert value(ToolStepUtility(), STEP | {"step_utility": 0.5, "step_utility_norm": 2}) == 0.75


# agent_steps/combined


def test_combined_is_6_parts_plan_and_4_parts_synthesis():
    assert value(Combined(), {"subtasks": [EDIT], **SYNTHESIS}) == 1.0
    assert value(Combined(), {"subtasks": [EDIT]}) == pytest.approx(0.6)
    assert value(Combined(), SYNTHESIS) == pytest.approx(0.4)
    score = judged(Combined(), {"subtasks": [], **SYNTHESIS, "confidence": 2})
    assert score.value == pytest.approx(0.6 * 0.25 + 0.4 * 0.75)
    assert (score.signals["planning"], score.signals["synthesis"]) == (0.25, 0.75)
    assert failed(score) == ["actions_valid", "targets_valid", "instructions_actionable", "confidence_calibrated"]


def test_the_shares_of_combined_are_options():
    metric = Combined(planning_weight=0.2, synthesis_weight=0.8)
    assert value(metric, SYNTHESIS) == pytest.approx(0.8)
    assert value(Combined(planning_weight=1, synthesis_weight=0), {"subtasks": [EDIT]}) == 1.0


@pytest.mark.parametrize(
    ("weights", "message"),
    [((0.6, 0.6), "sum to 1.2, not to 1"), ((1.5, -0.5), "never negative"), ((float("nan"), 0.4), "finite")],
)
def test_shares_that_are_none_are_refused(weights, message):
    with pytest.raises(ConfigError, match=message):
        Combined(*weights)


@given(st.integers(0, 1000))
def test_shares_of_combined_give_a_score_in_bounds(thousandths):
    share = thousandths / 1000
    assert value(Combined(share, 1 - share), {"subtasks": [EDIT], **SYNTHESIS}) == 1.0


# From a pipeline file


def test_all_five_work_from_yaml_as_proxies():
    text = """
    name: steps
    metrics:
      - agent_steps/subtask_planning: {as: plan, field: task, more_verbs: [replace]}
      - agent_steps/subtask_execution: {field: step}
      - agent_steps/synthesis: {field: task}
      - agent_steps/tool_step_utility: {field: step}
      - agent_steps/combined: {field: task, planning_weight: 0.5, synthesis_weight: 0.5}
    """
    output = {"task": {"subtasks": [EDIT | {"instruction": "Replace it"}], **SYNTHESIS}, "step": {**EXECUTION, **STEP}}
    finished = run_pipeline(text, subjects=[sample(output)])
    (verdict,) = finished.verdicts
    assert {score["metric"]: score["value"] for score in verdict.scores} == pytest.approx(
        {"plan": 1, "agent_steps/subtask_execution": 1, "agent_steps/synthesis": 1, "agent_steps/tool_step_utility": 1,
         "agent_steps/combined": 0.875}
    )  # fmt: skip
    assert verdict.tier == "proxy"


def test_a_misspelt_option_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="more_verb") as refused:
        run_pipeline(
            "name: x\nmetrics: [{agent_steps/subtask_planning: {more_verb: [replace]}}]", subjects=[sample("x")]
        )
    assert refused.value.problems[0].hint == "more_verbs"
