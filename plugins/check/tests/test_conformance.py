"""Every check keeps the contract of a metric."""

from __future__ import annotations

from dicast.testing import GOLDEN, FakeJudge, MetricConformance, sample

CHECKS = {
    "contains": {"value": "a"},
    "icontains": {"value": "a"},
    "contains_any": {"values": ["a", "{{ input }}"]},
    "contains_all": {"values": ["a"]},
    "starts_with": {"value": "a"},
    "regex": {"pattern": "a+"},
    "equals": {},
    "one_of": {"values": ["a", 1]},
    "is_json": {},
    "contains_json": {},
    "levenshtein": {"value": "a"},
    "rouge_n": {"value": "a"},
    "word_count": {"min": 1, "max": 3},
    "is_refusal": {},
    "python": {"file": "checks.py", "function": "short"},
    "javascript": {"file": "checks.js", "function": "short"},
    "max_latency": {"seconds": 1.5},
    "max_cost": {"usd": 0.5},
    "assertions": {},
}


def test_every_check_is_tested_here():
    from dicast_check import dicast_metrics

    assert {kind.name for kind in dicast_metrics()} == set(CHECKS)


SUBJECTS = (
    *GOLDEN,
    sample("a", id="a", context={"assert": [{"check": "contains", "value": "a"}], "latency_seconds": 1, "cost": 0.1}),
    sample("b", id="b", context={"assert": [{"check": "contains", "value": "a"}], "latency_seconds": 2, "cost": 1.0}),
)
"""The golden subjects, and two with the data that some checks need."""

PASSED_TO_NODE = {"no-output", "unicode", "very-long", "json-text", "object", "number", "injection", "code", "a", "b"}
"""Subjects that differ on their way to a process; for each answer a process of Node starts, which is slow."""

FILES = {
    "checks.py": "def short(output, row):\n    return len(str(output)) < 9\n",
    "checks.js": "exports.short = (output, row) => String(output).length < 9;\n",
}


class TestAssertionsWithJudges(MetricConformance):
    metric = "check/assertions"
    options = {"judges": {"llm_rubric": "grader"}}
    components = {"grader": FakeJudge()}
    subjects = SUBJECTS


for _name, _options in CHECKS.items():
    _subjects = [one for one in SUBJECTS if one.id in PASSED_TO_NODE] if _name == "javascript" else SUBJECTS
    _class = type(
        f"Test_{_name}",
        (MetricConformance,),
        {"metric": f"check/{_name}", "options": _options, "files": FILES, "subjects": _subjects},
    )
    globals()[_class.__name__] = _class

del _class
