"""The required tests of judged traces, by their paths: each test exists."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
JUDGES = "tests/integration/test_spec_001_judges.py"
QUALITY = "tests/integration/test_quality.py"
CYCLES = (
    "plugins/heuristic/tests/test_traces.py"
    "::test_tool_cycles_name_the_verdict_on_their_turn_and_turns_that_on_their_session"
)
ALONE = "plugins/heuristic/tests/test_traces.py::test_tool_cycle_names_no_verdict_where_its_turn_is_not_judged"
BOUNDED = " ".join(
    f"plugins/heuristic/tests/test_{kind}.py::test_score_is_bounded_and_the_same_again"
    for kind in ("turn", "tool_cycle", "session", "workload")
)

REQUIRED = {
    "1 heuristic verdict shape": f"{JUDGES}::test_heuristic_verdict_is_bounded_and_costs_nothing",
    "2 hybrid escalation threshold": f"{JUDGES}::test_doubtful_turn_gets_the_verdict_of_the_model",
    "3 hybrid no-escalation": f"{JUDGES}::test_clear_turn_keeps_the_heuristic_verdict_and_asks_nobody",
    "4 per-session cap downgrade": f"{JUDGES}::test_cap_leaves_the_heuristic_verdict_and_is_named",
    "5 per-day cap downgrade": f"{JUDGES}::test_cap_leaves_the_heuristic_verdict_and_is_named",
    "6 re-evaluation is a new event": f"{JUDGES}::test_judging_again_is_a_new_verdict_and_the_newest_counts",
    "7 confidence gate filters aggregation": f"{QUALITY}::test_min_confidence_leaves_unsure_verdicts_out_of_the_mean_alone",
    "8 subject not found": f"{JUDGES}::test_turn_that_is_not_there_fails_and_has_no_verdict",
    "9 invalid LLM judge response": f"{JUDGES}::test_reply_of_no_use_is_a_failure_after_one_more_try",
    "10 rubric versioning": f"{QUALITY}::test_versions_of_a_rubric_stand_apart_and_both_are_kept",
    "11 tool cycle attaches to its turn": f"{CYCLES} {ALONE}",
    "12 session reads its turns' verdicts": CYCLES,
    "13 sensitivity uplift": f"{JUDGES}::test_only_a_captured_rationale_lifts_the_sensitivity",
    "14 eval cost folds into cost": f"{JUDGES}::test_include_eval_adds_exactly_what_the_verdicts_cost",
    "15 no mid-turn fire": "plugins/traces/tests/test_windows.py::test_no_event_inside_a_turn_makes_anything_due"
    " plugins/traces/tests/test_watch.py::test_verdicts_come_while_the_trace_is_written_those_on_tool_cycles_as_soon_as_these_end",
    "property: score boundedness": BOUNDED,
    "property: heuristic determinism": BOUNDED,
    "property: cost monotonicity": f"{JUDGES}::test_judging_again_never_lowers_what_was_spent",
}

PROPERTIES = {"score boundedness", "heuristic determinism", "cost monotonicity"}


def test_every_required_test_is_listed_once():
    numbers = [int(name.split()[0]) for name in REQUIRED if not name.startswith("property: ")]
    assert sorted(numbers) == list(range(1, 16))
    assert {name.removeprefix("property: ") for name in REQUIRED if name.startswith("property: ")} == PROPERTIES


@pytest.mark.parametrize("name", REQUIRED)
def test_required_test_exists(name):
    for test in REQUIRED[name].split():
        file, _, function = test.partition("::")
        tree = ast.parse((TESTS.parent / file).read_text(encoding="utf-8"))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
