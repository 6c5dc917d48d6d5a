"""The extractors keep the contract."""

from __future__ import annotations

from dicast.testing import Conformance


class TestJsonPath(Conformance):
    kind = "extractor"
    extractor = "extract/json_path"
    options = {"path": "$.steps[?@.ok == true].name", "into": "steps"}


class TestRegex(Conformance):
    kind = "extractor"
    extractor = "extract/regex"
    options = {"pattern": "Score: ([0-9.]+)", "criterion": "Tone", "into": "scores.Tone"}


class TestLabel(Conformance):
    kind = "extractor"
    extractor = "extract/label"
    options = {"labels": {"yes": 1, "no": 0, "partially": 0.5}}
