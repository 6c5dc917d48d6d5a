"""Shared fixtures of these judges' tests: installed rubrics to change, and verdicts to pass as children."""

from __future__ import annotations

import copy
from decimal import Decimal

import attrs
import pytest

import dicast
from dicast import Verdict


@pytest.fixture(scope="session")
def changed():
    """The installed rubric ID with other figures: ``changed("turn-heuristic-v1", weights__no_tool_failure=1)``."""

    def change(id, **changes):
        rubric = dicast.rubric(id)
        data = copy.deepcopy(dict(rubric.data))
        for path, value in changes.items():
            *parents, last = path.split("__")
            inner = data
            for parent in parents:
                inner = inner[parent]
            if value is None:
                del inner[last]
            else:
                inner[last] = value
        return attrs.evolve(rubric, data=data)

    return change


@pytest.fixture(scope="session")
def verdict():
    """Return ``verdict("turn", "t1", 0.9)``, which makes a verdict with a score; its eval_id names the subject and the judge."""

    def make(kind, id, score, judge="turns", confidence=0.9, **fields):
        return Verdict(
            eval_id=fields.pop("eval_id", f"{id}-{judge}"), subject_kind=kind, subject_id=id, score=score,
            confidence=confidence, judge_kind="heuristic", judge_model=None, judge_cost_usd=Decimal(0),
            judge_pricing_version=None, judge_latency_ms=0, rubric_id="r", rubric_version="1", signals={},
            parent_eval_id=None, created_at="2026-01-01T00:00:00.000Z", run_id="R", judge=judge, fingerprint="f", **fields,
        )  # fmt: skip

    return make
