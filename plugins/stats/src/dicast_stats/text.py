"""What ``dicast compare`` prints: a table for each comparison, and the subjects that flipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dicast import Results

Figures = Mapping[str, Any]

SHOWN = 20
"""How many flips are listed of each direction."""


def lines(a: Results, b: Results, found: Figures) -> Iterator[str]:
    """The document *found* as lines."""
    yield f"A: {a.run_id} ({a.name})"
    yield f"B: {b.run_id} ({b.name}); differences are B less A, intervals 95 %"
    if found["differs"]:
        verdict = "" if found["comparable"] else "NOT COMPARABLE; "
        yield f"{verdict}they differ in {', '.join(found['differs'])}"
    for name, comparison in found["comparisons"].items():
        yield ""
        yield f"{name}: {_TITLES[name]}"
        yield from _table(name, comparison)
        yield from _alone(comparison)
    yield ""
    yield from _flips(found["flips"], found["flips_of"])


def _table(name: str, comparison: Figures) -> Iterator[str]:
    heads, row = _TABLES[name]
    cells = [("", *heads), *((criterion, *row(one)) for criterion, one in comparison["criteria"].items())]
    if len(cells) == 1:
        yield "  no criterion is in both runs"
        return
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for first, *rest in cells:
        yield "  " + "  ".join([first.ljust(widths[0]), *map(str.rjust, rest, widths[1:])])
    for (figure, why), criteria in _reasons(comparison["criteria"]).items():
        yield f"  {figure} of {', '.join(criteria)}: {why}"


def _reasons(criteria: Figures) -> Mapping[tuple[str, str], list[str]]:
    """Which criteria have no figure, by figure and reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for criterion, one in criteria.items():
        for reason in (one.get("reasons", {}) if isinstance(one, Mapping) else {}).items():
            found.setdefault(reason, []).append(criterion)
    return found


def _alone(comparison: Figures) -> Iterator[str]:
    for side in ("baseline", "variant"):
        if names := comparison.get(f"only_in_{side}"):
            yield f"  only in {'A' if side == 'baseline' else 'B'}: {', '.join(names)}"


def _paired(one: Figures) -> Sequence[str]:
    tests = (_p(one[name]) for name in ("p_value", "wilcoxon_p", "sign_p", "mcnemar_p"))
    resampled = _interval(one["bootstrap_ci_low"], one["bootstrap_ci_high"])
    passes = "-" if one["mcnemar_p"] is None else f"+{one['passes_gained']:,} -{one['passes_lost']:,}"
    effect, interval = _signed(one["effect_size"]), _interval(one["ci_low"], one["ci_high"])
    return (f"{one['n_pairs']:,}", _signed(one["mean_difference"]), interval, resampled, effect, *tests, passes)


def _significance(one: Figures) -> Sequence[str]:
    counts = (f"{one['n_baseline']:,}", f"{one['n_variant']:,}")
    interval, effect = _interval(one["ci_low"], one["ci_high"]), _signed(one["effect_size"])
    return (*counts, _signed(one["mean_difference"]), interval, effect, _p(one["p_value"]), _p(one["adjusted_p_value"]))


def _cliffs(one: Figures) -> Sequence[str]:
    return (f"{one['n_baseline']:,}", f"{one['n_variant']:,}", _signed(one["delta"]), one["interpretation"] or "-")


def _delta(one: float | None) -> Sequence[str]:
    return (_signed(one),)


_PAIRED = ("pairs", "mean", "t interval", "bootstrap", "d_z", "p (t)", "Wilcoxon", "sign", "McNemar", "passes")
_TABLES: Mapping[str, tuple[Sequence[str], Callable[[Any], Sequence[str]]]] = {
    "stats/paired": (_PAIRED, _paired),
    "stats/significance": (("n A", "n B", "mean", "interval", "d", "p", "adjusted"), _significance),
    "stats/cliffs_delta": (("n A", "n B", "delta", "size"), _cliffs),
    "stats/score_delta": (("mean",), _delta),
}
_TITLES = {
    "stats/paired": "the same subjects in both runs",
    "stats/significance": "all subjects of each run, as if they were different ones (Welch's t-test)",
    "stats/cliffs_delta": "how much more often B is ahead than behind",
    "stats/score_delta": "the difference of the means of all subjects",
}


def _flips(flips: Sequence[Figures], known: int) -> Iterator[str]:
    if not known:
        yield "no subject has a flag or a score in both runs: whether one passes in one and not in the other is not known"
    elif not flips:
        yield f"no subject passes in one run and not in the other, of {known:,}"
    for gained, side in ((False, "A"), (True, "B")):
        found = [one for one in flips if one["b"] is gained]
        if found:
            yield f"pass in {side} alone: {len(found):,} (dicast show ID says why)"
            yield from (f"  {_flip(one)}" for one in found[:SHOWN])
            if len(found) > SHOWN:
                yield "  … (--json lists them all)"


def _flip(one: Figures) -> str:
    criterion = "" if one["criterion"] is None else f"  {one['criterion']}"
    return f"{one['subject_id']}{criterion}  {_score(one['score_a'])} -> {_score(one['score_b'])}"


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.4f}"


def _interval(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else f"{low:+.4f} to {high:+.4f}"


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}" if value < 0.001 else f"{value:.4f}"
