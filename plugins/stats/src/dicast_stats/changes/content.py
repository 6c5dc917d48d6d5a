"""Comparability of two runs: equal judges over equal inputs, and the subjects whose outputs are equal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dicast import ALL_METRICS, Results

if TYPE_CHECKING:
    from dicast.reporting import ContentDigests

    from ..scores.table import Key

TASK = "task"
DATA = ("source", "data")
"""Sections that may differ if the inputs and the references of the paired subjects are equal."""


def find_faults(baseline: Results, variant: Results) -> list[str]:
    """Return the reasons why the runs cannot be compared; empty if they can.

    The judges, metrics and scoring have to be equal, and the inputs and references of the paired subjects. The task, its model and the outputs
    may differ.
    """
    faults = variant.differs(baseline, without=(TASK, *DATA))
    if not variant.fingerprints or not baseline.fingerprints:
        return faults
    keys = [key for key in DATA if variant.fingerprints.get(key) != baseline.fingerprints.get(key)]
    return [*faults, *(_input_faults(baseline, variant) if keys else ())]


def _input_faults(baseline: Results, variant: Results) -> list[str]:
    """Return a reason if the inputs or the references of paired subjects differ, or are not known."""
    before, after = read_contents(baseline), read_contents(variant)
    differing, unknown = list["Key"](), list["Key"]()
    for subject in before.keys() & after.keys():
        was, now = before[subject], after[subject]
        if was.content is not None and was.content == now.content:
            continue
        if was.question is None or now.question is None:
            unknown.append(subject)
        elif was.question != now.question:
            differing.append(subject)
    if not before or not after:
        return ["the data (there are no digests of the inputs; save a baseline file again)"]
    words = (
        (differing, "the input or the reference of"),
        (unknown, "the input or the reference, which the ledger does not keep, of"),
    )
    return [f"{text} {_name_subjects(subjects)}" for subjects, text in words if subjects]


def _name_subjects(subjects: list[Key]) -> str:
    example = min(subjects)[1]
    return f"subject {example!r}" if len(subjects) == 1 else f"{len(subjects):,} subjects, such as {example!r}"


def read_contents(run: Results) -> Mapping[Key, ContentDigests]:
    """Return the digests of each subject's content; they are read once for all labels."""
    contents: Mapping[Key, ContentDigests] | None = run.kept.get(read_contents)
    if contents is None:
        contents = run.kept[read_contents] = dict(run.contents())
    return contents


def has_equal_output(before: ContentDigests | None, after: ContentDigests | None, *, with_figures: bool) -> bool:
    """Return whether the judged content is known to be equal in both runs: the output and all data of the subject.

    :param with_figures: the figures of the task, such as its time, are equal, too.
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
