"""Causes why subjects have a score in one of two runs alone."""

from __future__ import annotations

from math import isnan

from dicast import Results
from dicast.reporting import changed_subjects, pair_passes

from ..scores.table import Key, Table
from .pairs import read_scores

MAX_NAMED = 5
"""Largest number of subjects named for a cause."""


def unpaired_text(baseline: Results, variant: Results, label: str, *, of_baseline: bool) -> str:
    """Return the causes why subjects with a score of *label* in one run have none in the other run, with the first ids and the next step.

    :param of_baseline: the subjects have a score in the baseline, else in the variant.
    """
    tables = Table.of(baseline), Table.of(variant)
    table, other = tables if of_baseline else tables[::-1]
    passes = pair_passes(baseline, variant)
    judged = (passes.b if of_baseline else passes.a).rows
    scored, other_scored = _scored(table, label), _scored(other, label)
    changed = [id for _, id in changed_subjects(baseline, variant) & scored & other_scored]
    failed: list[str] = []
    absent: list[str] = []
    for key in scored - other_scored:
        (failed if key in other.rows or key in judged else absent).append(key[1])
    run = variant if of_baseline else baseline
    commands = (("causes", run.failures_command), ("to judge them again", run.retry_command))
    causes = "".join(f"; {purpose}: {command}" for purpose, command in commands if command is not None)
    advice = "judge the same subjects in both runs"
    if run.stopped is not None:
        advice = (
            f"the run was stopped before its end: {run.stopped}; resume it"
            if run.stopped != "early_stop"
            else "an early stop ended the run"
        )
    parts = [
        f"{len(failed):,} without a score there ({_names(failed)}{causes})" if failed else "",
        f"{len(changed):,} with another input or reference in it ({_names(changed)})" if changed else "",
        f"{len(absent):,} not in it ({_names(absent)}; {advice})" if absent else "",
    ]
    return ", ".join(filter(None, parts))


def _scored(table: Table, label: str) -> set[Key]:
    """Return the subjects with a score of *label*, or with an open score because the proxies held them back."""
    scores = read_scores(table, label).tolist()
    is_open = table.held_back(label).tolist() if label in table.criteria else [False] * len(scores)
    return {key for key, row in table.rows.items() if not isnan(scores[row]) or is_open[row]}


def _names(ids: list[str]) -> str:
    rest = f" and {len(ids) - MAX_NAMED:,} more" if len(ids) > MAX_NAMED else ""
    return f"{', '.join(map(repr, sorted(ids)[:MAX_NAMED]))}{rest}"
