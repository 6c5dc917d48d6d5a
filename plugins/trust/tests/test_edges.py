"""Estimates with the fewest labels, sessions or outcomes that are enough, and with one fewer."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pytest

from dicast import ALL_METRICS
from dicast_trust.audits.corrected import Corrected
from dicast_trust.audits.prevalence import Prevalence, rogan_gladen
from dicast_trust.statistics import representativeness
from dicast_trust.statistics.binomial import clustered_upper, least_labels, most_errors, passes, upper
from dicast_trust.statistics.chance_agreement import auc, kappa, newcombe, resampled, tables
from dicast_trust.statistics.forecasts import calibration
from dicast_trust.statistics.regression import linear, logit
from dicast_trust.statistics.representativeness import Difference, label_difference
from dicast_trust.verdicts.outcomes import failed_cap, stage_outcomes
from dicast_trust.verdicts.stages import Stage


def prevalence(pairs, labels="same"):
    live = Prevalence(on="j", labels=labels).live()
    for judged, label in pairs:
        live.add({"row": {} if label is None else {"label": label}, "metrics": {"scores": {"j": judged}}})
    return live.finish()


@pytest.mark.parametrize(
    ("pairs", "labels", "reason"),
    [
        ([(0.5, 0.7), (0.2, None)], "same", "too few labels: 1, at least 2 are needed"),
        ([(1.0, 1.0)] * 4, "same", "too few labels: 4, at least 5 are needed"),
        ([(1.0, 1.0), (0.0, None)], "same", "no subject with the verdict 0 has a label"),
        ([(1.0, 1.0), (1.0, None)], "other", "there are no labels of 0"),
        ([(0.0, 0.0), (1.0, None)], "other", "there are no labels of 1"),
        ([(0.0, 0.0), (1.0, 1.0)], "other", "there are no subjects without a label"),
        (
            [(1.0, 1.0), (0.0, 0.0), (1.0, 0.0), (1.0, None)],
            "other",
            None,
        ),
        (
            [(1.0, 1.0), (0.0, 0.0), *[(1.0, 0.0)] * 8, (1.0, None)],
            "other",
            "too few labels (1 of 1, 9 of 0) to show that the judge is right more often than by chance",
        ),
        (
            [(1.0, 1.0), (1.0, 0.0), (1.0, None)],
            "other",
            "the judge is right no more often than by chance: sensitivity + specificity is 1 or less",
        ),
    ],
)
def test_a_prevalence_has_the_reason_why_it_is_not_known(pairs, labels, reason):
    estimate = prevalence(pairs, labels)
    assert estimate["reasons"] == ([] if reason is None else [reason])
    assert (estimate["mean"] is None) == (reason is not None)
    assert (estimate["labels"], estimate["n"]) == (
        sum(label is not None for _, label in pairs),
        len(pairs) if labels == "same" else sum(label is None for _, label in pairs),
    )


def test_five_labels_of_0_and_1_and_two_others_are_enough():
    assert prevalence([(1.0, 1.0)] * 5)["method"] == "stratified-wilson"
    two = prevalence([(0.5, 0.25), (0.5, 0.75)])
    assert (two["method"], two["mean"], two["lambda"]) == ("ppi++", 0.5, 0.0)
    one_more = prevalence([(0.2, 0.25), (0.8, 0.75), (0.9, None)])
    assert 0 < one_more["lambda"] <= 1
    assert one_more["mean"] == pytest.approx(one_more["lambda"] * (0.9 - 0.5) + 0.5)
    flat = prevalence([(0.5, 0.25), (0.5, 0.75), (0.5, None), (0.5, None)])
    assert (flat["lambda"], flat["mean"]) == (0.0, 0.5)


def test_a_label_or_a_score_that_is_no_number_is_skipped():
    estimate = prevalence([(1.0, True), (1.0, "1"), (None, 1.0)])
    assert (estimate["labels"], estimate["n"], estimate["judge_mean"]) == (0, 2, 1.0)
    assert prevalence([(None, 1.0)])["judge_mean"] is None
    with pytest.raises(ValueError, match=r"the label 1\.01 is not between 0 and 1"):
        prevalence([(1.0, 1.01)])


def test_a_judge_as_good_as_chance_with_one_more_answer_of_each_kind_has_no_interval():
    assert rogan_gladen(0.5, 10, (1.0, 0), (1.0, 0)) is None
    assert rogan_gladen(0.5, 10, (1.0, 1), (1.0, 0)) is not None


def audited(subjects, rates=None):
    live = Corrected([ALL_METRICS], 0.2, **({} if rates is None else {"rates": rates}))
    live.add(subjects)
    mean = sum(subject["score"] for subject in subjects) / len(subjects) if subjects else None
    result = live.finish({ALL_METRICS: mean})
    return result["corrected"][ALL_METRICS], result["reasons"].get(ALL_METRICS)


def subject(state, score, truth=None, session=None, group=""):
    truths = {} if truth is None else {ALL_METRICS: truth}
    return {"session_id": session, "state": state, "score": score, "truths": truths, "costs": [], "stratum": group}


def graded(number, **changes):
    return subject("audited", 0.1 + number / 50, 0.2 + number % 7 / 20, **changes)


@pytest.mark.parametrize(
    ("passed", "sessions", "reason"),
    [
        (["a"], ["a"] * 12, "too_few_sessions"),
        (["a", "b"], ["a"] * 12, "too_few_sessions"),
        (["a", "b"], ["a"] * 6 + ["b"] * 6, None),
        ([None], ["a"] * 12, "too_few_sessions"),
        ([], [None, *["a"] * 11], None),
    ],
)
def test_audits_of_one_session_give_no_interval(passed, sessions, reason):
    subjects = [subject("passed", 0.9, 0.9, session) for session in passed]
    subjects += [graded(number, session=session) for number, session in enumerate(sessions)]
    estimate, why = audited(subjects)
    assert (None if why is None else why["reason"]) == reason
    assert (estimate is None) == (reason is not None)


def test_a_group_needs_three_audits_and_at_most_three_groups_are_named():
    rates = dict.fromkeys("abcde", 0.5)
    enough = [graded(number, group=group) for group in "abcd" for number in range(3)]
    assert audited(enough, rates)[1] is None
    for count in (3, 4):
        names = "abcde"[:count]
        few = [graded(number, group=group) for group in names for number in range(2)]
        few += [graded(number, group="e") for number in range(9)]
        listed = ", ".join(repr(name) for name in "abc") + (" …" if count == 4 else "")
        assert audited(few, rates)[1]["message"].startswith(f"groups with fewer than 3 audits: {listed}; audit these")
    binary = [subject("audited", 0.5, float(number % 2), group=group) for group in "ab" for number in range(3)]
    assert audited([*binary, subject("audited", 0.5, 1.0, group="c")], rates)[0]["method"] == "stratified-wilson"


def test_two_subjects_are_the_fewest_with_a_mean():
    assert audited([])[1]["reason"] == "too_few_subjects"
    assert audited([subject("passed", 0.5, 0.5)])[1]["message"] == "1 subjects have a score; at least two are needed"
    assert audited([subject("passed", 0.5, 0.5), subject("passed", 0.75, 0.75)])[0]["mean"] == 0.625


def test_an_interval_needs_two_sessions_and_a_difference_two_shares():
    one, two = ([True, False], [True, False], sessions := [0, 0]), ([True, False] * 2, [True, False] * 2, [0, 0, 1, 1])
    assert sessions
    assert resampled(tables(*one), kappa) == (1.0, None)
    assert resampled(tables(*two), kappa) == (1.0, (1.0, 1.0))
    assert newcombe((0, 0), (1, 2)) is None
    assert newcombe((1, 2), (0, 0)) is None
    assert auc([0.9, 0.1, 0.5], [True, False, False])[1] is None
    assert auc([0.9, 0.4, 0.1, 0.5], [True, True, False, False])[1] is not None
    assert auc([0.9, 0.1], [True, True]) == (None, None)


def test_a_fit_needs_more_rows_and_more_sessions_than_columns():
    design = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 4.0]])
    outcomes = np.array([0.1, 0.5, 0.4, 0.9])
    assert linear(design[:2], outcomes[:2], [0, 1]) is None
    assert linear(design[:3], outcomes[:3], [0, 1, 2]) is not None
    assert linear(design, outcomes, [0, 0, 1, 1]) is None
    assert linear(design, outcomes, [0, 0, 1, 2]) is not None
    assert linear(design[:, [0, 0]], outcomes, [0, 1, 2, 3]) is None
    assert logit(design, np.array([0.0, 0.0, 1.0, 1.0]), [0, 1, 2, 3]) is None  # the outcomes are separated
    assert logit(design, np.array([0.0, 1.0, 0.0, 1.0]), [0, 1, 2, 3]) is not None


def test_a_calibration_of_nothing_has_a_reason():
    figures, reasons = calibration(np.array([]), np.array([]))
    assert (figures["n"], figures["brier"]) == (0, None)
    assert reasons == {"brier": "there is no label to compare with"}


@pytest.mark.parametrize(("risk", "alpha", "least"), [(0.5, 0.5, 1), (0.9, 0.5, 1), (0.5, 0.25, 2), (0.1, 0.1, 22)])
def test_the_least_labels_are_the_fewest_that_can_pass(risk, alpha, least):
    assert least_labels(risk, alpha) == least
    assert passes(0, least, risk, alpha)
    assert least == 1 or not passes(0, least - 1, risk, alpha)


@pytest.mark.parametrize(("n", "risk", "alpha"), [(50, 0.1, 0.1), (20, 0.1, 0.1), (60, 0.2, 0.05)])
def test_the_most_errors_pass_and_one_more_does_not(n, risk, alpha):
    most = most_errors(n, risk, alpha)
    counts = [errors for errors in range(n + 1) if passes(errors, n, risk, alpha)]
    assert most == (max(counts) if counts else None)
    assert [errors for errors in range(n) if upper(errors, n, alpha) <= risk] == counts


def test_bounds_of_sessions_need_two_sessions():
    assert clustered_upper([], [], 0.1) is None
    assert clustered_upper([0, 1], [7, 7], 0.1) is None
    assert clustered_upper([0, 1], [7, 9], 0.1) is not None
    even = clustered_upper([0, 1, 0, 0], [0, 0, 1, 1], 0.5)
    assert 0 < even < 1


def one_by_one(signals, labeled, rungs, groups, seed, times):
    """Return the p-value of permuted sessions, a subject at a time, with the same random numbers."""
    random, names = np.random.default_rng(seed), np.unique(groups, return_inverse=True)[1]
    members = [[at for at in range(len(signals)) if names[at] == name] for name in range(names.max() + 1)]
    wanted = [sum(labeled[at] for at in group) for group in members]
    wanted = [count for count in wanted if count]

    def difference(chosen):
        return max(abs(np.mean(signals[chosen] >= at) - np.mean(signals >= at)) for at in rungs)

    observed, count = difference(np.flatnonzero(labeled)), 0
    for _ in range(times):
        selection = random.permutation(len(members))[: len(wanted)]
        slots = [(at, subject) for at, group in enumerate(selection) for subject in members[group]]
        order = sorted(
            zip([at for at, _ in slots], random.random(len(slots)), [subject for _, subject in slots], strict=True)
        )
        chosen = []
        for at, most in enumerate(wanted):
            chosen += [subject for place, _, subject in order if place == at][:most]
        count += difference(chosen) >= observed - 1e-12
        if count >= int(0.01 * (1 + times)):
            break
    return observed, (1 + count) / (1 + times)


@pytest.mark.parametrize(("seed", "shift"), [(0, 0.0), (1, 0.2), (2, 0.5), (3, 0.35)])
def test_sessions_are_permuted_as_a_whole(seed, shift, monkeypatch):
    monkeypatch.setattr(representativeness, "PERMUTATIONS", 399)
    random = np.random.default_rng(seed)
    groups = [f"s{number}" for number in random.integers(0, 25, 80)]
    labeled = np.array([int(group[1:]) < 8 and random.random() < 0.8 for group in groups])
    signals = np.round(np.clip(random.random(80) + shift * labeled, 0, 1), 1)
    rungs = [0.2, 0.4, 0.6, 0.8]
    difference = label_difference(signals, labeled, rungs, groups, 5)
    assert (difference.greatest, difference.p_value) == pytest.approx(
        one_by_one(signals, labeled, rungs, groups, 5, 399)
    )


@pytest.mark.parametrize(("p_value", "answer"), [(0.0099, True), (0.01, False)])
def test_labels_are_no_random_draw_below_the_level(p_value, answer):
    assert Difference(0.5, p_value).is_significant is answer


def outcomes(payload, count=2, costs=(), session="s"):
    about = {"eval_id": "e", "subject_kind": "row", "subject_id": "x"}
    event = SimpleNamespace(payload=about | payload, session_id=session, run_id="r")
    return [
        (index, outcome.score, outcome.confidence, outcome.failure, outcome.model, outcome.cost, outcome.cap)
        for index, outcome in stage_outcomes(event, "both", count, dict(costs))
    ]


ZERO = Decimal(0)


def test_a_verdict_has_the_outcome_of_each_stage_that_was_asked():
    entries = [
        {"score": 0.25, "confidence": 0.5, "judge_model": "m"},
        {"failure": "timeout", "throttled_reason": "run_cap"},
    ]
    assert outcomes({"signals": {"stages": entries}}, costs={("e", 1): None, ("e", 0): Decimal(3)}) == [
        (0, 0.25, 0.5, None, "m", Decimal(3), None),
        (1, None, 0.0, "timeout", None, None, "run_cap"),
    ]


def test_a_failed_cascade_has_a_failure_of_each_stage():
    payload = {"failure_mode": "throttled_no_heuristic", "throttled_reason": "day_cap"}
    failure = (None, 0.0, "throttled_no_heuristic", None, ZERO, "day_cap")
    assert outcomes(payload, 3) == [(index, *failure) for index in range(3)]
    assert failed_cap({"skipped": "budget"}) == "budget"
    assert failed_cap({}) is None


def test_a_verdict_of_two_stages_has_the_first_score_and_the_escalation():
    first = {"heuristic_score": 0.25, "heuristic_confidence": 0.5}
    models = {"both.stages[0]": ["a", "b"], "both.stages[1]": ["c"]}
    whole = {"score": 0.75, "confidence": 1.0, "judge_model": "c", "models": models}
    assert outcomes(whole | {"signals": first | {"escalated": True}}) == [
        (0, 0.25, 0.5, None, "a, b", ZERO, None),
        (1, 0.75, 1.0, None, "c", ZERO, None),
    ]
    skipped = first | {"first_model": "f", "escalation_skipped": "throttled", "throttled_reason": "run_cap"}
    assert outcomes(whole | {"signals": skipped}) == [
        (0, 0.25, 0.5, None, "f", ZERO, None),
        (1, None, 0.0, "throttled", None, ZERO, "run_cap"),
    ]
    unknown = outcomes({"score": 0.75, "confidence": 1.0, "signals": first | {"escalation_skipped": "timeout"}})
    assert (unknown[0][4], unknown[1][3], unknown[1][6]) == (None, "timeout", None)


@pytest.mark.parametrize(("names", "index"), [([1], 1), ([0, 1], 0), ([], 0), ([2], 0), ([1, 2], 0)])
def test_a_verdict_without_stages_is_that_of_the_only_stage_that_answered(names, index):
    models = {f"both.stages[{name}].model": ["m"] for name in names} | {"other.stages[1]": ["m"]}
    payload = {"score": 0.5, "confidence": 1.0, "models": models}
    assert [outcome[0] for outcome in outcomes(payload)] == [index]


def outcome(failure=None, **changes):
    return SimpleNamespace(**{"kind": "row", "id": "x", "failure": failure, "model": "m", "run_id": "r"} | changes)


def test_a_failure_replaces_a_failure_and_never_a_verdict():
    stage = Stage("one", SimpleNamespace(name="llm/judge", fingerprint="f"))
    first, second, verdict = outcome("timeout"), outcome("crashed"), outcome()
    for each in (first, second):
        stage.add("f", each)
        assert stage.outcomes["row", "x"] is each
    stage.add(None, verdict)
    stage.add("f", outcome("timeout"))
    assert stage.outcomes["row", "x"] is verdict
    assert stage.identities == {("", "m"): "r"}
    assert stage.model == "m"
    stage.add("f", outcome(model="n", run_id="r2"))
    assert stage.model is None
    assert not stage.is_pairwise
    assert Stage("two", SimpleNamespace(name="llm/pairwise", fingerprint="f")).is_pairwise
