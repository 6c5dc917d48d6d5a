"""The heuristic judges keep the contract."""

from __future__ import annotations

from dicast.testing import JudgeConformance


class TestTurn(JudgeConformance):
    judge = "heuristic/turn"


class TestToolCycle(JudgeConformance):
    judge = "heuristic/tool_cycle"


class TestSession(JudgeConformance):
    judge = "heuristic/session"
    options = {"children": "turn"}


class TestWorkload(JudgeConformance):
    judge = "heuristic/workload"
    options = {
        "expect_substring_in_final_response": "passed",
        "grounding_tokens": ["tests"],
        "partial_credit": {"enabled": True, "map": "stepped"},
    }
