"""The log: its own entries, and entries of the original tools."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dicast
from dicast_autoresearch import log
from dicast_autoresearch.log import Config, Experiment

ENTRY = {
    "experiment": 5, "status": "discard", "hypothesis": "Adding examples", "primary_metric": 0.745,
    "secondary_metrics": {"correctness": 8.5, "clarity": 8.2}, "commit": None, "description": "Added 3 blocks",
    "learned": "Examples help", "rollback_reason": "Dropped", "next_action_hint": "Try bullets",
    "timestamp": "2026-05-30T23:15:00Z",
}  # fmt: skip
ORIGINAL = [
    '{"type": "config", "name": "Fast", "metricName": "total_µs", "metricUnit": "µs", "bestDirection": "lower"}',
    '{"run": 1, "commit": "abcdef1", "metric": 10, "metrics": {"a": 1, "b": "x"}, "status": "keep", "description": "base", "timestamp": 1700000000000, "segment": 0}',
    "",
    "not json",
    "[1]",
    '{"type": "hook", "metric": 4}',
    '{"run": 2, "metric": "no", "status": "odd", "asi": {"hypothesis": "h", "learned": "l"}}',
    '{"type": "config", "name": "Other", "metricName": "x", "bestDirection": "sideways"}',
    '{"type": "config", "name": "Third", "metricName": "x", "bestDirection": "higher"}',
    '{"run": 3, "metric": 7, "status": "checks_failed"}',
]


def test_entries_of_the_document_are_read():
    (entry,) = log.read_lines([json.dumps(ENTRY)]).experiments
    assert {name: getattr(entry, name) for name in ENTRY} == ENTRY


def test_logs_of_the_original_tools_are_read():
    result = log.read_lines(ORIGINAL)
    assert [config.name for config in result.configs] == ["Fast", "Other", "Third"]
    assert [config.direction for config in result.configs] == ["lower_is_better", "lower_is_better", "higher_is_better"]
    first, second, third = result.experiments
    assert (first.primary_metric, first.secondary_metrics, first.commit) == (10.0, {"a": 1.0}, "abcdef1")
    assert first.timestamp == "2023-11-14T22:13:20Z"
    assert (second.status, second.primary_metric, second.hypothesis, second.learned) == ("keep", 0.0, "h", "l")
    # a second header without a run in between begins no segment
    assert (third.status, third.segment, result.segment, result.skipped) == ("checks_failed", 1, 1, 2)
    assert result.before().values == [7.0]


def test_what_is_written_reads_back(tmp_path):
    path = tmp_path / "autoresearch.jsonl"
    path.write_text(json.dumps(ENTRY))  # its last line has no end
    log.append(path, Config(name="n", metric="m_ms", unit="ms", direction="lower_is_better"))
    entry = Experiment(
        experiment=6, status="keep", hypothesis="é\u2028", primary_metric=1.5, learned="l", next_action_hint="n",
        segment=1, confidence=2.0, cost={"seconds": 1.0}, commit="c", reason="baseline",
    )  # fmt: skip
    log.append(path, entry)
    result = log.read(path)
    assert result.experiments[1] == entry
    assert (result.segment, result.skipped) == (1, 0)


@given(st.lists(st.one_of(st.text(), st.builds(json.dumps, st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["type", "run", "metric", "status", "experiment", "primary_metric", "asi", "segment", "metrics"]),
        inner, max_size=5,
    ), max_leaves=8,
))), max_size=6))  # fmt: skip
def test_no_line_makes_reading_fail(lines):
    result = log.read_lines(lines)
    assert len(result.experiments) <= len(lines)


@pytest.mark.parametrize("missing", log.ASI)
def test_missing_side_information_is_an_error_that_names_it(missing):
    entry = {**ENTRY, missing: " "}
    with pytest.raises(dicast.ConfigError, match=f"an experiment needs its {missing}"):
        log.check_side_information(entry)


def test_a_kept_change_needs_no_reason_to_roll_back():
    log.check_side_information({**ENTRY, "status": "keep", "rollback_reason": None})


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("p50_latency_µs", "µs"),
        ("latency_ms", "ms"),
        ("duration_sec", "s"),
        ("wall_s", "s"),
        ("heap_kb", "kb"),
        ("x_mb", "mb"),
        ("score", ""),
    ],
)
def test_units_are_read_from_names(name, unit):
    assert log.unit_of(name) == unit


def test_the_commit_of_a_discarded_entry_of_older_logs_is_its_ref():
    entry = {"experiment": 1, "status": "discard", "primary_metric": 2.0, "commit": "abc"}
    (entry_read,) = log.read_lines([json.dumps(entry)]).experiments
    assert (entry_read.commit, entry_read.discarded_ref) == (None, "abc")
