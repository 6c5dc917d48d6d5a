"""The fixtures, in tests that use them, and ``assert_pass_rate``."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import Failure, Judgment, RequestError, Score, ScoringError, Subject, metric
from dicast.testing import GOLDEN
from dicast_pytest import PassRate, assert_pass_rate
from dicast_pytest.pass_rate import Undecided, exact, pass_rate, passed

# dicast_run


def test_dicast_run_keeps_its_ledger_in_the_tests_folder(dicast_run, tmp_path, monkeypatch):
    monkeypatch.setenv("DICAST_LEDGER", str(tmp_path / "not-this-one.db"))
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "output": "Ankara"}\n')
    text = f"source: {{rows/jsonl: {{path: {tmp_path / 'rows.jsonl'}}}}}\nmetrics: [proxy/format]\n"
    (tmp_path / "a.yaml").write_text(text + "ledger: {ledger/sqlite: {path: its-own.db}}\n")
    for pipeline in (text, tmp_path / "a.yaml"):
        run = dicast_run(pipeline)
        assert run.score["mean"] == 1.0
        assert run.ledger["path"] == str(tmp_path / "ledger.db")
        assert [verdict.score for verdict in run.verdicts] == [1.0]
    assert not (tmp_path / "not-this-one.db").exists()


def test_dicast_run_takes_subjects_overrides_and_a_task(dicast_run):
    subjects = [Subject("row", "1", input="a"), Subject("row", "2", input="b")]
    pipeline = {"metrics": [{"check/equals": {"value": "A"}}]}
    run = dicast_run(pipeline, subjects=subjects, task=lambda row: row["input"].upper())
    assert [verdict.score for verdict in run.verdicts] == [1.0, 0.0]
    for overrides in ({"metrics.0.value": "B"}, ["metrics.0.value=B"]):
        run = dicast_run(pipeline, subjects=subjects, task=lambda row: row["input"].upper(), overrides=overrides)
        assert [verdict.score for verdict in run.verdicts] == [0.0, 1.0]


# judge


def test_judge_gives_the_score_of_a_metric(judge):
    contains = judge("check/contains", value="Ankara")
    assert contains("It is Ankara.") == Score(1.0)
    low = contains("It is Bonn.")
    assert isinstance(low, Score)
    assert (low.value, low.feedback or low.details) == (0.0, "the output does not contain 'Ankara'")


def test_judge_gives_the_judgment_of_a_judge(judge):
    turn = next(subject for subject in GOLDEN if subject.id == "plain-turn")
    judgment = judge("heuristic/turn")(turn)
    assert isinstance(judgment, Judgment)
    assert (judgment.judge_kind, judgment.basis) == ("heuristic", "heuristic")


def test_judge_takes_a_reference_and_a_component_made_in_python(judge):
    assert judge("diff/match")("Ankara", reference="Ankara").value == 1.0

    @metric(tier="proxy")
    def half(subject: Subject) -> Score:
        return Score(0.5, details="always")

    assert judge(half())("anything").value == 0.5


def test_a_failure_is_raised_and_no_score(judge):
    with pytest.raises(ScoringError, match=r"missing_input: .*reference"):
        judge("diff/match")("Ankara")


def test_a_judge_of_another_kind_says_so(judge):
    with pytest.raises(ScoringError, match="'row'"):
        judge("heuristic/session")("a text")


@pytest.mark.parametrize(
    ("name", "options"), [("check/contains", {"valeu": "x"}), ("check/contans", {}), ("none/at_all", {})]
)
def test_a_wrong_component_is_a_wrong_request(judge, name, options):
    with pytest.raises(RequestError) as raised:
        judge(name, **options)("a text")
    assert name.partition("/")[0] in str(raised.value)


# assert_pass_rate


def test_enough_passing_cases_show_the_rate():
    evidence = assert_pass_rate([True] * 80, at_least=0.9, alpha=0.05)
    assert (evidence.decision, evidence.n == evidence.passed, evidence.low > 0.85) == ("pass", True, True)


def test_too_few_cases_are_undecided_which_is_no_pass():
    with pytest.raises(
        Undecided, match=r"undecided: 20 of 20 passed .*; \d+ passing cases are the fewest that can show it"
    ):
        assert_pass_rate([True] * 20)
    with pytest.raises(pytest.skip.Exception, match="cases are the fewest"):
        assert_pass_rate([True] * 20, undecided="skip")
    fewest = pass_rate([True] * 20).fewest
    assert pass_rate([True] * fewest).decision == "pass"
    assert pass_rate([True] * (fewest - 1)).decision == "undecided"


def test_a_rate_that_is_refuted_fails():
    with pytest.raises(AssertionError, match=r"^fail: \d+ of \d+ passed") as raised:
        assert_pass_rate([True] * 10 + [False] * 10)
    assert not isinstance(raised.value, Undecided)


def test_what_was_not_looked_at_any_more_is_said():
    evidence = pass_rate([False] * 3 + [True] * 37)
    assert (evidence.decision, evidence.given) == ("fail", 40)
    assert f"0 of {evidence.n} passed (0.0000), the first of 40 cases, which decide," in str(evidence)
    assert "first of" not in str(pass_rate([True] * 3))


@pytest.mark.parametrize(
    ("cases", "message"),
    [
        ([True] * 60 + [False] * 940, "the first 4. of 1,000 cases result in pass, the later cases in fail"),
        ([False] * 2 + [True] * 998, "the first 2 of 1,000 cases result in fail, the later cases in pass"),
    ],
)
def test_cases_in_an_order_that_decides_are_refused(cases, message):
    with pytest.raises(ValueError, match=f"^{message}: .*order is not random; shuffle them"):
        assert_pass_rate(cases)


def test_another_word_than_fail_or_skip_is_refused():
    with pytest.raises(ValueError, match="undecided is 'pass'; it is 'fail' or 'skip'"):
        assert_pass_rate([True] * 80, undecided="pass")


@given(st.integers(1, 300), st.integers(0, 300), st.floats(0.01, 0.99), st.floats(0.001, 0.5))
def test_the_exact_test_is_scipys(n, k, at, alpha):
    from scipy import stats

    k = min(k, n)
    evidence = exact([True] * k + [False] * (n - k), at, alpha)
    above, below = (stats.binomtest(k, n, at, alternative=side) for side in ("greater", "less"))
    expected = "pass" if above.pvalue <= alpha else "fail" if below.pvalue <= alpha else "undecided"
    assert evidence.decision == expected or min(abs(test.pvalue - alpha) for test in (above, below)) < 1e-9
    interval = stats.binomtest(k, n, at).proportion_ci(1 - alpha, method="exact")
    assert (evidence.low, evidence.high) == pytest.approx((interval.low, interval.high), abs=1e-9)


def test_cases_are_booleans_scores_judgments_failures_or_numbers():
    cases = [True, Score(0.5), Score(0.49), Judgment(0.7), Failure("timeout", "late"), 1.0, 0, 0.25]
    assert [*passed(cases)] == [True, True, False, True, False, True, False, False]
    assert [*passed([np.True_, np.bool_(False), np.float32(0.75), np.int64(0)])] == [True, False, True, False]


@pytest.mark.parametrize("case", ["yes", 1.5, math.nan, None, -1])
def test_anything_else_is_refused(case):
    with pytest.raises(ValueError, match="case 1 is"):
        pass_rate([True, case])


def test_no_case_is_no_rate():
    with pytest.raises(ValueError, match="there is no case"):
        pass_rate([])


@pytest.mark.parametrize("value", [0, 1, -0.1, 1.1, math.nan])
def test_a_rate_and_an_alpha_lie_between_0_and_1(value):
    with pytest.raises(ValueError, match="at_least is"):
        pass_rate([True], at_least=value)
    with pytest.raises(ValueError, match="alpha is"):
        pass_rate([True], alpha=value)


def test_a_runs_subjects_are_cases_and_one_that_failed_does_not_pass(dicast_run):
    outputs = ["Ankara", "Bonn", None, "in Ankara"]
    subjects = [Subject("row", str(number), output=text) for number, text in enumerate(outputs)]
    run = dicast_run({"metrics": [{"check/contains": {"value": "Ankara"}}]}, subjects=subjects)
    assert [*passed(run)] == [True, False, False, True]
    assert (pass_rate(run).n, pass_rate(run.verdicts).n) == (4, 3)


def test_subjects_of_one_session_are_one_case(dicast_run):
    outputs = [("a", "Ankara"), ("a", "Bonn"), ("b", "Ankara"), ("b", "Ankara"), (None, "Bonn")]
    subjects = [Subject("row", str(n), output=text, session_id=session) for n, (session, text) in enumerate(outputs)]
    run = dicast_run({"metrics": [{"check/contains": {"value": "Ankara"}}]}, subjects=subjects)
    assert [*passed(run)] == [False, True, False]


def test_the_fixture_is_the_function(request):
    assert request.getfixturevalue("assert_pass_rate") is assert_pass_rate


def test_what_is_found_is_told_in_words():
    assert "99.9% interval" in str(pass_rate([True], alpha=0.001))
    assert str(PassRate("pass", 29, 29, 0.9, 0.05, 0.88, 1.0, "exact binomial")).startswith(
        "pass: 29 of 29 passed (1.0000)"
    )
