"""Comparability of two runs: equal judges, metrics and scoring, over equal inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sized

from ..plan.sections import METRICS
from ..values import ContentDigests, Results
from ..values.passes import SubjectKey
from .option_changes import section_changes, text_digest

TASK = "task"
DATA = ("source", "data", "filter")
"""Sections that may differ if the inputs and the references of the paired subjects are equal."""


MAX_UNPAIRED = 0.05
"""Largest share of subjects of either run that may have no partner in the other run."""

_TRUTH = ('"truth"', text_digest("truth"))
"""Recorded values of the option ``tier`` of a metric that is no proxy."""


def find_faults(baseline: Results, variant: Results, label: str | None = None) -> list[str]:
    """Return the reasons why the runs cannot be compared; empty if they can.

    The judges, metrics and scoring have to be equal, and the inputs and references of all but :data:`MAX_UNPAIRED` of the paired subjects:
    :func:`changed_subjects` returns the others. The task, its model and the outputs may differ.

    :param label: compare the scores of this label alone: judges and metrics that its scores do not depend on may differ.
    """
    unrelated = () if label is None else _unrelated(baseline, variant, label)
    sections = variant.differs(baseline, without=(TASK, *DATA, *unrelated))
    before, after = _named_models(baseline), _named_models(variant)
    faults = [
        section_changes(fault, before.get(fault), after.get(fault)) + _missing_side(fault, baseline, variant)
        for fault in sections
    ]
    if not variant.fingerprints or not baseline.fingerprints:
        return faults
    return [*faults, *(_input_faults(baseline, variant) if _has_other_data(baseline, variant) else ())]


def _named_models(run: Results) -> dict[str, dict[str, str]]:
    """Return the options of *run* by section, with the names of its models that answered in place of their digests in a baseline file."""
    names = {text_digest(name): f'"{name}"' for models in run.models.values() for name in models}
    return {
        section: {option: names.get(value, value) for option, value in options.items()}
        for section, options in run.options.items()
    }


def changed_subjects(baseline: Results, variant: Results) -> frozenset[SubjectKey]:
    """Return the subjects of both runs whose input or reference differs, so they are no pairs; empty if they are too many to compare the runs."""
    if not variant.fingerprints or not baseline.fingerprints or not _has_other_data(baseline, variant):
        return frozenset()
    differing = _input_changes(baseline, variant)[0]
    return frozenset() if _are_too_many(differing, baseline, variant) else frozenset(differing)


def _has_other_data(baseline: Results, variant: Results) -> bool:
    return any(variant.fingerprints.get(key) != baseline.fingerprints.get(key) for key in DATA)


def _unrelated(baseline: Results, variant: Results, label: str) -> set[str]:
    """Return the judges and metrics that scores of *label* do not depend on, as fingerprints and as labels.

    A metric depends on itself, and on the proxies, which decide whether it runs. Other labels, such as criteria of the data, depend on all.
    """
    keys = {*baseline.fingerprints, *variant.fingerprints}
    metrics = {key for key in keys if key.startswith("metrics[")}
    if f"judges[{label}]" in keys:
        related = {f"judges[{label}]"}
    elif f"metrics[{label}]" in keys:
        is_truth = {
            key: all(_is_truth(run, key) for run in (baseline, variant) if key in run.fingerprints) for key in metrics
        }
        related = {f"metrics[{label}]", *(key for key in metrics if not is_truth[key])}
    elif label == METRICS:
        related = metrics
    else:
        return set()
    unrelated = {key for key in keys - related if key.startswith(("judges[", "metrics["))}
    labels = {key.partition("[")[2].removesuffix("]") for key in unrelated}
    return unrelated | (labels - {key.partition("[")[2].removesuffix("]") for key in related})


def _is_truth(run: Results, metric: str) -> bool:
    return run.options.get(metric, {}).get("tier") in _TRUTH


def _missing_side(component: str, baseline: Results, variant: Results) -> str:
    """Return a clause that names the run without *component*; empty unless exactly one run has it."""
    if "[" not in component or (component in baseline.fingerprints) == (component in variant.fingerprints):
        return ""
    return ", which only the baseline has" if component in baseline.fingerprints else ", which the baseline lacks"


def _input_faults(baseline: Results, variant: Results) -> list[str]:
    """Return a reason if the inputs or the references of paired subjects differ, or are not known."""
    before, after = read_contents(baseline), read_contents(variant)
    if not before or not after:
        return ["the data (there are no digests of the inputs; save a baseline file again)"]
    differing, unknown = _input_changes(baseline, variant)
    if not _are_too_many(differing, baseline, variant):
        differing = []
    words = (
        (differing, "the input or the reference of"),
        (unknown, "the input or the reference, which the ledger does not keep, of"),
    )
    return [f"{text} {_name_subjects(subjects)}" for subjects, text in words if subjects]


def _are_too_many(differing: Sized, baseline: Results, variant: Results) -> bool:
    subjects = min(len(read_contents(baseline)), len(read_contents(variant)))
    return len(differing) > MAX_UNPAIRED * subjects


def _input_changes(baseline: Results, variant: Results) -> tuple[list[SubjectKey], list[SubjectKey]]:
    """Return the subjects of both runs whose input or reference differs, and the subjects whose input or reference is not known."""
    key = (_input_changes, id(baseline))
    if key not in variant.kept:
        variant.kept[key] = _compare_contents(read_contents(baseline), read_contents(variant)), baseline
    changes: tuple[list[SubjectKey], list[SubjectKey]] = variant.kept[key][0]
    return changes


def _compare_contents(
    before: Mapping[SubjectKey, ContentDigests], after: Mapping[SubjectKey, ContentDigests]
) -> tuple[list[SubjectKey], list[SubjectKey]]:
    differing, unknown = list[SubjectKey](), list[SubjectKey]()
    for subject in before.keys() & after.keys():
        was, now = before[subject], after[subject]
        if was.content is not None and was.content == now.content:
            continue
        if was.question is None or now.question is None:
            unknown.append(subject)
        elif was.question != now.question:
            differing.append(subject)
    return differing, unknown


def _name_subjects(subjects: list[SubjectKey]) -> str:
    example = min(subjects)[1]
    return f"subject {example!r}" if len(subjects) == 1 else f"{len(subjects):,} subjects, such as {example!r}"


def read_contents(run: Results) -> Mapping[SubjectKey, ContentDigests]:
    """Return the digests of each subject's content; they are read once for all labels."""
    contents: Mapping[SubjectKey, ContentDigests] | None = run.kept.get(read_contents)
    if contents is None:
        contents = run.kept[read_contents] = dict(run.contents())
    return contents
