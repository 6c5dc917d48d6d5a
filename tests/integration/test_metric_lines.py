"""``dicast run --metric-lines``: a run as METRIC lines, for loops that read these."""

from __future__ import annotations

import pytest

from dicast import MetricLines

PIPELINE = "metrics: [{fake/act: {as: a-b}}, {fake/truth: {as: a_b, value: 1}}, {fake/act: {as: score, weight: 0}}]\n"


def lines(shop, text, *arguments):
    return shop.dicast("run", shop.pipeline(text).name, "--metric-lines", *arguments)


@pytest.mark.parametrize("syntax", ["strict", "lenient"])
def test_stdout_has_the_runs_score_and_each_labels_mean_and_nothing_else(shop, syntax):
    shop.rows(0.5, 0.50000002)
    done = lines(shop, PIPELINE)
    assert done.code == 0
    assert all(line.startswith("METRIC ") for line in done.out.splitlines())
    found = MetricLines(syntax)
    found.feed(done.out.encode())
    named = {"score": 0.750000005, "a_b": 0.50000001, "a_b_2": 1.0, "score_2": 0.50000001}
    assert found.result().metrics == pytest.approx(named, abs=1e-12)


def test_small_means_have_no_exponent(shop):
    shop.rows(1e-9)
    assert lines(shop, "metrics: [fake/act]\n").out == "METRIC score=0.000000001\nMETRIC fake_act=0.000000001\n"


def test_the_primary_label_is_the_score(shop):
    shop.rows(0.5)
    done = lines(shop, PIPELINE, "--primary", "a_b")
    assert done.out.splitlines()[0] == "METRIC score=1.0"


def test_what_has_no_mean_has_no_line_and_the_exit_code_is_the_runs(shop):
    shop.rows("raise")
    done = lines(shop, "metrics: [fake/act]\n")
    assert (done.code, done.out) == (3, "")
    shop.rows(0.5)
    done = lines(shop, "metrics: [fake/act]\ngate: {min_score: 0.9}\n")
    assert (done.code, done.out.splitlines()[0]) == (1, "METRIC score=0.5")


def test_the_mean_of_a_judge_is_a_line(shop):
    shop.rows(0.5)
    assert "METRIC fake_opinion=" in lines(shop, "judges: [fake/opinion]\n").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metric-lines", "--json"], "leave --json and --head out"),
        (["--metric-lines", "--head", "1"], "leave --json and --head out"),
        (["--primary", "a-b"], "add --metric-lines"),
        (["--metric-lines", "--primary", "ab"], "no metric or judge has the label 'ab'"),
    ],
)
def test_options_that_contradict_each_other_are_refused(shop, arguments, message):
    shop.rows(0.5)
    shop.pipeline(PIPELINE)
    done = shop.dicast("run", "p.yaml", *arguments)
    assert done.code == 2
    assert message in done.out + done.err
    assert not (shop / ".dicast").exists()


def test_a_suite_of_experiments_is_refused(shop):
    shop.rows(0.5)
    done = lines(shop, PIPELINE + "experiments: {one: {}, two: {set: {scoring.threshold: 0.7}}}\n")
    assert (done.code, done.out) == (2, "")
    assert "several experiments" in done.err
