"""Judge card: the figures of one judge, from its verdicts, labels of them, and repeated verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import attrs

from ..labels.gold import LabeledOutputs
from ..statistics.binomial import share_interval
from ..statistics.chance_agreement import ac1, alpha, auc, balanced, kappa, resampled, tables
from ..statistics.regression import holm
from ..verdicts.rules import Agree, Rules
from .bars import bars, can_gate
from .drift import drift
from .history import Content, JudgeHistory, PastVerdict, Subject
from .order_bias import (
    LEAST_EFFECT,
    NO_MODEL,
    Graded,
    Pair,
    both_orders,
    order_flips,
    preferences,
    score_by_length,
    self_preference,
)

Figures = dict[str, Any]

SIGNIFICANT = 0.05

NO_PAIRS = "the judge does not compare two outputs"
"""Reason why a figure does not apply to a judge; like :data:`NO_MODEL` it is not a defect."""

_ENDS = ("value", "low", "high")
_MODELS_OWN = ("llm", "jury", "hybrid", "evaluator")


@attrs.frozen
class LabeledVerdict:
    """Subject with its newest verdict and its label."""

    subject: Subject
    verdict: PastVerdict
    gold: float
    session: object
    content: Content


@attrs.frozen
class Answers:
    """Answers to the questions of a card.

    *consistent* of the *repeated* verdicts were the same again; *moved* of the *tried* canaries moved a verdict. *unknown* has the reasons of omitted
    questions.
    """

    consistent: int = 0
    repeated: int = 0
    rounds: int = 0
    moved: int = 0
    tried: int = 0
    failed: int = 0
    moved_by: Sequence[str] = ()
    unknown: Mapping[str, str] = attrs.field(factory=dict)


def labeled_verdicts(history: JudgeHistory, gold: LabeledOutputs) -> list[LabeledVerdict]:
    """Return the subjects with a verdict and a label, in the order of the ledger."""
    rows = []
    for subject, verdict in history.newest():
        label = gold.label(verdict.run_id, *subject)
        if label is not None:
            session = label.session_id or verdict.session or subject
            content = history.contents.get(verdict.content or "", Content())
            rows.append(LabeledVerdict(subject, verdict, label.score, session, content))
    return rows


def judge_card(
    history: JudgeHistory, gold: LabeledOutputs, pass_at: float, answers: Answers, seed: int, agree: Agree | None = None
) -> Figures:
    """Return the card of one judge, without the warnings, which :func:`add_warnings` computes over all judges.

    :param agree: when a verdict and a label agree; by default by winners for a pairwise judge, else by the side of *pass_at*.
    """
    rows = labeled_verdicts(history, gold)
    is_pairwise = any(len(verdict.winners) == 2 for verdict in _newest(history))
    rules = Rules(agree=agree or ("winner" if is_pairwise else "pass"), pass_at=pass_at)
    figures, unknown = _agreement(rows, rules, seed)
    figures["labels"] |= _without_verdict(history, gold)
    parts: list[tuple[Figures, Mapping[str, str]]] = [
        _preferences(history, gold, rows, is_pairwise=is_pairwise),
        _self_preference(rows, rules, history),
        _calibration(rows, rules, seed),
        (_answer_figures(answers), answers.unknown),
        _spent(history),
    ]
    for part, part_reasons in parts:
        figures |= part
        unknown |= part_reasons
    consistency = figures["self_consistency"]["low"]
    figures["drift"], part_reasons = drift(history, {row.subject for row in rows}, pass_at, consistency)
    unknown |= part_reasons
    asks_model = bool(history.models) or any(
        verdict.kind in _MODELS_OWN and verdict.model for verdict in _newest(history)
    )
    if not asks_model:
        unknown["injection"] = NO_MODEL
    results = bars(figures, unknown, is_pairwise=is_pairwise, asks_model=asks_model)
    answer, reasons = can_gate(results)
    card: Figures = _plain({
        "label": history.label,
        "fingerprint": history.fingerprint,
        "models": history.models,
        "pass_at": pass_at,
        "can_gate": answer,
        "reasons": reasons,
        **figures,
        "bars": [bar.document() for bar in results],
        "left_out": history.excluded,
        "undefined": dict(sorted(unknown.items())),
    })  # fmt: skip
    return card


def _without_verdict(history: JudgeHistory, gold: LabeledOutputs) -> Figures:
    """Return the number of labels, of the kinds of subjects that the judge judges, without a verdict of the judge, and an example."""
    judged = {subject for subject, _ in history.newest()}
    kinds, ids = {kind for kind, _ in judged}, {id for _, id in judged}
    unjudged = [
        key[1]
        for key in gold.gold.subjects
        if key not in judged and (key[0] in kinds or (not key[0] and key[1] not in ids))
    ]
    return {"without_verdict": len(unjudged), "example": unjudged[0] if unjudged else None}


def _plain(value: Any) -> Any:
    """Return *value* as JSON data: numpy's numbers as Python's, and numbers that are not finite as null."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    return value


def _newest(history: JudgeHistory) -> Sequence[PastVerdict]:
    return [verdict for _, verdict in history.newest()]


def _ends(value: float | None, ends: tuple[float, float] | None) -> Figures:
    return dict(zip(_ENDS, (value, *(ends or (None, None))), strict=True))


def _agreement(rows: Sequence[LabeledVerdict], rules: Rules, seed: int) -> tuple[Figures, dict[str, str]]:
    """Return the figures of agreement, and the reasons of undefined ones."""
    order = [1.0, 0.5, 0.0] if rules.agree == "winner" else [1.0, 0.0]
    judged, good = (
        [order.index(rules.label_class(score)) for score in scores]
        for scores in ([row.verdict.score for row in rows], [row.gold for row in rows])
    )
    by_session = tables(judged, good, [row.session for row in rows], len(order))
    table = by_session.sum(0)
    n, right_count = (
        len(rows),
        sum(verdict_class == gold_class for verdict_class, gold_class in zip(judged, good, strict=True)),
    )
    classes = good.count(0), good.count(len(order) - 1)
    figures: Figures = {
        "agree": rules.agree,
        "labels": {"n": n, "passes": classes[0], "fails": classes[1], "ties": n - sum(classes), "least_class": min(classes), "sessions": len(by_session)},
        "accuracy": _ends(right_count / n if n else None, share_interval(right_count, n)),
    }  # fmt: skip
    unknown = {}
    for name, figure in (("kappa", kappa), ("ac1", ac1), ("alpha", alpha)):
        value, ends = resampled(by_session, figure, seed)
        figures[name] = _ends(
            value, ends if name == "ac1" or min(classes) else None
        )  # 0 for a single class, without information
        if figures[name]["low"] is None:
            unknown[name] = _one_class(judged, good, len(order)) or "too few sessions to resample"
    sides = {"sensitivity": (table[0][0], classes[0]), "specificity": (table[-1][-1], classes[1])}
    rates = {name: _ends(int(k) / m if m else None, share_interval(int(k), m)) for name, (k, m) in sides.items()}
    figures["balanced_accuracy"] = _ends(*balanced(table)) | rates
    clear = [(row.verdict.score, cls == 0) for row, cls in zip(rows, good, strict=True) if order[cls] != 0.5]
    figures["auc"] = _ends(*auc([score for score, _ in clear], [is_good for _, is_good in clear]))
    for name in ("balanced_accuracy", "auc"):
        if figures[name]["value"] is None:
            unknown[name] = "the labels have one class only" if n else "no subject has a label"
    return figures, unknown


def _one_class(judged: Sequence[int], good: Sequence[int], classes: int) -> str | None:
    words = ("win", "tie", "lose") if classes > 2 else ("pass", "fail")
    if not good:
        return "no subject has a label"
    if len(set(good)) == 1:
        return f"all {len(good)} labels {words[good[0]]}: labels of both classes are needed"
    return f"the judge gives all {len(judged)} the verdict {words[judged[0]]}" if len(set(judged)) == 1 else None


def _preferences(
    history: JudgeHistory, gold: LabeledOutputs, rows: Sequence[LabeledVerdict], *, is_pairwise: bool
) -> tuple[Figures, dict[str, str]]:
    if not is_pairwise:
        graded = [Graded(row.verdict.score, row.gold, row.content.output, row.session) for row in rows]
        slope, length_reason = score_by_length(graded)
        reason = NO_PAIRS
        figures: Figures = {
            "order_flips": order_flips(()),
            "both_orders": both_orders(()),
            "position": None,
            "length": slope,
        }
        return figures, {
            "order_flips": reason,
            "position": reason,
            **({"length": length_reason} if length_reason else {}),
        }
    pairs = []
    for subject, verdict in history.newest():
        if len(verdict.winners) == 2:
            label, content = (
                gold.label(verdict.run_id, *subject),
                history.contents.get(verdict.content or "", Content()),
            )
            winners = verdict.winners[0], verdict.winners[1]
            pairs.append(Pair(winners, None if label is None else label.score, content.output, content.reference))
    figures, unknown = preferences(pairs)
    return {"order_flips": order_flips(pairs), "both_orders": both_orders(pairs), **figures}, unknown


def _self_preference(
    rows: Sequence[LabeledVerdict], rules: Rules, history: JudgeHistory
) -> tuple[Figures, dict[str, str]]:
    rights = [
        (row.content.author, not rules.is_wrong(row.verdict.score, row.gold)) for row in rows if row.content.author
    ]
    model = next((verdict.model for verdict in _newest(history) if verdict.model), None)
    figure, reason = self_preference(rights, model)
    return {"self_preference": figure}, {} if reason is None else {"self_preference": reason}


def _calibration(rows: Sequence[LabeledVerdict], rules: Rules, seed: int) -> tuple[Figures, dict[str, str]]:
    import numpy as np

    from ..statistics.forecasts import calibration

    line = 0.5 if rules.agree == "winner" else rules.pass_at
    good = np.array([(row.gold >= line) for row in rows], float)
    is_right = np.array([not rules.is_wrong(row.verdict.score, row.gold) for row in rows], float)
    confidences, scores = (
        np.array([getattr(row.verdict, name) for row in rows], float) for name in ("confidence", "score")
    )
    figures, unknown = Figures(), dict[str, str]()
    for name, (chances, outcomes) in {
        "calibration": (confidences, is_right),
        "score_calibration": (scores, good),
    }.items():
        figures[name], reasons = calibration(chances, outcomes, seed)
        unknown |= {f"{name}.{figure}": reason for figure, reason in reasons.items()}
    return figures, unknown


def _answer_figures(answers: Answers) -> Figures:
    from ..statistics.binomial import upper

    ends = share_interval(answers.consistent, answers.repeated)
    consistency = _ends(answers.consistent / answers.repeated if answers.repeated else None, ends)
    injected: Figures = {"value": None, "low": None, "high": None}
    if answers.tried:
        moved, tried, level = answers.moved, answers.tried, 0.025
        low = 1 - upper(tried - moved, tried, level) if moved else 0.0
        injected = _ends(moved / tried, (low, upper(moved, tried, level)))
    counts = {"moved": answers.moved, "tried": answers.tried, "failed": answers.failed, "moved_by": [*answers.moved_by]}
    return {
        "self_consistency": {
            **consistency,
            "same": answers.consistent,
            "n": answers.repeated,
            "repeat": answers.rounds,
        },
        "injection": {**injected, **counts},
    }


def _spent(history: JudgeHistory) -> tuple[Figures, dict[str, str]]:
    """Return failures, cost and latency of all verdicts."""
    failed, verdicts = (
        history.failures.total(),
        [verdict for verdicts in history.verdicts.values() for verdict in verdicts if not verdict.is_preview],
    )
    n = failed + len(verdicts)
    failures = _ends(failed / n if n else None, share_interval(failed, n))
    costs = sorted(float(verdict.cost) for verdict in verdicts if verdict.cost is not None)
    figures: Figures = {
        "failures": {**failures, "failed": failed, "n": n, "by_kind": dict(sorted(history.failures.items()))},
        "cost": {"median": _quantile(costs, 0.5), "p95": _quantile(costs, 0.95), "unit": "usd", "n": len(costs), "unknown": len(verdicts) - len(costs)},
        "latency": {name: _quantile(sorted(verdict.latency for verdict in verdicts), share) for name, share in (("median_ms", 0.5), ("p95_ms", 0.95))},
    }  # fmt: skip
    return figures, {} if costs else {"cost": "no verdict has a known cost"}


def _quantile(ascending: Sequence[float], share: float) -> float | None:
    import numpy as np

    return float(np.quantile(ascending, share)) if ascending else None


_WARNED = {
    "position": "prefers the {more} shown output in {effect:.1%} more pairs than labels do",
    "length": "gives {more} texts {effect:.2f} more wins or score, by length alone",
    "self_preference": "is {more} often right on outputs of its own family ({family}), by {effect:.1%}",
}


def add_warnings(judges: Sequence[Figures]) -> None:
    """Add the warnings to each of *judges*: preferences with a significant and sufficient effect, adjusted by Holm over several judges."""
    tested = [(judge, name, judge[name]) for judge in judges for name in _WARNED if judge.get(name) is not None]
    p_values = [figure["p_value"] for _, _, figure in tested]
    adjusted = holm(p_values) if len(judges) > 1 else p_values
    for judge in judges:
        judge["warnings"] = []
    for (judge, name, figure), p_value in zip(tested, adjusted, strict=True):
        figure["adjusted_p_value"] = p_value
        figure["warns"] = p_value <= SIGNIFICANT and abs(figure["effect"]) > LEAST_EFFECT
        if figure["warns"]:
            judge["warnings"].append(
                {"statistic": name, "message": _warning(name, figure), "adjusted_p_value": p_value}
            )


def _warning(name: str, figure: Figures) -> str:
    rises = figure["effect"] > 0
    directions = {"position": ("first", "second"), "length": ("longer", "shorter"), "self_preference": ("more", "less")}
    return _WARNED[name].format(
        more=directions[name][not rises], effect=abs(figure["effect"]), family=figure.get("family")
    )
