"""Reasons why a gate does not decide by the change of a label."""

from __future__ import annotations

from collections.abc import Iterator

from dicast import Results
from dicast.reporting import MAX_UNPAIRED, find_faults

from .unpaired import unpaired_text

ROLES = ("the baseline", "the run")
"""Names of both runs in a gate's reasons."""

_THIS = {ROLES[1]: "this run"}
"""Name of a role in a reason about subjects that the run lacks."""


def way_faults(baseline: Results, variant: Results, label: str | None = None) -> Iterator[str]:
    """Yield the reasons why the runs were judged in different ways: other judges or inputs, or weights.

    :param label: only the reasons that are about the scores of this label.
    """
    if faults := find_faults(baseline, variant, label):
        is_known = variant.fingerprints and baseline.fingerprints
        cause = f"the runs differ in {', '.join(faults)}" if is_known else "a file of records has no fingerprints"
        yield f"{cause}; judge the baseline again, in the same way"
    for run, name in zip((baseline, variant), ROLES, strict=True):
        if run.weighted():
            yield f"the subjects of {name} have weights, and a comparison counts each subject once"


def end_faults(baseline: Results, variant: Results, names: tuple[str, str] = ROLES) -> Iterator[str]:
    """Yield a reason for each run that was stopped before its end; the runs have the *names*."""
    for run, name in zip((baseline, variant), names, strict=True):
        if run.stopped is not None:
            yield f"{name} was stopped before its end: {run.stopped}"


def pair_faults(
    pairs: int, unpaired: tuple[int, int], runs: tuple[Results, Results], label: str, names: tuple[str, str] = ROLES
) -> Iterator[str]:
    """Yield the reasons why the subjects of a label are too few, or too different, to be compared.

    :param pairs: the number of subjects with a score in both runs.
    :param unpaired: the numbers of subjects with a score in the baseline alone, and in the variant alone.
    :param runs: both runs.
    :param names: the names of both runs.
    """
    if not pairs:
        yield "no subject has a score in both runs"
        return
    for count, name, other in zip(unpaired, names, names[::-1], strict=True):
        total = pairs + count
        if count > MAX_UNPAIRED * total:
            causes = unpaired_text(*runs, label, of_baseline=name == names[0])
            share = f"more than {MAX_UNPAIRED:.0%}"
            yield f"{count:,} of {total:,} subjects of {name} have no score in {_THIS.get(other, other)}, {share}: {causes}"
