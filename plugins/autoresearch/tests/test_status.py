"""State of a session, and regressions of secondary metrics, for logs that are written out here."""

from __future__ import annotations

import re

import pytest

from dicast_autoresearch.log import Experiment, Log
from dicast_autoresearch.regressions import direction_of, regressions
from dicast_autoresearch.session import Session
from dicast_autoresearch.status import best_so_far, document, page, text, trend


def session(**options):
    return Session(
        **{
            "name": "demo",
            "primary": "score",
            "direction": "higher_is_better",
            "command": "true",
            "scope": ("src",),
            **options,
        }
    )


def log(*entries, segment=1):
    """Return a log of the statuses and values of *entries*, after a run of an older segment."""
    experiments = [Experiment(experiment=0, status="keep", hypothesis="", primary_metric=99.0)]
    for number, (status, value, *secondary) in enumerate(entries, 1):
        experiments.append(
            Experiment(
                experiment=number,
                status=status,
                hypothesis="h",
                primary_metric=value,
                secondary_metrics=secondary[0] if secondary else {},
                description=f"<change> {number} {'x' * 50}",
                learned=f"l&{number}",
                next_action_hint=f"n>{number}",
                segment=segment,
            )
        )
    return Log((), tuple(experiments), segment, 0)


RUNS = [("keep", 1.0), ("discard", 1.25), ("keep", 2.0), ("crash", None), ("checks_failed", 9.0), ("keep", 1.5)]


def test_the_document_has_counts_the_best_value_and_the_budget():
    assert document(session(runs=7), log(*RUNS)) == {
        "name": "demo",
        "primary": "score",
        "unit": "",
        "direction": "higher_is_better",
        "segment": 1,
        "runs": 6,
        "counts": {"keep": 3, "discard": 1, "crash": 1, "checks_failed": 1},
        "baseline": 1.0,
        "best": 2.0,
        "improvement": 1.0,
        "confidence": 1.0 / 0.5,  # the median of 1, 1.25, 2, 9 and 1.5 is 1.5
        "runs_left": 2,
        "last": {"experiment": 6, "status": "keep"},
    }
    assert document(session(), log(*RUNS))["runs_left"] is None
    assert document(session(runs=3), log(*RUNS))["runs_left"] == 0
    empty = document(session(runs=3), log())
    assert (empty["baseline"], empty["best"], empty["improvement"], empty["last"]) == (None, None, None, None)
    assert (empty["runs"], empty["runs_left"]) == (0, 3)
    assert document(session(runs=3), log(("keep", 1.0)))["runs_left"] == 3  # the baseline is not counted


def test_the_text_has_the_best_value_the_trend_and_the_newest_experiments():
    lines = text(session(primary="took_ms", direction="higher_is_better"), log(*RUNS)).splitlines()
    assert lines == [
        "demo: took_ms ms, higher is better",
        "6 experiments in segment 1: 3 keep, 1 discard, 1 crash, 1 checks_failed",
        "baseline 1, best 2 (+1 ms)",
        "confidence 2.00: likely real",
        "trend of the best kept value: ▁▁████",
        "",
        f"   1  keep                     1  {'<change> 1 ' + 'x' * 34}",
        f"   2  discard               1.25  {'<change> 2 ' + 'x' * 34}",
        f"   3  keep                     2  {'<change> 3 ' + 'x' * 34}",
        f"   4  crash                    -  {'<change> 4 ' + 'x' * 34}",
        f"   5  checks_failed            9  {'<change> 5 ' + 'x' * 34}",
        f"   6  keep                   1.5  {'<change> 6 ' + 'x' * 34}",
    ]
    many = text(session(), log(*[("keep", 1.0)] * 20)).splitlines()
    assert [line.split()[0] for line in many[-15:]] == [str(number) for number in range(6, 21)]
    assert many[-16] == ""
    assert not any(line.startswith("confidence") for line in many)


@pytest.mark.parametrize(
    ("best", "words"),
    [(3.0, "2.00: likely real"), (2.99, "1.99: marginal"), (2.0, "1.00: marginal"), (1.99, "0.99: within the noise")],
)
def test_the_confidence_has_words(best, words):
    # the values have a median of 1 and deviate by 1 in the median
    values = [
        ("keep", 1.0),
        ("discard", 0.0),
        ("discard", 0.0),
        ("discard", 1.0),
        ("discard", -1.0),
        ("keep", best),
        ("discard", 5.0),
    ]
    assert f"confidence {words}" in text(session(), log(*values)).splitlines()


def test_without_a_kept_value_the_text_ends_early():
    lines = text(session(), log(("crash", None), ("discard", 1.0))).splitlines()
    assert lines == [
        "demo: score, higher is better",
        "2 experiments in segment 1: 1 discard, 1 crash",
        "nothing was kept yet",
    ]


def test_the_best_value_follows_the_direction_and_starts_with_the_first_kept_one():
    entries = [("discard", 5.0), ("keep", 2.0), ("keep", 3.0), ("keep", float("inf")), ("keep", 1.0)]
    experiments = log(*entries).current
    assert best_so_far(experiments, session()) == [2.0, 3.0, 3.0, 3.0]
    assert best_so_far(experiments, session(direction="lower_is_better")) == [2.0, 2.0, 2.0, 1.0]


def test_the_trend_has_60_characters_from_the_lowest_to_the_highest_bar():
    rising = [("keep", float(number)) for number in range(70)]
    bars = trend(log(*rising).current, session())
    assert (len(bars), bars[0], bars[-1], set(bars)) == (60, "▁", "█", set("▁▂▃▄▅▆▇█"))
    assert trend(log(*[("keep", float(number)) for number in range(8)]).current, session()) == "▁▂▃▄▅▆▇█"
    assert trend(log(("keep", 1.0), ("keep", 1.0)).current, session()) == "▄▄"
    assert trend([], session()) == ""


def test_the_page_escapes_the_log_and_draws_every_value():
    drawn = page(session(name="<demo>"), log(("discard", 3.0), ("keep", 1.0), ("crash", None), ("keep", 2.0)))
    assert drawn.startswith("<!DOCTYPE html>")
    assert "<title>&lt;demo&gt;</title>" in drawn
    assert (
        "<p>4 experiments in segment 1: 2 keep, 1 discard, 1 crash<br>baseline 3, best 2 (-1)<br>confidence 1.00: marginal</p>"
        in drawn
    )
    row = (
        f"<tr class='crash'><td class='n'>3</td><td>crash</td><td class='n'>-</td><td>&lt;change&gt; 3 {'x' * 50}</td>"
        "<td>l&amp;3</td><td>n&gt;3</td></tr>"
    )
    assert row in drawn
    assert "<td class='n'>1</td>" in drawn
    assert re.findall(r"cx='([\d.]+)' cy='([\d.]+)'", drawn) == [
        ("20.0", "20.0"),
        ("273.3", "180.0"),
        ("780.0", "100.0"),
    ]
    assert "points='273.3,180.0 526.7,180.0 780.0,100.0'" in drawn
    assert re.findall(r"fill='currentColor'>([^<]+)</text>", drawn) == ["3", "1"]
    assert "<svg" not in page(session(), log(("crash", None)))
    single = page(session(), log(("keep", 4.0)))
    assert re.findall(r"cx='([\d.]+)' cy='([\d.]+)'", single) == [("20.0", "180.0")]


SECONDARY = [
    ("keep", 1.0, {"recall": 0.5, "latency": 10.0}),
    ("discard", 3.0, {"recall": 0.9, "latency": 1.0}),
    ("keep", 2.0, {"recall": 0.8, "latency": 12.0}),
]


@pytest.mark.parametrize(
    ("metrics", "entries", "sentence"),
    [
        (
            {"recall": 0.3, "latency": 12.0, "score": 0.0, "new": 0.0},
            SECONDARY,
            "regressions: recall 0.8 -> 0.3 (worse by 0.5, noise 0.1)",
        ),
        ({"latency": 14.5}, SECONDARY, "regressions: latency 12 -> 14.5 (worse by 2.5, noise 2)"),
        ({"latency": 14.0}, SECONDARY, ""),
        ({"latency": 11.0, "recall": 0.9}, SECONDARY, ""),
        ({"latency": 10.5}, SECONDARY[:1], "regressions: latency 10 -> 10.5 (worse by 0.5, noise unknown yet)"),
        ({"latency": 10.5}, SECONDARY[1:2], ""),
        (
            {"latency": 13.0, "recall": 0.7},
            [SECONDARY[0], SECONDARY[2]],
            "regressions: latency 12 -> 13 (worse by 1, noise unknown yet), recall 0.8 -> 0.7 (worse by 0.1, noise unknown yet)",
        ),
    ],
)
def test_secondary_metrics_that_are_worse_than_those_of_the_best_run_are_named(metrics, entries, sentence):
    assert regressions(metrics, log(*entries).current, session()) == sentence


def test_the_best_run_follows_the_direction():
    lower = session(direction="lower_is_better")
    assert regressions({"latency": 11.0}, log(*SECONDARY[:1], SECONDARY[2]).current, lower).startswith(
        "regressions: latency 10 ->"
    )


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        ("took_ms", "lower_is_better"),
        ("Total_Cost", "lower_is_better"),
        ("errors", "lower_is_better"),
        ("timely", "higher_is_better"),
    ],
)
def test_the_direction_of_a_metric_is_in_its_name_unless_it_is_stated(name, direction):
    assert direction_of(name, session()) == direction
    assert direction_of(name, session(secondary_directions={name: "higher_is_better"})) == "higher_is_better"
