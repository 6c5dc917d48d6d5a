"""Text of a judge card: whether the judge may decide a gate, in words without statistics, and every figure behind it."""

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
"""Figures with an interval, in the order of the table: name, words, format."""

_RULE_OF = {
    "kappa": "min_kappa",
    "order_flips": "max_flips",
    "self_consistency": "min_consistency",
    "failures": "max_failures",
    "injection": "max_moved",
    "drift": "no_drift",
}

_COUNTS: Mapping[str, Callable[[Judge], str]] = {
    "order_flips": lambda figure: f"{figure['flipped']:,} of {figure['n']:,}",
    "self_consistency": lambda figure: f"{figure['same']:,} of {figure['n']:,}",
    "injection": lambda figure: f"{figure['moved']:,} of {figure['tried']:,}",
    "failures": lambda figure: f"{figure['failed']:,} of {figure['n']:,}",
    "drift": lambda figure: f"{figure['changed']:,} of {figure['n']:,}",
}


def card_lines(card: Judge) -> Iterator[Any]:
    """Yield the card for ``dicast.toolkit.terminal.print_lines``."""
    for judge in card["judges"]:
        yield ""
        yield from _judge_lines(judge)
    yield ""
    yield f"labels: {card['gold']['n']:,} from {card['gold']['source']}; valid for subjects drawn like these labels"


def _judge_lines(judge: Judge) -> Iterator[Any]:
    yield f"{judge['label']}: {answer(judge)}"
    yield from (f"  {line}" for line in wrapped(judge["words"], WIDTH - 2))
    yield ""
    heads = ("  figure", "value", "95 % interval", "to gate")
    rows = [(f"  {words}", *cells) for words, *cells in table_rows(judge)]
    yield TextTable(heads, rows, right=("value",), uncut=heads, least=30)
    yield ""
    for line in more_lines(judge):
        yield from (f"  {part}" for part in wrapped(line, WIDTH - 2))
    for warning in judge["warnings"]:
        yield from (f"  {part}" for part in wrapped(f"warning: it {warning['message']}", WIDTH - 2))


def answer(judge: Judge) -> str:
    """Return whether the judge may gate, in a few words."""
    return {True: "can gate", False: "cannot gate"}.get(judge["can_gate"], "not known whether it can gate")


def verdict_words(judge: Judge) -> str:
    """Return the conclusion of the card for readers without statistics."""
    labels = judge["labels"]
    opening = f"Compared with {labels['n']:,} labels ({_classes(judge)})"
    sentences = [f"{opening}, {judge['label']} {_agreement(judge)}", *_ranking(judge)]
    if judge["can_gate"] is True:
        return " ".join([*sentences, "It reaches every bar: a release may depend on its scores."])
    ends = {
        False: "No release should depend on its scores, because ",
        None: "Whether a release may depend on its scores is not known, because ",
    }
    return " ".join([*sentences, ends[judge["can_gate"]] + "; ".join(judge["reasons"]) + "."])


def _classes(judge: Judge) -> str:
    """Return the number of labels of each class in words."""
    labels = judge["labels"]
    if judge["agree"] != "winner":
        return f"{labels['passes']:,} pass, {labels['fails']:,} fail"
    return f"{labels['passes']:,} win, {labels['fails']:,} lose, {labels['ties']:,} tie"


def _agreement(judge: Judge) -> str:
    """Return how far the judge agrees with labels beyond guessing at the same rates."""
    kappa, accuracy = judge["kappa"], judge["accuracy"]["value"]
    if kappa["value"] is None or accuracy is None:
        return f"cannot be assessed: {judge['undefined'].get('kappa', 'there is nothing to compare')}."
    share = f"is right in {accuracy:.0%} of cases"
    if kappa["low"] is None:
        return f"{share}; the part due to chance is not known."
    if side := _one_side(judge):
        return f"{share}, because its verdict is {side} for every case, good or bad."
    if kappa["high"] < 0:
        return f"{share}, which is less than guessing at the same rates."
    if kappa["low"] <= 0:
        return f"{share}, which guessing at the same rates may reach too."
    if kappa["low"] < 0.4:
        return f"{share}, which is better than guessing, but not certainly by enough."
    return f"{share}, which is much better than guessing."


def _one_side(judge: Judge) -> str | None:
    """Return the verdict that the judge gives to every case, or None if verdicts differ."""
    sides = tuple(judge["balanced_accuracy"][name]["value"] for name in ("sensitivity", "specificity"))
    return {(1, 0): "pass", (0, 1): "fail"}.get(sides)


def _ranking(judge: Judge) -> Iterator[str]:
    """Yield whether the judge's scores rank good cases above bad ones."""
    value = judge["auc"]["value"]
    if value is None:
        return
    sentence = f"Given one good and one bad case, it scores the good case higher {value:.0%} of the time"
    if value < 0.5:
        yield f"{sentence}, worse than a coin (AUC {value:.2f})."
    elif judge["auc"]["low"] is not None and judge["auc"]["low"] <= 0.5:
        yield f"{sentence}, perhaps no better than a coin (AUC {value:.2f})."
    else:
        yield f"{sentence} (AUC {value:.2f})."


def table_rows(judge: Judge) -> Iterator[tuple[str, str, str, str]]:
    """Yield each figure that applies: its words, value, interval, and the bar with its result."""
    bars = {bar["rule"]: bar for bar in judge["bars"]}
    labels = judge["labels"]
    yield "labels", f"{labels['n']:,}", "", _bar(bars["min_labels"])
    yield "of the rarer class", f"{labels['least_class']:,}", "", _bar(bars["min_class"])
    for name, words, form in ROWS:
        figure, bar = judge[name], bars.get(_RULE_OF.get(name, ""))
        if figure["value"] is None and bar is None:
            continue
        count = _COUNTS[name](figure) if name in _COUNTS and figure["n" if "n" in figure else "tried"] else None
        value = count or ("-" if figure["value"] is None else _number_text(figure["value"], form))
        between = (
            ""
            if figure.get("low") is None
            else f"{_number_text(figure['low'], form)} to {_number_text(figure['high'], form)}"
        )
        reached = "" if bar is None else _bar(bar)
        yield words, value, between, "no later verdicts" if name == "drift" and not figure["n"] else reached


def _number_text(value: float, form: str) -> str:
    return f"{value:.1%}" if form == "share" else f"{value:.2f}"


def _bar(bar: Judge) -> str:
    answer = {True: "reached", False: "MISSED"}.get(bar["passed"], "not known" if bar["value"] is None else "too few")
    if bar["rule"] == "no_drift":
        return f"no drift: {answer}"
    line = f"{bar['line']:g}" if bar["line"] >= 1 or not bar["line"] else f"{bar['line']:.2f}"
    return f"{'>=' if bar['at'] == 'least' else '<='} {line}: {answer}"


def more_lines(judge: Judge) -> Iterator[str]:
    """Yield the figures without a bar (calibration, preferences, cost), and the reasons of missing figures."""
    figures = judge["calibration"]
    if figures["brier"] is not None:
        skill = "-" if figures["skill"] is None else f"{figures['skill']:+.2f}"
        slope = "" if figures["slope"] is None else f", slope {figures['slope']:.2f}"
        usual = "" if figures["ece_calibrated"] is None else f" (up to {figures['ece_calibrated']:.3f} if calibrated)"
        yield f"confidence: Brier {figures['brier']:.3f}, skill {skill}{slope}, ECE {figures['ece']:.3f}{usual}"
    for name, words in (("position", "the first place"), ("length", "length"), ("self_preference", "its own family")):
        if (preference := judge.get(name)) is not None:
            p = (
                f", Holm p {preference['adjusted_p_value']:.2g}"
                if preference["adjusted_p_value"] != preference["p_value"]
                else ""
            )
            yield f"preference for {words}: effect {preference['effect']:+.3f}, p {preference['p_value']:.2g}{p}"
    cost, latency = judge["cost"], judge["latency"]
    if cost["median"] is not None:
        yield (
            f"a verdict: median {amount_text(cost['median'])} usd (p95 {amount_text(cost['p95'])}), "
            f"{latency['median_ms']:.0f} ms (p95 {latency['p95_ms']:.0f})"
        )
    if lacking := judge["labels"]["without_verdict"]:
        labels = f"{lacking:,} label{'s' if lacking > 1 else ''}"
        yield f"not counted: {labels} of subjects without a verdict, such as {judge['labels']['example']!r}"
    if judge["left_out"]:
        yield f"left out: {judge['left_out']:,} verdicts of other versions of the judge, or of other models"
    if (figures := judge["both_orders"])["n"]:
        yield f"both orders: right in {figures['accuracy']:.1%}, the same winner in {figures['agreement']:.1%} of {figures['n']:,} labeled pairs"
    for name, reason in judge["undefined"].items():
        if reason not in (NO_PAIRS, NO_MODEL) and "." not in name:
            yield f"{name} is not known: {reason}"
