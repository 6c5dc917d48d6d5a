"""The proxy metrics keep the contract."""

from __future__ import annotations

from dicast.testing import GOLDEN, MetricConformance, sample


class TestFormat(MetricConformance):
    metric = "proxy/format"
    options = {"require_json": True, "field": "answer"}
    subjects = (*GOLDEN, sample({"answer": '{"a": 1}'}, id="json"))


class TestKeywords(MetricConformance):
    metric = "proxy/keywords"
    options = {"required": ["fox"], "forbidden": ["TODO"], "whole_words": True}


class TestLength(MetricConformance):
    metric = "proxy/length"
    options = {"min": 5, "max": 500, "unit": "words"}


class TestSyntax(MetricConformance):
    metric = "proxy/syntax"


class TestSyntaxOfALanguage(MetricConformance):
    metric = "proxy/syntax"
    options = {"language": "python", "field": "code"}


class TestKeywordsByRegularExpressions(MetricConformance):
    metric = "proxy/keywords"
    options = {"required": ["f.x"], "forbidden": [r"\bTODO\b"], "regex": True, "whole_words": True}
