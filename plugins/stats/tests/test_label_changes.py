"""Change of a label between two runs: the interval, the four answers, and how often they are wrong."""

from __future__ import annotations

from math import sqrt
from pathlib import Path

import attrs
import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

from dicast import Results
from dicast.reporting import ContentDigests
from dicast_stats.changes.estimate import MIN_EQUAL, Estimate, estimate_mean, more_pairs
from dicast_stats.changes.label_changes import label_changes, round_up
from dicast_stats.pairs.paired import Paired
from dicast_stats.unpaired.criteria_effects import CriteriaEffects
from dicast_stats.unpaired.distribution_shift import DistributionShift
from dicast_stats.unpaired.significance import Significance

JUDGES = {"metrics[a]": "1", "scoring": "1"}


def run(name, scores, *, outputs=None, sessions=None, fingerprints=JUDGES, **options):
    rows = []
    for number in range(len(next(iter(scores.values())))):
        row = {"id": str(number)} | ({} if sessions is None else {"session_id": sessions[number]})
        values = {label: column[number] for label, column in scores.items()}
        rows.append((str(number), {"row": row, "metrics": {"scores": values}}))
    contents = [
        (("row", str(number)), ContentDigests("in", output, None)) for number, output in enumerate(outputs or ())
    ]
    members = {"contents": lambda: iter(contents), **options}
    return Results(name, name, lambda: iter(rows), fingerprints, **members)


def change(before, after, **options):
    return label_changes(run("a", {"a": before}), run("b", {"a": after}), **options)["a"]


@pytest.mark.parametrize(
    ("names", "ids", "winner"),
    [
        (("plain", "brief"), ("1", "2"), "brief"),
        (("support/plain", "support/brief"), ("1", "2"), "brief"),
        (("support/plain", "other/plain"), ("1", "2"), "other/plain"),
        (("support", "support"), ("01KDZ3W5Z0000000000000AAAA", "01KDZ3W5Z0000000000000BBBB"), "B (00BBBB)"),
        (("rows", "rows"), ("old/rows.jsonl", "new/rows.jsonl"), "B"),
        (("a", "experiment-with-a-name-of-many-words"), ("1", "2"), "experiment-w…-many-words"),
    ],
)
def test_the_sentence_names_the_better_run(names, ids, winner):
    runs = [
        attrs.evolve(run(name, {"a": scores}), run_id=id_)
        for name, id_, scores in zip(names, ids, ([0.25] * 8, [0.75] * 8), strict=True)
    ]
    better = label_changes(*runs)["a"]
    assert better.words == f"better: {winner} is ahead, +0.5 over 8 pairs, all differences equal"
    assert better.json()["winner"] == winner
    assert len(f"label: {better.words}") <= 80 or len(winner) > 20
    worse = label_changes(*reversed(runs))["a"]
    assert worse.words.startswith(f"worse: {'A' + winner[1:] if winner.startswith('B') else winner} is ahead, -0.5")


def independent_interval(differences, sessions):
    """Return the mean and its interval by the sums over sessions, written out."""
    from scipy.special import stdtrit

    count, mean = len(differences), sum(differences) / len(differences)
    sums = {}
    for difference, session in zip(differences, sessions, strict=True):
        sums[session] = sums.get(session, 0.0) + difference - mean
    groups = len(sums)
    error = sqrt(groups / (groups - 1) * sum(value**2 for value in sums.values())) / count
    reach = stdtrit(groups - 1, 0.975) * error
    return mean, mean - reach, mean + reach


@given(st.lists(st.tuples(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), st.integers(0, 5)), min_size=3, max_size=40))
def test_the_interval_is_that_of_an_independent_calculation(pairs):
    differences, sessions = [value for value, _ in pairs], [session for _, session in pairs]
    estimate = estimate_mean(np.array(differences), sessions)
    assert estimate.mean == pytest.approx(sum(differences) / len(differences))
    if estimate.error:
        expected = independent_interval(differences, sessions)
        assert (estimate.mean, estimate.low, estimate.high) == pytest.approx(expected)


def test_without_sessions_it_is_the_paired_t_test():
    from scipy import stats

    rng = np.random.default_rng(3)
    before, after = rng.random(30), rng.random(30)
    expected = stats.ttest_rel(after, before)
    estimate = change([*before], [*after]).estimate
    ends = expected.confidence_interval(0.95)
    assert (estimate.t, estimate.p_value) == pytest.approx((expected.statistic, expected.pvalue))
    assert (estimate.low, estimate.high) == pytest.approx(ends)


@pytest.mark.parametrize(
    ("before", "after", "answer"),
    [
        ([0.0] * 20, [1.0] * 18 + [0.0] * 2, "better"),
        ([1.0] * 20, [0.0] * 18 + [1.0] * 2, "worse"),
        ([0.5] * 400, [0.5 + 0.01 * (-1) ** row for row in range(400)], "no difference found"),
        ([0.5] * 20, [0.5 + 0.2 * (-1) ** row for row in range(20)], "cannot tell"),
        ([0.5], [1.0], "cannot tell"),
        ([None], [1.0], "cannot tell"),
    ],
)
def test_each_label_has_one_of_four_answers(before, after, answer):
    assert change(before, after).answer == answer
    assert change(before, after).words.startswith(f"{answer}: ")


@pytest.mark.parametrize("sides", [("better", 1.0), ("worse", 0.0)])
def test_equal_differences_decide_from_six_sessions_on(sides):
    answer, after = sides
    few = change([0.5] * (MIN_EQUAL - 1), [after] * (MIN_EQUAL - 1))
    assert (few.answer, few.missing_pairs) == ("cannot tell", 1)
    assert change([0.5] * MIN_EQUAL, [after] * MIN_EQUAL).answer == answer


def test_subjects_of_one_session_count_together():
    before, after = {"a": [0.0] * 40}, {"a": [1.0, 1.0, 1.0, 0.0] * 10}
    apart = label_changes(run("a", before), run("b", after))["a"]
    sessions = [str(number % 4) for number in range(40)]
    together = label_changes(run("a", before), run("b", after, sessions=sessions))["a"]
    assert (apart.answer, apart.estimate.sessions) == ("better", 40)
    assert (together.estimate.mean, together.estimate.sessions) == (apart.estimate.mean, 4)
    assert together.estimate.high - together.estimate.low > 3 * (apart.estimate.high - apart.estimate.low)


def judged(name, scores, outputs, judge="1", **options):
    return run(name, {"a": scores}, outputs=outputs, fingerprints={"judges[a]": judge, "scoring": "1"}, **options)


def test_equal_outputs_under_equal_judges_are_no_change():
    """Two different answers of a judge about one output are no change of the output."""
    before, after = [0.2, 0.4, 0.6, 0.8], [0.4, 0.3, 0.9, 0.7]
    same = ["x", "y", "z", "w"]
    found = label_changes(judged("a", before, same), judged("b", after, same))["a"]
    assert (found.answer, found.identical) == ("no difference found", 4)
    assert (found.estimate.mean, found.estimate.low, found.estimate.high) == (0, 0, 0)
    assert (
        "the outputs of 4 pairs are equal in both runs; 4 of 4 pairs have equal outputs and judges and count as"
        in found.words
    )
    assert found.json()["varied"] == 4
    again = label_changes(judged("a", before, same), judged("b", before, same))["a"]
    assert (again.varied, "varied" in again.json()) == (0, False)
    partly = label_changes(judged("a", before, same), judged("b", after, [*same[:3], "v"]))["a"]
    assert (partly.identical, partly.estimate.mean) == (3, pytest.approx(-0.1 / 4))
    other_judge = judged("b", after, same, judge="2")
    assert label_changes(judged("a", before, same), other_judge)["a"].identical == 0
    other_model = judged("b", after, same, models={"a": ["new"]})
    assert label_changes(judged("a", before, same, models={"a": ["old"]}), other_model)["a"].identical == 0


@pytest.mark.parametrize(
    ("now", "identical", "mean"),
    [
        (ContentDigests("in", "out", "all", "1 s"), 3, 0),
        (ContentDigests("in", "out", "all", "9 s"), 1, -2 / 3),
        (ContentDigests("in", "out", "other column", "1 s"), 0, -2 / 3),
    ],
    ids=["equal", "slower", "other data"],
)
def test_a_metric_may_be_about_more_than_the_text_of_the_answer(now, identical, mean):
    def side(name, scores, digests):
        contents = [(("row", str(number)), digests) for number in range(3)]
        return run(name, {"a": scores}, contents=lambda: iter(contents))

    was = ContentDigests("in", "out", "all", "1 s")
    found = label_changes(side("a", [1.0] * 3, was), side("b", [0.0, 0.0, 1.0], now))["a"]
    assert (found.identical, found.estimate.mean) == (identical, pytest.approx(mean))


def test_equal_outputs_with_equal_scores_are_identical_although_the_time_of_the_task_differs():
    def side(name, seconds):
        contents = [(("row", str(number)), ContentDigests("in", "out", "all", seconds)) for number in range(3)]
        return run(name, {"a": [1.0, 0.0, 0.5]}, contents=lambda: iter(contents))

    found = label_changes(side("a", "1 s"), side("b", "9 s"))["a"]
    assert found.identical == 3
    assert "the outputs of 3 pairs are equal in both runs" in found.words


def test_labels_other_than_the_gates_are_adjusted():
    rng = np.random.default_rng(5)
    before = {name: [0.5] * 30 for name in "abc"}
    after = {name: [0.5 + value for value in rng.normal(0.01, 0.1, 30)] for name in "abc"}
    after["a"] = after["b"] = [0.5 + value for value in np.linspace(-0.06, 0.12, 30)]
    found = label_changes(run("a", before), run("b", after, gated=("a",)))
    assert [*found] == ["a", "b", "c"]
    assert found["a"].estimate == found["b"].estimate
    assert found["a"].adjusted_p_value == found["a"].estimate.p_value < 0.05
    assert found["b"].adjusted_p_value == pytest.approx(2 * found["a"].adjusted_p_value)
    for test in (Significance(), CriteriaEffects(), DistributionShift()):
        figures = test.compare(run("a", before), run("b", after, gated=("a",)))["criteria"]
        assert figures["a"]["adjusted_p_value"] == figures["a"]["p_value"]
        assert figures["b"]["adjusted_p_value"] == pytest.approx(min(1, 2 * figures["b"]["p_value"]))


def test_subjects_of_one_run_alone_are_counted():
    found = change([0.1, 0.2, None, 0.4, 0.5], [0.2, 0.2, 0.3, None, None])
    assert (found.estimate.n, found.unpaired_baseline, found.unpaired_variant) == (2, 2, 1)
    assert found.words.endswith("; 2 scored in A only; 1 scored in B only")


differences = st.lists(st.floats(-1, 1), min_size=2, max_size=30)


@given(differences, st.sampled_from([0.001, 0.02, 0.3]))
def test_cannot_tell_comes_with_a_number_of_further_pairs(values, margin):
    found = change([0.0] * len(values), values, margin=margin)
    low, high = found.estimate.low, found.estimate.high
    if found.answer == "cannot tell":
        assert found.missing_pairs is not None
        assert 1 <= found.missing_pairs <= round_up(found.missing_pairs) <= 1.1 * found.missing_pairs + 1
    elif found.answer == "no difference found":
        assert -margin <= low <= high <= margin
    else:
        assert (low > 0) if found.answer == "better" else (high < 0)


@pytest.mark.parametrize("deviation", [0.2, 0.4])
def test_the_further_pairs_find_the_difference_in_four_of_five_cases(deviation):
    rng = np.random.default_rng(11)
    pilot = rng.normal(0, 1, 60)
    pilot = (pilot - pilot.mean()) / pilot.std(ddof=1) * deviation + 0.05
    estimate = estimate_mean(pilot, range(60))
    count = 60 + (more_pairs(estimate, 0.05) or 0)
    draws = rng.normal(0.05, deviation, (2_000, count))
    t = draws.mean(1) / (draws.std(1, ddof=1) / sqrt(count))
    assert (abs(t) > 1.96).mean() == pytest.approx(0.8, abs=0.05)


def draw(shape, rng, count=80):
    """Return differences of two runs of one system, and their sessions."""
    if shape == "passes":
        sides = (rng.random((2, count)) < 0.85).astype(float)
        return sides[1] - sides[0], range(count)
    if shape == "grades":
        rows = rng.random(count)
        noise = rng.normal(0, 0.15, (2, count))
        return np.clip(rows + noise[1], 0, 1) - np.clip(rows + noise[0], 0, 1), range(count)
    sessions = np.repeat(np.arange(count // 4), 4)
    return rng.normal(0, 0.1, count // 4)[sessions] + rng.normal(0, 0.1, count), [*sessions]


@pytest.mark.parametrize("shape", ["passes", "grades", "sessions"])
def test_two_runs_of_one_system_are_rarely_worse(shape):
    """1,000 pairs of runs; a gate with max_drop 0.02 fails only if the answer is worse."""
    rng = np.random.default_rng(52)
    worse = 0
    for _ in range(1_000):
        estimate = estimate_mean(*draw(shape, rng))
        worse += estimate.high is not None and estimate.high < 0
    assert worse <= 50


def test_the_labels_are_those_of_the_gate_then_the_worse_then_the_others():
    before = [1.0] * 20
    labels = {"a": before, "b": [0.9, 1.0] * 10, "c": [0.0, 1.0] * 10, "d": [0.6, 1.0] * 10, "e": before}
    changes = label_changes(run("a", dict.fromkeys(labels, before)), run("b", labels, gated=("e",)))
    assert [*changes] == ["e", "c", "d", "b", "a"]
    assert [change.answer for change in changes.values()][1:4] == ["worse"] * 3


SCORES = st.one_of(st.none(), st.floats(0, 1, width=32))


@given(st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=30))
def test_without_subjects_held_back_the_figures_are_the_means_of_the_pairs(scores):
    before, after = zip(*scores, strict=True)
    got = change(before, after)
    pairs = [(a, b) for a, b in scores if a is not None and b is not None]
    expected = estimate_mean(np.array([b - a for a, b in pairs]), [*range(len(pairs))])
    assert (got.estimate.n, got.estimate.ends, got.held_back) == (len(pairs), None, (0, 0))
    assert got.estimate.mean == pytest.approx(expected.mean, abs=1e-12)
    assert got.estimate.low == pytest.approx(expected.low, abs=1e-9)
    assert "held_back_a" not in got.json()


def held_back(name, scores):
    """Return a run in which a score of None was held back."""
    rows = [
        (str(number), {"row": {"id": str(number)}, "metrics": {"scores": {} if score is None else {"a": score}}})
        for number, score in enumerate(scores)
    ]
    rows = [
        (id_, {**record, "held_back": ["a"]} if score is None else record)
        for (id_, record), score in zip(rows, scores, strict=True)
    ]
    return Results(name, name, lambda: iter(rows), JUDGES)


@given(
    st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=30),
    st.lists(st.floats(0, 1, width=32), min_size=60, max_size=60),
)
def test_the_ends_hold_for_every_score_of_the_subjects_held_back(scores, values):
    before, after = zip(*scores, strict=True)
    got = label_changes(held_back("a", before), held_back("b", after))["a"]
    known = iter(values)
    possible = [[next(known) if score is None else score for score in side] for side in (before, after)]
    mean = float(np.mean(np.subtract(possible[1], possible[0])))
    least, most = got.estimate.means
    assert least - 1e-9 <= mean <= most + 1e-9
    assert (got.estimate.n, got.unpaired_baseline, got.unpaired_variant) == (len(scores), 0, 0)
    assert got.held_back == (before.count(None), after.count(None))
    worst = change(
        [1.0 if score is None else score for score in before], [0.0 if score is None else score for score in after]
    )
    best = change(
        [0.0 if score is None else score for score in before], [1.0 if score is None else score for score in after]
    )
    assert (least, most) == (worst.estimate.mean, best.estimate.mean)
    answers = {worst.answer, best.answer}
    assert got.answer == (answers.pop() if len(answers) == 1 else "cannot tell")


@pytest.mark.parametrize(("mean", "margin"), [(0.0, 0.02), (0.005, 0.02), (-0.008, 0.02)])
def test_the_number_of_further_pairs_gives_an_answer_in_four_of_five_cases(mean, margin):
    estimate = Estimate(80, 80, mean, mean - 0.0349, mean + 0.0349, 0.9, 0.0175)
    pairs = 80 + more_pairs(estimate, margin - abs(mean), far=margin + abs(mean))
    error = 0.0175 * (80 / pairs) ** 0.5
    draws = np.random.default_rng(1).normal(mean, error, 40_000)
    quantile = float(scipy.special.stdtrit(pairs - 1, 0.975))
    within = (abs(draws) + quantile * error <= margin).mean()
    assert within == pytest.approx(0.8, abs=0.01)


def test_the_page_has_the_sentences_about_equal_outputs_equal_differences_and_few_pairs():
    page = (Path(__file__).parents[3] / "docs" / "concepts" / "statistics.md").read_text("utf-8")
    scores, outputs = [0.2, 0.4] * 20, ["x", "y"] * 20
    pairs = [
        (judged("plain", scores, outputs), judged("warm", scores, outputs)),
        (run("plain", {"a": [0.5] * 12}), run("warm", {"a": [0.6] * 12})),
        (run("plain", {"a": [0.5]}), run("warm", {"a": [0.6]})),
    ]
    sentences = [label_changes(*runs)["a"].words for runs in pairs]
    sentences.append(Paired().compare(*pairs[-1])["sentences"][0].removeprefix("a: "))
    assert [sentence for sentence in sentences if f"| `{sentence}` |" not in page] == []
