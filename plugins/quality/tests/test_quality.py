"""``dicast quality``, on ledgers with given events."""

from __future__ import annotations

import asyncio
import json
import math
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Entry, Event
from dicast.reading import VerdictColumns
from dicast.testing import MemoryLedger
from dicast_quality.percentile import percentile
from dicast_quality.quality import quality, read_quality
from dicast_quality.verdicts import Verdicts

DAYS = {"start": datetime(2026, 3, 1, tzinfo=UTC), "end": datetime(2026, 3, 8, tzinfo=UTC)}
MARCH = ("--from", "2026-03-01", "--to", "2026-03-08")


@pytest.fixture
def rows(ask):
    """Return a function for the rows of ``dicast quality`` about March, or about another window."""

    def run(*arguments, window=MARCH):
        return ask(quality, *window, *arguments)["data"]

    return run


def refused(ask, *arguments):
    with pytest.raises(ConfigError) as caught:
        ask(quality, *MARCH, *arguments)
    return str(caught.value)


def test_unsure_verdicts_leave_the_mean_and_stay_in_the_count(ledger, rows):
    ledger.judged("T1", 0.2, confidence=0.3, cost="0.01")
    ledger.judged("T2", 0.9, confidence=0.8, cost="0.02")
    (row,) = rows("--min-confidence", "0.5")
    assert (row["verdict_count"], row["scored_count"], row["mean_score"]) == (2, 1, 0.9)
    assert row["mean_confidence"] == pytest.approx(0.55)
    assert row["judge_cost_usd_total"] == "0.03"
    assert (row["p50_score"], row["p10_score"]) == (0.9, 0.9)


def test_percentiles_are_interpolated(ledger, rows):
    for number, score in enumerate([0.6, 0.2, 1.0, 0.4, 0.8]):
        ledger.judged(f"T{number}", score)
    (row,) = rows()
    assert row["p50_score"] == 0.6
    assert row["p10_score"] == pytest.approx(0.28)


def test_figures_of_no_sure_verdict_are_null(ledger, rows):
    ledger.judged("T1", 0.2, confidence=0.3)
    (row,) = rows("--min-confidence", "1")
    assert (row["verdict_count"], row["scored_count"], row["mean_confidence"]) == (1, 0, 0.3)
    assert [row[name] for name in ("mean_score", "p50_score", "p10_score", "below_floor")] == [None] * 4


def test_without_groups_there_is_one_row_also_of_nothing(ledger, rows):
    assert rows() == []
    (row,) = rows("--group-by", "none")
    assert (row["verdict_count"], row["mean_score"], row["judge_cost_usd_total"]) == (0, None, "0")
    ledger.judged("T1", 0.2)
    ledger.judged("T2", 0.4, judge="other")
    (row,) = rows("--group-by", "none")
    assert (row["verdict_count"], row["mean_score"]) == (2, pytest.approx(0.3))
    assert not {"chosen_model", "judge_kind", "rubric_id"} & set(row)


def test_model_is_the_one_the_turn_was_routed_to(ledger, rows):
    ledger.routed("T1", "small")
    ledger.called("T1", "large")
    ledger.routed("T2", "small")
    ledger.routed("T2", "large")
    for turn in ("T1", "T2", "T3"):
        ledger.judged(turn, 0.5)
    assert [(row["chosen_model"], row["verdict_count"]) for row in rows()] == [("large", 1), ("small", 1), (None, 1)]


def test_model_of_the_calls_counts_where_it_is_only_one_and_nothing_was_routed(ledger, rows):
    ledger.called("T1", "small")
    ledger.called("T1", "small")
    ledger.called("T2", "small")
    ledger.called("T2", "large")
    ledger.judged("T1", 0.5)
    ledger.judged("T2", 0.9)
    assert {row["chosen_model"]: row["mean_score"] for row in rows()} == {"small": 0.5, None: 0.9}


def test_model_is_that_of_the_verdicts_own_run_else_of_the_run_that_told_last(ledger, rows):
    ledger.routed("T1", "old", run_id="R1")
    ledger.judged("T1", 0.1, run_id="R1")
    ledger.routed("T1", "new", run_id="R2")
    ledger.judged("T1", 0.2, run_id="R2")
    ledger.judged("T1", 0.3, run_id="R3")
    means = {row["chosen_model"]: (row["verdict_count"], row["mean_score"]) for row in rows()}
    assert means == {"old": (1, 0.1), "new": (2, 0.25)}


def test_run_that_names_two_models_leaves_its_verdicts_without_one_whatever_others_say(ledger, rows):
    ledger.called("T1", "small", run_id="R1")
    ledger.called("T1", "large", run_id="R1")
    ledger.called("T1", "other", run_id="R2")
    ledger.judged("T1", 0.1, run_id="R1")
    ledger.judged("T1", 0.2, run_id="R2")
    assert {row["chosen_model"]: row["mean_score"] for row in rows()} == {None: 0.1, "other": 0.2}


def test_run_that_told_last_counts_for_others_also_where_an_earlier_one_was_routed(ledger, rows):
    ledger.routed("T1", "old", run_id="R1")
    ledger.called("T1", "new", run_id="R2")
    ledger.judged("T1", 0.1, run_id="R3")
    assert [row["chosen_model"] for row in rows()] == ["new"]


def test_other_kinds_have_the_judges_model(ledger, rows):
    ledger.routed("S1", "small")
    ledger.judged("S1", 0.5, kind="session", judge_model="grader")
    (row,) = rows("--subject-kind", "session")
    assert (row["chosen_model"], row["judge_model"]) == ("grader", "grader")


def test_versions_of_a_rubric_are_two_rows(ledger, rows):
    for version, score in (("1.1.0", 0.4), ("1.2.0", 0.8)):
        ledger.judged("T1", score, rubric={"rubric_id": "turn-heuristic-v1", "rubric_version": version})
    means = {(row["rubric_id"], row["rubric_version"]): row["mean_score"] for row in rows("--group-by", "rubric_id")}
    assert means == {("turn-heuristic-v1", "1.1.0"): 0.4, ("turn-heuristic-v1", "1.2.0"): 0.8}


def test_groups_with_the_most_verdicts_come_first_then_by_name(ledger, rows):
    for number, kind in enumerate(["llm", "hybrid", "heuristic", "heuristic", "llm"]):
        ledger.judged(f"T{number}", 0.5, judge_kind=kind)
    counts = [(row["judge_kind"], row["verdict_count"]) for row in rows("--group-by", "judge_kind")]
    assert counts == [("heuristic", 2), ("llm", 2), ("hybrid", 1)]


def test_window_begins_with_from_and_ends_before_to(ledger, rows):
    for number, time in enumerate(["2026-02-28T23:59:59.999Z", "2026-03-01T00:00:00.000Z", "2026-03-08T00:00:00.000Z"]):
        ledger.judged(f"T{number}", number / 2, time=time)
    (row,) = rows()
    assert (row["verdict_count"], row["mean_score"]) == (1, 0.5)
    (row,) = rows(window=("--from", "2026-03-01T00:00:00.001Z", "--to", "2026-03-08T03:00:01+03:00"))
    assert (row["verdict_count"], row["mean_score"]) == (1, 1.0)


def test_window_is_the_seven_days_before_its_end(ledger, ask):
    document = ask(quality, "--to", "2026-03-08T06:00:00Z")
    assert document["window"] == {"from": "2026-03-01T06:00:00.000Z", "to": "2026-03-08T06:00:00.000Z"}


def test_verdicts_made_just_now_are_in_the_window_of_no_options(ledger, ask):
    from datetime import UTC, datetime, timedelta

    moment = datetime.now(UTC) - timedelta(seconds=1)
    ledger.judged("T1", 0.5, time=f"{moment:%Y-%m-%dT%H:%M:%S}.000Z")
    assert [row["verdict_count"] for row in ask(quality)["data"]] == [1]


def test_signals_are_counted(ledger, rows):
    ledger.judged("T1", 0.5, signals={"escalated": True})
    ledger.judged("T2", 0.5, signals={"escalation_skipped": "budget_exhausted", "throttled_reason": "session_cap"})
    ledger.judged("T3", 0.5, signals={"escalation_skipped": "judge_call_failed"})
    ledger.judged("T4", 0.5, signals={"budget_exhausted": True})
    ledger.judged("T5", 0.5, signals={"flags_negative": ["tool_failed", "explicit_thumbs_down"]})
    ledger.judged("T6", 0.5, signals={"heuristic_flags_negative": ["explicit_thumbs_down"]})
    (row,) = rows()
    counts = [row[name] for name in ("escalated_count", "budget_exhausted_count", "thumbs_down_count")]
    assert counts == [1, 2, 2]


def test_thumb_given_last_counts_once_a_subject_whoever_judged_it(ledger, rows):
    for turn in ("T1", "T2", "T3"):
        ledger.judged(turn, 0.5)
        ledger.judged(turn, 0.5, judge="other")
    ledger.thumbed("T1")
    ledger.thumbed("T2")
    ledger.thumbed("T2", "thumbs_up")
    ledger.thumbed("T3", scope="session")
    (row,) = rows()
    assert (row["verdict_count"], row["thumbs_down_count"]) == (6, 1)


def test_later_thumb_is_later_by_its_time(ledger, rows):
    for turn, last in (("T1", "thumbs_down"), ("T2", "thumbs_up")):
        ledger.judged(turn, 0.5)
        ledger.thumbed(turn, last, time="2026-03-01T11:00:00Z")
        other = "thumbs_up" if last == "thumbs_down" else "thumbs_down"
        ledger.thumbed(turn, other, time="2026-03-01T12:30:00+02:00")  # half an hour before, though told later
    assert rows()[0]["thumbs_down_count"] == 1
    ledger.thumbed("T2", time="2026-03-01T11:00:00.000Z")  # at the same time, told later
    assert rows()[0]["thumbs_down_count"] == 2


def test_thumb_on_a_session_belongs_to_the_session(ledger, rows):
    ledger.judged("S1", 0.5, kind="session")
    ledger.thumbed("T1")
    assert rows("--subject-kind", "session")[0]["thumbs_down_count"] == 0
    ledger.thumbed("T1", scope="session")
    assert rows("--subject-kind", "session")[0]["thumbs_down_count"] == 1


def test_thumb_on_nothing_and_flags_of_another_shape_count_nothing(ledger, rows):
    ledger.judged("T1", 0.5, signals={"flags_negative": "explicit_thumbs_down", "heuristic_flags_negative": None})
    ledger.tell("feedback.explicit", {"rating": "thumbs_down"})
    ledger.thumbed("T1", "thumbs_sideways")
    assert rows()[0]["thumbs_down_count"] == 0


def test_unknown_cost_is_never_zero(ledger, rows):
    ledger.judged("T1", 0.5, cost="0.1")
    ledger.judged("T2", 0.5, cost="0.2")
    assert rows()[0]["judge_cost_usd_total"] == "0.3"
    ledger.judged("T3", 0.5, cost=None)
    (row,) = rows()
    assert (row["judge_cost_usd_total"], row["judge_cost_usd_known"], row["unpriced"]) == (None, "0.3", 1)


def test_amounts_in_msat_stand_beside_only_where_there_are_any(ledger, ask):
    ledger.judged("T1", 0.5, cost="0.1", judge_kind="llm")
    arguments = (*MARCH, "--group-by", "judge_kind")
    assert "msat" not in ask(quality, *arguments, as_json=False)
    ledger.judged("T2", 0.5, cost="0", msat="1500", judge_kind="jury")
    ledger.judged("T3", 0.5, cost=None, msat="2.5", judge_kind="jury")
    text = ask(quality, *arguments, as_json=False).splitlines()
    assert text[1].split()[5:8] == ["confidence", "usd", "msat"]
    assert [line.split()[6:8] for line in text[2:4]] == [["0+", "1502.5"], ["0.1", "0"]]
    (jury, _) = ask(quality, *arguments)["data"]
    assert (jury["judge_cost_msat_total"], jury["unpriced"]) == ("1502.5", 1)


def test_every_verdict_counts_unless_only_the_latest_are_wanted(ledger, rows):
    ledger.judged("T1", 0.2)
    ledger.judged("T1", 0.8)
    ledger.judged("T1", 0.4, judge="other")
    assert [(row["verdict_count"], row["mean_score"]) for row in rows("--judge", "helpful")] == [(2, 0.5)]
    (row,) = rows("--latest")
    assert (row["verdict_count"], row["mean_score"]) == (2, pytest.approx(0.6))


def test_one_run_and_one_judge_can_be_chosen(ledger, rows):
    for run, score in (("R1", 0.2), ("R2", 0.6)):
        ledger.run(run)
        ledger.judged("T1", score, run_id=run)
        ledger.judged("T1", 1.0, judge="other", run_id=run)
    assert rows("--run", "R1", "--judge", "helpful")[0]["mean_score"] == 0.2
    assert rows("--run", "last", "--judge", "helpful")[0]["mean_score"] == 0.6
    assert rows("--judge", "helpful", "--judge", "other")[0]["verdict_count"] == 4


def test_backlog_is_what_was_begun_in_the_window_and_has_not_ended(ledger, ask):
    ledger.judged("T1", 0.5)
    ledger.failed("T2")
    ledger.started("T3")
    ledger.started("T4", time="2026-02-01T00:00:00.000Z")
    ledger.started("S1", kind="session")
    assert ask(quality, *MARCH)["backlog"] == 1
    assert "backlog: 1 judgments were started and have not ended" in ask(quality, *MARCH, as_json=False)


def test_mean_below_the_floor_is_marked_and_commented_on(ledger, ask):
    for turn, model, score in (("T1", "small", 0.5), ("T2", "large", 0.6)):
        ledger.routed(turn, model)
        ledger.judged(turn, score)
    below = {row["chosen_model"]: row["below_floor"] for row in ask(quality, *MARCH)["data"]}
    assert below == {"small": True, "large": False}
    text = ask(quality, *MARCH, as_json=False)
    assert "small: the mean 0.5000 is below the floor of 0.6; this work may need a stronger model than small" in text
    assert "large: the mean" not in text
    assert all(not row["below_floor"] for row in ask(quality, *MARCH, "--floor", "0.5")["data"])


def test_table_says_how_many_are_too_unsure(ledger, ask):
    ledger.routed("T1", "small")
    ledger.judged("T1", 0.9, confidence=0.4)
    ledger.judged("T1", 0.7)
    text = ask(quality, *MARCH, "--min-confidence", "0.5", as_json=False)
    assert "mean, p50 and p10 are without 1 verdicts whose confidence is below 0.5" in text
    assert [line.split()[:3] for line in text.splitlines() if line.startswith("small")] == [["small", "2", "0.7000"]]


def test_wrong_names_bring_the_nearest_right_one(ledger, ask):
    ledger.run()
    ledger.judged("T1", 0.5)
    assert "did you mean 'helpful'?" in refused(ask, "--judge", "helpfull")
    assert "did you mean 'session'?" in refused(ask, "--subject-kind", "sesion")
    assert "no run 'R9'" in refused(ask, "--run", "R9")
    assert "is not before --to" in refused(ask, "--to", "2026-02-01")


def test_empty_window_says_what_the_ledger_has(ledger, ask):
    ledger.judged("T1", 0.5)
    assert "1 of kind turn" in ask(quality, *MARCH, "--subject-kind", "row", as_json=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--floor", "1.5"), "1.5 is not a number from 0 to 1"),
        (("--min-confidence", "nan"), "nan is not a number from 0 to 1"),
        (("--from", "yesterday"), "'yesterday' is not an ISO 8601 time"),
        (("--group-by", "modle"), "'modle' is not one of 'model'"),
    ],
)
def test_wrong_option_values_are_refused(arguments, message):
    done = CliRunner().invoke(quality, arguments)
    assert done.exit_code == 2
    assert message in done.output


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=40), st.floats(0, 1))
def test_mean_is_that_of_the_sure_ones_and_lies_among_them(scores, least):
    common = {"subject_id": "1", "subject_kind": "row", "judge": "j", "judge_kind": "llm", "judge_model": None}
    base = {**common, "judge_cost_usd": "0", "rubric_id": "r", "rubric_version": "1"}
    time = "2026-03-01T12:00:00.000Z"
    rows = (
        Event(str(number), "eval.completed", time, "R", {**base, "score": score, "confidence": confidence})
        for number, (score, confidence) in enumerate(scores)
    )
    judged = VerdictColumns().add(Entry(seq, event, "", "") for seq, event in enumerate(rows, 1))
    (group,) = Verdicts(judged, "row", "none").groups(least)
    sure = sorted(score for score, confidence in scores if confidence >= least)
    assert (group.count, group.scored) == (len(scores), len(sure))
    assert [group.median, group.tenth] == [percentile(sure, share) if sure else None for share in (0.5, 0.1)]
    assert group.mean == (pytest.approx(math.fsum(sure) / len(sure)) if sure else None)
    if sure:
        assert sure[0] <= group.tenth <= group.median <= sure[-1]
        json.dumps([group.mean, group.tenth], allow_nan=False)


def test_saved_is_of_judges_that_escalate_and_of_the_runs_in_which_they_did(ledger):
    on = {"escalated": True}
    for turn, cost, signals in (
        ("T1", "0.02", on),
        ("T2", "0", {}),
        ("T3", "0", {}),
        ("T4", "0.04", on),
        ("T5", "0", {}),
    ):
        ledger.routed(turn, "large" if turn == "T5" else "small")
        ledger.judged(turn, 0.5, "cascade", cost=cost, signals=signals)
    ledger.judged("T1", 0.5, "cascade", cost="7", run_id="R2")  # another judge by that name: it asks nobody else
    ledger.judged("T1", 0.5, "expensive", cost="5")
    ledger.judged("T1", 0.5, "second", cost="0.3", signals=on)
    ledger.judged("T2", 0.5, "second", cost="0.1")

    async def ask():
        async with MemoryLedger().open() as live:
            live.append(ledger.events)
            return read_quality(live, **DAYS, saved=True)["data"]

    saved_by_model = {row["chosen_model"]: row["judge_cost_usd_saved"] for row in asyncio.run(ask())}
    cascade, second = (Decimal("0.06") * 4 / 2 - Decimal("0.06")), (Decimal("0.4") * 2 - Decimal("0.4"))
    assert saved_by_model == {"small": cascade + second, "large": None}
