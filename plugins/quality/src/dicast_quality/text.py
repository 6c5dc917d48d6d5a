"""A comparison's document as text: the number of subjects and the chance-corrected agreement come before any share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dicast.reading import weights_note

from .options import as_texts

_MEANINGS = ((0.8, "reliable"), (0.667, "enough for tentative conclusions"), (-math.inf, "too little to rely on"))
"""Lowest alpha of each conclusion: K. Krippendorff, Content Analysis (2004), 11.4.4."""

_FEW_LABELS = 10
"""Fewest subjects for a conclusion: with fewer, the bootstrap interval is not trustworthy."""

_FEW = 3
"""Runs that are named, at most."""


def lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield *document* as lines."""
    if "against_gold" in document:
        yield from _against(document)
    (base,) = as_texts("{:.1%}".format, document["base_rate"])
    names = (
        " and ".join(document["raters"])
        if len(document["raters"]) < 4
        else f"{len(document['raters'])} {document['between']}"
    )
    yield f"{names}: {document['n']:,} subjects with two scores or more, {base} of the scores pass"
    yield f"  Krippendorff's alpha  {_alpha(document)}"
    yield f"  {document['kappa_method'].partition(',')[0]:<20}  {_defined(document, 'kappa')}"
    (share,) = as_texts("{:.1%}".format, document["within"])
    yield f"  within {document['window']:<13g}  {share} of the subjects"
    yield from _raters(document)
    if len(document["kappa_pairs"]) > 1:
        yield "kappa by pair:"
        for pair in document["kappa_pairs"]:
            (kappa,) = as_texts("{:.4f}".format, pair["kappa"])
            yield f"  {kappa:>7}  {' and '.join(pair['raters'])} ({pair['n']:,} subjects)"
    yield from _contents(document)
    if "weighted_runs" in document:
        yield weights_note(document["weighted_runs"])
    for judge, fingerprints in document["fingerprints"].items():
        yield from _differing(judge, fingerprints)
    if document["worst"]:
        yield "largest disagreements (see: dicast show ID):"
    for disagreement in document["worst"]:
        scores = ", ".join(f"{name} {score:.4f}" for name, score in disagreement["scores"].items())
        yield f"  {disagreement['subject_kind']} {disagreement['subject_id']}  {scores}"


def _against(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the figures of each rater against the labels."""
    key = document["between"].removesuffix("s")
    yield f"each {key} and the labels:"
    width = max(len(rater[key]) for rater in document["against_gold"])
    for rater in document["against_gold"]:
        kappa, alpha = as_texts("{:.4f}".format, rater["kappa"], rater["alpha"])
        (within,) = as_texts("{:.1%}".format, rater["within"])
        interval = "no interval" if rater["alpha_ci"] is None else "{:.4f} to {:.4f}".format(*rater["alpha_ci"])
        figures = f"alpha {alpha} ({interval}), kappa {kappa}, within {document['window']:g} {within}"
        yield f"  {rater[key]:<{width}}  {rater['n']:,} subjects: {figures}"


def _raters(document: Mapping[str, Any]) -> Iterator[str]:
    yield "raters: passes, failures"
    width = max(map(len, document["raters"]), default=0)
    for name, rater in document["raters"].items():
        (passes,), failed = as_texts("{:.1%}".format, rater["base_rate"]), document["failures"].get(name)
        share = f"{failed['failed']:,} of {failed['n']:,} ({failed['rate']:.1%})" if failed else "-"
        yield f"  {name:<{width}}  {passes:>6}  {share}"


def _contents(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the subjects left out because their verdicts are about different contents, and those compared by their newest content only."""
    if count := document["different_content"]:
        named = [
            f"{subject['subject_kind']} {subject['subject_id']}" for subject in document["different_content_subjects"]
        ]
        ellipsis = ["…"] if len(named) < count else []
        yield f"different content: {count:,} subjects have verdicts on other contents, which are not compared"
        yield f"  {', '.join([*named, *ellipsis])}"
    if count := document["several_contents"]:
        yield f"{count:,} of the compared subjects were also read with another input or output: check in their runs that the verdicts are about the same one"


def _differing(judge: str, fingerprints: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the fingerprints of a judge that was not the same in all runs.

    One run has several fingerprints if several models answered, as in a cascade. Two runs differ if either has a fingerprint that the other lacks.
    """
    by_run: dict[str, set[str]] = {}
    for entry in fingerprints:
        for run in entry["runs"]:
            by_run.setdefault(run, set()).add(entry["fingerprint"])
    most = max(by_run.values(), key=len, default=set[str]())
    if all(some <= most for some in by_run.values()):
        return
    yield f"{judge} differs between runs, so its verdicts are of different judges:"
    for entry in fingerprints:
        runs = entry["runs"]
        named = f"run {', '.join(runs)}" if len(runs) <= _FEW else f"{len(runs):,} runs, the last is {runs[-1]}"
        yield f"  fingerprint {entry['fingerprint'][:12]}  {entry['n']:,} verdicts of {named}"


def _defined(document: Mapping[str, Any], name: str) -> str:
    return f"{document[name]:.4f}" if document[name] is not None else f"not defined: {document['reasons'][name]}"


def _alpha(document: Mapping[str, Any]) -> str:
    text = _defined(document, "alpha")
    if document["alpha"] is None:
        return text
    interval = document["alpha_ci"]
    between = "no interval" if interval is None else f"95 % interval {interval[0]:.4f} to {interval[1]:.4f} (bootstrap)"
    if document["n"] < _FEW_LABELS:
        return f"{text}, {between}: {document['n']} subjects are too few for a conclusion"
    meaning = next(words for bound, words in _MEANINGS if document["alpha"] >= bound)
    return f"{text}, {between}: {meaning}"
