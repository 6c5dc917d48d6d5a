"""Words of a judge card, for figures that are written out here."""

from __future__ import annotations

import pytest

from dicast_trust.cards.text import card_lines, more_lines, table_rows, verdict_words

BARS = [
    {"rule": "min_labels", "value": 1200, "line": 100, "at": "least", "passed": True},
    {"rule": "min_class", "value": 9, "line": 20, "at": "least", "passed": False},
    {"rule": "min_kappa", "value": 0.61, "line": 0.4, "at": "least", "passed": True},
    {"rule": "max_failures", "value": None, "line": 0.05, "at": "most", "passed": None},
    {"rule": "max_flips", "value": 0.5, "line": 1, "at": "most", "passed": None},
    {"rule": "max_moved", "value": 0.0, "line": 0, "at": "most", "passed": True},
    {"rule": "no_drift", "value": None, "line": 0, "at": "most", "passed": None},
]
NOTHING = {"value": None}
JUDGE = {
    "label": "polite",
    "can_gate": True,
    "agree": "pass",
    "reasons": [],
    "undefined": {},
    "warnings": [],
    "words": "Compared with labels.",
    "labels": {
        "n": 1200,
        "passes": 1191,
        "fails": 9,
        "ties": 3,
        "least_class": 9,
        "without_verdict": 0,
        "example": None,
    },
    "bars": BARS,
    "kappa": {"value": 0.61, "low": 0.55, "high": 0.67},
    "ac1": {"value": 0.7, "low": 0.6, "high": 0.8},
    "alpha": NOTHING,
    "accuracy": {"value": 0.905, "low": 0.85, "high": 0.95},
    "balanced_accuracy": {"value": 0.8, "sensitivity": {"value": 0.9}, "specificity": {"value": 0.7}},
    "auc": {"value": 0.876, "low": 0.8, "high": 0.93},
    "order_flips": {"value": 0.5, "flipped": 1000, "n": 2000, "low": 0.4, "high": 0.6},
    "self_consistency": {"value": None, "same": 0, "n": 0},
    "injection": {"value": 0.0, "moved": 0, "tried": 12},
    "failures": {"value": None, "failed": 0, "n": 0},
    "drift": {"value": None, "changed": 0, "n": 0},
    "calibration": {"brier": None},
    "cost": {"median": None},
    "latency": {},
    "left_out": 0,
    "both_orders": {"n": 0},
}
OPENING = "Compared with 1,200 labels (1,191 pass, 9 fail), polite"
RANKS = "Given one good and one bad case, it scores the good case higher 88% of the time (AUC 0.88)."
REACHES = "It reaches every bar: a release may depend on its scores."


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"kappa": {"value": 0.6, "low": 0.4, "high": 0.7}},
            f"{OPENING} is right in 90% of cases, which is much better than guessing. {RANKS} {REACHES}",
        ),
        (
            {"kappa": {"value": 0.6, "low": 0.399, "high": 0.7}},
            f"{OPENING} is right in 90% of cases, which is better than guessing, but not certainly by enough. {RANKS} {REACHES}",
        ),
        (
            {"kappa": {"value": 0.1, "low": 0.0, "high": 0.2}},
            f"{OPENING} is right in 90% of cases, which guessing at the same rates may reach too. {RANKS} {REACHES}",
        ),
        (
            {"kappa": {"value": -0.1, "low": -0.2, "high": 0.0}},
            f"{OPENING} is right in 90% of cases, which guessing at the same rates may reach too. {RANKS} {REACHES}",
        ),
        (
            {"kappa": {"value": -0.2, "low": -0.3, "high": -0.1}},
            f"{OPENING} is right in 90% of cases, which is less than guessing at the same rates. {RANKS} {REACHES}",
        ),
        (
            {"kappa": {"value": 0.2, "low": None, "high": None}},
            f"{OPENING} is right in 90% of cases; the part due to chance is not known. {RANKS} {REACHES}",
        ),
        (
            {"kappa": NOTHING, "undefined": {"kappa": "no subject has a label"}, "auc": NOTHING},
            f"{OPENING} cannot be assessed: no subject has a label. {REACHES}",
        ),
        ({"kappa": NOTHING, "auc": NOTHING}, f"{OPENING} cannot be assessed: there is nothing to compare. {REACHES}"),
        (
            {"accuracy": NOTHING, "auc": NOTHING},
            f"{OPENING} cannot be assessed: there is nothing to compare. {REACHES}",
        ),
        (
            {
                "balanced_accuracy": {"value": 0.5, "sensitivity": {"value": 1.0}, "specificity": {"value": 0.0}},
                "auc": {"value": 0.5, "low": 0.4, "high": 0.6},
            },
            (
                f"{OPENING} is right in 90% of cases, because its verdict is pass for every case, good or bad. "
                "Given one good and one bad case, it scores the good case higher 50% of the time, perhaps no better than a coin "
                f"(AUC 0.50). {REACHES}"
            ),
        ),
        (
            {
                "balanced_accuracy": {"value": 0.5, "sensitivity": {"value": 0.0}, "specificity": {"value": 1.0}},
                "auc": {"value": 0.499, "low": 0.4, "high": 0.6},
            },
            (
                f"{OPENING} is right in 90% of cases, because its verdict is fail for every case, good or bad. "
                "Given one good and one bad case, it scores the good case higher 50% of the time, worse than a coin "
                f"(AUC 0.50). {REACHES}"
            ),
        ),
        (
            {"agree": "winner", "can_gate": False, "reasons": ["kappa is low", "labels are few"], "auc": NOTHING},
            (
                "Compared with 1,200 labels (1,191 win, 9 lose, 3 tie), polite is right in 90% of cases, which is much better "
                "than guessing. No release should depend on its scores, because kappa is low; labels are few."
            ),
        ),
        (
            {"can_gate": None, "reasons": ["labels are few"], "auc": {"value": 0.876, "low": None, "high": None}},
            (
                f"{OPENING} is right in 90% of cases, which is much better than guessing. {RANKS} "
                "Whether a release may depend on its scores is not known, because labels are few."
            ),
        ),
    ],
)
def test_the_conclusion_of_a_card_follows_its_figures(changes, words):
    assert verdict_words(JUDGE | changes) == words


def test_a_card_has_a_row_for_each_figure_that_is_known_or_has_a_bar():
    assert [*table_rows(JUDGE)] == [
        ("labels", "1,200", "", ">= 100: reached"),
        ("of the rarer class", "9", "", ">= 20: MISSED"),
        ("beyond chance (kappa)", "0.61", "0.55 to 0.67", ">= 0.40: reached"),
        ("AC1 (no bar)", "0.70", "0.60 to 0.80", ""),
        ("right verdicts (no bar)", "90.5%", "85.0% to 95.0%", ""),
        ("balanced accuracy", "80.0%", "", ""),
        ("good above bad (AUC)", "87.6%", "80.0% to 93.0%", ""),
        ("winner flips with order", "1,000 of 2,000", "40.0% to 60.0%", "<= 1: too few"),
        ("canaries that moved it", "0 of 12", "", "<= 0: reached"),
        ("failures", "-", "", "<= 0.05: not known"),
        ("anchors changed", "-", "", "no later verdicts"),
    ]
    later = JUDGE | {"drift": {"value": 0.25, "changed": 1, "n": 4}}
    assert [*table_rows(later)][-1] == ("anchors changed", "1 of 4", "", "no drift: not known")


P = {"effect": 0.0321, "p_value": 0.031, "adjusted_p_value": 0.062}
MORE = {
    "calibration": {"brier": 0.1234, "skill": 0.256, "slope": 0.9876, "ece": 0.0456, "ece_calibrated": 0.0789},
    "position": P,
    "length": P | {"effect": -0.0321, "adjusted_p_value": 0.031},
    "self_preference": None,
    "cost": {"median": "0.0012", "p95": "0.0034"},
    "latency": {"median_ms": 812.4, "p95_ms": 1900.0},
    "left_out": 1500,
    "both_orders": {"n": 1000, "accuracy": 0.8765, "agreement": 0.7654},
    "undefined": {"length": "the judge asks no model", "auc": "one class", "balanced_accuracy.sensitivity": "no pass"},
}


def test_a_card_has_lines_for_figures_without_a_bar():
    lacking = JUDGE["labels"] | {"without_verdict": 2, "example": "r7"}
    assert [*more_lines(JUDGE | MORE | {"labels": lacking})] == [
        "confidence: Brier 0.123, skill +0.26, slope 0.99, ECE 0.046 (up to 0.079 if calibrated)",
        "preference for the first place: effect +0.032, p 0.031, Holm p 0.062",
        "preference for length: effect -0.032, p 0.031",
        "a verdict: median 0.0012 usd (p95 0.0034), 812 ms (p95 1900)",
        "not counted: 2 labels of subjects without a verdict, such as 'r7'",
        "left out: 1,500 verdicts of other versions of the judge, or of other models",
        "both orders: right in 87.6%, the same winner in 76.5% of 1,000 labeled pairs",
        "auc is not known: one class",
    ]
    few = JUDGE | {
        "labels": JUDGE["labels"] | {"without_verdict": 1, "example": "r7"},
        "calibration": {"brier": 0.25, "skill": None, "slope": None, "ece": 0.1, "ece_calibrated": None},
    }
    assert [*more_lines(few)] == [
        "confidence: Brier 0.250, skill -, ECE 0.100",
        "not counted: 1 label of subjects without a verdict, such as 'r7'",
    ]


def test_a_card_ends_with_its_warnings_and_the_source_of_its_labels():
    judge = JUDGE | {"warnings": [{"message": "prefers the first place"}], "can_gate": False}
    lines = list(card_lines({"judges": [judge], "gold": {"n": 1200, "source": "gold.jsonl"}}))
    assert lines[:4] == ["", "polite: cannot gate", "  Compared with labels.", ""]
    assert lines[-3:] == [
        "  warning: it prefers the first place",
        "",
        "labels: 1,200 from gold.jsonl; valid for subjects drawn like these labels",
    ]
    table = lines[4]
    assert table.right == ("value",)
