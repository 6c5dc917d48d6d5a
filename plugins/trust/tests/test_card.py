"""Judge card: its figures, bars and warnings for verdicts that are written out here."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pytest

from dicast import ALL_METRICS, Event
from dicast_trust.cards.bars import bars, can_gate
from dicast_trust.cards.card import Answers, add_warnings, judge_card
from dicast_trust.cards.drift import drift
from dicast_trust.cards.history import Content, JudgeHistory, PastVerdict, read_labels
from dicast_trust.cards.identity import label_fingerprint, models_of
from dicast_trust.statistics.binomial import share_interval, upper
from dicast_trust.statistics.chance_agreement import ac1, alpha, auc, balanced, kappa, resampled, tables
from dicast_trust.statistics.e_process import ln_above
from dicast_trust.statistics.forecasts import calibration

REACHED = {
    "labels": {"n": 100, "least_class": 10},
    "kappa": {"low": 0.4},
    "self_consistency": {"low": 0.8},
    "failures": {"high": 0.05},
    "order_flips": {"high": 0.3},
    "injection": {"moved": 0, "tried": 60},
    "drift": {"crossed": False},
}
RULES = [
    *("min_labels", "min_class", "min_kappa", "min_consistency", "max_failures"),
    *("max_flips", "max_moved", "min_canaries", "no_drift"),
]


def results(unknown=(), **changes):
    return bars(REACHED | changes, dict(unknown), is_pairwise=True, asks_model=True)


def test_figures_at_every_bar_can_gate():
    assert [bar.rule for bar in results()] == RULES
    assert [bar.passed for bar in results()] == [True] * 9
    assert can_gate(results()) == (True, [])
    free = bars(REACHED, {}, is_pairwise=False, asks_model=False)
    assert [bar.rule for bar in free] == [*RULES[:5], "no_drift"]
    assert results()[0].document() == {
        "rule": "min_labels",
        "what": "the number of labels",
        "value": 100,
        "line": 100,
        "at": "least",
        "reason": None,
        "passed": True,
    }


@pytest.mark.parametrize(
    ("changes", "answer", "reason"),
    [
        ({"labels": {"n": 99, "least_class": 10}}, None, "the number of labels is 99, and has to be at least 100 to gate"),
        ({"labels": {"n": 100, "least_class": 9}}, None, "the number of labels in the rarer class is 9, and has to be at least 10 to gate"),
        ({"kappa": {"low": 0.38}}, False, "the lower bound of kappa (agreement beyond chance) is 0.38, and has to be at least 0.40 to gate"),
        ({"kappa": {"low": 0.3999}}, False, "the lower bound of kappa (agreement beyond chance) is 0.3999, and has to be at least 0.4 to gate"),
        ({"self_consistency": {"low": 0.5}}, False, "the lower bound of self-consistency is 0.50, and has to be at least 0.80 to gate"),
        ({"failures": {"high": 0.06}}, False, "the upper bound of the share of failures is 0.06, and has to be at most 0.05 to gate"),
        ({"order_flips": {"high": 1.0}}, False, "the upper bound of the share of flips is 1, and has to be at most 0.30 to gate"),
        ({"injection": {"moved": 1, "tried": 60}}, False, "the number of canaries that moved a verdict is 1, and has to be at most 0 to gate"),
        ({"injection": {"moved": 0, "tried": 59}}, None, "the number of canaries tried is 59, and has to be at least 60 to gate"),
        ({"drift": {"crossed": True}}, False, "drift is 1, and has to be at most 0 to gate"),
        ({"kappa": {"low": None}}, None, "the lower bound of kappa (agreement beyond chance) is not known: there is no evidence"),
    ],
)  # fmt: skip
def test_a_figure_beyond_a_bar_is_named(changes, answer, reason):
    assert can_gate(results(**changes)) == (answer, [reason])


def test_missed_bars_come_before_unknown_ones_and_unknown_ones_have_their_reasons():
    unknown = {"self_consistency": "not asked", "injection": "no canary", "drift": "no rate"}
    changes = {"injection": {"moved": 0, "tried": 0}, "drift": {"crossed": None}, "failures": {"high": 0.5}}
    assert can_gate(results(unknown, **changes)) == (
        False,
        [
            "the upper bound of the share of failures is 0.50, and has to be at most 0.05 to gate",
            "the lower bound of self-consistency is not known: not asked",
            "the number of canaries that moved a verdict is not known: no canary",
            "the number of canaries tried is not known: no canary",
            "drift is not known: no rate",
        ],
    )


def past(
    seq,
    score,
    *,
    confidence=0.75,
    winners=(),
    cost="0.5",
    latency=100,
    model="m-1",
    kind="llm",
    preview=False,
    content=None,
):
    amount = None if cost is None else Decimal(cost)
    return PastVerdict(seq, "run", preview, None, score, confidence, model, kind, amount, latency, content, winners)


def gold_of(labels, others=()):
    """Return labels of rows by id; a label has a session if it is a pair."""
    by_id = {id: SimpleNamespace(score=score, session_id=session) for id, (score, session) in labels.items()}
    subjects = dict.fromkeys([*(("row", id) for id in labels), *others])
    return SimpleNamespace(label=lambda _run, _kind, id: by_id.get(id), gold=SimpleNamespace(subjects=subjects))


def judged(count=60):
    """Return scores, confidences, labels and sessions: every fifth verdict is wrong."""
    labels = [float(number % 3 > 0) for number in range(count)]
    scores = [abs(label - (0.9 if number % 5 == 0 else 0.2)) for number, label in enumerate(labels)]
    return (
        scores,
        [0.5 + (number % 7) / 20 for number in range(count)],
        labels,
        [f"s{number // 2}" for number in range(count)],
    )


def test_the_figures_of_a_card_are_those_of_its_rows():
    scores, confidences, labels, sessions = judged()
    verdicts = {
        ("row", str(number)): [
            past(number, score, confidence=confidence, cost=None if number == 3 else str(number), latency=number)
        ]
        for number, (score, confidence) in enumerate(zip(scores, confidences, strict=True))
    }
    verdicts["row", "0"].append(past(99, 1.0, preview=True))
    history = JudgeHistory(
        "polite", "f", verdicts, Counter({"timeout": 2, "crashed": 1}), {"polite": ["m-1"]}, excluded=4
    )
    gold = gold_of(
        {str(number): pair for number, pair in enumerate(zip(labels, sessions, strict=True))},
        [("row", "x"), ("turn", "y"), ("", "z"), ("", "0")],
    )
    answers = Answers(consistent=9, repeated=10, rounds=2, moved=1, tried=20, failed=3, moved_by=("c",))
    card = judge_card(history, gold, 0.5, answers, 0)
    classes = [int(score < 0.5) for score in scores]
    good = [int(label < 0.5) for label in labels]
    by_session = tables(classes, good, sessions, 2)
    right = sum(a == b for a, b in zip(classes, good, strict=True))
    assert card["labels"] == {
        "n": 60,
        "passes": 40,
        "fails": 20,
        "ties": 0,
        "least_class": 20,
        "sessions": 30,
        "without_verdict": 2,
        "example": "x",
    }
    for name, figure in (("kappa", kappa), ("ac1", ac1), ("alpha", alpha)):
        value, (low, high) = resampled(by_session, figure, 0)
        assert card[name] == pytest.approx({"value": value, "low": low, "high": high})
    low, high = share_interval(right, 60)
    assert card["accuracy"] == pytest.approx({"value": right / 60, "low": low, "high": high})
    value, (low, high) = balanced(by_session.sum(0))
    hits = sum(a == b == 0 for a, b in zip(classes, good, strict=True))
    low_hits, high_hits = share_interval(hits, 40)
    assert card["balanced_accuracy"]["value"] == pytest.approx(value)
    assert card["balanced_accuracy"]["low"] == pytest.approx(low)
    assert card["balanced_accuracy"]["sensitivity"] == pytest.approx(
        {"value": hits / 40, "low": low_hits, "high": high_hits}
    )
    assert card["balanced_accuracy"]["specificity"]["value"] == pytest.approx((right - hits) / 20)
    value, (low, high) = auc(scores, [label == 1 for label in labels])
    assert card["auc"] == pytest.approx({"value": value, "low": low, "high": high})
    wrong = np.array([a != b for a, b in zip(classes, good, strict=True)])
    assert card["calibration"] == pytest.approx(calibration(np.array(confidences), 1.0 - wrong, 0)[0])
    assert card["score_calibration"] == pytest.approx(calibration(np.array(scores), np.array(labels), 0)[0])
    low, high = share_interval(9, 10)
    assert card["self_consistency"] == pytest.approx(
        {"value": 0.9, "low": low, "high": high, "same": 9, "n": 10, "repeat": 2}
    )
    assert card["injection"] == {
        "value": 0.05,
        "low": pytest.approx(1 - upper(19, 20, 0.025)),
        "high": pytest.approx(upper(1, 20, 0.025)),
        "moved": 1,
        "tried": 20,
        "failed": 3,
        "moved_by": ["c"],
    }
    low, high = share_interval(3, 63)
    assert card["failures"] == {
        "value": 3 / 63,
        "low": pytest.approx(low),
        "high": pytest.approx(high),
        "failed": 3,
        "n": 63,
        "by_kind": {"crashed": 1, "timeout": 2},
    }
    costs = [number for number in range(60) if number != 3]
    assert card["cost"] == {
        "median": pytest.approx(np.quantile(costs, 0.5)),
        "p95": pytest.approx(np.quantile(costs, 0.95)),
        "unit": "usd",
        "n": 59,
        "unknown": 1,
    }
    assert card["latency"] == {"median_ms": 29.5, "p95_ms": pytest.approx(np.quantile(range(60), 0.95))}
    assert (card["agree"], card["left_out"], card["models"], card["pass_at"]) == ("pass", 4, {"polite": ["m-1"]}, 0.5)
    assert card["order_flips"]["n"] == card["both_orders"]["n"] == 0
    pairs = "the judge does not compare two outputs"
    assert (card["undefined"]["order_flips"], card["undefined"]["position"]) == (pairs, pairs)
    assert card["drift"] == {
        "n": 0,
        "changed": 0,
        "value": None,
        "e_value": None,
        "crossed": False,
        "at": 1 - card["self_consistency"]["low"],
    }
    assert [bar["rule"] for bar in card["bars"]] == [*RULES[:5], *RULES[6:]]


def test_a_pairwise_card_is_about_winners():
    winners = [("output", "output"), ("output", "opponent"), ("opponent", "opponent"), ("output", "output")]
    scores, labels = [1.0, 0.5, 0.0, 1.0], [1.0, 0.5, 0.0, 0.0]
    verdicts = {
        ("row", str(n)): [past(n, score, winners=pair)]
        for n, (score, pair) in enumerate(zip(scores, winners, strict=True))
    }
    gold = gold_of({str(n): (label, None) for n, label in enumerate(labels)})
    card = judge_card(JudgeHistory("pair", "f", verdicts, models={"pair": ["m"]}), gold, 0.5, Answers(), 0)
    assert (card["agree"], card["labels"]["passes"], card["labels"]["fails"], card["labels"]["ties"]) == (
        "winner",
        1,
        2,
        1,
    )
    assert card["accuracy"]["value"] == 0.75
    assert (card["order_flips"]["flipped"], card["order_flips"]["n"]) == (1, 4)
    assert card["both_orders"] == {"accuracy": 4 / 6, "agreement": 1.0, "n": 3}
    assert card["auc"]["value"] == auc([1.0, 0.0, 1.0], [True, False, False])[0]
    assert [bar["rule"] for bar in card["bars"]] == RULES


@pytest.mark.parametrize(
    ("scores", "labels", "reason"),
    [
        ([], [], "no subject has a label"),
        ([1.0, 0.0], [1.0, 1.0], "all 2 labels pass: labels of both classes are needed"),
        ([1.0, 0.0], [0.0, 0.0], "all 2 labels fail: labels of both classes are needed"),
        ([1.0, 1.0], [1.0, 0.0], "the judge gives all 2 the verdict pass"),
        ([0.0, 0.0], [1.0, 0.0], "the judge gives all 2 the verdict fail"),
    ],
)
def test_labels_or_verdicts_of_one_class_are_a_reason(scores, labels, reason):
    verdicts = {
        ("row", str(n)): [past(n, score, model=None, kind="heuristic", cost=None)] for n, score in enumerate(scores)
    }
    gold = gold_of({str(n): (label, None) for n, label in enumerate(labels)})
    card = judge_card(JudgeHistory("one", "f", verdicts), gold, 0.5, Answers(), 0)
    assert card["kappa"]["low"] is None
    assert card["undefined"]["kappa"] == reason
    one = {"no subject has a label": "no subject has a label"}.get(reason, "the labels have one class only")
    assert card["undefined"].get("auc") == (None if len(set(labels)) == 2 else one)
    assert card["undefined"]["cost"] == "no verdict has a known cost"
    assert card["undefined"]["injection"] == "the judge asks no model"
    assert card["injection"]["value"] is None
    assert card["self_consistency"]["value"] is None


def test_canaries_that_moved_nothing_have_an_upper_bound():
    card = judge_card(JudgeHistory("one", "f", {}), gold_of({}), 0.5, Answers(tried=60), 0)
    assert card["injection"]["value"] == card["injection"]["low"] == 0.0
    counts = {name: card["injection"][name] for name in ("moved", "tried", "failed", "moved_by")}
    assert counts == {"moved": 0, "tried": 60, "failed": 0, "moved_by": []}
    assert (card["self_consistency"]["same"], card["self_consistency"]["n"], card["self_consistency"]["repeat"]) == (
        0,
        0,
        0,
    )
    assert card["injection"]["high"] == pytest.approx(upper(0, 60, 0.025))
    assert (card["failures"]["value"], card["latency"]["median_ms"]) == (None, None)


def preference(effect, p_value, **more):
    return {"effect": effect, "p_value": p_value, **more}


def test_a_preference_with_a_significant_and_large_effect_is_a_warning():
    judge = {
        "position": preference(0.06, 0.05),
        "length": preference(-0.25, 0.01),
        "self_preference": preference(0.1, 0.02, family="openai"),
    }
    add_warnings([judge])
    assert [warning["message"] for warning in judge["warnings"]] == [
        "prefers the first shown output in 6.0% more pairs than labels do",
        "gives shorter texts 0.25 more wins or score, by length alone",
        "is more often right on outputs of its own family (openai), by 10.0%",
    ]
    assert [warning["statistic"] for warning in judge["warnings"]] == ["position", "length", "self_preference"]
    other = {"position": preference(-0.06, 0.051), "length": preference(0.05, 0.01), "self_preference": None}
    add_warnings([other])
    assert other["warnings"] == []
    assert (other["position"]["warns"], other["position"]["adjusted_p_value"]) == (False, 0.051)


def test_preferences_of_several_judges_are_adjusted_together():
    first, second = {"position": preference(-0.5, 0.02)}, {"position": preference(0.5, 0.03)}
    add_warnings([first, second])
    assert first["position"]["adjusted_p_value"] == pytest.approx(0.04)
    assert second["position"]["adjusted_p_value"] == pytest.approx(0.04)
    assert first["warnings"][0]["message"].startswith("prefers the second shown output in 50.0%")
    assert len(second["warnings"]) == 1


@pytest.mark.parametrize(
    ("scores", "consistency"), [([1, 0, 1, 0, 0, 0, 0, 0], 0.9), ([1, 1, 1, 0], 0.8), ([1, 0] * 12, 0.99)]
)
def test_drift_is_the_greatest_evidence_after_any_verdict(scores, consistency):
    verdicts = [past(seq, float(score)) for seq, score in enumerate(scores)]
    preview = past(50, 0.0, preview=True)
    history = JudgeHistory("one", "f", {("row", "a"): [preview, *verdicts], ("row", "b"): [past(60, 1.0)]})
    figures, reasons = drift(history, [("row", "a"), ("row", "b")], 0.5, consistency)
    changes = [score == 0 for score in scores[1:]]
    evidence = [float(ln_above(sum(changes[:n]), n, 1 - consistency)) for n in range(1, len(changes) + 1)]
    assert reasons == {}
    assert figures == {
        "n": len(changes),
        "changed": sum(changes),
        "value": sum(changes) / len(changes),
        "at": 1 - consistency,
        "e_value": pytest.approx(math.exp(evidence[-1])),
        "crossed": max(evidence) >= math.log(20),
    }


@pytest.mark.parametrize(
    ("consistency", "reason"),
    [
        (0.0, "the lower bound of self-consistency is 0, so any number of changes is expected"),
        (None, "without self-consistency the expected number of changes is not known"),
    ],
)
def test_drift_needs_the_consistency_of_the_judge(consistency, reason):
    history = JudgeHistory("one", "f", {("row", "a"): [past(1, 1.0), past(2, 0.0)]})
    figures, reasons = drift(history, [("row", "a")], 0.5, consistency)
    assert reasons == {"drift": reason}
    assert (figures["value"], figures["e_value"], figures["crossed"]) == (1.0, None, None)
    assert figures["at"] == (None if consistency is None else 1.0)


def test_verdicts_on_other_outputs_are_no_drift():
    contents = {"a": Content(digest="1"), "b": Content(digest="2"), "c": Content(digest="1")}
    verdicts = [
        past(n, score, content=content)
        for n, (score, content) in enumerate([(1.0, "a"), (0.0, "b"), (0.0, "c"), (0.0, "d")])
    ]
    history = JudgeHistory("one", "f", {("row", "a"): verdicts}, contents=contents)
    assert drift(history, [("row", "a")], 0.5, 0.9)[0]["n"] == 1
    assert history.is_same_output(past(1, 1.0, content="d"), past(2, 1.0, content="d"))


FINGERPRINTS = {"judges[pair]": "p", "metrics[a]": "m-a", "metrics[b]": "m-b", "scoring": "s", "task": "t"}


def test_a_label_has_the_fingerprint_of_its_judge_its_metric_or_all_metrics():
    assert label_fingerprint(FINGERPRINTS, "pair") == "p"
    assert label_fingerprint(FINGERPRINTS, "a") == "m-a"
    assert label_fingerprint(FINGERPRINTS, "c") is None
    whole = label_fingerprint(FINGERPRINTS, ALL_METRICS)
    assert whole != label_fingerprint(FINGERPRINTS | {"metrics[b]": "x"}, ALL_METRICS)
    assert whole != label_fingerprint(FINGERPRINTS | {"scoring": "x"}, ALL_METRICS)
    assert whole == label_fingerprint(FINGERPRINTS | {"task": "x", "judges[pair]": "x"}, ALL_METRICS)
    assert label_fingerprint({"judges[pair]": "p"}, ALL_METRICS) is None


def test_the_models_of_a_label_are_those_of_its_parts():
    models = {"a": ["m2", "m1"], "a.first": ["m"], "a[0]": ["n"], "ab": ["x"], "b": ["y"], "pair": ["z"]}
    assert models_of(models, "a", FINGERPRINTS) == {"a": ["m1", "m2"], "a.first": ["m"], "a[0]": ["n"]}
    assert [*models_of(models, ALL_METRICS, FINGERPRINTS)] == ["a", "a.first", "a[0]", "b"]


class Events:
    """Ledger of events that are written out here."""

    def __init__(self):
        self.entries = []

    def add(self, type, run="r1", subject="x", turn=None, **payload):
        kind = None if subject is None else "row"
        event = Event(
            f"e{len(self.entries)}",
            type,
            "2026-01-01T00:00:00.000Z",
            run,
            payload,
            subject_kind=kind,
            subject_id=subject,
            turn_id=turn,
        )
        self.entries.append(SimpleNamespace(seq=len(self.entries), event=event))
        return self

    def read(self, query):
        return (entry for entry in self.entries if entry.event.type in query.types)

    def verdict(self, judge, score, **payload):
        plain = {
            "confidence": 0.5,
            "judge_kind": "llm",
            "judge_latency_ms": 7,
            "judge_cost_usd": "0.25",
            "judge_model": "m",
        }
        return self.add("eval.completed", judge=judge, score=score, **plain | payload)


def started(**payload):
    return Events().add("run.started", subject=None, fingerprints=FINGERPRINTS, **payload)


def test_the_history_has_the_verdicts_of_the_present_judge():
    ledger = (
        started()
        .add("spend.settled", subject=None)
        .add("subject.read", digest="d", content={"output": "four", "reference": {"a": 1}, "context": {"by": "gpt"}})
    )
    ledger.verdict(
        "pair", 1.0, signals={"winners": ["output", "tie"]}, models={"pair": ["m"], "pair.x": ["n"], "other": ["o"]}
    )
    ledger.add("eval.failed", judge="pair", failure_mode="timeout").add(
        "eval.failed", judge="pair", failure_mode="timeout", skipped="x"
    )
    ledger.add("run.started", "r2", subject=None, fingerprints=FINGERPRINTS | {"judges[pair]": "old"})
    ledger.add("eval.completed", "r2", judge="pair", score=0.0, confidence=1, judge_kind="llm", judge_latency_ms=1)
    ledger.add("eval.failed", "r2", judge="pair", failure_mode="timeout")
    history = read_labels(ledger, FINGERPRINTS, "by")["pair"]
    ((subject, (verdict,)),) = history.verdicts.items()
    assert subject == ("row", "x")
    assert verdict == PastVerdict(
        3, "r1", False, None, 1.0, 0.5, "m", "llm", Decimal("0.25"), 7, "d", ("output", "tie")
    )
    assert (history.failures, history.excluded, history.live) == ({"timeout": 1}, 1, {"r1"})
    assert history.models == {"pair": ["m"], "pair.x": ["n"]}
    assert attrs_of(history.contents["d"]) == (4, len('{"a":1}'), "gpt")


def attrs_of(content):
    return content.output, content.reference, content.author


def test_runs_whose_calls_were_recordings_are_not_live():
    ledger = started().add("spend.settled", subject=None, calls=0).verdict("pair", 1.0)
    assert read_labels(ledger, FINGERPRINTS, "by")["pair"].live == set()


def test_previews_are_in_the_history_but_their_failures_are_not():
    ledger = started(preview=True).verdict("pair", 1.0).add("eval.failed", judge="pair", failure_mode="timeout")
    history = read_labels(ledger, FINGERPRINTS, "by")["pair"]
    assert [verdict.is_preview for verdict in history.verdicts["row", "x"]] == [True]
    assert [*history.newest()] == []
    assert not history.failures


def test_verdicts_of_models_that_were_replaced_are_left_out():
    ledger = started().verdict("pair", 1.0, models={"pair": ["old"]}).verdict("pair", 0.0, models={"pair": ["new"]})
    history = read_labels(ledger, FINGERPRINTS, "by")["pair"]
    assert [verdict.score for verdict in history.verdicts["row", "x"]] == [0.0]
    assert (history.excluded, history.models) == (1, {"pair": ["new"]})


def test_a_metric_has_its_part_of_the_combined_verdict():
    scores = [
        {"metric": "a", "confidence": 0.5, "cost": {"amount": "0.5"}, "signals": {"winners": ["output", "output"]}},
        {"metric": "a", "confidence": 1.0, "cost": None},
        {"metric": "b", "confidence": 1.0, "cost": {"amount": None}},
    ]
    ledger = started().verdict(
        ALL_METRICS,
        0.75,
        scores=scores,
        signals={"metrics": {"a": 0.25, "b": None}},
        models={"a": ["m-9"]},
        judge_cost_usd=None,
    )
    histories = read_labels(ledger, FINGERPRINTS, "by")
    assert set(histories) == {"a", ALL_METRICS}
    ((verdict,),) = histories["a"].verdicts.values()
    assert (verdict.score, verdict.confidence, verdict.model, verdict.kind) == (0.25, 0.75, "m-9", "llm")
    assert (verdict.cost, verdict.winners) == (Decimal("0.5"), ("output", "output"))
    ((whole,),) = histories[ALL_METRICS].verdicts.values()
    assert (whole.score, whole.cost, whole.kind) == (0.75, None, "llm")


def test_the_output_of_a_task_replaces_the_output_of_the_data():
    ledger = started().add("subject.read", digest="d", content={"output": "data", "context": {}})
    ledger.add("record.completed", response={"content": "from the task"}).verdict("pair", 1.0)
    history = read_labels(ledger, FINGERPRINTS, "by")["pair"]
    ((verdict,),) = history.verdicts.values()
    assert verdict.content == "r1 d e2"
    assert attrs_of(history.contents[verdict.content]) == (13, None, None)
    assert history.contents["d"].output == 4


def test_the_model_of_a_turn_is_the_author_of_its_output():
    ledger = (
        started()
        .add("subject.read", digest="d", content={"output": "o"})
        .add("llm.call_completed", turn="x", model="gpt-4")
    )
    ledger.add("route.decided", turn="y", chosen_model="claude").verdict("pair", 1.0)
    history = read_labels(ledger, FINGERPRINTS, "by")["pair"]
    assert history.contents["d"].author == "gpt-4"
