"""Comparison of values on a raw scale."""

from __future__ import annotations

from dicast import Results
from dicast_stats import Paired
from dicast_stats.compare.pair import Pair


def run(name, values, **options):
    records = [
        (
            str(n),
            {"row": {"id": str(n)}, "metrics": {"scores": {"it": value}}}
            if value is not None
            else {"row": {"id": str(n)}, "metrics": {"scores": {}}, "held_back": ["it"]},
        )
        for n, value in enumerate(values)
    ]
    return Results(name, name, lambda: iter(records), {"metrics[it]": "1"}, raw=("it",), **options)


def test_raw_values_are_compared_on_their_scale_and_say_so():
    before = run("a", [10.0, 20.0, 30.0, 40.0], pass_at={"it": None})
    after = run("b", [15.0, 26.0, 34.0, 47.0], pass_at={"it": None})
    document = Pair(before, after).document(["stats/paired"])
    test = document["comparisons"]["stats/paired"]["criteria"]["it"]
    assert (test["scale"], test["mean_difference"]) == ("raw", 5.5)
    assert test["words"].endswith("; raw scale")
    assert (document["flips"], document["reasons"]) == (None, ["raw_scale"])


def test_no_difference_matters_by_default_on_a_raw_scale():
    before, after = run("a", [10.0, 20.0, 30.0]), run("b", [20.0, 10.0, 30.0])
    answer = Paired().compare(before, after)["answers"]["it"]
    assert (answer["answer"], answer["margin"], answer["scale"]) == ("cannot tell", None, "raw")
    assert "no margin is set for the raw scale (--margin)" in answer["words"]
    assert Paired(difference=30).compare(before, after)["answers"]["it"]["answer"] == "no difference found"


def test_a_raw_value_that_the_proxies_held_back_has_no_bounds():
    before, after = run("a", [10.0, 20.0, 30.0] * 5), run("b", [1.0, 2.0, None] * 5)
    answer = Paired(difference=30).compare(before, after)["answers"]["it"]
    assert (answer["answer"], answer["n"], answer["ci_low"], answer["held_back_b"]) == ("cannot tell", 15, None, 5)
    assert answer["needed"] == "the proxies held back 5 subjects of the run, whose raw values have no bounds"
    assert answer["needed"] in answer["words"]
