"""The verdicts on what a subject is made of."""

from __future__ import annotations

from collections.abc import Sequence

from dicast import Verdict


def of_kind(kind: str, children: Sequence[Verdict], label: str | None = None) -> tuple[Verdict, ...]:
    """The newest verdict of the judge *label* on each subject of *kind*, in the order of the subjects.

    Without a label, those of the judge that is the last of them in the pipeline.
    """
    own = [child for child in children if child.subject_kind == kind]
    label = label or _last_label(own)
    newest: dict[str, Verdict] = {}
    for child in own:
        before = newest.get(child.subject_id)
        if child.judge == label and (before is None or before.eval_id < child.eval_id):
            newest[child.subject_id] = child
    return tuple(newest.values())


def labels(kind: str, children: Sequence[Verdict]) -> list[str]:
    """The labels of the judges of these verdicts on subjects of *kind*."""
    return list(dict.fromkeys(child.judge for child in children if child.subject_kind == kind))


def _last_label(children: Sequence[Verdict]) -> str | None:
    """The last label on the subject that has the most: its verdicts stand in the order of the pipeline's judges."""
    found: dict[str, dict[str, None]] = {}
    for child in children:
        found.setdefault(child.subject_id, {})[child.judge] = None
    fullest: dict[str, None] = max(found.values(), key=len, default={})
    return next(reversed(fullest), None)
