"""The judge card: every figure about one judge that its verdicts, labels of them, and a few verdicts asked again tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import attrs

from ..labels.gold import LabeledOutputs
from ..statistics.binomial import wilson
from ..statistics.chance_agreement import ac1, alpha, auc, balanced, kappa, resampled, tables
from ..statistics.regression import holm
from ..verdicts.rules import Agree, Rules
from .bars import bars, can_gate
from .drift import drift
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
from .recorded import Content, Recorded, Said, Subject

Figures = dict[str, Any]

SIGNIFICANT = 0.05

NO_PAIRS = "the judge compares no two outputs"
"""Why a figure does not apply to a judge, which is no lack, as :data:`NO_MODEL` is none."""

_ENDS = ("value", "low", "high")
_MODELS_OWN = ("llm", "jury", "hybrid", "evaluator")


@attrs.frozen
class Labeled:
    """A subject with its newest verdict and its label."""

    subject: Subject
    said: Said
    gold: float
    session: object
    content: Content


@attrs.frozen
class Answers:
    """What was asked for the card: how many verdicts came out the *same* of so many *repeated*, how many canaries *moved* one of those *tried*.

    *unknown* says why something was not asked.
    """

    same: int = 0
    repeated: int = 0
    rounds: int = 0
    moved: int = 0
    tried: int = 0
    failed: int = 0
    moved_by: Sequence[str] = ()
    unknown: Mapping[str, str] = attrs.field(factory=dict)


def labeled(recorded: Recorded, gold: LabeledOutputs) -> list[Labeled]:
    """The subjects that have a verdict and a label, in the order of the ledger."""
    found = []
    for subject, said in recorded.newest():
        label = gold.label(said.run_id, *subject)
        if label is not None:
            session = label.session_id or said.session or subject
            content = recorded.contents.get(said.content or "", Content())
            found.append(Labeled(subject, said, label.score, session, content))
    return found


def judge_card(
    recorded: Recorded, gold: LabeledOutputs, pass_at: float, answers: Answers, seed: int, agree: Agree | None = None
) -> Figures:
    """Return the card of one judge, without the warnings, which are made of all judges' together.

    :param agree: when a verdict and a label agree; by default by winners for a pairwise judge, else by the side of *pass_at*.
    """
    rows = labeled(recorded, gold)
    pairwise = any(len(said.winners) == 2 for said in _newest(recorded))
    rules = Rules(agree=agree or ("winner" if pairwise else "pass"), pass_at=pass_at)
    figures, unknown = _agreement(rows, rules, seed)
    figures["labels"] |= _without_verdict(recorded, gold)
    more: list[tuple[Figures, Mapping[str, str]]] = [
        _preferences(recorded, gold, rows, pairwise=pairwise),
        _self_preference(rows, rules, recorded),
        _calibration(rows, rules, seed),
        (_asked(answers), answers.unknown),
        _spent(recorded),
    ]
    for found, why in more:
        figures |= found
        unknown |= why
    again = figures["self_consistency"]["low"]
    figures["drift"], why = drift(recorded, {row.subject for row in rows}, pass_at, again)
    unknown |= why
    asks_model = bool(recorded.models) or any(said.kind in _MODELS_OWN and said.model for said in _newest(recorded))
    if not asks_model:
        unknown["injection"] = NO_MODEL
    held = bars(figures, unknown, pairwise=pairwise, asks_model=asks_model)
    answer, reasons = can_gate(held)
    card: Figures = _plain({
        "label": recorded.label,
        "fingerprint": recorded.fingerprint,
        "models": recorded.models,
        "pass_at": pass_at,
        "can_gate": answer,
        "reasons": reasons,
        **figures,
        "bars": [bar.document() for bar in held],
        "left_out": recorded.others,
        "undefined": dict(sorted(unknown.items())),
    })  # fmt: skip
    return card


def _without_verdict(recorded: Recorded, gold: LabeledOutputs) -> Figures:
    """How many labels, of the kinds of subjects that the judge judges, are about one that it has no verdict on, with an example."""
    judged = {subject for subject, _ in recorded.newest()}
    kinds, ids = {kind for kind, _ in judged}, {id for _, id in judged}
    found = [
        key[1]
        for key in gold.gold.subjects
        if key not in judged and (key[0] in kinds or (not key[0] and key[1] not in ids))
    ]
    return {"without_verdict": len(found), "example": found[0] if found else None}


def _plain(value: Any) -> Any:
    """*value* as JSON has it: numpy's numbers as Python's own, and what is not finite as null."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    return value


def _newest(recorded: Recorded) -> Sequence[Said]:
    return [said for _, said in recorded.newest()]


def _ends(value: float | None, ends: tuple[float, float] | None) -> Figures:
    return dict(zip(_ENDS, (value, *(ends or (None, None))), strict=True))


def _agreement(rows: Sequence[Labeled], rules: Rules, seed: int) -> tuple[Figures, dict[str, str]]:
    """Return the figures of agreement, and the reasons for those that are not defined."""
    order = [1.0, 0.5, 0.0] if rules.agree == "winner" else [1.0, 0.0]
    judged, good = (
        [order.index(rules.label_class(score)) for score in scores]
        for scores in ([row.said.score for row in rows], [row.gold for row in rows])
    )
    by_session = tables(judged, good, [row.session for row in rows], len(order))
    whole = by_session.sum(0)
    n, right = len(rows), sum(one == other for one, other in zip(judged, good, strict=True))
    classes = good.count(0), good.count(len(order) - 1)
    figures: Figures = {
        "agree": rules.agree,
        "labels": {"n": n, "passes": classes[0], "fails": classes[1], "ties": n - sum(classes), "least_class": min(classes), "sessions": len(by_session)},
        "accuracy": _ends(right / n if n else None, wilson(right, n)),
    }  # fmt: skip
    unknown = {}
    for name, figure in (("kappa", kappa), ("ac1", ac1), ("alpha", alpha)):
        value, ends = resampled(by_session, figure, seed)
        figures[name] = _ends(
            value, ends if name == "ac1" or min(classes) else None
        )  # of one class it is 0, and says nothing
        if figures[name]["low"] is None:
            unknown[name] = _one_class(judged, good, len(order)) or "too few sessions to resample"
    sides = {"sensitivity": (whole[0][0], classes[0]), "specificity": (whole[-1][-1], classes[1])}
    shown = {name: _ends(int(k) / m if m else None, wilson(int(k), m)) for name, (k, m) in sides.items()}
    figures["balanced_accuracy"] = _ends(*balanced(whole)) | shown
    clear = [(row.said.score, cls == 0) for row, cls in zip(rows, good, strict=True) if order[cls] != 0.5]
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
    return f"the judge lets all {len(judged)} {words[judged[0]]}" if len(set(judged)) == 1 else None


def _preferences(
    recorded: Recorded, gold: LabeledOutputs, rows: Sequence[Labeled], *, pairwise: bool
) -> tuple[Figures, dict[str, str]]:
    if not pairwise:
        graded = [Graded(row.said.score, row.gold, row.content.output, row.session) for row in rows]
        slope, why = score_by_length(graded)
        none = NO_PAIRS
        found: Figures = {
            "order_flips": order_flips(()),
            "both_orders": both_orders(()),
            "position": None,
            "length": slope,
        }
        return found, {"order_flips": none, "position": none, **({"length": why} if why else {})}
    pairs = []
    for subject, said in recorded.newest():
        if len(said.winners) == 2:
            label, content = gold.label(said.run_id, *subject), recorded.contents.get(said.content or "", Content())
            winners = said.winners[0], said.winners[1]
            pairs.append(Pair(winners, None if label is None else label.score, content.output, content.reference))
    found, unknown = preferences(pairs)
    return {"order_flips": order_flips(pairs), "both_orders": both_orders(pairs), **found}, unknown


def _self_preference(rows: Sequence[Labeled], rules: Rules, recorded: Recorded) -> tuple[Figures, dict[str, str]]:
    rights = [(row.content.author, not rules.wrong(row.said.score, row.gold)) for row in rows if row.content.author]
    model = next((said.model for said in _newest(recorded) if said.model), None)
    found, why = self_preference(rights, model)
    return {"self_preference": found}, {} if why is None else {"self_preference": why}


def _calibration(rows: Sequence[Labeled], rules: Rules, seed: int) -> tuple[Figures, dict[str, str]]:
    import numpy as np

    from ..statistics.forecasts import calibration

    line = 0.5 if rules.agree == "winner" else rules.pass_at
    good = np.array([(row.gold >= line) for row in rows], float)
    right = np.array([not rules.wrong(row.said.score, row.gold) for row in rows], float)
    sure, scores = (np.array([getattr(row.said, name) for row in rows], float) for name in ("confidence", "score"))
    figures, unknown = Figures(), dict[str, str]()
    for name, (chances, outcomes) in {"calibration": (sure, right), "score_calibration": (scores, good)}.items():
        figures[name], reasons = calibration(chances, outcomes, seed)
        unknown |= {f"{name}.{figure}": why for figure, why in reasons.items()}
    return figures, unknown


def _asked(answers: Answers) -> Figures:
    from ..statistics.binomial import upper

    ends = wilson(answers.same, answers.repeated)
    again = _ends(answers.same / answers.repeated if answers.repeated else None, ends)
    injected: Figures = {"value": None, "low": None, "high": None}
    if answers.tried:
        moved, tried, level = answers.moved, answers.tried, 0.025
        low = 1 - upper(tried - moved, tried, level) if moved else 0.0
        injected = _ends(moved / tried, (low, upper(moved, tried, level)))
    told = {"moved": answers.moved, "tried": answers.tried, "failed": answers.failed, "moved_by": [*answers.moved_by]}
    return {
        "self_consistency": {**again, "same": answers.same, "n": answers.repeated, "repeat": answers.rounds},
        "injection": {**injected, **told},
    }


def _spent(recorded: Recorded) -> tuple[Figures, dict[str, str]]:
    """Failures, cost and latency of all its verdicts."""
    failed, verdicts = (
        recorded.failures.total(),
        [one for said in recorded.said.values() for one in said if not one.preview],
    )
    n = failed + len(verdicts)
    failures = _ends(failed / n if n else None, wilson(failed, n))
    costs = sorted(float(one.cost) for one in verdicts if one.cost is not None)
    figures: Figures = {
        "failures": {**failures, "failed": failed, "n": n, "by_kind": dict(sorted(recorded.failures.items()))},
        "cost": {"median": _quantile(costs, 0.5), "p95": _quantile(costs, 0.95), "unit": "usd", "n": len(costs), "unknown": len(verdicts) - len(costs)},
        "latency": {name: _quantile(sorted(one.latency for one in verdicts), share) for name, share in (("median_ms", 0.5), ("p95_ms", 0.95))},
    }  # fmt: skip
    return figures, {} if costs else {"cost": "no verdict has a known cost"}


def _quantile(ascending: Sequence[float], share: float) -> float | None:
    import numpy as np

    return float(np.quantile(ascending, share)) if ascending else None


_WARNED = {
    "position": "prefers the {more} output shown by {effect:.1%} of pairs more than labels do",
    "length": "lets {more} texts win or score {effect:.2f} more, by length alone",
    "self_preference": "is {more} often right on outputs of its own family ({family}) by {effect:.1%}",
}


def add_warnings(judges: Sequence[Figures]) -> None:
    """Give each of *judges* its warnings: what is beyond chance, of several judges by Holm over all of theirs, and matters."""
    found = [(judge, name, judge[name]) for judge in judges for name in _WARNED if judge.get(name) is not None]
    p_values = [one["p_value"] for _, _, one in found]
    adjusted = holm(p_values) if len(judges) > 1 else p_values
    for judge in judges:
        judge["warnings"] = []
    for (judge, name, one), p_value in zip(found, adjusted, strict=True):
        one["adjusted_p_value"] = p_value
        one["warns"] = p_value <= SIGNIFICANT and abs(one["effect"]) > LEAST_EFFECT
        if one["warns"]:
            judge["warnings"].append({"statistic": name, "message": _warning(name, one), "adjusted_p_value": p_value})


def _warning(name: str, one: Figures) -> str:
    rises = one["effect"] > 0
    more = {"position": ("first", "second"), "length": ("longer", "shorter"), "self_preference": ("more", "less")}
    return _WARNED[name].format(more=more[name][not rises], effect=abs(one["effect"]), family=one.get("family"))
