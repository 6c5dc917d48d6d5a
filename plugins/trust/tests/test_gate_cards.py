"""A gate that requires a judge card: only a card that vouches for this judge lets its scores decide."""

from __future__ import annotations

import json

import pytest

from dicast import ConfigError, Judgment, Subject
from dicast.reporting import GatedRun
from dicast.testing import FakeJudge, run_pipeline
from dicast_trust.cards.gate import RequireCard
from dicast_trust.cards.identity import card_digest, label_fingerprint

SUBJECTS = [Subject("row", str(n), "q", "a") for n in range(4)]


def run(path, extra="", label="helpful"):
    text = f"judges: [{{one: {{as: {label}}}}}]\ngate: {{on: {label}, min_score: 0.5, require_card: {path}{extra}}}"
    return run_pipeline(text, subjects=SUBJECTS, components={"one": FakeJudge(Judgment(0.9))})


def fingerprint(path):
    """Return the fingerprint of the judge in these tests."""
    (started,) = run(path / "none.json").of("run.started")
    digest = label_fingerprint(started.payload["fingerprints"], "helpful")
    assert digest
    return digest


def written(path, *, can_gate=True, **judge):
    bars = [
        {
            "rule": "min_kappa",
            "what": "the lower bound of kappa",
            "value": 0.55,
            "line": 0.4,
            "at": "least",
            "passed": True,
        },
        {
            "rule": "max_flips",
            "what": "flips",
            "value": None,
            "line": 0.3,
            "at": "most",
            "passed": can_gate,
            "reason": "flips are not known",
        },
    ]
    entry = {"label": "helpful", "fingerprint": fingerprint(path), "models": {}, "can_gate": can_gate, "bars": bars}
    document = {"judges": [entry | judge]}
    (path / "card.json").write_text(json.dumps(document | {"digest": card_digest(document)}))
    return path / "card.json"


def clause(result):
    return next(entry for entry in result.document["gate"]["clauses"] if entry["rule"] == "require_card")


def test_a_good_card_of_this_judge_lets_the_gate_pass(tmp_path):
    result = run(written(tmp_path))
    assert (result.document["gate"]["passed"], result.exit_code) == (True, 0)
    assert clause(result)["line"] == str(tmp_path / "card.json")


def undecided(result):
    gate = result.document["gate"]
    assert (gate["passed"], result.exit_code, clause(result)["passed"]) == (None, 3, None)
    return " ".join(gate["reasons"])


def test_a_missing_card_leaves_the_gate_undecided_and_says_how_to_make_one(tmp_path):
    assert f"dicast doctor FILE --gold GOLD --out {tmp_path}" in undecided(run(tmp_path / "none.json"))


def test_a_card_of_another_judge_leaves_it_undecided(tmp_path):
    assert "for another helpful" in undecided(run(written(tmp_path, fingerprint="0" * 64)))
    assert "is for other, not helpful" in undecided(run(written(tmp_path, label="other")))


def test_a_card_that_failed_leaves_it_undecided_with_its_reasons(tmp_path):
    assert "helpful cannot gate: flips are not known" in undecided(run(written(tmp_path, can_gate=False)))


@pytest.mark.parametrize("text", ["{", "[]", '{"judges": 1}', '{"judges": []}'])
def test_what_is_no_card_leaves_it_undecided(tmp_path, text):
    (tmp_path / "card.json").write_text(text)
    assert "card" in undecided(run(tmp_path / "card.json"))


def test_a_card_that_was_edited_leaves_it_undecided(tmp_path):
    path = written(tmp_path)
    path.write_text(path.read_text().replace("0.55", "0.95"))
    assert "was edited after dicast doctor wrote it" in undecided(run(path))


def test_the_clause_may_draw_other_lines(tmp_path):
    path = written(tmp_path)
    for line in ("0.5", "0.55"):
        assert run(path, f", min_kappa: {line}").document["gate"]["passed"] is True
    assert "the lower bound of kappa is 0.55, and min_kappa is 0.6" in undecided(run(path, ", min_kappa: 0.6"))


def test_a_figure_at_the_greatest_line_passes_and_a_higher_figure_does_not(tmp_path):
    bar = {"rule": "max_flips", "what": "flips", "value": 0.3, "line": 0.3, "at": "most", "passed": True}
    path = written(tmp_path, bars=[bar])
    assert run(path).document["gate"]["passed"] is True
    assert run(path, ", max_flips: 0.3").document["gate"]["passed"] is True
    assert "flips is 0.3, and max_flips is 0.29" in undecided(run(path, ", max_flips: 0.29"))


def test_a_line_that_the_card_has_no_figure_for_leaves_it_undecided(tmp_path):
    assert "flips are not known" in undecided(run(written(tmp_path), ", max_flips: 0.5"))


def test_a_line_without_a_card_is_refused():
    with pytest.raises(ConfigError, match="min_kappa is a bar of a judge card"):
        run_pipeline("judges: [one]\ngate: {min_kappa: 0.5}", components={"one": FakeJudge()}, subjects=SUBJECTS)


def test_a_misspelt_line_is_refused_with_the_right_one():
    with pytest.raises(ConfigError) as caught:
        run_pipeline("judges: [one]\ngate: {require_card: c.json, min_kapa: 0.5}", components={"one": FakeJudge()})
    assert caught.value.problems[0].hint == "min_kappa"


def test_another_model_that_answers_is_another_judge(tmp_path):
    print_of = {"judges[helpful]": "f"}
    document = {
        "judges": [
            {"label": "helpful", "fingerprint": "f", "models": {"helpful": ["gpt-a"]}, "can_gate": True, "bars": []}
        ]
    }
    (tmp_path / "card.json").write_text(json.dumps(document | {"digest": card_digest(document)}))
    path = tmp_path / "card.json"

    def refusal(answered):
        return RequireCard(path).refusal(
            path, GatedRun("helpful", "point", {}, print_of, {"helpful": answered, "other": {"x"}})
        )

    assert refusal({"gpt-a"}) is None
    assert "is for gpt-a, but gpt-b answered helpful" in str(refusal({"gpt-a", "gpt-b"}))


def test_fingerprints_of_all_metrics_together_are_of_their_scoring_too():
    both = {"scoring": "s", "metrics[a]": "1", "metrics[b]": "2", "judges[j]": "3"}
    assert label_fingerprint(both, "metrics") == label_fingerprint({**both, "judges[j]": "4"}, "metrics")
    assert label_fingerprint(both, "metrics") != label_fingerprint({**both, "scoring": "t"}, "metrics")
    assert (label_fingerprint(both, "a"), label_fingerprint(both, "j"), label_fingerprint(both, "none")) == (
        "1",
        "3",
        None,
    )
