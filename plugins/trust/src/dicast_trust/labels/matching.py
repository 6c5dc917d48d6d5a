"""Match of labels with judged subjects, and checks that the labels suffice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dicast import ConfigError, DataError, Problem, nearest
from dicast.toolkit.gold import GoldLabel

from ..statistics.binomial import least_labels
from ..verdicts.rules import Rules
from ..verdicts.stages import Stage, Subject
from .gold import Gold, LabeledOutputs

_MAX_NAMES = 3


def check_count(gold: Gold, rules: Rules) -> None:
    """Check that there are enough labels for any test.

    :raises DataError: if there are too few.
    """
    least = least_labels(rules.risk, rules.alpha)
    if len(gold.by_subject) < least:
        more = (
            "judge more subjects that have such scores"
            if gold.source.startswith("recorded/")
            else "label more subjects (dicast label --random N)"
        )
        raise DataError(
            f"{gold.source}: {len(gold.by_subject)} labels are too few; a target of {rules.target:g} at alpha {rules.alpha:g} needs at least {least}, all without an error; "
            f"{more}, or lower the goal (--target, --alpha)"
        )


def matched(outputs: LabeledOutputs, stages: Sequence[Stage]) -> dict[Subject, GoldLabel]:
    """Return the label of every subject, by its kind and id; of several labels, the label of the output that the first stage judged.

    :raises DataError: with the labels of subjects, or outputs, that no stage has judged.
    """
    gold = outputs.gold
    kinds: dict[str, list[str]] = {}
    runs: dict[Subject, str] = {}
    for stage in stages:
        for (kind, id), outcome in stage.outcomes.items():
            if kind not in (kinds_of_id := kinds.setdefault(id, [])):
                kinds_of_id.append(kind)
            runs.setdefault((kind, id), outcome.run_id)
    result: dict[Subject, GoldLabel] = {}
    unknown = []
    for key in gold.subjects:
        kind, id = key
        candidates = [candidate for candidate in kinds.get(id, ()) if kind in ("", candidate)]
        by_kind = {(candidate, id): outputs.label(runs[candidate, id], candidate, id) for candidate in candidates}
        result |= {subject: label for subject, label in by_kind.items() if label is not None}
        unknown += [] if candidates else [key]
    if unknown:
        raise DataError(_unjudged(gold, unknown, kinds, stages[0]))
    return result


def _unjudged(gold: Gold, unknown: Sequence[Subject], kinds: Mapping[str, Sequence[str]], stage: Stage) -> Problem:
    """Return the problem of labels of the subjects *unknown*; *kinds* are the kinds of judged subjects by id."""
    kind, first = unknown[0]
    if first in kinds:
        step = f"; it has a verdict on {kinds[first][0]} {first!r}, but the label has the kind {kind!r}: fix subject_kind, or leave it out"
    else:
        suggestion = nearest(first, kinds)
        asking = "" if stage.slot.kind == "metric" else ", or add --judge-missing"
        step = f"{f'; did you mean {suggestion!r}?' if suggestion else ''}: run the file over them first{asking}"
    names = f"{', '.join(repr(id) for _, id in unknown[:_MAX_NAMES])}{' …' if len(unknown) > _MAX_NAMES else ''}"
    about = f"{len(unknown):,} of {len(gold.by_subject):,} labels in {gold.source}"
    line = gold.lines.get((kind, first))
    outputs = ", or no verdict on the output that the label names" if gold.names_outputs else ""
    message = f"{about} are of subjects that {stage.label} has no verdict on{outputs} ({names}){step}"
    return Problem(message, gold.source if line else None, line, value=first)


def check_kinds(gold: Gold, stages: Sequence[Stage]) -> None:
    """Check that every one of *stages* judges subjects of the kind that the labels are about.

    :raises ConfigError: with the first stage that does not.
    """
    kinds = {stage.label: {kind for kind, _ in stage.outcomes} for stage in stages}
    labeled_kinds = {
        kind
        for stage in stages
        for kind, id in stage.outcomes
        if (kind, id) in gold.by_subject or ("", id) in gold.by_subject
    }
    for label, stage_kinds in kinds.items():
        if labeled_kinds and stage_kinds and not stage_kinds & labeled_kinds:
            message = f"{label} judges subjects of the kind {', '.join(sorted(stage_kinds))}, and the labels are about other kinds ({', '.join(sorted(labeled_kinds))})"
            raise ConfigError(Problem(f"{message}: choose the judges with --judge", path="--judge"))


def check_judged(labels: Mapping[Subject, GoldLabel], stage: Stage) -> None:
    """Check that *stage* was asked about every labeled subject that reaches it.

    :raises DataError: with the subjects that it was not asked about.
    """
    if missing := [id for kind, id in labels if (kind, id) not in stage.outcomes]:
        raise DataError(
            f"{stage.label} was not asked about {len(missing):,} of {len(labels):,} labeled subjects that reach it "
            f"({', '.join(map(repr, missing[:_MAX_NAMES]))}{' …' if len(missing) > _MAX_NAMES else ''}); add --judge-missing to ask it, under the file's budget"
        )
