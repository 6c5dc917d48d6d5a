from __future__ import annotations

import asyncio
import json
from itertools import count

import attrs
import orjson
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, DataError, Event, rubric
from dicast.testing import MemoryLedger
from dicast_promotion import Evidence, Factors, Gate, Gates, Shadow
from dicast_promotion.command import promotion
from dicast_promotion.priority import priority
from dicast_promotion.rubric import RUBRIC, read_gates

PASSING = Evidence({"proxy/format": 0.97, "proxy/syntax": 0.9, "llm/judge": 0.8}, {"overall": 0.02}, Shadow(60, 30, 10))

scores = st.integers(0, 100).map(lambda percent: percent / 100)


# Winning


def test_60_won_30_lost_10_tied_is_a_win_rate_of_6_tenths():
    shadow = Shadow(60, 30, 10)
    assert (shadow.samples, shadow.win_rate) == (100, 0.6)
    assert shadow.promotes(100, 0.52)
    assert not shadow.promotes(100, 0.65)
    assert not shadow.promotes(101, 0.52)


def test_nothing_compared_is_half_won_and_promotes_nobody():
    assert Shadow.of([]).win_rate == 0.5
    assert not Shadow.of([]).promotes(1, 0.5)


@pytest.mark.parametrize(
    ("candidate", "baseline", "expected"),
    [
        (0.81, 0.80, (0, 0, 1)),
        (0.80, 0.81, (0, 0, 1)),
        (0.82, 0.80, (1, 0, 0)),
        (0.80, 0.82, (0, 1, 0)),
        (1, 1, (0, 0, 1)),
    ],
)
def test_scores_within_the_margin_are_a_tie(candidate, baseline, expected):
    assert attrs.astuple(Shadow.of([(candidate, baseline)])) == expected


@given(st.lists(st.tuples(scores, scores)), st.sampled_from([0.0, 0.01, 0.1]))
def test_what_one_wins_the_other_loses(pairs, margin):
    ours, theirs = Shadow.of(pairs, margin), Shadow.of([(b, a) for a, b in pairs], margin)
    assert (ours.wins, ours.losses, ours.ties) == (theirs.losses, theirs.wins, theirs.ties)
    assert ours.samples == len(pairs)
    assert 0 <= ours.win_rate <= 1
    # In whole hundredths nothing is rounded.
    wins = sum(round(100 * a) - round(100 * b) > round(100 * margin) for a, b in pairs)
    assert ours.wins == wins


# Gates


def test_who_passes_every_gate_is_promoted():
    passages = Gates().walk(PASSING)
    assert [(passage_.start, passage_.to, passage_.passed) for passage_ in passages] == [
        ("candidate", "staged", True),
        ("staged", "shadow", True),
        ("shadow", "promoted", True),
    ]


@pytest.mark.parametrize(
    ("scores", "margins", "shadow", "gate", "failed"),
    [
        ({"proxy/format": 0.94}, {}, None, "staged", "proxy/format >= 0.95"),
        ({"proxy/syntax": 0.89}, {}, None, "staged", "proxy/syntax >= 0.9"),
        ({"llm/judge": 0.79}, {}, None, "shadow", "llm/judge >= 0.8"),
        ({}, {"overall": 0.019}, None, "shadow", "overall beats the baseline by 0.02"),
        ({}, {}, Shadow(60, 30, 9), "promoted", "samples >= 100"),
        ({}, {}, Shadow(51, 40, 9), "promoted", "win rate >= 0.52"),
    ],
)
def test_the_first_gate_that_is_not_passed_is_the_last(scores, margins, shadow, gate, failed):
    evidence = Evidence({**PASSING.scores, **scores}, {**PASSING.margins, **margins}, shadow or PASSING.shadow)
    last = Gates().walk(evidence)[-1]
    assert (last.to, [requirement_.requirement for requirement_ in last.requirements if not requirement_.passed]) == (
        gate,
        [failed],
    )


def test_a_label_without_a_score_is_not_0_but_missing():
    (passage,) = Gates().walk(Evidence({"proxy/fromat": 1.0}))
    assert [requirement_.actual for requirement_ in passage.requirements] == [None, None]
    assert passage.requirements[0].reason == "has no score; there are proxy/fromat, did you mean 'proxy/fromat'?"


def test_a_person_and_somebody_else_are_never_there_by_themselves():
    gate = Gate(min_hours=2, manual_approval=True, custom=("security",))
    hours, *rest = gate.check(Evidence({}, hours=2))
    assert hours.passed
    assert [(requirement_.requirement, requirement_.passed) for requirement_ in rest] == [
        ("manual approval", False),
        ("custom: security", False),
    ]


@pytest.mark.parametrize(
    ("state", "goal"), [("promoted", "promoted"), ("rolled_back", "promoted"), ("shadow", "staged")]
)
def test_no_gate_leads_out_of_an_end_or_back(state, goal):
    with pytest.raises(ConfigError, match="no gate leads"):
        Gates().walk(PASSING, state, goal)


def test_the_shipped_rubric_has_the_default_gates():
    assert read_gates(rubric(RUBRIC)) == Gates()


def test_every_fault_of_a_rubric_is_named_with_its_place(tmp_path):
    path = tmp_path / "gates.yaml"
    path.write_text(
        "id: mine\nversion: '1'\nstaged: {min_scor: {a: 1}, min_score: {a: 2}}\nshadow: {min_samples: 1.5, custom: x}\ntie_margn: 1\n"
    )
    with pytest.raises(ConfigError) as refused:
        read_gates(rubric(str(path)))
    assert [(problem.path, problem.hint) for problem in refused.value.problems] == [
        ("tie_margn", "tie_margin"),
        ("promoted", None),
        ("staged.min_scor", "min_score"),
        ("staged.min_score.a", None),
        ("shadow.min_samples", None),
        ("shadow.custom", None),
    ]


# The command


@attrs.define
class Runs:
    """A ledger in the making."""

    events: list[Event] = attrs.field(factory=list)
    numbers: count = attrs.field(factory=lambda: count(1))

    def tell(self, run_id, type, payload, time="2026-03-01T12:00:00.000Z"):
        self.events.append(Event(f"E{next(self.numbers):06d}", type, time, run_id, payload))

    def run(self, run_id, verdicts, *, label="metrics", fingerprints=None, name=None, hours=0, **options):
        """A run *run_id* of the pipeline *name* with *verdicts*: scores by subject, or pairs of a score and its metrics'."""
        self.tell(run_id, "run.started", {"name": name or run_id.lower(), "fingerprints": fingerprints or {}})
        for place, (id, scores) in enumerate(verdicts.items()):
            score, metrics = scores if isinstance(scores, tuple) else (scores, {})
            items = [
                {"metric": metric, "value": value, "tier": "truth" if metric == "costly" else "proxy"}
                for metric, values in metrics.items()
                for value in values
            ]
            payload = {
                "judge": label,
                "subject_kind": "row",
                "subject_id": id,
                "score": score,
                "scores": items,
                **options,
            }
            self.tell(run_id, "eval.completed", payload, f"2026-03-01T{12 + (hours if place else 0):02d}:00:00.000Z")


@pytest.fixture
def runs():
    return Runs()


@pytest.fixture
def ask(runs, monkeypatch):
    memory = MemoryLedger()

    async def with_live(function):
        async with memory.open() as live:
            live.append(runs.events)
            runs.events.clear()
            return function(live)

    monkeypatch.setattr("dicast_promotion.command.read_ledger", lambda _, function: asyncio.run(with_live(function)))

    def run(*arguments, as_json=True):
        done = CliRunner().invoke(
            promotion, [*arguments, *(["--json"] if as_json else [])], catch_exceptions=False, standalone_mode=False
        )
        return (json.loads(done.stdout) if as_json else done.stdout), done.return_value

    return run


def samples(low, high):
    return {str(number): score for number, score in enumerate([low] * 30 + [high] * 70)}


def test_the_document_has_every_figure(runs, ask):
    candidate = {
        id: (score, {"proxy/format": [1.0, 0.9], "proxy/syntax": [1.0]}) for id, score in samples(0.2, 0.9).items()
    }
    runs.run("A", {**samples(0.5, 0.5), "only-a": 0.3})
    runs.run("B", {**candidate, "only-b": (0.69, {})}, hours=3)
    document, code = ask("A", "B")
    assert (document["baseline"], document["candidate"], document["judge"], code) == ("A", "B", "metrics", 1)
    assert document["subjects"] == {"baseline": 101, "candidate": 101, "both": 100}
    shadow = {"wins": 70, "losses": 30, "ties": 0, "samples": 100, "win_rate": 0.7, "tie_margin": 0.01, "hours": 3.0}
    assert document["shadow"] == shadow
    assert document["scores"]["proxy/format"] == pytest.approx(0.95)
    assert document["scores"]["overall"] == pytest.approx(0.69)
    assert document["margins"]["overall"] == pytest.approx(0.19)
    assert [gate["passed"] for gate in document["gates"]] == [True, False]
    assert (document["start"], document["state"]) == ("candidate", "staged")


def test_exit_code_says_whether_it_gets_to_where_it_is_to_go(runs, ask):
    runs.run("A", samples(0.5, 0.5))
    runs.run("B", samples(0.2, 0.9))
    assert ask("A", "B", "--state", "shadow")[1] == 0
    assert ask("B", "A", "--state", "shadow")[1] == 1
    assert ask("A", "B", "--to", "staged")[1] == 1


def test_text_says_what_stands_in_the_way(runs, ask):
    runs.run("A", {**samples(0.5, 0.5), "only": 0.4})
    runs.run("B", samples(0.5, 0.9))
    text, _ = ask("A", "B", as_json=False)
    assert text.splitlines() == [
        "candidate B against A, by metrics: 100 subjects in both",
        "  70 won, 0 lost, 30 tied (within 0.01): win rate 0.7",
        "  1 subjects have a score only in the baseline's run, and are not compared",
        "candidate -> staged: not passed",
        "  FAIL  proxy/format >= 0.95: has no score; there are metrics, overall",
        "  FAIL  proxy/syntax >= 0.9: has no score; there are metrics, overall",
        "state: candidate",
    ]


def test_runs_are_named_by_id_pipeline_or_last(runs, ask):
    for run_id, name in (("A", "now"), ("B", "new"), ("C", "new")):
        runs.run(run_id, {"1": 0.5}, name=name)
    assert [ask(*names)[0]["candidate"] for names in (("now", "new"), ("A", "B"), ("A", "last"))] == ["C", "B", "C"]
    with pytest.raises(ConfigError, match="no run 'nwo'.*did you mean 'now'"):
        ask("nwo", "new")
    with pytest.raises(ConfigError, match="the candidate is the baseline"):
        ask("new", "last")


def test_newest_verdict_of_a_run_counts(runs, ask):
    runs.run("A", {"1": 0.5})
    runs.run("B", {"1": 0.1})
    runs.tell("B", "eval.completed", {"judge": "metrics", "subject_kind": "row", "subject_id": "1", "score": 0.9})
    assert ask("A", "B")[0]["shadow"]["wins"] == 1


def test_what_an_audit_gave_enters_no_mean(runs, ask):
    runs.run("A", {"1": 0.5})
    runs.run("B", {"1": (0.4, {"cheap": [0.4], "costly": [1.0]})}, truth_reason="audit")
    assert "costly" not in ask("A", "B")[0]["scores"]


def test_without_common_subjects_there_is_no_win_rate(runs, ask):
    runs.run("A", {"1": 0.5})
    runs.run("B", {"2": 0.5})
    document, _ = ask("A", "B", "--state", "shadow")
    assert (document["shadow"]["win_rate"], document["shadow"]["samples"], document["margins"]) == (None, 0, {})


def test_label_has_to_be_in_both_runs(runs, ask):
    runs.run("A", {"1": 0.5}, label="helpful")
    runs.run("B", {"1": 0.5}, label="helpful")
    assert ask("A", "B")[0]["judge"] == "helpful"
    with pytest.raises(ConfigError, match="not both runs have scores of 'helpfull'.*did you mean 'helpful'"):
        ask("A", "B", "--judge", "helpfull")
    runs.run("C", {"1": 0.5}, label="strict")
    with pytest.raises(ConfigError, match="no label in common"):
        ask("A", "C")


def test_runs_with_different_judges_are_compared_only_on_request(runs, ask):
    alike = {"source": "1", "judges[strict]": "1", "metrics[m]": "1"}
    runs.run("A", {"1": 0.5}, fingerprints={**alike, "scoring": "1"})
    runs.run("B", {"1": 0.6}, fingerprints={**alike, "scoring": "2", "source": "2", "judges[strict]": "2"})
    with pytest.raises(ConfigError, match="not comparable: scoring differ"):
        ask("A", "B")
    assert ask("A", "B", "--allow-incomparable")[0]["differs"] == ["scoring"]


# Priority


def test_priority_follows_the_formula():
    factors = Factors(100, 0.3, 500, 5_000, 15, 2)
    expected = {"failure": 0.9, "latency": 0.5, "cost": 0.5, "staleness": 0.25, "issues": 0.4}
    assert factors.urgency == pytest.approx(expected)
    assert factors.priority == pytest.approx(255)


@given(*[st.floats(0, 1e5)] * 4, st.integers(0, 50))
def test_latency_cost_and_staleness_count_up_to_a_bound(rate, latency, cost, days, issues):
    direct = rate * (3 * 0.5 + min(latency / 1000, 1) + min(cost / 10000, 1) + 0.5 * min(days / 30, 1) + 0.2 * issues)
    assert Factors(rate, 0.5, latency, cost, days, issues).priority == pytest.approx(direct)


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), "1", None, True])
def test_factors_are_numbers_from_0_on(wrong):
    with pytest.raises(ConfigError, match="latency_ms is"):
        Factors(latency_ms=wrong)
    with pytest.raises(ConfigError, match="not a number from 0 to 1 "):
        Factors(failure_rate=1.1)


@pytest.fixture
def rank(tmp_path):
    def run(*lines, arguments=("--json",)):
        path = tmp_path / "modules.jsonl"
        path.write_bytes(b"\n".join(line if isinstance(line, bytes) else orjson.dumps(line) for line in lines))
        return CliRunner().invoke(priority, [str(path), *arguments], catch_exceptions=False).stdout

    return run


def test_most_urgent_comes_first(rank):
    lines = ({"id": "a", "invocation_rate": 10}, {"id": "b", "invocation_rate": 10, "failure_rate": 0.5}, {"id": "c"})
    assert [item["id"] for item in json.loads(rank(*lines))["data"]] == ["b", "a", "c"]
    assert rank(*lines, arguments=("--limit", "1")) == "      15.000  b  (failure 1.5)\n"


def test_every_bad_line_is_named(rank):
    with pytest.raises(DataError) as refused:
        rank({"id": "a", "latency": 1}, {"id": "a", "issues": -1}, b"{", {"issues": 1})
    problems = refused.value.problems
    assert [(problem.line, problem.hint) for problem in problems] == [
        (1, "latency_ms"),
        (2, None),
        (3, None),
        (4, None),
    ]


def test_two_lines_of_one_module_are_refused(rank):
    with pytest.raises(DataError, match="'a'"):
        rank({"id": "a"}, {"id": "a"})
