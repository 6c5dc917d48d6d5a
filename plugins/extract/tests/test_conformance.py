"""The extractors keep the contract."""

from __future__ import annotations

from dicast.testing import ExtractorConformance


class TestJsonPath(ExtractorConformance):
    extractor = "extract/json_path"
    options = {"path": "$.steps[?@.ok == true].name", "into": "steps"}


class TestRegex(ExtractorConformance):
    extractor = "extract/regex"
    options = {"pattern": "Score: ([0-9.]+)", "criterion": "clarity", "into": "scores.clarity"}


class TestLabel(ExtractorConformance):
    extractor = "extract/label"
    options = {"labels": {"yes": 1, "no": 0, "partially": 0.5}}
