"""Comparability of two runs: equal judges, metrics and scoring, over equal inputs."""

from __future__ import annotations

from collections.abc import Mapping

from ..values import ContentDigests, Results
from ..values.passes import SubjectKey
from .option_changes import section_changes

TASK = "task"
DATA = ("source", "data", "filter")
"""Sections that may differ if the inputs and the references of the paired subjects are equal."""


def find_faults(baseline: Results, variant: Results) -> list[str]:
    """Return the reasons why the runs cannot be compared; empty if they can.

    The judges, metrics and scoring have to be equal, and the inputs and references of the paired subjects. The task, its model and the outputs
    may differ.
    """
    sections = variant.differs(baseline, without=(TASK, *DATA))
    faults = [
        section_changes(fault, baseline.options.get(fault), variant.options.get(fault))
        + _missing_side(fault, baseline, variant)
        for fault in sections
    ]
    if not variant.fingerprints or not baseline.fingerprints:
        return faults
    keys = [key for key in DATA if variant.fingerprints.get(key) != baseline.fingerprints.get(key)]
    return [*faults, *(_input_faults(baseline, variant) if keys else ())]


def _missing_side(component: str, baseline: Results, variant: Results) -> str:
    """Return a clause that names the run without *component*; empty unless exactly one run has it."""
    if "[" not in component or (component in baseline.fingerprints) == (component in variant.fingerprints):
        return ""
    return ", which only the baseline has" if component in baseline.fingerprints else ", which the baseline lacks"


def _input_faults(baseline: Results, variant: Results) -> list[str]:
    """Return a reason if the inputs or the references of paired subjects differ, or are not known."""
    before, after = read_contents(baseline), read_contents(variant)
    differing, unknown = list[SubjectKey](), list[SubjectKey]()
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


def _name_subjects(subjects: list[SubjectKey]) -> str:
    example = min(subjects)[1]
    return f"subject {example!r}" if len(subjects) == 1 else f"{len(subjects):,} subjects, such as {example!r}"


def read_contents(run: Results) -> Mapping[SubjectKey, ContentDigests]:
    """Return the digests of each subject's content; they are read once for all labels."""
    contents: Mapping[SubjectKey, ContentDigests] | None = run.kept.get(read_contents)
    if contents is None:
        contents = run.kept[read_contents] = dict(run.contents())
    return contents
