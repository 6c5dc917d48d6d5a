"""Entries of the log, made from measurements, in a folder without git."""

from __future__ import annotations

import json
from types import SimpleNamespace

import attrs
import pytest

from dicast import ConfigError
from dicast.toolkit.metric_lines import Measurements
from dicast_autoresearch import log as logs
from dicast_autoresearch import state
from dicast_autoresearch.decision import Decision
from dicast_autoresearch.entries import Entries
from dicast_autoresearch.measure import Measurement
from dicast_autoresearch.session import Session

SESSION = Session(
    name="demo",
    primary="score",
    direction="higher_is_better",
    command="true",
    scope=("src",),
    goal="more",
    validation="f1",
)
WORDS = {"hypothesis": "h", "next_action_hint": "n", "rollback_reason": "r"}


@pytest.fixture
def entries(tmp_path):
    return Entries(SimpleNamespace(root=tmp_path), SESSION)


def add(entries, value, status="keep", **metrics):
    measurement = Measurement(metrics=({} if value is None else {"score": value}) | metrics, seconds=1.23456)
    entry = entries.entry(measurement, status, Decision(status, "baseline"), WORDS, "d", "abc")
    entries.append(entry)
    return entry


def test_an_entry_of_a_kept_change_has_its_commit_and_no_reason_to_roll_back(entries):
    first = add(entries, 1.0)
    assert (first.experiment, first.commit, first.discarded_ref, first.rollback_reason) == (0, "abc", None, None)
    assert (first.learned, first.cost, first.confidence) == ("score 1: keep", {"seconds": 1.235}, None)
    add(entries, 0.0, "discard")
    decision = Decision("keep", "metric_improved", 1.5)
    metrics = {"score": 2.5, "f1": 0.5, "cost_usd": 0.25}
    entry = entries.entry(Measurement(metrics=metrics), "keep", decision, WORDS | {"learned": ""}, "d", "def")
    assert entry.learned == "score 2.5, +1.5 against the best kept: keep"
    assert entry.secondary_metrics == {"f1": 0.5, "cost_usd": 0.25}
    assert entry.cost == {"seconds": 0.0, "usd": 0.25}
    assert entry.confidence == 1.5  # the values 1, 0 and 2.5 deviate by 1 in the median
    assert (entry.experiment, entry.reason, entry.next_action_hint) == (2, "metric_improved", "n")


@pytest.mark.parametrize(
    ("value", "words", "learned", "reason"),
    [
        (None, {}, "score was not measured: the primary metric was not printed", "the primary metric was not printed"),
        (None, {"learned": "l", "rollback_reason": "r"}, "l", "r"),
        (0.5, {}, "score 0.5: discard", "the primary metric was not printed"),
    ],
)
def test_an_entry_of_a_discarded_change_has_its_ref_and_a_reason(entries, value, words, learned, reason):
    metrics = {} if value is None else {"score": value}
    entry = entries.entry(
        Measurement(metrics=metrics), "discard", Decision("discard", "metric_missing"), words, "d", "abc"
    )
    assert (entry.commit, entry.discarded_ref) == (None, "abc")
    assert (entry.learned, entry.rollback_reason, entry.primary_metric) == (learned, reason, value)
    assert (entry.hypothesis, entry.next_action_hint, entry.confidence) == ("", "(none was given)", None)


def test_regressions_follow_the_lesson(entries):
    add(entries, 1.0, f1=0.5)
    entry = entries.entry(
        Measurement(metrics={"score": 2.0, "f1": 0.25}),
        "keep",
        Decision("keep", "metric_improved"),
        WORDS | {"learned": "l"},
        "d",
    )
    assert entry.learned == "l; regressions: f1 0.5 -> 0.25 (worse by 0.25, noise unknown yet)"


def test_the_words_of_a_proposer_have_defaults(entries):
    assert entries.words(Measurements(), "sh p.sh") == {
        "hypothesis": "(the proposer named none)",
        "description": "sh p.sh",
    }
    asi = {"hypothesis": "h", "learned": 3, "rollback_reason": None, "other": "x"}
    assert entries.words(attrs.evolve(Measurements(), asi=asi), "sh p.sh") == {
        "hypothesis": "h",
        "description": "h",
        "learned": "3",
    }
    stated = attrs.evolve(Measurements(), asi=asi | {"description": "d"})
    assert entries.words(stated, "sh p.sh")["description"] == "d"


def test_a_report_has_the_last_run_and_the_best_value(entries, tmp_path):
    assert entries.report("before") == {
        "event": "before",
        "cwd": str(tmp_path),
        "next_run": 0,
        "last_run": None,
        "session": {
            "metric_name": "score",
            "metric_unit": "",
            "direction": "higher_is_better",
            "baseline_metric": None,
            "best_metric": None,
            "run_count": 0,
            "goal": "more",
            "scope": ["src"],
        },
    }
    add(entries, 1.0)
    add(entries, 3.0)
    last = add(entries, 2.0, "discard")
    report = entries.report("after", tmp_path / "checkout")
    assert (report["cwd"], report["next_run"], report["last_run"]) == (
        str(tmp_path / "checkout"),
        3,
        attrs.asdict(last),
    )
    about = report["session"]
    assert (about["baseline_metric"], about["best_metric"], about["run_count"]) == (1.0, 3.0, 3)


def test_values_of_runs_before_a_decision_are_those_of_the_newest_segment():
    runs = [
        ("keep", 1.0, 0.5),
        ("discard", 9.0, 0.9),
        ("keep", None, 0.7),
        ("keep", float("nan"), 0.6),
        ("keep", 2.0, 0.8),
    ]
    experiments = [
        logs.Experiment(
            experiment=n, status=status, hypothesis="", primary_metric=value, secondary_metrics={"f1": f1}, segment=2
        )
        for n, (status, value, f1) in enumerate(runs)
    ]
    older = attrs.evolve(experiments[0], segment=1, primary_metric=7.0)
    before = logs.Log((), (older, *experiments), 2, 0).before("f1")
    assert (before.values, before.kept_values, before.validation) == ([1.0, 9.0, 2.0], [1.0, 2.0], 0.8)
    assert logs.Log((), (older, *experiments), 2, 0).before().validation is None
    assert logs.Log((), (experiments[1],), 2, 0).before("f1").validation is None


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"run": 1, "metric": True}, {"primary_metric": 0.0, "experiment": 1}),
        ({"run": True, "metric": 1e308}, {"primary_metric": 0.0, "experiment": 0}),
        (
            {"experiment": 4, "primary_metric": None, "segment": True},
            {"primary_metric": None, "experiment": 4, "segment": 0},
        ),
        (
            {"experiment": 4, "primary_metric": 1.5, "segment": 3, "exit_code": "x", "cost": []},
            {"segment": 3, "exit_code": 0, "cost": {}},
        ),
        (
            {"experiment": 4, "primary_metric": 1, "segment": -1, "timestamp": 1e300},
            {"segment": 0, "timestamp": "", "exit_code": None},
        ),
        ({"status": "discard", "metric": 2, "commit": "c"}, {"commit": "c", "discarded_ref": None}),
        ({"status": "discard", "primary_metric": 2, "commit": "c"}, {"commit": None, "discarded_ref": "c"}),
        (
            {"status": "discard", "primary_metric": 2, "commit": "c", "discarded_ref": "r"},
            {"commit": None, "discarded_ref": "r"},
        ),
    ],
)
def test_odd_entries_of_a_log_are_read(entry, expected):
    (read,) = logs.read_lines([json.dumps(entry)]).experiments
    assert {name: getattr(read, name) for name in expected} == expected


def test_a_round_under_way_reads_back_and_one_of_an_older_release_is_refused(tmp_path):
    (tmp_path / ".auto").mkdir()
    assert state.load(tmp_path) is None
    pending = state.Pending("mark", "folder", "base", {"commit": "c"})
    state.save(tmp_path, pending)
    assert state.load(tmp_path) == pending
    (tmp_path / ".auto" / "state.json").write_text('{"mark": "m", "folder": "f"}')
    with pytest.raises(ConfigError, match="an older release stopped in the middle of a round"):
        state.load(tmp_path)
    state.clear(tmp_path)
    state.clear(tmp_path)
    assert state.load(tmp_path) is None
    assert state.load_ref(tmp_path) is None
    state.save_ref(tmp_path, "refs/x")
    assert state.load_ref(tmp_path) == "refs/x"
    state.save_last(tmp_path, {"a": 1})
    assert state.load_last(tmp_path) == {"a": 1}
    state.clear_last(tmp_path)
    assert state.load_last(tmp_path) is None
