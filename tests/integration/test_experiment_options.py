"""The components of experiments have the options that outside checks rely on, with their defaults and their choices."""

from __future__ import annotations

import pytest

REQUIRED = "it has to be given"
NONE = "it is nothing by default"
MODES = ["gte", "gt", "lte", "lt"]

OPTIONS = {
    "task:prompt/chat": {
        "model": REQUIRED, "system": NONE, "user": NONE, "criteria": {}, "temperature": 0.0, "max_output_tokens": 1024,
        "security_level": NONE, "determinism_level": NONE,
    },
    "task:task/command": {"command": REQUIRED},
    "task:task/http": {"url": REQUIRED},
    "extractor:score_extractor/scores": {
        "key": "score", "parse_json_content": True, "allow_missing": False, "threshold": NONE, "threshold_mode": "gte",
        "flag_field": "score_flags", "criteria": [],
    },
    "extractor:extract/json_path": {"path": REQUIRED, "into": NONE, "criterion": NONE},
    "extractor:extract/regex": {"pattern": REQUIRED, "into": NONE, "criterion": NONE},
    "extractor:extract/label": {"labels": REQUIRED, "into": NONE, "criterion": NONE},
    "aggregate:stats/score_stats": {"source_field": "scores", "flag_field": "score_flags", "ddof": 0},
    "aggregate:stats/recommendation": {"min_samples": 5, "improvement_margin": 0.05},
    "aggregate:stats/variant_ranking": {"threshold": 0.7, "weight_mean": 1.0, "weight_pass": 1.0},
    "aggregate:stats/cost_summary": {},
    "aggregate:stats/latency_summary": {},
    "aggregate:stats/agreement": {"min_items": 2},
    "comparison:stats/score_delta": {"metric": "mean"},
    "comparison:stats/cliffs_delta": {},
    "comparison:stats/significance": {
        "min_samples": 2, "equal_var": False, "adjustment": "holm", "family_size": NONE,
    },
    "comparison:stats/paired": {"min_samples": 2},
    "early_stop:stats/threshold": {
        "metric": REQUIRED, "threshold": REQUIRED, "comparison": "gte", "min_rows": 1, "label": NONE,
    },
    "early_stop:stats/plateau": {"metric": REQUIRED, "window": REQUIRED, "threshold": 0.0},
    "sink:csv/rows": {
        "path": REQUIRED, "overwrite": True, "sanitize_formulas": True, "guard": "'", "include_metrics": True,
        "base_path": NONE,
    },
    "sink:jsonl/rows": {"path": REQUIRED, "base_path": NONE},
    "sink:parquet/rows": {"path": REQUIRED, "base_path": NONE},
    "sink:telemetry/otel": {"endpoint": REQUIRED, "headers": {}},
    "sink:telemetry/log": {"level": "info"},
    "sink:azure/monitor": {"connection_string": REQUIRED},
}  # fmt: skip
CHOICES = {
    ("extractor:score_extractor/scores", "threshold_mode"): MODES,
    ("early_stop:stats/threshold", "comparison"): MODES,
    ("comparison:stats/significance", "adjustment"): ["none", "bonferroni", "holm", "fdr"],
}


@pytest.fixture
def schemas(shop):
    """The schema of each component, by its kind and name."""
    return shop.dicast("schema").json["$defs"]


def test_components_have_their_options_with_their_defaults(schemas):
    result = {
        name: {
            option: REQUIRED if option in schemas[name]["required"] else item.get("default", NONE)
            for option, item in schemas[name]["properties"].items()
            if option in options
        }
        for name, options in OPTIONS.items()
    }
    assert result == OPTIONS


def test_what_has_to_be_given_is_in_the_table(schemas):
    required = {name: set(schemas[name]["required"]) for name in OPTIONS}
    assert required == {name: {key for key in OPTIONS[name] if OPTIONS[name][key] is REQUIRED} for name in OPTIONS}


def test_options_take_their_choices_and_no_other(schemas):
    assert {(name, option): schemas[name]["properties"][option]["enum"] for name, option in CHOICES} == CHOICES


def test_every_option_is_explained(schemas):
    assert [name for name in OPTIONS if not schemas[name]["description"]] == []
    properties = [(name, key, item) for name in OPTIONS for key, item in schemas[name]["properties"].items()]
    assert [(name, key) for name, key, item in properties if not item.get("description")] == []
