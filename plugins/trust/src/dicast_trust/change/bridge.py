"""``dicast bridge``: difference between the scales of two judges, by anchors that both have judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import attrs
import click

from dicast import ConfigError, Ledger, Problem, Query, named_run, nearest, read_ledger
from dicast.commands import as_json, ledger_path, print_json, requires
from dicast.reading import output_digest, refuse_weights
from dicast.reporting import metric_values, value_of
from dicast.toolkit.printable import one_line
from dicast.toolkit.terminal import print_lines

from ..labels.gold import LabeledOutputs, read_gold
from ..terminal.options import any_output
from ..terminal.wrapping import WIDTH, wrapped

LEAST = 30
"""Least number of anchors for a bridge."""

FEW = 5
"""Number of anchors below which the answer is undecided: the runs hardly share a subject."""

UNDECIDED = 3
"""Exit code below :data:`FEW` anchors."""

Subject = tuple[str, str]


@click.command()
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option(
    "--judge",
    "labels",
    multiple=True,
    metavar="LABEL",
    help="The judge or metric to compare; twice if NEW has another label for it.",
)
@click.option(
    "--gold",
    metavar="FILE|ledger",
    help="Labels: only labeled anchors count, and each judge is also compared with the labels.",
)
@any_output
@click.option(
    "--shift", metavar="RUN", help="Report the mean of this run, judged by the new judge, on the old judge's scale."
)
@ledger_path
@as_json
@requires(any_output="gold")
def bridge(
    old: str,
    new: str,
    labels: tuple[str, ...],
    gold: str | None,
    any_output: bool,
    shift: str | None,
    ledger: Path | str | None,
    as_json: bool,
) -> int:  # fmt: skip
    """Compare the scales of two judges. NEW and OLD are runs over the same anchors.

    OLD and NEW are ids of runs, or names of pipelines, whose newest run counts. Both runs have judged the same subjects with the same contents, for example with an old and a new model, prompt or rubric. The differences are NEW minus OLD, with an interval by
    session. No judge is asked, and no score is changed; --shift reports a mean on the old scale.

    Exit codes: 0 compared (below 30 anchors without a difference), 2 wrong request, 3 fewer than 5 anchors.
    """
    if len(labels) > 2:
        raise click.UsageError("--judge takes one label, or two: first the label in OLD, then in NEW")
    document = read_ledger(
        ledger, lambda live: bridge_document(live, old, new, labels, shift, gold, any_output=any_output)
    )
    if as_json:
        print_json(document)
    else:
        print_lines(_lines(document))
    return UNDECIDED if document["n"] < FEW else 0


@attrs.frozen
class Scores:
    """Scores of one label in one run, by subject, with the digest of the judged content and the session of each subject."""

    run_id: str
    label: str
    scores: Mapping[Subject, float]
    contents: Mapping[Subject, str]
    sessions: Mapping[Subject, str]


def bridge_document(
    ledger: Ledger,
    old: str,
    new: str,
    labels: tuple[str, ...],
    shift: str | None,
    gold: str | None = None,
    *,
    any_output: bool = False,
) -> dict[str, Any]:
    """Return the document of the bridge between runs *old* and *new*.

    :param gold: the source of labels; with labels the anchors are the labeled outputs.
    :raises ConfigError: if a run or label does not exist, or both runs are the same.
    """
    old_run, new_run = named_run(ledger, old), named_run(ledger, new)
    if old_run == new_run:
        raise ConfigError(f"OLD and NEW are the same run, {old_run}: name runs of two judges")
    first, second = (labels[0], labels[-1]) if labels else (None, None)
    old_scores, new_scores = read_scores(ledger, old_run, first), read_scores(ledger, new_run, second)
    shared = [subject for subject in old_scores.scores if subject in new_scores.scores]
    anchors = [subject for subject in shared if old_scores.contents.get(subject) == new_scores.contents.get(subject)]
    different = len(shared) - len(anchors)
    gold_scores = None if gold is None else _labels(ledger, gold, old_run, anchors, any_output=any_output)
    anchors = anchors if gold_scores is None else [subject for subject in anchors if subject in gold_scores]
    sessions = [old_scores.sessions.get(subject, repr(subject)) for subject in anchors]
    difference = paired_difference(
        [new_scores.scores[subject] - old_scores.scores[subject] for subject in anchors], sessions
    )
    means = {
        side: _mean([scores.scores[subject] for subject in anchors])
        for side, scores in (("old_mean", old_scores), ("new_mean", new_scores))
    }
    document = {
        "old": {"run_id": old_run, "label": old_scores.label},
        "new": {"run_id": new_run, "label": new_scores.label},
        **difference,
        **means,
        "different_content": different,
        "shifted": None,
    }
    if gold_scores is not None:
        document["gold"] = {
            "n": len(anchors),
            **{
                side: _against(scores.scores, gold_scores, anchors)
                for side, scores in (("old", old_scores), ("new", new_scores))
            },
        }
    if shift is not None:
        document["shifted"] = _shifted_mean(ledger, named_run(ledger, shift), new_scores.label, document)
    return {**document, "words": _words(document)}


def read_scores(ledger: Ledger, run_id: str, label: str | None) -> Scores:
    """Return the scores of *label* in the run, by default of the only judge.

    :raises ConfigError: if the run has no such label, or several to choose from, or its subjects have weights.
    """
    refuse_weights(ledger, (run_id,), "this comparison of runs")
    scores: dict[str, dict[Subject, float]] = {}
    contents: dict[Subject, str] = {}
    sessions: dict[Subject, str] = {}
    has_task = False
    for entry in ledger.read(
        Query(run_id=run_id, types=("run.started", "subject.read", "record.completed", "eval.completed"))
    ):
        event, payload = entry.event, entry.event.payload
        subject = str(event.subject_kind), str(event.subject_id)
        if event.type == "run.started":
            has_task = payload.get("task") is not None
            continue
        if event.type == "record.completed":
            if has_task:  # the task made the judged output, so it is not in the content of subject.read
                response: Any = payload.get("response")
                contents[subject] = f"{contents.get(subject)} {output_digest(response and response.get('content'))}"
            continue
        if event.type == "subject.read":
            contents[subject] = str(payload["digest"])
            if event.session_id is not None:
                sessions[subject] = event.session_id
            continue
        for name, score in _scores(payload):
            scores.setdefault(name, {})[subject] = score
    chosen = _chosen(scores, run_id, label)
    return Scores(run_id, chosen, scores[chosen], contents, sessions)


def _labels(
    ledger: Ledger, source: str, run_id: str, subjects: Sequence[Subject], *, any_output: bool
) -> dict[Subject, float]:
    """Return the labels of the outputs that the run judged, by subject."""
    outputs = LabeledOutputs.of(ledger, read_gold(source, ledger), any_output=any_output)
    labels = {subject: label.score for subject in subjects if (label := outputs.label(run_id, *subject)) is not None}
    outputs.check()
    return labels


def _against(
    scores: Mapping[Subject, float], labels: Mapping[Subject, float], subjects: Sequence[Subject]
) -> dict[str, Any]:
    """Return the mean of the differences ``score - label``, and the mean of their absolute values, as JSON data."""
    errors = [scores[subject] - labels[subject] for subject in subjects]
    return {"mean_difference": _mean(errors), "mean_absolute_difference": _mean([abs(error) for error in errors])}


def _scores(payload: Mapping[str, Any]) -> list[tuple[str, float]]:
    label, value = str(payload["judge"]), value_of(payload)
    metrics = metric_values(payload) if label == "metrics" else {}
    judge_score = [] if value is None else [(label, value)]
    return [*judge_score, *metrics.items()]


def _chosen(scores: Mapping[str, object], run_id: str, label: str | None) -> str:
    names = ", ".join(scores) or "none"
    if label is None:
        if "metrics" in scores:
            return "metrics"
        if len(scores) == 1:
            return next(iter(scores))
        raise ConfigError(f"run {run_id} has verdicts of {names}: choose one with --judge")
    if label not in scores:
        message = f"run {run_id} has no verdicts of {label!r}; its labels are {names}"
        raise ConfigError(Problem(message, path="--judge", value=label, hint=nearest(label, scores)))
    return label


def paired_difference(differences: list[float], sessions: list[str]) -> dict[str, Any]:
    """Return the mean of *differences* with its t interval by session; null with a reason below :data:`LEAST` differences or two sessions.

    The variance is of the sums by session, G/(G-1) Σ (Σ (d - mean))² / n², with G - 1 degrees of freedom.
    """
    n, groups = len(differences), len(set(sessions))
    figures: dict[str, Any] = {"n": n, "sessions": groups, "difference": None, "ci_low": None, "ci_high": None}
    figures |= {"t": None, "df": None, "p_value": None, "reasons": {}}
    if n < LEAST:
        return {**figures, "reasons": {"difference": f"{n} anchors of the {LEAST} needed"}}
    mean = sum(differences) / n
    if groups < 2:
        return {**figures, "difference": mean, "reasons": {"ci_low": "all anchors are of one session"}}
    sums: dict[str, float] = {}
    for difference, session in zip(differences, sessions, strict=True):
        sums[session] = sums.get(session, 0.0) + difference - mean
    error = sqrt(groups / (groups - 1) * sum(total * total for total in sums.values())) / n
    figures |= {"difference": mean, "df": groups - 1}
    if error <= 1e-12:
        reason = "all differences are equal: without variance there is no test"
        return {**figures, "ci_low": mean, "ci_high": mean, "reasons": {"t": reason}}
    from scipy.special import stdtr, stdtrit  # type: ignore[import-untyped]  # no types; heavy

    reach, t = float(stdtrit(groups - 1, 0.975)) * error, mean / error
    p_value = 2 * float(stdtr(groups - 1, -abs(t)))
    return {**figures, "ci_low": mean - reach, "ci_high": mean + reach, "t": t, "p_value": p_value}


def _shifted_mean(ledger: Ledger, run_id: str, label: str, difference: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mean of *label* in the run minus the *difference* between the scales; its interval covers the errors of both."""
    run = read_scores(ledger, run_id, label)
    subjects = list(run.scores)
    values, sessions = (
        [run.scores[figure] for figure in subjects],
        [run.sessions.get(figure, repr(figure)) for figure in subjects],
    )
    mean, run_figures = _mean(values), paired_difference(values, sessions)
    document: dict[str, Any] = {
        "run_id": run_id,
        "n": len(values),
        "mean": mean,
        "shifted_mean": None,
        "ci_low": None,
        "ci_high": None,
    }
    if difference["difference"] is None or mean is None:
        return document
    document["shifted_mean"] = mean - difference["difference"]
    if difference["ci_low"] is None or run_figures["ci_low"] is None:
        return document
    reach = sqrt(sum(((figure["ci_high"] - figure["ci_low"]) / 2) ** 2 for figure in (difference, run_figures)))
    return {**document, "ci_low": document["shifted_mean"] - reach, "ci_high": document["shifted_mean"] + reach}


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _words(document: Mapping[str, Any]) -> str:
    if document["difference"] is None:
        return f"no bridge: {document['reasons']['difference']}; an anchor is a subject that both runs have judged with the same content"
    sentence = f"the new judge scores {document['difference']:+.4f} against the old one"
    if document["ci_low"] is None:
        return f"{sentence}; {document['reasons']['ci_low']}"
    sentence += f", 95 % interval {document['ci_low']:.4f} to {document['ci_high']:.4f}"
    if document["ci_low"] <= 0 <= document["ci_high"]:
        return f"{sentence}: no evidence that their scales differ"
    side = "higher" if document["difference"] > 0 else "lower"
    return f"{sentence}: its scale is {side}, so their scores cannot be compared directly"


def _lines(document: Mapping[str, Any]) -> list[str]:
    lines = [f"{side}: run {document[side]['run_id']}, {document[side]['label']}" for side in ("old", "new")]
    lines.append(
        f"{document['n']:,} anchors in {document['sessions']:,} sessions; {document['different_content']:,} other subjects had different contents"
    )
    if document["old_mean"] is not None:
        lines.append(f"means on the anchors: old {document['old_mean']:.4f}, new {document['new_mean']:.4f}")
    lines.append(document["words"])
    if document.get("gold") is not None and document["n"]:
        differences = "; ".join(f"{side} {document['gold'][side]['mean_difference']:+.4f}" for side in ("old", "new"))
        lines.append(f"mean difference to {document['n']:,} labels: {differences}")
    if (shifted := document["shifted"]) is not None and shifted["shifted_mean"] is not None:
        ends = (
            "" if shifted["ci_low"] is None else f", 95 % interval {shifted['ci_low']:.4f} to {shifted['ci_high']:.4f}"
        )
        lines.append(
            f"run {shifted['run_id']} on the old scale: {shifted['shifted_mean']:.4f}{ends} (as judged: {shifted['mean']:.4f})"
        )
    return [line for text in lines for line in wrapped(one_line(text), WIDTH)]
