"""Forecast of a run before it is started."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import dicast
from dicast import ConfigError
from dicast_trust.plan.command import make_plan, plan
from dicast_trust.plan.cost import from_rows, from_size
from dicast_trust.plan.labels import labels_document, labels_lines
from dicast_trust.plan.request import PlanRequest
from dicast_trust.plan.width import (
    high_spread,
    least_difference,
    mcnemar_subjects,
    subjects_for_difference,
    subjects_for_width,
    width,
)
from dicast_trust.statistics.moments import Moments


def moments(xs, ys=None):
    result = Moments()
    for x, y in zip(xs, ys or [0.0] * len(xs), strict=True):
        result.add(x, y)
    return result


COSTS = st.lists(st.floats(0.001, 10), min_size=5, max_size=40)


@given(COSTS, st.integers(1, 100_000), st.sampled_from([0.8, 0.9, 0.95]))
def test_the_cost_of_the_rest_by_the_mean(costs, rest, level):
    from scipy import stats

    forecast, m = from_rows(moments(costs), rest, level), len(costs)
    mean, spread = np.mean(costs), np.std(costs, ddof=1)
    q = stats.t.ppf((1 + level) / 2, m - 1) * spread / mean * math.sqrt(1 / m + 1 / rest)
    expected = (rest * mean * math.exp(-q), rest * mean, rest * mean * math.exp(q))
    assert (forecast.low, forecast.mid, forecast.high) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_cost_of_the_rest_by_the_size_of_rows(seed):
    from scipy import stats

    rng = np.random.default_rng(seed)
    paid, rest = rng.uniform(100, 5000, 30), rng.uniform(100, 9000, 400)
    costs = 0.01 + 0.0002 * paid + rng.normal(0, 0.05, 30)
    forecast = from_size(moments(paid.tolist(), costs.tolist()), moments(rest.tolist()), 0.9)
    line = stats.linregress(paid, costs)
    error = math.sqrt(((costs - line.intercept - line.slope * paid) ** 2).sum() / 28)
    mid = 400 * (line.intercept + line.slope * rest.mean())
    leverage = 1 / 30 + (rest.mean() - paid.mean()) ** 2 / ((paid - paid.mean()) ** 2).sum() + 1 / 400
    q = stats.t.ppf(0.95, 28) * error * math.sqrt(leverage) / (mid / 400)
    assert (forecast.low, forecast.mid, forecast.high) == pytest.approx(
        (mid * math.exp(-q), mid, mid * math.exp(q)), rel=1e-9
    )
    assert from_size(moments(paid.tolist(), rng.permutation(costs).tolist()), moments(rest.tolist()), 0.9) is None
    assert from_size(moments(paid.tolist()[:9], costs.tolist()[:9]), moments(rest.tolist()), 0.9) is None


def test_what_is_settled_is_the_least_and_the_projection_the_most():
    forecast = from_rows(moments([1.0, 2.0, 3.0, 4.0, 5.0]), 10, 0.9)
    assert forecast.within(15.0, None).low > 15
    assert forecast.within(15.0, 20.0).high == forecast.within(15.0, 20.0).mid == 35.0


@given(st.floats(0.01, 0.5), st.floats(0.005, 0.5), st.floats(1, 4))
def test_the_width_and_the_subjects_it_takes_belong_together(spread, target, effect):
    n = subjects_for_width(spread, target, effect)
    assert n == max(1, math.ceil(effect * (2 * 1.959963984540054 * spread / target) ** 2))
    assert width(spread, n, effect) <= target * (1 + 1e-9)
    assert n == 1 or width(spread, n - 1, effect) > target * (1 - 1e-9)


def test_the_high_width_and_the_power_are_the_textbooks():
    from scipy import stats

    assert high_spread(0.3, 20) == pytest.approx(0.3 * math.sqrt(19 / stats.chi2.ppf(0.2, 19)), rel=1e-9)
    assert least_difference(0.4, 200, 1.5, 0.8) == pytest.approx(
        (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) * 0.4 * math.sqrt(1.5 / 200), rel=1e-9
    )
    n = subjects_for_difference(0.4, 0.05, 1.0, 0.9)
    assert least_difference(0.4, n, 1.0, 0.9) <= 0.05 < least_difference(0.4, n - 1, 1.0, 0.9)
    assert mcnemar_subjects(0.2, 0.3, 0.8) is None
    assert mcnemar_subjects(0.2, 0.1, 0.8) == math.ceil(
        ((1.959963984540054 * math.sqrt(0.2) + stats.norm.ppf(0.8) * math.sqrt(0.2 - 0.01)) / 0.1) ** 2
    )


@pytest.mark.slow
@pytest.mark.parametrize("rows", [20, 40])
def test_the_range_holds_the_cost_of_cascades_in_86_to_94_percent(rows):
    """A quarter of rows is escalated to a stage of log-normal cost, ten times as expensive. With a seed; ``benchmarks/plan.py`` has more."""
    rng, inside, runs = np.random.default_rng(5), 0, 1500
    for _ in range(runs):
        costs = 0.001 * rng.lognormal(0, 0.3, 1000)
        costs += (rng.random(1000) < 0.25) * 0.01 * rng.lognormal(0, 0.4, 1000)
        forecast = from_rows(moments(costs[:rows].tolist()), 1000 - rows, 0.9)
        inside += forecast.low <= costs[rows:].sum() <= forecast.high
    assert 0.86 <= inside / runs <= 0.94


# The command


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Pipeline file with its rows."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    lines = [
        json.dumps({"id": str(at), "output": "x " * int(rng.integers(1, 9)), "reference": str(int(rng.random() < 0.7))})
        for at in range(200)
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    (tmp_path / "p.yaml").write_text(
        "name: planned\nsource: {rows/jsonl: {path: rows.jsonl, shuffle: 1}}\nmetrics: [check/equals: {value: x}, check/regex: {pattern: x}]\n"
        "ledger: {ledger/sqlite: {path: ledger.db}}\n"
    )
    return tmp_path


def cli(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "dicast", *arguments], capture_output=True, text=True, check=True
    ).stdout


def planned(*arguments):
    document = CliRunner().invoke(plan, [*arguments, "--json"], catch_exceptions=False)
    return json.loads(document.stdout)


def test_without_a_pilot_the_plan_has_the_greatest_cost_of_calls(project):
    forecast = planned("p.yaml")
    assert forecast["cost"]["usd"] == {
        "low": "0",
        "mid": None,
        "high": "0",
        "settled": "0",
        "projected": "0",
        "n": 0,
        "s": None,
        "from": "bound",
    }
    assert forecast["rows"] == {"seen": 0, "left": 200}
    assert forecast["width"] is None
    assert "0 rows have a score" in forecast["reasons"]["width"]


def test_a_pilot_is_bought_and_the_run_goes_on_from_it(project):
    forecast = planned("p.yaml", "--pilot", "20")
    assert (forecast["rows"], forecast["resume"]) == ({"seen": 20, "left": 180}, True)
    assert forecast["width"]["subjects"] == 200
    result = dicast.prospect(project / "p.yaml")
    assert result.read(lambda ledger: sum(1 for entry in ledger.read(dicast.Query(types=("subject.read",))))) == 20
    run = cli("run", "p.yaml", "--resume", forecast["run_id"], "--json")
    document = json.loads(run)
    assert (document["subjects"], document["run_id"]) == (200, forecast["run_id"])
    assert document["plan"]["subjects"] == {"planned": 200, "judged": 200}
    assert document["plan"]["width"]["planned"] == forecast["width"]["width"]
    ids = result.read(lambda ledger: [e.event.subject_id for e in ledger.read(dicast.Query(types=("eval.completed",)))])
    assert sorted(ids, key=int) == [str(at) for at in range(200)]  # in random order, and none twice
    assert "plan: interval width" in cli("show", forecast["run_id"], "--ledger", "ledger.db")


def test_a_plan_goes_by_the_scores_of_the_earlier_run(project):
    dicast.run(project / "p.yaml")
    forecast = planned("p.yaml", "--solve", "n", "--width", "0.05")
    scores = [verdict.score for verdict in dicast.run(project / "p.yaml").verdicts]
    spread = np.std(scores, ddof=1)
    assert (forecast["rows"], forecast["resume"]) == ({"seen": 200, "left": 200}, False)
    assert forecast["width"]["width"] == pytest.approx(2 * 1.959963984540054 * spread / math.sqrt(200))
    assert forecast["solve"]["subjects"] == max(1, math.ceil((2 * 1.959963984540054 * spread / 0.05) ** 2))


def test_another_pipeline_is_no_earlier_run(project):
    dicast.run(project / "p.yaml")
    text = (project / "p.yaml").read_text().replace("pattern: x", "pattern: y")
    (project / "p.yaml").write_text(text)
    assert planned("p.yaml")["rows"]["seen"] == 0


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"pilot": 3}, "a pilot of 3 rows is too small"),
        ({"solve": "n"}, "--solve n needs a goal"),
        ({"solve": "audit"}, "--solve audit needs a width"),
    ],
)
def test_what_makes_no_plan_is_refused_and_buys_nothing(project, arguments, wrong):
    with pytest.raises(ConfigError, match=wrong):
        make_plan(PlanRequest(project / "p.yaml", **arguments))
    assert not (project / "ledger.db").exists()


def test_a_small_pilot_says_that_its_range_is_too_narrow(project):
    forecast = planned("p.yaml", "--pilot", "6")
    assert any("too narrow" in note for note in forecast["words"])


def simulated(rates, n, target, alpha, random):
    """Return the share of calibrations of *n* labels in which the first rung with enough labels passes the exact test."""
    from scipy import stats

    shares, errors = np.array(rates).T
    least = max(math.ceil(math.log(alpha) / math.log(target)), math.ceil(0.3 * n))
    counts = random.multinomial(n, shares, 2000)
    counts_above, wrong = counts.cumsum(1), random.binomial(counts, errors).cumsum(1)
    passes = stats.binom.cdf(wrong, counts_above, 1 - target) <= alpha
    rows = zip(counts_above >= least, passes, strict=True)
    return np.mean([any(enough) and passed[enough.argmax()] for enough, passed in rows])


@pytest.mark.parametrize(
    ("rates", "target", "alpha"),
    [
        ([(0.5, 0.01), (0.5, 0.3)], 0.9, 0.1),
        ([(0.34, 0.003), (0.27, 0.017), (0.39, 0.029)], 0.9, 0.1),
        ([(1.0, 0.046)], 0.9, 0.1),
        ([(0.4, 0.05), (0.6, 0.15)], 0.8, 0.2),
    ],
)
def test_labels_for_given_rates_are_those_of_a_simulation(rates, target, alpha):
    random, text = np.random.default_rng(3), ",".join(f"{share}:{error}" for share, error in rates)
    document = labels_document(text, target, alpha)
    least = math.ceil(math.log(alpha) / math.log(target))
    needed = next(n for n in range(least, 6000, 3) if simulated(rates, n, target, alpha, random) >= 0.8)
    assert (document["least"], document["target"], document["alpha"]) == (least, target, alpha)
    assert needed / 1.5 <= document["labels"] <= needed * 1.5


def test_rates_at_which_no_number_of_labels_will_do():
    document = labels_document("1:0.4")
    assert (document["labels"], document["most"], document["chance"]) == (None, 6000, 0.8)
    advice = "  real rates are uncertain: plan for half as many again"
    threshold = "a threshold whose verdicts are right 90 % of the time"
    assert [*labels_lines(document)] == [f"labels: 6,000 are not enough at these rates for {threshold}", advice]
    enough = document | {"labels": 1200}
    assert [*labels_lines(enough)] == [
        f"labels: about 1,200 at these rates for {threshold}, in 80 % of calibrations",
        advice,
    ]


@pytest.mark.parametrize(("option", "value"), [("--rates", "1:0.1"), ("--target", "0.8"), ("--alpha", "0.2")])
def test_options_of_a_plan_for_labels_say_nothing_without_it(option, value):
    result = CliRunner().invoke(plan, ["pipeline.yaml", option, value])
    assert result.exit_code == 2
    assert f"{option} needs --labels" in result.stderr


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (None, "--rates is missing: add share:error"),
        ("a:b", "not share:error"),
        ("0.5:0.1", "add up to 0.5"),
        ("1:2", "from 0 to 1"),
    ],
)
def test_wrong_rates_are_refused(text, wrong):
    with pytest.raises(ConfigError, match=wrong):
        labels_document(text)
