"""The comparisons keep the contract."""

from __future__ import annotations

from dicast.testing import GOLDEN, FakeJudge, MetricConformance, sample


class TestMatch(MetricConformance):
    metric = "diff/match"


class TestExactMatch(MetricConformance):
    metric = "diff/match"
    options = {"strictness": "exact", "field": "answer"}
    subjects = (*GOLDEN, sample({"answer": "Sydney"}, id="same", reference="Sydney"))


class TestPython(MetricConformance):
    metric = "diff/match"
    options = {"strictness": "ast_equivalent"}


class TestJavaScript(MetricConformance):
    metric = "diff/match"
    options = {"strictness": "ast_equivalent", "language": "javascript"}


class TestSemantic(MetricConformance):
    metric = "diff/match"
    options = {"strictness": "semantic", "judge": "grader"}
    components = {"grader": FakeJudge()}


class TestNumeric(MetricConformance):
    metric = "diff/numeric"
    options = {"abs_tol": 0.5, "rel_tol": 0.01, "field": "/total"}
    subjects = (*GOLDEN, sample({"total": 2}, id="same", reference=2.2))


class TestJson(MetricConformance):
    metric = "diff/json"
    options = {"ignore": ["meta.*.time", "/id"], "ignore_order": True}


class TestSimilarity(MetricConformance):
    metric = "diff/similarity"


class TestJaroWinkler(MetricConformance):
    metric = "diff/similarity"
    options = {"scorer": "JaroWinkler", "field": "answer"}
