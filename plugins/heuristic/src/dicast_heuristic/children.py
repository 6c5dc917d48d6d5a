"""Verdicts of a subject's parts."""

from __future__ import annotations

from collections.abc import Sequence

from dicast import Verdict


def of_kind(kind: str, children: Sequence[Verdict], label: str | None = None) -> tuple[Verdict, ...]:
    """Return the newest verdict of the judge *label* on each subject of *kind*, in the order of the subjects.

    The default label is that of the last such judge in the pipeline.
    """
    verdicts = [child for child in children if child.subject_kind == kind]
    label = label or _last_label(verdicts)
    newest: dict[str, Verdict] = {}
    for child in verdicts:
        previous = newest.get(child.subject_id)
        if child.judge == label and (previous is None or previous.eval_id < child.eval_id):
            newest[child.subject_id] = child
    return tuple(newest.values())


def labels(kind: str, children: Sequence[Verdict]) -> list[str]:
    """Return the labels of the judges of subjects of *kind*."""
    return list(dict.fromkeys(child.judge for child in children if child.subject_kind == kind))


def _last_label(children: Sequence[Verdict]) -> str | None:
    """Return the last label of the subject with the most labels. Verdicts are in the order of the pipeline's judges."""
    labels_of: dict[str, dict[str, None]] = {}
    for child in children:
        labels_of.setdefault(child.subject_id, {})[child.judge] = None
    fullest: dict[str, None] = max(labels_of.values(), key=len, default={})
    return next(reversed(fullest), None)
