"""The cascade keeps the contract."""

from __future__ import annotations

from dicast import Judgment
from dicast.testing import FakeJudge, JudgeConformance

UNSURE, SURE = Judgment(0.4, 0.2, "heuristic"), Judgment(0.9, 0.8, "llm", "m-1")


class TestCascade(JudgeConformance):
    judge = "hybrid/cascade"
    options = {"stages": ["cheap", "costly"], "escalation_threshold": 0.5}
    components = {"cheap": FakeJudge(UNSURE), "costly": FakeJudge(SURE)}
