"""``dicast cost``, on ledgers whose events are given."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Event, LedgerRefused
from dicast_ledger.accounts import Accounts
from dicast_ledger.cost import cost

GROUPS = ("model", "judge", "rubric", "session", "day")


@pytest.fixture
def call(make_event):
    """An agent's call, as a trace tells it."""

    def make(cost_usd="0.01", model="agent", tokens=(10, 5), turn="T1", **columns):
        payload = {"model": model, "stop_reason": "end_turn"}
        if cost_usd is not None:
            payload["cost_usd"] = cost_usd
        if tokens:
            payload["usage"] = dict(zip(("input_tokens", "output_tokens"), tokens, strict=True))
        columns = {"session_id": "S1", "turn_id": turn} | columns
        return make_event("llm.call_completed", payload, **columns)

    return make


@pytest.fixture
def settled(make_event):
    """Money that a judge has spent."""

    def make(amount="0.004", unit="usd", model="grader", judge="helpful", eval_id="V1", calls=1, tokens=100, **fields):
        reservation = fields.pop("reservation_id", f"r-{eval_id}")
        payload = {
            "reservation_id": reservation,
            "amount": amount,
            "unit": unit,
            "pricing_version": None,
            "model": model,
            "judge": judge,
            "eval_id": eval_id,
            "calls": calls,
            "tokens": tokens,
        }
        return make_event("spend.settled", payload, **{"session_id": "S1", **fields})

    return make


@pytest.fixture
def judged(make_event):
    """Return ``judged(eval_id, *spent)``, which makes the events of a verdict with the spending between its start and its end."""

    def make(eval_id, *spent, rubric="turn-hybrid-v1", ends="eval.completed"):
        started = make_event("eval.started", {"eval_id": eval_id, "rubric_id": "hybrid/cascade"})
        rubrics = {} if ends == "eval.failed" else {"rubric_id": rubric}
        return [started, *spent, *([make_event(ends, {"eval_id": eval_id, **rubrics})] if ends else [])]

    return make


@pytest.fixture
def run_cost(tmp_path, opened):
    """Return a function that runs the command on a ledger with the given events, and returns its output."""

    def run(events, *arguments, as_json=True):
        path = tmp_path / "ledger.db"
        with opened(path) as ledger:
            ledger.append(events)
        options = [*arguments, "--ledger", str(path), *(["--json"] if as_json else [])]
        done = CliRunner().invoke(cost, options, catch_exceptions=False)
        assert done.exit_code == 0
        if not as_json:
            return done.stdout
        document = json.loads(done.stdout)
        if "--from" not in options and "--to" not in options:
            assert document.pop("window") == {"from": None, "to": None}
            assert document.pop("current_pricing_version") is None
        return document

    return run


def test_without_include_eval_only_the_agents_own_calls_count(run_cost, call, settled):
    document = run_cost([call(), call("0.02", "other", (1, 1)), settled()])
    assert document == {
        "data": [
            {"model": "other", "usd": "0.02", "calls": 1, "tokens": 2},
            {"model": "agent", "usd": "0.01", "calls": 1, "tokens": 15},
        ],
        "total_usd": "0.03",
    }


def test_include_eval_adds_what_judging_cost(run_cost, call, settled):
    document = run_cost([call(), settled(), settled("0.001", "usd", "agent", eval_id="V2")], "--include-eval")
    assert document["total_usd"] == "0.015"
    assert document["data"] == [
        {"model": "agent", "usd": "0.011", "calls": 2, "tokens": 115},
        {"model": "grader", "usd": "0.004", "calls": 1, "tokens": 100},
    ]


def test_agents_calls_belong_to_no_judge_and_no_rubric(run_cost, call, settled, judged):
    events = [call(), *judged("V1", settled())]
    for group, name in (("judge", "helpful"), ("rubric", "turn-hybrid-v1")):
        document = run_cost(events if group == "judge" else [], "--include-eval", "--group-by", group)
        assert [(row[group], row["usd"]) for row in document["data"]] == [(name, "0.004"), (None, "0.01")]


def test_rubric_is_that_of_the_verdict_or_else_the_planned_one(run_cost, settled, judged):
    events = [
        *judged("V1", settled("0.1", eval_id="V1"), settled("0.2", eval_id="V1")),
        *judged("V2", settled("0.01", eval_id="V2"), rubric="turn-heuristic-v1"),
        *judged("V3", settled("0.001", eval_id="V3"), ends="eval.failed"),
        *judged("V4", settled("0.002", eval_id="V4"), ends=None),
    ]
    document = run_cost(events, "--include-eval", "--group-by", "rubric")
    assert {row["rubric"]: (row["usd"], row["calls"], row["tokens"]) for row in document["data"]} == {
        "turn-hybrid-v1": ("0.3", 2, 200),
        "turn-heuristic-v1": ("0.01", 1, 100),
        "hybrid/cascade": ("0.003", 2, 200),
    }
    assert document["total_usd"] == "0.313"


def test_days_are_in_utc_and_in_order(run_cost, call, settled):
    events = [
        settled(time="2026-03-02T00:00:00.000Z"),
        call("0.5", time="2026-03-01T20:30:00-05:00"),
        call("0.25", time="2026-03-01T12:00:00", turn="T2"),
    ]
    document = run_cost(events, "--include-eval", "--group-by", "day")
    assert [(row["day"], row["usd"]) for row in document["data"]] == [("2026-03-01", "0.25"), ("2026-03-02", "0.504")]


def test_sessions_are_told_apart(run_cost, call, settled):
    events = [call(), settled(session_id="S2"), settled(session_id=None, eval_id="V2")]
    document = run_cost(events, "--include-eval", "--group-by", "session")
    assert [(row["session"], row["usd"]) for row in document["data"]] == [
        ("S1", "0.01"),
        ("S2", "0.004"),
        (None, "0.004"),
    ]


def test_trace_that_was_judged_twice_was_paid_once(run_cost, call):
    again = {"time": "2026-03-05T12:00:00.000Z", "run_id": "R2"}
    events = [call(), call(), call("0.02", turn="T2"), call(**again), call(**again), call("0.03", turn="T3", **again)]
    assert run_cost(events)["total_usd"] == "0.07"
    by_rubric = run_cost([], "--group-by", "rubric")  # which needs the events, not the lines
    assert (by_rubric["total_usd"], by_rubric["data"][0]["calls"]) == ("0.07", 4)


@pytest.mark.parametrize("price", [None, "much", "-1", "NaN", True, [], {}])
def test_call_without_a_price_is_unknown_and_not_nothing(run_cost, call, price):
    document = run_cost([call(price, "agent", None), call("0.01", turn="T2"), call("0.02", "other")])
    assert document["data"] == [
        {"model": "other", "usd": "0.02", "calls": 1, "tokens": 15},
        {"model": "agent", "usd": None, "calls": 2, "tokens": 15, "unpriced": 1, "known_usd": "0.01"},
    ]
    assert (document["total_usd"], document["known_usd"], document["unpriced"]) == (None, "0.03", 1)


@pytest.mark.parametrize(("price", "usd"), [(0.1, "0.1"), (0, "0"), ("0.30", "0.30"), (1e-07, "0.0000001")])
def test_price_in_a_trace_is_a_number_or_a_text(run_cost, call, price, usd):
    assert run_cost([call(price)])["data"][0]["usd"] == usd


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"input_tokens": 3, "output_tokens": 4}, 7),
        ({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}, 7),
        ({"input_tokens": 3}, None),
        ({"input_tokens": "3", "output_tokens": 4}, None),
        ("many", None),
    ],
)
def test_tokens_are_counted_where_the_trace_counts_them(run_cost, make_event, usage, tokens):
    event = make_event("llm.call_completed", {"model": "m", "cost_usd": "1", "usage": usage})
    assert run_cost([event])["data"][0]["tokens"] == tokens


def test_msat_are_listed_and_never_added(run_cost, settled):
    document = run_cost([settled(), settled("700", "msat", eval_id="V2")], "--include-eval")
    assert document["data"] == [{"model": "grader", "usd": "0.004", "calls": 2, "tokens": 200, "msat": "700"}]
    assert (document["total_usd"], document["total_msat"]) == ("0.004", "700")


def test_what_was_lost_stands_beside(run_cost, settled, make_event):
    lost = {"reservation_id": "r-V9", "amount": "0.05", "unit": "usd"}
    document = run_cost([settled(), make_event("spend.lost", lost)], "--include-eval")
    assert (document["total_usd"], document["lost_usd"], document["unsettled_usd"]) == ("0.004", "0.05", "0.05")
    assert "lost_usd" not in run_cost([settled(reservation_id="r-V9", eval_id="V9")], "--include-eval")


def test_component_that_asks_no_chat_model_is_a_call_itself(run_cost, settled):
    events = [settled(calls=0, tokens=None), settled("0", calls=0, tokens=None, eval_id="V2")]
    (row,) = run_cost(events, "--include-eval")["data"]
    assert (row["calls"], row["tokens"]) == (1, None)


def test_run_limits_the_sums_to_one_run(run_cost, call, settled, make_event):
    started = [make_event("run.started", run_id=run) for run in ("R1", "R2")]
    events = [*started, settled(), settled("0.5", run_id="R2", eval_id="V2"), call(run_id="R2")]
    assert run_cost(events, "--include-eval", "--run", "R1")["total_usd"] == "0.004"
    assert run_cost([], "--include-eval", "--run", "last")["total_usd"] == "0.51"


def test_unknown_run_is_refused(run_cost, make_event, tmp_path):
    run_cost([make_event("run.started")])
    arguments = ["--run", "R7", "--ledger", str(tmp_path / "ledger.db")]
    assert "no run 'R7'" in str(CliRunner().invoke(cost, arguments).exception)


def test_missing_ledger_is_refused_and_not_created(tmp_path):
    done = CliRunner().invoke(cost, ["--ledger", str(tmp_path / "none.db")])
    assert isinstance(done.exception, LedgerRefused)
    assert list(tmp_path.iterdir()) == []


def test_nothing_spent_is_zero(run_cost, make_event):
    assert run_cost([make_event("run.started")], "--include-eval") == {"data": [], "total_usd": "0"}


def test_table_has_a_total_and_says_what_is_missing_in_it(run_cost, call, settled):
    text = run_cost([call(), call(None, turn="T2"), settled("7", "msat")], "--include-eval", as_json=False)
    assert text.splitlines() == [
        "model     usd  calls  tokens  msat",
        "agent   0.01+      2      30     0",
        "grader      0      1     100     7",
        "total   0.01+      3     130     7",
        "+: plus 1 calls with an unknown price",
    ]


SPENDS = st.lists(
    st.tuples(
        st.sampled_from(["m-1", "m-2", None]),
        st.sampled_from(["usd", "msat"]),
        st.decimals(0, 5, places=4),
        st.integers(0, 3),
        st.integers(0, 5),
    ),
    max_size=20,
)


@given(spends=SPENDS, group=st.sampled_from(GROUPS))
def test_groups_add_up_to_the_total_however_they_are_cut(spends, group):
    events = [
        Event(
            str(number),
            "spend.settled",
            f"2026-03-0{calls + 1}T12:00:00.000Z",
            "R1",
            {"reservation_id": str(number), "amount": str(amount), "unit": unit, "model": model, "judge": model,
             "eval_id": f"V{calls}", "calls": calls, "tokens": tokens},
            session_id=model,
        )
        for number, (model, unit, amount, calls, tokens) in enumerate(spends)
    ]  # fmt: skip
    document = Accounts(group).read(events)
    for unit in ("usd", "msat"):
        expected = sum((amount for _, spend_unit, amount, _, _ in spends if spend_unit == unit), Decimal(0))
        assert getattr(document.total, unit).amount == expected
        assert sum(getattr(tally, unit).amount for tally in document.groups.values()) == expected
    assert sum(tally.calls for tally in document.groups.values()) == document.total.calls


@pytest.fixture(autouse=True, params=["line by line", "a column at a time"])
def way(request, monkeypatch):
    """How the sums are made; every test of this file is one of both."""
    monkeypatch.setattr("dicast.reading.columns.MANY_ROWS", 1 if request.param == "a column at a time" else 2**62)


def test_a_window_takes_its_first_moment_and_leaves_out_its_last(run_cost, call, settled):
    days = [
        call("0.5", time="2026-03-01T00:00:00.000Z"),
        call("0.25", time="2026-03-02T00:00:00.000Z", turn="T2"),
        settled("0.125", time="2026-03-02T23:59:59.999Z"),
        settled("0.0625", time="2026-03-03T00:00:00.000Z", eval_id="V2"),
    ]
    document = run_cost(days, "--include-eval", "--from", "2026-03-02", "--to", "2026-03-03T00:00:00+00:00")
    assert document["window"] == {"from": "2026-03-02T00:00:00.000Z", "to": "2026-03-03T00:00:00.000Z"}
    assert document["total_usd"] == "0.375"
    assert run_cost([], "--from", "2026-03-02")["total_usd"] == "0.25"
    for group in GROUPS:
        grouped = run_cost([], "--include-eval", "--group-by", group, "--to", "2026-03-02T12:00:00Z")
        assert (grouped["total_usd"], grouped["window"]["from"]) == ("0.75", None)


def test_a_window_that_ends_before_it_begins_is_refused(tmp_path, opened):
    with opened(tmp_path / "ledger.db"):
        pass
    arguments = ["--from", "2026-03-02", "--to", "2026-03-01", "--ledger", str(tmp_path / "ledger.db")]
    with pytest.raises(ConfigError, match="is not before --to"):
        CliRunner().invoke(cost, arguments, catch_exceptions=False)
    assert "not an ISO 8601 time" in CliRunner().invoke(cost, ["--from", "soon"]).output
