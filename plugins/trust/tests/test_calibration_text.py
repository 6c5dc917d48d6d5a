"""Text of a calibration, for figures that are written out here."""

from __future__ import annotations

import pytest

from dicast.toolkit.text_table import TextTable
from dicast_trust.calibration.text import parts

RUNG = {"threshold": 0.9, "n": 40, "errors": 1, "upper": 0.09871, "passed": True}
LADDER = [
    RUNG,
    RUNG | {"threshold": 0.8, "n": 60, "errors": 3, "upper": None},
    RUNG | {"threshold": 0.7, "n": 80, "errors": 30, "passed": False},
    RUNG | {"threshold": 0.6, "passed": None},
]
STAGE = {
    "label": "quick",
    "signal": "confidence",
    "threshold": 0.81234,
    "kept": {"share": 0.604},
    "upper": 0.0876,
    "errors": 3,
    "n": 100,
    "failures": 0,
    "method": "ladder",
    "needed": None,
    "reasons": [],
    "ladder": LADDER,
}
DOCUMENT = {
    "target": 0.9,
    "alpha": 0.1,
    "population": {"n": 1200, "runs": ["a", "b"]},
    "gold": {"n": 100, "source": "gold.jsonl"},
    "stages": [STAGE],
    "cascade": None,
    "guarantee": "holds for subjects like these",
}


def texts(document):
    """Return the parts, a table as its head and its rows."""
    return [
        (part.columns, part.rows, part.right) if isinstance(part, TextTable) else part
        for part in parts(document, "c.json")
    ]


HEAD = "calibration: 100 labels, 1,200 subjects in 2 run(s); target 0.9, alpha 0.1"
USE = "written to c.json; use it with hybrid/cascade: {stages: …, calibration: c.json}"
COLUMNS = ("threshold", "kept", "errors", "upper", "test")
RIGHT = COLUMNS[:4]
PASSED = ["0.9", 40, 1, "0.0987", "passed"]


def test_a_threshold_has_its_share_its_errors_and_its_guarantee():
    assert texts(DOCUMENT) == [
        HEAD,
        "",
        "quick: keep verdicts with confidence >= 0.8123",
        "  keeps 60 % of all subjects; 3 of 60 kept labels are wrong, at most 8.8 % of all kept verdicts",
        "  90 % sure that at least 0.9 of kept verdicts agree with gold.jsonl (ladder)",
        (COLUMNS, [PASSED, ["0.8", 60, 3, None, "passed"], ["0.7", 80, 30, "0.0987", "failed"]], RIGHT),
        "",
        "This holds for subjects like these.",
        USE,
    ]


def test_two_stages_share_the_error_rate_and_a_model_is_about_as_sure():
    stages = [
        STAGE | {"method": "cross-fitted", "failures": 2, "upper": None, "ladder": [RUNG] * 14},
        STAGE | {"label": "long", "threshold": None, "failures": 2, "reasons": ["too few labels"], "ladder": []},
    ]
    needed = {"needed": {"words": "about 300 more"}}
    gold = {"n": 100}
    assert texts(DOCUMENT | {"stages": [stages[0] | needed, stages[1]], "gold": gold}) == [
        HEAD,
        "",
        "quick: keep verdicts with confidence >= 0.8123",
        "  keeps 60 % of all subjects; 3 of 40 kept labels are wrong, 2 failed",
        "  about 95 % sure that at least 0.9 of kept verdicts agree with people (cross-fitted)",
        "  more labels: about 300 more",
        (COLUMNS, [PASSED] * 12, RIGHT),
        "  and 2 more rungs, in the file",
        "",
        "long: no threshold, so every verdict escalates (100 labels, 2 failed)",
        "  too few labels",
        "",
        "This holds for subjects like these.",
        USE,
    ]


@pytest.mark.parametrize(
    ("threshold", "line", "use"),
    [
        (None, "quick: no threshold (100 labels)", "no score is certified"),
        (0.5, "quick: keep verdicts with score >= 0.5", "use it as the metric's pass line, pass_at: 0.5"),
    ],
)
def test_the_threshold_of_a_metric_is_its_pass_line(threshold, line, use):
    stage = STAGE | {"signal": "score", "threshold": threshold, "ladder": LADDER[:1]}
    text = texts(DOCUMENT | {"metric": "polite", "stages": [stage]})
    assert text[2] == line
    assert text[-1] == f"written to c.json; {use}"


def test_a_cascade_is_compared_with_its_last_stage():
    known = {"value": 0.95, "low": 0.9, "high": 0.98}
    cascade = {
        "cost": {"cascade": "0.4", "last_stage_alone": "1"},
        "escalation_rate": 0.346,
        "agreement": known,
        "last_stage": {"value": None},
        "asked": {"quick": 1.0, "long": 0.346},
        "reasons": ["labels are few"],
    }
    columns = ("", "agreement", "95 % interval", "cost (usd)", "escalated")
    assert texts(DOCUMENT | {"cascade": cascade})[7:10] == [
        (
            columns,
            [
                ["cascade", "0.950", "0.900 to 0.980", "0.4", "35 %"],
                ["last stage alone", None, None, "1", None],
            ],
            ("agreement", "cost (usd)", "escalated"),
        ),
        "  labels are few",
        "",
    ]
    free = cascade | {"cost": {"cascade": "0", "last_stage_alone": "0"}, "escalation_rate": None}
    (_, rows, _), *lines = texts(DOCUMENT | {"cascade": free})[7:]
    assert rows[0][4] == "-"
    assert " ".join(line.strip() for line in lines[:3]).startswith(
        "recorded or free replies cost nothing; the cascade asks long about 35 % of all subjects, the last stage alone"
    )
