"""Whether the labels are about what was judged, and enough of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dicast import ConfigError, DataError, Problem, nearest
from dicast.toolkit.gold import GoldLabel

from ..statistics.binomial import least_labels
from ..verdicts.rules import Rules
from ..verdicts.stages import Stage, Subject
from .gold import Gold, LabeledOutputs

_SHOWN = 3


def check_count(gold: Gold, rules: Rules) -> None:
    """See that there are enough labels for any test.

    :raises DataError: when there are not.
    """
    least = least_labels(rules.risk, rules.alpha)
    if len(gold.by_subject) < least:
        raise DataError(
            f"{gold.source}: {len(gold.by_subject)} labels are too few; a target of {rules.target:g} at alpha {rules.alpha:g} needs {least} without an error; "
            "label more subjects (dicast label --random N), or ask for less (--target, --alpha)"
        )


def matched(outputs: LabeledOutputs, stages: Sequence[Stage]) -> dict[Subject, GoldLabel]:
    """Return the label of every subject, by its kind and id: of several labels the one about the output that the first stage judged.

    :raises DataError: naming labels of subjects, or outputs, that no stage has judged.
    """
    gold = outputs.gold
    kinds: dict[str, list[str]] = {}
    runs: dict[Subject, str] = {}
    for stage in stages:
        for (kind, id), outcome in stage.outcomes.items():
            if kind not in (known := kinds.setdefault(id, [])):
                known.append(kind)
            runs.setdefault((kind, id), outcome.run_id)
    found: dict[Subject, GoldLabel] = {}
    unknown = []
    for key in gold.subjects:
        kind, id = key
        fitting = [one for one in kinds.get(id, ()) if kind in ("", one)]
        about = {(one, id): outputs.label(runs[one, id], one, id) for one in fitting}
        found |= {subject: label for subject, label in about.items() if label is not None}
        unknown += [] if fitting else [key]
    if unknown:
        raise DataError(_unjudged(gold, unknown, kinds, stages[0].label))
    return found


def _unjudged(gold: Gold, unknown: Sequence[Subject], kinds: Mapping[str, Sequence[str]], label: str) -> Problem:
    """What to say of labels of the subjects *unknown*, where *kinds* are those of the judged ones by id."""
    kind, first = unknown[0]
    if first in kinds:
        step = f"; it has one on {kinds[first][0]} {first!r}, and the label says {kind!r}: fix subject_kind, or leave it out"
    else:
        near = nearest(first, kinds)
        step = f"{f'; there is {near!r}' if near else ''}: run the file over them first, or add --judge-missing"
    named = f"{', '.join(repr(id) for _, id in unknown[:_SHOWN])}{' …' if len(unknown) > _SHOWN else ''}"
    about = f"{len(unknown):,} of {len(gold.by_subject):,} labels in {gold.source}"
    line = gold.lines.get((kind, first))
    outputs = ", or none on the output that the label names" if gold.names_outputs else ""
    message = f"{about} are of subjects that {label} has no verdict on{outputs} ({named}){step}"
    return Problem(message, gold.source if line else None, line, value=first)


def check_kinds(gold: Gold, stages: Sequence[Stage]) -> None:
    """See that every one of *stages* judges subjects of the kind that the labels are about.

    :raises ConfigError: naming the one that does not.
    """
    kinds = {stage.label: {kind for kind, _ in stage.outcomes} for stage in stages}
    about = {
        kind
        for stage in stages
        for kind, id in stage.outcomes
        if (kind, id) in gold.by_subject or ("", id) in gold.by_subject
    }
    for label, own in kinds.items():
        if about and own and not own & about:
            message = f"{label} judges subjects of the kind {', '.join(sorted(own))}, and the labels are about others ({', '.join(sorted(about))})"
            raise ConfigError(Problem(f"{message}: name the judges that are meant with --judge", path="--judge"))


def check_judged(labels: Mapping[Subject, GoldLabel], stage: Stage) -> None:
    """See that *stage* was asked about every labelled subject that reaches it.

    :raises DataError: when it was not.
    """
    if missing := [id for kind, id in labels if (kind, id) not in stage.outcomes]:
        raise DataError(
            f"{stage.label} was not asked about {len(missing):,} of {len(labels):,} labelled subjects that reach it "
            f"({', '.join(map(repr, missing[:_SHOWN]))}{' …' if len(missing) > _SHOWN else ''}); add --judge-missing to ask it, under the file's budget"
        )
