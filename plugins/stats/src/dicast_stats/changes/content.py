"""Subjects whose outputs and judges are equal in two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dicast import ALL_METRICS, Results

if TYPE_CHECKING:
    from dicast.reporting import ContentDigests


def has_equal_output(before: ContentDigests | None, after: ContentDigests | None, *, with_figures: bool) -> bool:
    """Return whether the judged content is known to be equal in both runs: the output and all data of the subject.

    :param with_figures: the figures of the task, such as its cost and time, must be equal, too.
    """
    if before is None or after is None or before.output is None or before.output != after.output:
        return False
    if with_figures and before.figures != after.figures:
        return False
    if before.content is None and after.content is None:
        return before.question is not None and before.question == after.question
    return before.content == after.content


def reads_texts(baseline: Results, variant: Results, label: str) -> bool:
    """Return whether a judge or a model scores *label*: it reads texts, while a metric may read the time or the cost of an answer."""
    return f"judges[{label}]" in variant.fingerprints or (label in baseline.models and label in variant.models)


def has_equal_judges(baseline: Results, variant: Results, label: str) -> bool:
    """Return whether the same judge, or the same metric, scored *label* in both runs, by its fingerprint and the models that answered."""
    if not variant.fingerprints or not baseline.fingerprints:
        return False
    names = _sections(variant, label) | _sections(baseline, label)
    others = {key for run in (baseline, variant) for key in run.fingerprints if key not in names}
    labels = {name.partition("[")[2].removesuffix("]") for name in names}
    unrelated = {
        asking
        for run in (baseline, variant)
        for asking in (*run.models, *run.adapted)
        if not any(asking == name or asking.startswith((f"{name}.", f"{name}[")) for name in labels)
    }
    return not variant.differs(baseline, without=[*others, *unrelated])


def _sections(run: Results, label: str) -> set[str]:
    """Return the keys of the fingerprints that decide the scores of *label* for a given output."""
    for key in (f"judges[{label}]", f"metrics[{label}]"):
        if key in run.fingerprints:
            return {key}
    prefix = "metrics[" if label == ALL_METRICS else "extractors["
    scoring = {"scoring"} if label == ALL_METRICS else set[str]()
    return scoring | {key for key in run.fingerprints if key.startswith(prefix)}
