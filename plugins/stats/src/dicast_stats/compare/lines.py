"""Text of ``dicast compare``: a table for each comparison, the subjects that flipped, and a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dicast import Results
from dicast.toolkit.comparison_text import comparison_lines

Figures = Mapping[str, Any]

MAX_SHOWN = 20
"""Largest number of subjects listed for each direction, over all labels."""
MIN_SHOWN = 3
"""Number of subjects listed for each label and direction, however many labels there are."""


def lines(a: Results, b: Results, document: Figures) -> Iterator[Any]:
    """Yield the *document* as lines and tables for ``dicast.toolkit.terminal.print_lines``."""
    yield f"A: {a.run_id} ({a.name})"
    yield f"B: {b.run_id} ({b.name}); differences are B minus A, intervals 95 %"
    if document["differs"]:
        verdict = "" if document["comparable"] else "NOT COMPARABLE; "
        yield f"{verdict}they differ in {', '.join(document['differs'])}"
    if weighted := document.get("unweighted"):
        yield f"subjects of {' and '.join(weighted)} have weights; here each counts once, so the differences are about the sample"
    for name, comparison in document["comparisons"].items():
        yield ""
        yield from comparison_lines(name, comparison)
    yield ""
    yield from _pass_lines(document["passes"], document["flips"] or ())
    yield ""
    yield from document["sentences"] or [document["words"]]


def _pass_lines(passes: Mapping[str, Figures], flips: Sequence[Figures]) -> Iterator[str]:
    """Yield the counts of each label, and the first subjects that pass in one run alone."""
    if not passes:
        yield "no subject has a flag or a score in both runs: passes cannot be compared"
    max_listed = max(MIN_SHOWN, MAX_SHOWN // max(1, len(passes)))
    for label, counts in passes.items():
        if counts.get("reasons") == ["raw_scale"]:
            yield f"{label}: raw scale without pass_at: which subjects pass is not known"
            continue
        yield counts["words"]
        for side, gained in (("A", False), ("B", True)):
            changed = [change for change in flips if change["label"] == label and change["b"] is gained]
            yield from (f"  in {side} alone: {_flip(change)}" for change in changed[:max_listed])
            if len(changed) > max_listed:
                yield f"  … and {len(changed) - max_listed:,} more in {side} alone (--json lists them all)"


def _flip(change: Figures) -> str:
    return f"{change['subject_id']}  {_side(change, 'a')} -> {_side(change, 'b')}"


def _side(change: Figures, side: str) -> str:
    """Return the score of one run, else whether the subject passes."""
    score = change[f"score_{side}"]
    if score is not None:
        return f"{score:.4f}"
    return "passes" if change[side] else "fails"
