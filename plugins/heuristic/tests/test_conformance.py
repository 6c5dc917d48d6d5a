"""The heuristic judge keeps the contract."""

from __future__ import annotations

from dicast.testing import JudgeConformance


class TestTurn(JudgeConformance):
    judge = "heuristic/turn"
