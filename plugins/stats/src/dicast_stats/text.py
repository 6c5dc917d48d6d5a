"""What ``dicast compare`` prints: a table for each comparison, the subjects that flipped, and a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dicast import Results, comparison_lines

from .words import subjects

Figures = Mapping[str, Any]

SHOWN = 20
"""How many flips are listed of each direction."""


def lines(a: Results, b: Results, found: Figures) -> Iterator[Any]:
    """The document *found* as ``dicast.print_lines`` prints it: lines, and tables between them."""
    yield f"A: {a.run_id} ({a.name})"
    yield f"B: {b.run_id} ({b.name}); differences are B less A, intervals 95 %"
    if found["differs"]:
        verdict = "" if found["comparable"] else "NOT COMPARABLE; "
        yield f"{verdict}they differ in {', '.join(found['differs'])}"
    for name, comparison in found["comparisons"].items():
        yield ""
        yield from comparison_lines(name, comparison)
    yield ""
    yield from _flips(found["flips"], found["flips_of"], found["passes_alone"])
    yield ""
    yield found["words"]


def _flips(flips: Sequence[Figures], known: int, whole: Figures) -> Iterator[str]:
    by_criterion = any(one["criterion"] is not None for one in flips)
    if not known:
        yield "no subject has a flag or a score in both runs: whether one passes in one and not in the other is not known"
    elif not flips:
        yield f"no subject passes in one run and not in the other, of {known:,}"
    elif by_criterion:
        yield f"pass in B alone: {whole['b']:,}, in A alone: {whole['a']:,}, of {subjects(whole['of'])}, by all criteria together"
    what = "criteria that pass" if by_criterion else "pass"
    for gained, side in ((False, "A"), (True, "B")):
        found = [one for one in flips if one["b"] is gained]
        if found:
            yield f"{what} in {side} alone: {len(found):,} (dicast show ID says why)"
            yield from (f"  {_flip(one)}" for one in found[:SHOWN])
            if len(found) > SHOWN:
                yield "  … (--json lists them all)"


def _flip(one: Figures) -> str:
    criterion = "" if one["criterion"] is None else f"  {one['criterion']}"
    return f"{one['subject_id']}{criterion}  {_score(one['score_a'])} -> {_score(one['score_b'])}"


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
