"""Document and text of a plan, for paid rows that are written out here."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dicast import Cost, Subject
from dicast_trust.plan.cost import from_rows, from_size
from dicast_trust.plan.document import Plan
from dicast_trust.plan.request import PlanRequest
from dicast_trust.plan.rows import PlanRows
from dicast_trust.plan.sizes import Earlier, Sizes
from dicast_trust.plan.text import plan_lines
from dicast_trust.plan.width import high_spread, subjects_for_width, width
from dicast_trust.statistics.moments import Moments


def moments(xs):
    result = Moments()
    for x in xs:
        result.add(x)
    return result


class Rows:
    """Paid rows of a run: a cost, a number of calls, a duration and a score each."""

    def __init__(self, costs, scores, seconds, sessions=None):
        self.label = "polite"
        self.events = []
        for number, (cost, score, took) in enumerate(zip(costs, scores, seconds, strict=True)):
            session = sessions[number] if sessions else None
            spent = {"amount": cost, "unit": "usd", "calls": number % 3 + 1}
            verdict = {"judge": "polite", "score": score, "judge_latency_ms": int(1000 * took)}
            for type, payload in (("spend.settled", spent), ("eval.completed", verdict)):
                event = SimpleNamespace(
                    subject_kind="row", subject_id=str(number), session_id=session, type=type, payload=payload
                )
                self.events.append(SimpleNamespace(event=event))

    def read(self, _query):
        return iter(self.events)


def plan_of(rows, request, *, count, resume, settled_bound="1 usd", length=lambda _: 10, **subject):
    """Return the document of a plan for *count* subjects after the paid *rows*."""
    with closing(PlanRows("polite")) as paid:
        paid.read(rows, "run")
        sizes = Sizes(paid)
        for number in range(count):
            estimates = {"usd": Cost.parse(settled_bound), "msat": Cost.zero("msat")}
            sizes.add(Subject("row", str(number), output="x" * length(number)), estimates)
        about = SimpleNamespace(name="shop", has_stages=False, concurrency=4, label="polite", notes=())
        vars(about).update(subject)
        return Plan(request, about, Earlier("01ABC", can_resume=resume), paid, sizes).document()


COST_ROWS = ["0.1", "0.2", "0.15", "0.3", "0.12", "0.2", "0.18", "0.25"]
SCORES = [0.1, 0.9, 0.5, 0.4, 0.8, 0.75, 0.2, 0.6]
SECONDS = [1, 2, 3, 4, 2, 2, 1, 5]


@pytest.mark.parametrize("resume", [True, False])
def test_the_figures_of_a_plan_are_those_of_its_paid_rows(resume):
    rows, request = Rows(COST_ROWS, SCORES, SECONDS), PlanRequest(Path("p.yaml"), level=0.9)
    document = plan_of(rows, request, count=20, resume=resume)
    rest = 12 if resume else 20
    costs, calls = np.array([float(cost) for cost in COST_ROWS]), np.array([number % 3 + 1 for number in range(8)])
    basis = "pilot" if resume else "history"
    assert document["rows"] == {"seen": 8, "left": rest}
    assert document["calls"] == {
        "mid": round(calls.mean() * rest),
        "n": 8,
        "s": pytest.approx(calls.std(ddof=1)),
        "from": basis,
    }
    settled = costs.sum() if resume else 0
    expected = from_rows(moments(costs), rest, 0.9)
    cost = document["cost"]["usd"]
    assert [float(cost[name]) for name in ("low", "mid", "high")] == [
        pytest.approx(settled + end, abs=1e-6) for end in (expected.low, expected.mid, expected.high)
    ]
    assert float(cost["low"]) <= settled + expected.low
    assert float(cost["high"]) >= settled + expected.high
    assert (cost["settled"], cost["projected"]) == ("1.5" if resume else "0", "13.5" if resume else "20")
    assert (cost["n"], cost["s"], cost["from"]) == (8, pytest.approx(costs.std(ddof=1)), basis)
    took = from_rows(moments(SECONDS), rest, 0.9)
    assert document["time"] == {
        "low": pytest.approx(took.low / 4),
        "mid": pytest.approx(took.mid / 4),
        "high": pytest.approx(took.high / 4),
        "unit": "seconds",
        "concurrency": 4,
        "n": 8,
        "s": pytest.approx(np.std(SECONDS, ddof=1)),
        "from": basis,
    }
    spread = np.std(SCORES, ddof=1)
    assert document["width"] == {
        "subjects": 20,
        "width": pytest.approx(width(spread, 20, 1)),
        "width_high": pytest.approx(width(high_spread(spread, 8), 20, 1)),
        "s": pytest.approx(spread),
        "design_effect": 1.0,
        "n": 8,
        "from": basis,
    }
    assert document["words"] == ["ranges from 8 rows are too narrow: take 10 or more"]
    assert document["power"] is None
    assert document["solve"] is None


def test_a_cost_above_its_projection_has_no_bound():
    rows = Rows(COST_ROWS, SCORES, SECONDS)
    document = plan_of(rows, PlanRequest(Path("p.yaml")), count=20, resume=True, settled_bound="0.1 usd")
    assert document["cost"]["usd"]["projected"] is None  # 8 x 0.1 < 1.5
    history = plan_of(rows, PlanRequest(Path("p.yaml")), count=20, resume=False, settled_bound="0.1 usd")
    assert history["cost"]["usd"]["projected"] == "2"


def test_a_range_is_cut_at_the_projection():
    rows = Rows(COST_ROWS, SCORES, SECONDS)
    cost = plan_of(rows, PlanRequest(Path("p.yaml")), count=20, resume=True, settled_bound="0.1875 usd")["cost"]["usd"]
    assert (cost["projected"], cost["high"]) == ("3.75", "3.75")
    assert float(cost["low"]) < 3.75


def test_a_call_of_unknown_cost_makes_costs_upper_bounds():
    rows = Rows([*COST_ROWS[:-1], None], SCORES, SECONDS)
    document = plan_of(rows, PlanRequest(Path("p.yaml")), count=20, resume=True)
    assert document["calls"] is None
    assert document["cost"]["usd"] == {
        "low": "1.25",
        "mid": None,
        "high": "13.25",
        "settled": "1.25",
        "projected": "13.25",
        "n": 8,
        "s": None,
        "from": "bound",
    }
    assert "some calls have an unknown cost: costs are upper bounds" in document["words"]


@pytest.mark.parametrize(
    ("rows", "has_stages", "words"),
    [
        (0, False, ["no row was judged yet: costs are upper bounds; add --pilot 20 for a pilot"]),
        (4, False, ["4 rows are too few for a forecast: costs are upper bounds"]),
        (5, False, ["ranges from 5 rows are too narrow: take 10 or more"]),
        (10, False, []),
        (
            10,
            True,
            ["ranges from 10 rows are too narrow, where some rows cost far more than others: take 20 or more"],
        ),
        (20, True, []),
    ],
)
def test_a_plan_of_few_rows_says_how_many_are_enough(rows, has_stages, words):
    paid = Rows((COST_ROWS * 3)[:rows], (SCORES * 3)[:rows], (SECONDS * 3)[:rows])
    document = plan_of(paid, PlanRequest(Path("p.yaml")), count=30, resume=True, has_stages=has_stages)
    assert document["words"] == words
    assert (document["time"] is None) == (rows < 5)
    assert (document["reasons"] == {}) == (rows >= 5)


def test_rows_of_one_session_count_as_fewer():
    sessions = ["a", "a", "b", "b", "c", "c", "d", "d"]
    rows = Rows(COST_ROWS, SCORES, SECONDS, sessions)
    document = plan_of(rows, PlanRequest(Path("p.yaml")), count=20, resume=True)
    sums = (np.array(SCORES) - np.mean(SCORES)).reshape(4, 2).sum(1)
    effect = max(1.0, 4 / 3 * (sums**2).sum() / (np.var(SCORES, ddof=1) * 8))
    assert document["width"]["design_effect"] == pytest.approx(effect)
    alike = Rows(COST_ROWS, sorted(SCORES), SECONDS, sessions)
    sums = (np.array(sorted(SCORES)) - np.mean(SCORES)).reshape(4, 2).sum(1)
    effect = 4 / 3 * (sums**2).sum() / (np.var(SCORES, ddof=1) * 8)
    assert effect > 1
    document = plan_of(alike, PlanRequest(Path("p.yaml")), count=20, resume=True)
    assert document["width"]["design_effect"] == pytest.approx(effect)


def test_a_goal_says_how_many_subjects_and_at_which_cost():
    rows = Rows(COST_ROWS, SCORES, SECONDS)
    request = PlanRequest(Path("p.yaml"), solve="budget", width=0.3)
    solved = plan_of(rows, request, count=20, resume=True)["solve"]
    needed = subjects_for_width(np.std(SCORES, ddof=1), 0.3, 1)
    rest = from_rows(moments([float(cost) for cost in COST_ROWS]), needed - 8, 0.9)
    assert (solved["what"], solved["subjects"], solved["there_are"], solved["enough"]) == (
        "budget",
        needed,
        20,
        needed <= 20,
    )
    assert solved["width"] == pytest.approx(width(np.std(SCORES, ddof=1), needed, 1))
    ends = [float(solved["cost"]["usd"][name]) for name in ("low", "mid", "high")]
    assert ends == pytest.approx([1.5 + rest.low, 1.5 + rest.mid, 1.5 + rest.high], abs=1e-6)
    history = plan_of(rows, request, count=20, resume=False)["solve"]["cost"]["usd"]
    rest = from_rows(moments([float(cost) for cost in COST_ROWS]), needed, 0.9)
    assert float(history["mid"]) == pytest.approx(rest.mid, abs=1e-6)


@pytest.mark.parametrize("resume", [True, False])
def test_a_budget_buys_the_most_subjects_whose_range_it_covers(resume):
    rows = Rows(COST_ROWS, SCORES, SECONDS)
    request = PlanRequest(Path("p.yaml"), solve="n", budget=Cost.parse("4 usd"))
    solved = plan_of(rows, request, count=20, resume=resume)["solve"]
    costs, remaining = moments([float(cost) for cost in COST_ROWS]), 2.5 if resume else 4
    most = max(count for count in range(100) if from_rows(costs, count, 0.9).high <= remaining)
    assert solved["affordable"] == solved["subjects"] == most + (8 if resume else 0)


def test_a_goal_without_scores_is_not_solved():
    rows = Rows(COST_ROWS[:4], SCORES[:4], SECONDS[:4])
    document = plan_of(rows, PlanRequest(Path("p.yaml"), solve="n", width=0.3), count=20, resume=True)
    assert document["solve"] == {"what": "n", "subjects": None}
    assert document["reasons"]["solve"] == "too few scores are known: add --pilot 20 for a pilot"


def test_sizes_explain_costs_in_a_run_that_is_resumed_alone():
    lengths = [10, 40, 20, 80, 15, 40, 30, 60, 50, 70]
    costs = [str(length / 200 + (0.001 if number % 2 else -0.001)) for number, length in enumerate(lengths)]
    rows = Rows(costs, (SCORES * 2)[:10], (SECONDS * 2)[:10])
    request = PlanRequest(Path("p.yaml"))

    def length(number):
        return lengths[number] if number < 10 else 100

    cost = plan_of(rows, request, count=20, resume=True, length=length)["cost"]["usd"]
    sizes = Moments()
    for size, amount in zip(lengths, costs, strict=True):
        sizes.add(size, float(amount))
    expected = from_size(sizes, moments([100] * 10), 0.9)
    assert cost["from"] == "pilot, by size"
    assert float(cost["mid"]) == pytest.approx(sum(map(float, costs)) + expected.mid, abs=1e-5)
    history = plan_of(rows, request, count=20, resume=False, length=length)["cost"]["usd"]
    assert history["from"] == "history"


PLAN = {
    "name": "shop",
    "subjects": 1200,
    "rows": {"seen": 1040, "left": 160},
    "run_id": "01ABCDEFGHJKLM",
    "resume": True,
    "resume_command": "dicast run shop.yaml --only judges --resume 01ABCDEFGHJKLM",
    "level": 0.9,
    "calls": {"mid": 2400},
    "cost": {
        "usd": {"low": "1.5", "mid": "2", "high": "2.75", "settled": "1.2"},
        "msat": {"low": "0", "mid": "0", "high": "0", "settled": "0"},
    },
    "time": {"low": 119.94, "mid": 120, "high": 7200, "concurrency": 8},
    "width": {"width": 0.12345, "width_high": 0.23456, "subjects": 1200},
    "power": {"mde": 0.04321, "power": 0.8},
    "solve": None,
    "words": ["all 5 scores are equal"],
    "reasons": {"solve": "too few scores are known"},
}


def test_the_lines_of_a_plan_have_every_figure():
    assert [*plan_lines(PLAN)] == [
        "shop: 1,200 subjects, 160 to judge; from 1,040 rows of run GHJKLM, which can be resumed",
        "cost: 2 usd (90 %: 1.5 to 2.75), 1.2 usd of it spent",
        "calls: about 2,400",
        "time: 2 min (119.9 s to 2.0 h), 8 at once",
        "interval of the mean: 0.1235 wide, likely less than 0.2346 (95 %, 1,200 subjects)",
        "a difference from the baseline of 0.0432 is detected with power 0.8",
        "note: all 5 scores are equal",
        "no solve: too few scores are known",
        "next: dicast run shop.yaml --only judges --resume 01ABCDEFGHJKLM",
    ]


UNKNOWN = dict.fromkeys(("calls", "time", "width", "power", "solve")) | {"words": [], "reasons": {}, "resume": False}


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        (
            {
                "rows": {"seen": 0, "left": 1200},
                "cost": {
                    "usd": {"low": "0", "mid": None, "high": None, "settled": "0"},
                    "msat": {"low": "0", "mid": None, "high": "70", "settled": "3"},
                },
            },
            [
                "shop: 1,200 subjects, 1,200 to judge; from upper bounds of the calls' cost",
                "cost: not known, 0 usd spent",
                "cost: 70 msat at most, 3 msat spent",
            ],
        ),
        (
            {"cost": {"usd": {"low": "0", "mid": "0", "high": "0", "settled": "0"}}},
            [
                "shop: 1,200 subjects, 160 to judge; from 1,040 rows of run GHJKLM",
                "cost: 0 usd (90 %: 0 to 0)",
            ],
        ),
    ],
)
def test_a_plan_names_unknown_figures_and_leaves_out_unused_units(changes, lines):
    assert [*plan_lines(PLAN | UNKNOWN | changes)] == lines


SOLVED = {
    "what": "n",
    "subjects": 2500,
    "there_are": 1200,
    "enough": False,
    "cost": {"usd": {"low": "3", "mid": "4", "high": "5"}, "msat": {"low": "0", "mid": "0", "high": "0"}},
}


@pytest.mark.parametrize(
    ("solved", "lines"),
    [
        (SOLVED, ["needed: 2,500 subjects, but the source has 1,200", "  they cost 4 usd (3 to 5)"]),
        (
            SOLVED | {"affordable": 1100, "subjects": 1100, "enough": True, "cost": {"usd": None}},
            ["for this budget: 1,100 subjects", "needed: 1,100 subjects"],
        ),
        (SOLVED | {"subjects": None}, []),
        (
            {"what": "audit", "rate": 0.12345, "best_rate": 0.2},
            ["audit: rate 0.1235 gives this width; the cheapest rate is 0.2000"],
        ),
        ({"what": "audit", "rate": None, "best_rate": None}, []),
    ],
)
def test_the_answer_to_a_question_has_lines_of_its_own(solved, lines):
    assert [*plan_lines(PLAN | UNKNOWN | {"solve": solved})][2:] == lines
