"""The agent-step metrics keep the contract."""

from __future__ import annotations

from dicast.testing import GOLDEN, MetricConformance, sample

PLAN = {"subtasks": [{"id": "1", "action": "edit", "target": "lib.rs", "instruction": "Add a function"}]}
EXECUTION = {"result": {"old_string": "a", "new_string": "b"}, "reasoning": "The name was misspelled in two places."}
STEP = {"step_utility": 0.7, "should_continue": False, "next_action_hint": "Run the tests", "confidence": 1}


class TestSubtaskPlanning(MetricConformance):
    metric = "agent_steps/subtask_planning"
    options = {"more_verbs": ["replace"], "field": "plan"}
    subjects = (*GOLDEN, sample({"plan": PLAN}, id="plan"))


class TestSubtaskExecution(MetricConformance):
    metric = "agent_steps/subtask_execution"
    subjects = (*GOLDEN, sample(EXECUTION, id="execution"))


class TestSynthesis(MetricConformance):
    metric = "agent_steps/synthesis"


class TestToolStepUtility(MetricConformance):
    metric = "agent_steps/tool_step_utility"
    options = {"field": "/steps/0"}
    subjects = (*GOLDEN, sample({"steps": [STEP]}, id="step"))


class TestCombined(MetricConformance):
    metric = "agent_steps/combined"
    options = {"planning_weight": 0.5, "synthesis_weight": 0.5}
