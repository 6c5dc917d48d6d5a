"""What ``dicast compare`` prints: a table for each comparison, the subjects that flipped, and a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dicast import Results
from dicast.toolkit.comparison_text import comparison_lines

Figures = Mapping[str, Any]

SHOWN = 20
"""How many subjects are listed for each direction, over all labels."""
LEAST = 3
"""How many subjects of a label and direction are listed however many labels there are."""


def lines(a: Results, b: Results, found: Figures) -> Iterator[Any]:
    """The document *found* as ``dicast.toolkit.terminal.print_lines`` prints it: lines, and tables between them."""
    yield f"A: {a.run_id} ({a.name})"
    yield f"B: {b.run_id} ({b.name}); differences are B less A, intervals 95 %"
    if found["differs"]:
        verdict = "" if found["comparable"] else "NOT COMPARABLE; "
        yield f"{verdict}they differ in {', '.join(found['differs'])}"
    for name, comparison in found["comparisons"].items():
        yield ""
        yield from comparison_lines(name, comparison)
    yield ""
    yield from _passes(found["passes"], found["flips"] or ())
    yield ""
    yield from found["sentences"] or [found["words"]]


def _passes(passes: Mapping[str, Figures], flips: Sequence[Figures]) -> Iterator[str]:
    """Yield the counts of each label, and below them the first subjects that pass in one run alone."""
    if not passes:
        yield "no subject has a flag or a score in both runs: whether one passes in one and not in the other is not known"
    most = max(LEAST, SHOWN // max(1, len(passes)))
    for label, counts in passes.items():
        if counts.get("reasons") == ["raw_scale"]:
            yield f"{label}: raw scale without pass_at: which subjects pass is not known"
            continue
        yield counts["words"]
        for side, gained in (("A", False), ("B", True)):
            changed = [one for one in flips if one["label"] == label and one["b"] is gained]
            yield from (f"  in {side} alone: {_flip(one)}" for one in changed[:most])
            if len(changed) > most:
                yield f"  … and {len(changed) - most:,} more in {side} alone (--json lists them all)"


def _flip(one: Figures) -> str:
    return f"{one['subject_id']}  {_score(one['score_a'])} -> {_score(one['score_b'])}"


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
