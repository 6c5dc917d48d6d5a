"""A comparison's document as text: how many subjects, and what chance leaves of the agreement, before any share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .options import shown

_MEANINGS = ((0.8, "reliable"), (0.667, "enough for tentative conclusions"), (-math.inf, "too little to rely on"))
"""From which alpha on what may be concluded: K. Krippendorff, Content Analysis (2004), 11.4.4."""

_FEW_LABELS = 10
"""Below so many labels no conclusion is printed: a bootstrap of so few subjects has no trustworthy interval."""

_FEW = 3
"""How many runs are named."""


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The document *found* as lines."""
    if "against_gold" in found:
        yield from _against(found)
    (base,) = shown("{:.1%}".format, found["base_rate"])
    names = " and ".join(found["raters"]) if len(found["raters"]) < 4 else f"{len(found['raters'])} {found['between']}"
    yield f"{names}: {found['n']:,} subjects with two scores or more, {base} of the scores pass"
    yield f"  Krippendorff's alpha  {_alpha(found)}"
    yield f"  {found['kappa_method'].partition(',')[0]:<20}  {_defined(found, 'kappa')}"
    (share,) = shown("{:.1%}".format, found["within"])
    yield f"  within {found['window']:<13g}  {share} of the subjects"
    yield from _raters(found)
    if len(found["kappa_pairs"]) > 1:
        yield "kappa by pair:"
        for pair in found["kappa_pairs"]:
            (kappa,) = shown("{:.4f}".format, pair["kappa"])
            yield f"  {kappa:>7}  {' and '.join(pair['raters'])} ({pair['n']:,} subjects)"
    yield from _contents(found)
    for judge, made in found["fingerprints"].items():
        yield from _differing(judge, made)
    if found["worst"]:
        yield "worst disagreements: (dicast show ID says why)"
    for one in found["worst"]:
        scores = ", ".join(f"{name} {score:.4f}" for name, score in one["scores"].items())
        yield f"  {one['subject_kind']} {one['subject_id']}  {scores}"


def _against(found: Mapping[str, Any]) -> Iterator[str]:
    """Each rater beside the labels."""
    key = found["between"].removesuffix("s")
    yield f"each {key} and the labels:"
    width = max(len(one[key]) for one in found["against_gold"])
    for one in found["against_gold"]:
        kappa, alpha = shown("{:.4f}".format, one["kappa"], one["alpha"])
        (within,) = shown("{:.1%}".format, one["within"])
        interval = "no interval" if one["alpha_ci"] is None else "{:.4f} to {:.4f}".format(*one["alpha_ci"])
        figures = f"alpha {alpha} ({interval}), kappa {kappa}, within {found['window']:g} {within}"
        yield f"  {one[key]:<{width}}  {one['n']:,} subjects: {figures}"


def _raters(found: Mapping[str, Any]) -> Iterator[str]:
    yield "raters: passes, failures"
    width = max(map(len, found["raters"]), default=0)
    for name, rater in found["raters"].items():
        (passes,), failed = shown("{:.1%}".format, rater["base_rate"]), found["failures"].get(name)
        share = f"{failed['failed']:,} of {failed['n']:,} ({failed['rate']:.1%})" if failed else "-"
        yield f"  {name:<{width}}  {passes:>6}  {share}"


def _contents(found: Mapping[str, Any]) -> Iterator[str]:
    """What was not compared because different things were judged under one id, and where only the newest was."""
    if count := found["different_content"]:
        named = [f"{one['subject_kind']} {one['subject_id']}" for one in found["different_content_subjects"]]
        more = ["…"] if len(named) < count else []
        yield f"different content: {count:,} subjects have verdicts on another content, which are not compared"
        yield f"  {', '.join([*named, *more])}"
    if count := found["several_contents"]:
        yield f"several contents: {count:,} of the compared subjects were read with other contents too; see that the right one counts"


def _differing(judge: str, made: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The fingerprints of a judge that was not the same in all runs.

    Where other models answered, as in a cascade, one run has several; two runs differ when either has one that the other has
    not.
    """
    by_run: dict[str, set[str]] = {}
    for one in made:
        for run in one["runs"]:
            by_run.setdefault(run, set()).add(one["fingerprint"])
    most = max(by_run.values(), key=len, default=set[str]())
    if all(some <= most for some in by_run.values()):
        return
    yield f"{judge} was not the same in all runs, so these are different judges:"
    for one in made:
        runs = one["runs"]
        named = f"run {', '.join(runs)}" if len(runs) <= _FEW else f"{len(runs):,} runs, the last is {runs[-1]}"
        yield f"  fingerprint {one['fingerprint'][:12]}  {one['n']:,} verdicts of {named}"


def _defined(found: Mapping[str, Any], name: str) -> str:
    return f"{found[name]:.4f}" if found[name] is not None else f"not defined: {found['reasons'][name]}"


def _alpha(found: Mapping[str, Any]) -> str:
    text = _defined(found, "alpha")
    if found["alpha"] is None:
        return text
    interval = found["alpha_ci"]
    between = "no interval" if interval is None else f"95 % interval {interval[0]:.4f} to {interval[1]:.4f} (bootstrap)"
    if found["n"] < _FEW_LABELS:
        return f"{text}, {between}: {found['n']} subjects are too few to conclude from"
    meaning = next(words for bound, words in _MEANINGS if found["alpha"] >= bound)
    return f"{text}, {between}: {meaning}"
