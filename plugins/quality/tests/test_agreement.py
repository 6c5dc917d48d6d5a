"""``dicast agreement``, on ledgers with given events."""

from __future__ import annotations

import json

import pytest
from attrs import evolve
from click.testing import CliRunner

from dicast import ConfigError, DataError
from dicast.toolkit.gold import GoldLabel
from dicast_quality.agreement import agreement
from dicast_quality.people import PooledLabels

VERSIONS = [{"rubric_id": "turn-heuristic-v1", "rubric_version": version} for version in ("1.1.0", "1.2.0")]


@pytest.fixture
def pairs(ledger):
    """Let two judges score as many turns as there are pairs."""

    def write(*scores, first="helpful", second="strict", **columns):
        for number, (left, right) in enumerate(scores):
            ledger.judged(f"T{number}", left, first, **columns)
            ledger.judged(f"T{number}", right, second, **columns)

    return write


@pytest.fixture
def gold(tmp_path):
    """Write a file of labels."""

    def write(*lines):
        path = tmp_path / "gold.jsonl"
        path.write_text("".join(line if isinstance(line, str) else f"{json.dumps(line)}\n" for line in lines))
        return str(path)

    return write


def label(id, score, **fields):
    return {"subject_id": id, "score": score, **fields}


def refused(ask, *arguments, error=ConfigError):
    with pytest.raises(error) as caught:
        ask(agreement, *arguments)
    return str(caught.value)


def test_document_has_every_figure(pairs, ask):
    pairs((1.0, 1.0), (0.9, 0.8), (0.2, 0.9), (0.1, 0.0), (0.8, 0.65))
    document = ask(agreement)
    assert (document["n"], document["within"], document["base_rate"]) == (5, 0.8, 0.7)
    assert document["kappa"] == pytest.approx((0.8 - (3 * 4 + 2 * 1) / 25) / (1 - (3 * 4 + 2 * 1) / 25))
    assert document["alpha"] == pytest.approx(0.6, abs=0.2)
    assert document["alpha_ci"][0] < document["alpha"] < document["alpha_ci"][1]
    assert document["failures"] == {name: {"n": 5, "failed": 0, "rate": 0} for name in ("helpful", "strict")}
    assert document["worst"][0] == {
        "subject_kind": "turn",
        "subject_id": "T2",
        "difference": pytest.approx(0.7),
        "scores": {"helpful": 0.2, "strict": 0.9},
    }
    assert "percentile bootstrap over subjects, 2,000 resamples, seed 0" in document["alpha_ci_method"]
    assert document == ask(agreement, "--judge", "helpful", "--judge", "strict")


def words_of(text):
    """Return *text* as it is without its line breaks."""
    return " ".join(text.split())


def test_much_agreement_by_chance_is_shown_as_such(pairs, ask):
    pairs(*[(1.0, 1.0)] * 17, (1.0, 0.0), (0.0, 1.0), (1.0, 0.0))
    document = ask(agreement)
    assert (document["within"], document["base_rate"]) == (0.85, 0.925)
    assert document["kappa"] < 0
    assert document["alpha"] < 0
    text = ask(agreement, as_json=False)
    assert max(map(len, text.splitlines())) <= 80
    words = words_of(text)
    assert words.startswith("helpful and strict: 20 subjects with two scores or more, 92.5% of the scores pass ")
    assert "Krippendorff's alpha -0.0541, 95 % interval " in words
    assert "Cohen's kappa -0.0" in words
    assert "within 0.15 85.0% of the subjects" in words


def test_judge_that_is_judged_again_agrees_with_itself(ledger, ask):
    for run in ("R1", "R2"):
        ledger.run(run)
        for turn, score in (("T1", 0.2), ("T2", 0.9), ("T3", 0.5)):
            ledger.judged(turn, score, run_id=run)
    for arguments in (("--judge", "helpful"), ("--judge", "helpful", "--run", "R1", "--run", "last")):
        document = ask(agreement, *arguments)
        assert [document[name] for name in ("n", "within", "kappa", "alpha")] == [3, 1, 1, 1]
        assert (document["between"], list(document["raters"]), document["worst"]) == ("runs", ["R1", "R2"], [])


def test_versions_of_a_rubric_are_compared(ledger, ask):
    for version, scores in zip(VERSIONS, ((0.1, 0.9), (0.2, 0.6)), strict=True):
        for number, score in enumerate(scores):
            ledger.judged(f"T{number}", score, rubric=version)
    ledger.failed("T5", rubric=VERSIONS[1])
    document = ask(agreement, "--between", "rubrics")
    assert list(document["raters"]) == ["turn-heuristic-v1 1.1.0", "turn-heuristic-v1 1.2.0"]
    assert (document["n"], document["worst"][0]["subject_id"]) == (2, "T1")
    assert document["failures"]["turn-heuristic-v1 1.2.0"] == {"n": 3, "failed": 1, "rate": pytest.approx(1 / 3)}


def test_newest_verdict_counts_and_a_failure_does_not_take_it_back(ledger, pairs, ask):
    pairs((0.1, 0.9), (0.4, 0.4))
    ledger.judged("T0", 0.8)
    ledger.failed("T0")
    ledger.failed("T7", "strict")
    document = ask(agreement)
    assert document["worst"][0]["scores"] == {"helpful": 0.8, "strict": 0.9}
    assert document["failures"]["helpful"]["failed"] == 0
    assert document["failures"]["strict"] == {"n": 3, "failed": 1, "rate": pytest.approx(1 / 3)}


def test_verdicts_of_other_runs_can_be_left_out(ledger, pairs, ask):
    ledger.run("R1")
    pairs((0.1, 0.9), run_id="R1")
    ledger.run("R2")
    pairs((0.4, 0.4), (0.6, 0.6), run_id="R2")
    assert ask(agreement, "--run", "last")["within"] == 1
    assert ask(agreement, "--run", "R1")["n"] == 1


def test_three_judges_have_the_mean_of_their_kappas(ledger, ask):
    for number, scores in enumerate(((1, 1, 0), (0, 0, 0), (1, 0, 1), (0, 0, 1))):
        for judge, score in zip("abc", scores, strict=True):
            ledger.judged(f"T{number}", float(score), judge)
    document = ask(agreement, "--judge", "a", "--judge", "b", "--judge", "c")
    by_pair = {tuple(pair["raters"]): pair["kappa"] for pair in document["kappa_pairs"]}
    assert by_pair == {("a", "b"): 0.5, ("a", "c"): 0.0, ("b", "c"): -0.5}
    assert document["kappa"] == pytest.approx(0.0)
    assert "Light" in document["kappa_method"]
    assert "kappa by pair:" in ask(agreement, "--judge", "a", "--judge", "b", "--judge", "c", as_json=False)


def test_labels_from_a_file_are_a_rater(ledger, gold, ask):
    for turn, score in (("T1", 0.9), ("T2", 0.1), ("T3", 0.9)):
        ledger.judged(turn, score)
    path = gold(label("T1", 1), label("T2", 0.0, note="bad"), "\n", label("T3", 0), label("T9", 1))
    document = ask(agreement, "--gold", path)
    assert (document["n"], list(document["raters"]), list(document["failures"])) == (
        3,
        ["helpful", "gold"],
        ["helpful"],
    )
    assert document["kappa"] == pytest.approx(0.4)
    assert document["worst"][0]["scores"] == {"helpful": 0.9, "gold": 0}


def test_labels_meet_every_kind_of_subject_unless_they_name_it(ledger, gold, ask):
    ledger.judged("1", 0.9)
    ledger.judged("1", 0.2, kind="row")
    assert ask(agreement, "--gold", gold(label("1", 1)))["n"] == 2
    named = gold(label("1", 1, subject_kind="row"), label("1", 0, subject_kind="session"))
    assert ask(agreement, "--gold", named)["worst"] == [
        {"subject_kind": "row", "subject_id": "1", "difference": 0.8, "scores": {"helpful": 0.2, "gold": 1}}
    ]
    assert ask(agreement, "--gold", gold(label(1, 1)), "--subject-kind", "turn")["n"] == 1


def test_judge_called_gold_is_told_from_the_file(ledger, gold, ask):
    ledger.judged("T1", 0.9, "gold")
    assert list(ask(agreement, "--gold", gold(label("T1", 1)))["raters"]) == ["gold", "gold (gold.jsonl)"]


def test_every_bad_line_of_the_labels_is_named(ledger, gold, ask):
    ledger.judged("T1", 0.9)
    path = gold(
        label("T1", 1), {"subject": "T2", "score": 1}, label("T3", 1.5), label("T4", True), "{nope\n", label("T1", 0)
    )
    lines = refused(ask, "--gold", path, error=DataError).splitlines()
    assert [line.split(":")[1] for line in lines] == ["2", "3", "4", "5", "6"]
    assert "'subject' is not known, did you mean 'subject_id'?" in lines[0]
    assert "1.5 is not a score from 0 to 1" in lines[1]
    assert "True is not a score from 0 to 1" in lines[2]
    assert "subject 'T1' has two labels that differ, 1 on line 1 and 0; keep one of the two lines" in lines[4]


def test_line_without_a_key_like_the_right_one_lacks_it(ledger, gold, ask):
    ledger.judged("T1", 0.9)
    assert "the line has no 'score'" in refused(
        ask, "--gold", gold({"subject_id": "T1", "verdict": 1}), error=DataError
    )


def test_labels_about_another_kind_of_subject_name_both_kinds(ledger, gold, ask):
    ledger.judged("T1", 0.9)
    message = refused(ask, "--gold", gold(label("T1", 1, subject_kind="turns")), error=DataError)
    assert "the labels are about subjects of kind turns, the judged subjects are of kind turn" in message
    assert "did you mean 'turn'?" in message


def test_labels_of_other_subjects_are_refused(ledger, gold, ask):
    ledger.judged("shop/1", 0.9)
    message = refused(ask, "--gold", gold(label("1", 1)), error=DataError)
    assert "the subject_id of the first is '1', that of a judged subject 'shop/1'" in message


def test_each_of_several_judges_is_compared_with_the_labels(ledger, gold, ask):
    for number, (comparison, other) in enumerate(
        ((1.0, 0.8), (0.0, 0.9), (0.9, 0.1), (0.2, 0.3), (1.0, 0.0), (0.4, 0.4))
    ):
        ledger.judged(f"T{number}", comparison, "a")
        ledger.judged(f"T{number}", other, "b")
    ledger.failed("T6", "b")
    path = gold(*(label(f"T{number}", number % 2 == 0 and 1 or 0) for number in range(4)), label("T6", 1))
    document = ask(agreement, "--judge", "a", "--judge", "b", "--gold", path)
    assert (document["n"], list(document["raters"])) == (4, ["a", "b", "gold"])
    assert document["failures"]["b"] == {"n": 7, "failed": 1, "rate": pytest.approx(1 / 7)}
    assert [comparison["judge"] for comparison in document["against_gold"]] == ["a", "b"]
    for comparison in document["against_gold"]:
        alone = ask(agreement, "--judge", comparison["judge"], "--gold", path)
        assert "against_gold" not in alone
        assert {name: alone[name] for name in comparison if name != "judge"} == {
            name: value for name, value in comparison.items() if name != "judge"
        }
    assert document["against_gold"][0]["within"] == 0.75
    words = words_of(ask(agreement, "--judge", "a", "--judge", "b", "--gold", path, as_json=False))
    assert words.startswith("each judge and the labels: a 4 subjects: alpha 0.9")
    assert " b 4 subjects: alpha " in words
    assert " a and b and gold: 4 subjects" in words


def test_runs_of_a_judge_are_each_compared_with_the_labels(ledger, gold, ask):
    for run, score in (("R1", 0.9), ("R2", 0.2)):
        ledger.judged("T1", score, run_id=run)
        ledger.judged("T2", 0.1, run_id=run)
    document = ask(agreement, "--between", "runs", "--gold", gold(label("T1", 1), label("T2", 0)))
    assert [(comparison["run"], comparison["within"]) for comparison in document["against_gold"]] == [
        ("R1", 1),
        ("R2", 0.5),
    ]


def test_verdicts_on_different_content_are_not_compared(ledger, ask):
    for run, texts in (("R1", "xyz"), ("R2", "xYz")):
        ledger.run(run)
        for number, text in enumerate(texts):
            ledger.read(f"T{number}", text, run_id=run)
            ledger.judged(f"T{number}", 0.9 if text.islower() else 0.1, run_id=run)
    ledger.failed("T1", run_id="R2")
    document = ask(agreement, "--judge", "helpful")
    assert (document["n"], document["within"], document["worst"]) == (2, 1, [])
    assert (document["different_content"], document["several_contents"]) == (1, 0)
    assert document["different_content_subjects"] == [{"subject_kind": "turn", "subject_id": "T1"}]
    assert [failures["n"] for failures in document["failures"].values()] == [3, 3]
    text = ask(agreement, "--judge", "helpful", as_json=False)
    words = words_of(text)
    assert "different content: 1 subjects have verdicts on other contents, which are not compared turn T1" in words
    assert ask(agreement, "--judge", "helpful", "--worst", "0")["different_content_subjects"] == []


def test_content_that_most_raters_have_scored_is_compared(ledger, ask):
    for judge, text, score in (("a", "x", 0.1), ("b", "x", 0.2), ("c", "y", 0.9)):
        ledger.run(judge)
        ledger.read("T1", text, run_id=judge)
        ledger.judged("T1", score, judge, run_id=judge)
    document = ask(agreement, "--judge", "a", "--judge", "b", "--judge", "c")
    assert (document["n"], document["within"], document["different_content"]) == (1, 1, 1)
    assert document["worst"][0]["scores"] == {"a": 0.1, "b": 0.2}


def test_newest_content_counts_where_all_have_judged_it(ledger, ask):
    for run, text, scores in (("R1", "old", (0.1, 0.9)), ("R2", "new", (0.4, 0.5))):
        ledger.run(run)
        ledger.read("T1", text, run_id=run)
        for judge, score in zip("ab", scores, strict=True):
            ledger.judged("T1", score, judge, run_id=run)
    for runs in ((), ("--run", "R2", "--run", "R1")):
        document = ask(agreement, "--judge", "a", "--judge", "b", *runs)
        assert (document["worst"][0]["scores"], document["different_content"]) == ({"a": 0.4, "b": 0.5}, 0)
        assert document["several_contents"] == 1


def test_live_run_may_read_a_subject_again(ledger, ask):
    ledger.tell("run.started", {"name": "watch", "live": True})
    for judge, text in (("a", "before"), ("b", "after")):
        ledger.read("T1", text)
        ledger.judged("T1", 0.5, judge)
    document = ask(agreement)
    assert (document["n"], document["different_content"]) == (0, 1)


def test_labels_meet_the_newest_content_and_other_contents_are_told(ledger, gold, ask):
    for run, text, score in (("R1", "old", 0.1), ("R2", "new", 0.9)):
        ledger.run(run)
        for turn in ("T1", "T2"):
            ledger.read(turn, text if turn == "T1" else "same", run_id=run)
            ledger.judged(turn, score, run_id=run)
    document = ask(agreement, "--gold", gold(label("T1", 1), label("T2", 1)))
    assert (document["n"], document["within"], document["several_contents"], document["different_content"]) == (
        2,
        1,
        1,
        0,
    )
    text = ask(agreement, "--gold", gold(label("T1", 1), label("T2", 1)), as_json=False)
    assert "1 of the compared subjects were also read with another input or output" in text


def test_judge_that_changed_between_runs_is_told_with_its_fingerprints(ledger, ask):
    for run, fingerprint in (("R1", "a" * 64), ("R2", "b" * 64)):
        ledger.run(run)
        for turn in ("T1", "T2"):
            ledger.judged(turn, 0.5, run_id=run, fingerprint=fingerprint)
    document = ask(agreement, "--judge", "helpful")
    assert (document["n"], document["within"]) == (2, 1)
    assert document["fingerprints"] == {
        "helpful": [
            {"fingerprint": "a" * 64, "n": 2, "runs": ["R1"]},
            {"fingerprint": "b" * 64, "n": 2, "runs": ["R2"]},
        ]
    }
    text = ask(agreement, "--judge", "helpful", as_json=False)
    assert "helpful differs between runs, so its verdicts are of different judges:" in text
    assert "  fingerprint aaaaaaaaaaaa  2 verdicts of run R1\n" in text


def test_judge_by_which_several_models_answer_is_one_judge(ledger, ask):
    for run, fingerprints in (("R1", "ab"), ("R2", "aa")):
        ledger.run(run)
        for number, fingerprint in enumerate(fingerprints):
            ledger.judged(f"T{number}", 0.5, run_id=run, fingerprint=fingerprint * 64)
    assert "not the same" not in ask(agreement, "--judge", "helpful", as_json=False)


def test_no_interval_of_one_subject_and_a_reason_for_it(pairs, ask):
    pairs((0.9, 0.3))
    document = ask(agreement)
    assert (document["alpha"], document["alpha_ci"], document["alpha_ci_method"]) == (0, None, None)
    assert document["reasons"] == {"alpha_ci": "one subject is too few to estimate how much subjects differ"}
    pairs(*[(0.1, 0.1), (0.9, 0.9), (0.4, 0.4)] * 4)
    document = ask(agreement)
    assert (document["alpha"], document["alpha_ci"]) == (1, [1, 1])


def test_figures_without_sense_are_null_and_say_why(pairs, ask):
    pairs((1.0, 1.0), (1.0, 1.0))
    document = ask(agreement)
    assert [document[name] for name in ("kappa", "alpha", "alpha_ci")] == [None, None, None]
    assert set(document["reasons"]) == {"kappa", "alpha", "alpha_ci"}
    assert "not defined: all scores are equal" in ask(agreement, as_json=False)


def test_judges_of_different_subjects_share_nothing(ledger, ask):
    ledger.judged("T1", 0.5)
    ledger.judged("T2", 0.5, "strict")
    document = ask(agreement)
    assert (document["n"], document["within"], document["base_rate"]) == (0, None, None)
    assert set(document["reasons"].values()) == {"no subject has two scores on the same content"}
    assert "0 subjects with two scores or more" in ask(agreement, as_json=False)


def test_worst_are_as_many_as_wanted(pairs, ask):
    pairs((0.1, 0.9), (0.5, 0.5), (0.3, 0.9), (0.4, 0.5), (0.2, 1.0))
    assert [disagreement["subject_id"] for disagreement in ask(agreement, "--worst", "3")["worst"]] == [
        "T0",
        "T4",
        "T2",
    ]
    assert [disagreement["subject_id"] for disagreement in ask(agreement)["worst"]] == ["T0", "T4", "T2", "T3"]
    assert ask(agreement, "--worst", "0")["worst"] == []


def test_disagreements_equal_but_for_rounding_come_by_their_ids(pairs, ask):
    pairs((1.0, 0.9), (0.0, 0.1), (0.5, 0.4), (0.7, 0.8), (0.3, 0.2))
    assert [(disagreement["subject_id"], disagreement["difference"]) for disagreement in ask(agreement)["worst"]] == [
        (f"T{number}", 0.1) for number in range(5)
    ]


def test_wrong_choice_of_judges_names_those_there_are(ledger, ask):
    assert "nothing has been judged" in refused(ask)
    ledger.run()
    ledger.judged("T1", 0.5)
    assert "choose two or more judges with --judge, from helpful" in refused(ask)
    assert "no judge 'helpfull' in this ledger; its judges are helpful, did you mean 'helpful'?" in refused(
        ask, "--judge", "helpfull", "--judge", "helpful"
    )
    assert "has been asked in one run only, R1" in refused(ask, "--judge", "helpful")
    ledger.judged("T1", 0.5, "strict")
    ledger.judged("T1", 0.5, "third")
    assert "from helpful, strict, third" in refused(ask)
    assert "--between rubrics is about one judge" in refused(ask, "--between", "rubrics")
    assert "no run 'R9'" in refused(ask, "--run", "R9")
    assert "nothing has been judged about subjects of kind 'row'" in refused(ask, "--subject-kind", "row")


def test_window_has_to_be_a_share():
    done = CliRunner().invoke(agreement, ("--window", "nan"))
    assert (done.exit_code, "nan is not a number from 0 to 1" in done.output) == (2, True)


def test_wider_window_holds_more(pairs, ask):
    pairs((0.8, 0.65), (0.8, 0.5))
    assert [ask(agreement, "--window", window)["within"] for window in ("0.1", "0.15", "0.3")] == [0, 0.5, 1]


@pytest.mark.parametrize(("n", "words"), [(9, "9 subjects are too few for a conclusion"), (10, ": reliable")])
def test_few_subjects_are_never_called_reliable(pairs, ask, n, words):
    pairs(*[(float(number % 2), float(number % 2)) for number in range(n)])
    assert words in words_of(ask(agreement, as_json=False))


@pytest.fixture
def labeled(ledger):
    """Write labels of people: scores by name and subject; the name of a decision is ``decision``."""

    def write(**labels):
        for name, scores in labels.items():
            for id, score in scores.items():
                fields = {"adjudicated": True} if name == "decision" else {}
                payload = {"subject": id, "subject_kind": "turn", "score": score, "labeller": name, "drawn": None}
                ledger.tell("label.given", payload | fields, subject_kind="turn", subject_id=id)

    return write


def test_labels_of_all_people_are_pooled_by_decision_and_majority(ledger, labeled, ask):
    for number, score in enumerate((1.0, 0.0, 1.0, 0.2, 0.9)):
        ledger.judged(f"T{number}", score)
    labeled(
        ada={"T0": 1, "T1": 1, "T2": 1, "T3": 1},
        bob={"T0": 1, "T1": 0, "T2": 0, "T3": 0, "T4": 1},
        cid={"T0": 1, "T1": 0},
        decision={"T3": 0},
    )
    document = ask(agreement, "--judge", "helpful", "--gold", "people", "--window", "0")
    people = document["people"]
    assert people["labellers"] == {"ada": 4, "bob": 5, "cid": 2}
    assert (people["equal"], people["majority"], people["adjudicated"], people["ties"]) == (2, 1, 1, 1)
    assert (document["n"], list(document["raters"])) == (4, ["helpful", "people"])
    assert document["within"] == 0.5
    assert [entry["scores"] for entry in document["worst"]] == [
        {"helpful": 0.2, "people": 0},
        {"helpful": 0.9, "people": 1},
    ]
    text = ask(agreement, "--judge", "helpful", "--gold", "people", as_json=False)
    assert "  outputs: 2 with equal labels, 1 by majority, 1 decided, 1 left out\n" in text


def test_a_label_without_an_output_does_not_replace_an_output_on_which_people_differ(ledger):
    plain = GoldLabel("T0", 1.0, "turn", "ada")
    named = GoldLabel("T0", 0.0, "turn", "bob", output_digest="d" * 64)
    pooled = PooledLabels.of([plain, named])
    assert (pooled.ties, list(pooled.gold.entries)) == (1, [])
    agreed = PooledLabels.of([plain, evolve(named, score=1.0)])
    assert (agreed.equal, agreed.ties, len(agreed.gold.entries)) == (1, 0, 2)


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ({}, [], "the ledger has no labels; label subjects in the dashboard or by dicast label FILE"),
        ({"ada": {"T0": 1}}, ["--prevalence"], "--prevalence needs labels of randomly drawn subjects"),
    ],
)
def test_no_labels_and_labels_for_a_correction_are_refused(ledger, labeled, ask, labels, options, message):
    ledger.judged("T0", 1.0)
    labeled(**labels)
    assert message in refused(ask, "--judge", "helpful", "--gold", "people", *options)


def test_people_who_differ_on_every_output_give_no_figures(ledger, labeled, ask):
    ledger.judged("T0", 1.0)
    labeled(ada={"T0": 1}, bob={"T0": 0})
    document = ask(agreement, "--judge", "helpful", "--gold", "people")
    assert (document["n"], document["alpha"], document["people"]["ties"]) == (0, None, 1)
