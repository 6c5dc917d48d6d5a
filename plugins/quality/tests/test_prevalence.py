"""``dicast agreement --gold --prevalence``."""

from __future__ import annotations

import json

import pytest

from dicast import ConfigError
from dicast_quality.agreement import agreement


@pytest.fixture
def gold(tmp_path):
    """Return a function that writes labels of subjects and returns the file's path."""

    def gold(labels):
        path = tmp_path / "gold.jsonl"
        path.write_text("".join(json.dumps({"subject_id": id, "score": score}) + "\n" for id, score in labels.items()))
        return str(path)

    return gold


@pytest.fixture
def judged(ledger):
    """Add a run of 100 subjects, 60 passed by the judge, and a run of 200 other subjects, 40 passed."""
    ledger.run("R1")
    for at in range(100):
        ledger.judged(f"a{at}", float(at < 60))
    ledger.run("R2")
    for at in range(200):
        ledger.judged(f"b{at}", float(at < 40), run_id="R2")


def test_the_judges_rate_is_corrected_by_the_labels(judged, gold, ask):
    labels = {**{f"a{at}": float(at < 15) for at in range(20)}, **{f"a{at}": float(at < 62) for at in range(60, 80)}}
    document = ask(agreement, "--gold", gold(labels), "--run", "R1", "--prevalence")["prevalence"]["helpful"]
    assert (document["n"], document["labels"], document["method"]) == (100, 40, "stratified-wilson")
    assert document["mean"] == pytest.approx(0.6 * 15 / 20 + 0.4 * 2 / 20)
    assert document["judge_mean"] == pytest.approx(0.6)
    text = ask(agreement, "--gold", gold(labels), "--run", "R1", "--prevalence", as_json=False)
    assert "helpful: 49.0% (95 % interval " in text
    assert "the judge's own rate is 60.0%" in text


def test_labels_of_one_run_correct_the_rate_of_another(judged, gold, ask):
    labels = {f"a{at}": float(at < 54 or at >= 96) for at in range(100)}  # 54 of 58 that pass, 36 of 42 that do not
    document = ask(agreement, "--gold", gold(labels), "--run", "R1", "--prevalence", "--of", "R2")["prevalence"][
        "helpful"
    ]
    sensitivity, specificity = 54 / 58, 36 / 42
    assert (document["sensitivity"], document["specificity"]) == pytest.approx((sensitivity, specificity))
    assert document["mean"] == pytest.approx((0.2 + specificity - 1) / (sensitivity + specificity - 1))
    assert (document["n"], document["method"]) == (200, "rogan-gladen")


def test_without_it_the_document_is_as_it_was(judged, gold, ask):
    assert "prevalence" not in ask(agreement, "--gold", gold({"a1": 1.0}), "--run", "R1")


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [(["--prevalence"], "add --gold FILE"), (["--gold", "GOLD", "--of", "R2"], "--of needs --prevalence")],
)
def test_what_corrects_nothing_is_refused(judged, gold, ask, arguments, wrong):
    path = gold({"a1": 1.0})
    with pytest.raises(ConfigError, match=wrong):
        ask(agreement, *(path if argument == "GOLD" else argument for argument in arguments))
