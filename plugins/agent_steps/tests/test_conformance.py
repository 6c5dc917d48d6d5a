"""The agent-step metrics keep the contract."""

from __future__ import annotations

from dicast.testing import MetricConformance


class TestSubtaskPlanning(MetricConformance):
    metric = "agent_steps/subtask_planning"
    options = {"more_verbs": ["replace"], "field": "plan"}


class TestSubtaskExecution(MetricConformance):
    metric = "agent_steps/subtask_execution"


class TestSynthesis(MetricConformance):
    metric = "agent_steps/synthesis"


class TestToolStepUtility(MetricConformance):
    metric = "agent_steps/tool_step_utility"
    options = {"field": "/steps/0"}


class TestCombined(MetricConformance):
    metric = "agent_steps/combined"
    options = {"planning_weight": 0.5, "synthesis_weight": 0.5}
