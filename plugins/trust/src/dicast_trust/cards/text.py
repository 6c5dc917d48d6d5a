"""A judge card for a reader: whether the judge may decide a gate, in words that need no statistics, and every figure behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dicast.toolkit.money import amount_text
from dicast.toolkit.text_table import TextTable

from ..terminal.wrapping import WIDTH, wrapped
from .card import NO_PAIRS
from .order_bias import NO_MODEL

Judge = Mapping[str, Any]

ROWS: Sequence[tuple[str, str, str]] = (
    ("kappa", "beyond chance (kappa)", "number"),
    ("ac1", "AC1 (no bar)", "number"),
    ("alpha", "nominal alpha", "number"),
    ("accuracy", "right verdicts (no bar)", "share"),
    ("balanced_accuracy", "balanced accuracy", "share"),
    ("auc", "good above bad (AUC)", "share"),
    ("order_flips", "winner flips with order", "share"),
    ("self_consistency", "same verdict again", "share"),
    ("injection", "canaries that moved it", "share"),
    ("failures", "failures", "share"),
    ("drift", "anchors changed", "share"),
)
"""Figures with an interval, in the order in which they are shown: name, words, how they are written."""

_RULE_OF = {
    "kappa": "min_kappa",
    "order_flips": "max_flips",
    "self_consistency": "min_consistency",
    "failures": "max_failures",
    "injection": "max_moved",
    "drift": "no_drift",
}

_COUNTS: Mapping[str, Callable[[Judge], str]] = {
    "order_flips": lambda one: f"{one['flipped']:,} of {one['n']:,}",
    "self_consistency": lambda one: f"{one['same']:,} of {one['n']:,}",
    "injection": lambda one: f"{one['moved']:,} of {one['tried']:,}",
    "failures": lambda one: f"{one['failed']:,} of {one['n']:,}",
    "drift": lambda one: f"{one['changed']:,} of {one['n']:,}",
}


def card_lines(card: Judge) -> Iterator[Any]:
    """The card as ``dicast.toolkit.terminal.print_lines`` prints it."""
    for judge in card["judges"]:
        yield ""
        yield from _judge_lines(judge)
    yield ""
    yield f"labels: {card['gold']['n']:,} from {card['gold']['source']}; it holds for subjects drawn as these were"


def _judge_lines(judge: Judge) -> Iterator[Any]:
    yield f"{judge['label']}: {answer(judge)}"
    yield from (f"  {line}" for line in wrapped(judge["words"], WIDTH - 2))
    yield ""
    heads = ("  figure", "value", "95 % interval", "to gate")
    rows = [(f"  {words}", *cells) for words, *cells in table_rows(judge)]
    yield TextTable(heads, rows, right=("value",), whole=heads, least=30)
    yield ""
    for line in more_lines(judge):
        yield from (f"  {part}" for part in wrapped(line, WIDTH - 2))
    for warning in judge["warnings"]:
        yield from (f"  {part}" for part in wrapped(f"warning: it {warning['message']}", WIDTH - 2))


def answer(judge: Judge) -> str:
    """Whether the judge may gate, in three words."""
    return {True: "can gate", False: "cannot gate"}.get(judge["can_gate"], "not known whether it can gate")


def verdict_words(judge: Judge) -> str:
    """What the card comes to, for somebody who knows no statistics."""
    labels = judge["labels"]
    who = f"Compared with {labels['n']:,} labels ({_classes(judge)})"
    said = [f"{who}, {judge['label']} {_agreement(judge)}", *_ranking(judge)]
    if judge["can_gate"] is True:
        return " ".join([*said, "It reaches every bar: a release may depend on its scores."])
    ends = {
        False: "No release should depend on its scores, because ",
        None: "Whether a release may depend on its scores is not known, because ",
    }
    return " ".join([*said, ends[judge["can_gate"]] + "; ".join(judge["reasons"]) + "."])


def _classes(judge: Judge) -> str:
    """Return the number of labels of each class in words."""
    labels = judge["labels"]
    if judge["agree"] != "winner":
        return f"{labels['passes']:,} pass, {labels['fails']:,} fail"
    return f"{labels['passes']:,} win, {labels['fails']:,} lose, {labels['ties']:,} tie"


def _agreement(judge: Judge) -> str:
    """How far the judge agrees with labels, beyond what a coin with the same habits would."""
    found, right = judge["kappa"], judge["accuracy"]["value"]
    if found["value"] is None or right is None:
        return f"tells nothing: {judge['undefined'].get('kappa', 'there is nothing to compare')}."
    share = f"is right in {right:.0%} of cases"
    if found["low"] is None:
        return f"{share}; how much of that is chance is not known."
    if side := _one_side(judge):
        return f"{share}, as it lets every case {side}, good or bad."
    if found["high"] < 0:
        return f"{share}, which is less than guessing with the same habits would be."
    if found["low"] <= 0:
        return f"{share}, which is no more than guessing with the same habits might be."
    if found["low"] < 0.4:
        return f"{share}, which is more than guessing, but not surely by enough."
    return f"{share}, which is well above guessing."


def _one_side(judge: Judge) -> str | None:
    """What the judge lets every case do, where it says the same of all."""
    sides = tuple(judge["balanced_accuracy"][name]["value"] for name in ("sensitivity", "specificity"))
    return {(1, 0): "pass", (0, 1): "fail"}.get(sides)


def _ranking(judge: Judge) -> Iterator[str]:
    """Whether its scores put good above bad."""
    value = judge["auc"]["value"]
    if value is None:
        return
    told = f"Of one good and one bad case it scores the good one higher {value:.0%} of the time"
    if value < 0.5:
        yield f"{told}, worse than a coin (AUC {value:.2f})."
    elif judge["auc"]["low"] is not None and judge["auc"]["low"] <= 0.5:
        yield f"{told}, no surer than a coin (AUC {value:.2f})."
    else:
        yield f"{told} (AUC {value:.2f})."


def table_rows(judge: Judge) -> Iterator[tuple[str, str, str, str]]:
    """Each figure that applies: its words, value, interval, and the bar with whether it is reached."""
    bars = {bar["rule"]: bar for bar in judge["bars"]}
    labels = judge["labels"]
    yield "labels", f"{labels['n']:,}", "", _bar(bars["min_labels"])
    yield "of the rarer class", f"{labels['least_class']:,}", "", _bar(bars["min_class"])
    for name, words, form in ROWS:
        one, bar = judge[name], bars.get(_RULE_OF.get(name, ""))
        if one["value"] is None and bar is None:
            continue
        count = _COUNTS[name](one) if name in _COUNTS and one["n" if "n" in one else "tried"] else None
        value = count or ("-" if one["value"] is None else _shown(one["value"], form))
        between = "" if one.get("low") is None else f"{_shown(one['low'], form)} to {_shown(one['high'], form)}"
        reached = "" if bar is None else _bar(bar)
        yield words, value, between, "no later verdicts" if name == "drift" and not one["n"] else reached


def _shown(value: float, form: str) -> str:
    return f"{value:.1%}" if form == "share" else f"{value:.2f}"


def _bar(bar: Judge) -> str:
    answer = {True: "reached", False: "MISSED"}.get(bar["passed"], "not known" if bar["value"] is None else "too few")
    if bar["rule"] == "no_drift":
        return f"no drift: {answer}"
    line = f"{bar['line']:g}" if bar["line"] >= 1 or not bar["line"] else f"{bar['line']:.2f}"
    return f"{'>=' if bar['at'] == 'least' else '<='} {line}: {answer}"


def more_lines(judge: Judge) -> Iterator[str]:
    """What has no bar: calibration, preferences, cost, and why a figure is missing."""
    found = judge["calibration"]
    if found["brier"] is not None:
        skill = "-" if found["skill"] is None else f"{found['skill']:+.2f}"
        slope = "" if found["slope"] is None else f", slope {found['slope']:.2f}"
        usual = "" if found["ece_calibrated"] is None else f" ({found['ece_calibrated']:.3f} would be chance)"
        yield f"confidence: Brier {found['brier']:.3f}, skill {skill}{slope}, ECE {found['ece']:.3f}{usual}"
    for name, words in (("position", "the first place"), ("length", "length"), ("self_preference", "its own family")):
        if (one := judge.get(name)) is not None:
            p = f", Holm p {one['adjusted_p_value']:.2g}" if one["adjusted_p_value"] != one["p_value"] else ""
            yield f"preference for {words}: effect {one['effect']:+.3f}, p {one['p_value']:.2g}{p}"
    cost, latency = judge["cost"], judge["latency"]
    if cost["median"] is not None:
        yield (
            f"a verdict: median {amount_text(cost['median'])} usd (p95 {amount_text(cost['p95'])}), "
            f"{latency['median_ms']:.0f} ms (p95 {latency['p95_ms']:.0f})"
        )
    if lacking := judge["labels"]["without_verdict"]:
        labels = f"{lacking:,} label{'s' if lacking > 1 else ''}"
        yield f"not counted: {labels} of subjects that it has no verdict on, such as {judge['labels']['example']!r}"
    if judge["left_out"]:
        yield f"left out: {judge['left_out']:,} verdicts of other versions of it, or of other models"
    if (found := judge["both_orders"])["n"]:
        yield f"both orders: right in {found['accuracy']:.1%}, the same winner in {found['agreement']:.1%} of {found['n']:,} labeled pairs"
    for name, why in judge["undefined"].items():
        if why not in (NO_PAIRS, NO_MODEL) and "." not in name:
            yield f"{name} is not known: {why}"
