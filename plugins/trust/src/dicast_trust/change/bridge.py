"""``dicast bridge``: how far two judges' scales lie apart, by the same anchors that both have judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import attrs
import click

from dicast import ConfigError, Ledger, Problem, Query, named_run, nearest, read_ledger
from dicast.commands import as_json, ledger_path, print_json
from dicast.reading import output_digest
from dicast.reporting import metric_values, value_of
from dicast.toolkit.printable import one_line
from dicast.toolkit.terminal import print_lines

from ..labels.gold import LabeledOutputs, read_gold
from ..terminal.options import any_output
from ..terminal.wrapping import WIDTH, wrapped

LEAST = 30
"""Fewer anchors than these make no bridge."""

FEW = 5
"""Below so many anchors the answer is undecided: the runs hardly share a subject."""

UNDECIDED = 3
"""The exit code below :data:`FEW` anchors."""

Subject = tuple[str, str]


@click.command()
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option(
    "--judge",
    "labels",
    multiple=True,
    metavar="LABEL",
    help="Of this judge or metric; twice where NEW calls it something else.",
)
@click.option(
    "--gold",
    metavar="FILE|ledger",
    help="Labels: only labeled anchors count, and each judge is compared with the labels, too.",
)
@any_output
@click.option(
    "--shift", metavar="RUN", help="Say what the mean of this run, judged by the new judge, is on the old one's scale."
)
@ledger_path
@as_json
def bridge(
    old: str,
    new: str,
    labels: tuple[str, ...],
    gold: str | None,
    any_output: bool,
    shift: str | None,
    ledger: Path | None,
    as_json: bool,
) -> int:  # fmt: skip
    """Say how far two judges' scales lie apart. NEW and OLD are runs over the same anchors.

    OLD and NEW are ids of runs, or names of pipelines, of which the newest run counts. Both runs have judged the same subjects with the same contents: a new model, prompt or rubric beside the old one. The differences are NEW less OLD, with an interval by
    session. Nothing is asked, and no score is changed; --shift shows a mean on the old scale.

    Exit codes: 0 compared (below 30 anchors without a difference), 2 wrong request, 3 fewer than 5 anchors.
    """
    if len(labels) > 2:
        raise click.UsageError("--judge names one label, or two: that of OLD, then that of NEW")
    found = read_ledger(ledger, lambda live: bridged(live, old, new, labels, shift, gold, any_output=any_output))
    if as_json:
        print_json(found)
    else:
        print_lines(_lines(found))
    return UNDECIDED if found["n"] < FEW else 0


@attrs.frozen
class Scores:
    """What one label said in one run, by subject: the score, the digest of what was judged, and the session."""

    run_id: str
    label: str
    scores: Mapping[Subject, float]
    contents: Mapping[Subject, str]
    sessions: Mapping[Subject, str]


def bridged(
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

    :param gold: labels, of which the anchors are the labeled outputs.
    :raises ConfigError: when there is no such run or label, or it is the same run twice.
    """
    one, other = named_run(ledger, old), named_run(ledger, new)
    if one == other:
        raise ConfigError(f"OLD and NEW are the same run, {one}: a bridge leads from one judge to another")
    first, second = (labels[0], labels[-1]) if labels else (None, None)
    ours, theirs = read_scores(ledger, one, first), read_scores(ledger, other, second)
    both = [subject for subject in ours.scores if subject in theirs.scores]
    same = [subject for subject in both if ours.contents.get(subject) == theirs.contents.get(subject)]
    different = len(both) - len(same)
    people = None if gold is None else _labels(ledger, gold, one, same, any_output=any_output)
    same = same if people is None else [subject for subject in same if subject in people]
    sessions = [ours.sessions.get(subject, repr(subject)) for subject in same]
    found = paired_difference([theirs.scores[subject] - ours.scores[subject] for subject in same], sessions)
    means = {
        side: _mean([of.scores[subject] for subject in same]) for side, of in (("old_mean", ours), ("new_mean", theirs))
    }
    document = {
        "old": {"run_id": one, "label": ours.label},
        "new": {"run_id": other, "label": theirs.label},
        **found,
        **means,
        "different_content": different,
        "shifted": None,
    }
    if people is not None:
        document["gold"] = {
            "n": len(same),
            **{side: _against(of.scores, people, same) for side, of in (("old", ours), ("new", theirs))},
        }
    if shift is not None:
        document["shifted"] = _shifted(ledger, named_run(ledger, shift), theirs.label, document)
    return {**document, "words": _words(document)}


def read_scores(ledger: Ledger, run_id: str, label: str | None) -> Scores:
    """What *label*, by default the only judge, said in the run.

    :raises ConfigError: when the run has no such label, or several to choose from.
    """
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
            if has_task:  # the judged output is the task's, and not in what was read
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
    found = {subject: label.score for subject in subjects if (label := outputs.label(run_id, *subject)) is not None}
    outputs.check()
    return found


def _against(
    scores: Mapping[Subject, float], labels: Mapping[Subject, float], subjects: Sequence[Subject]
) -> dict[str, Any]:
    """Return the mean of scores less labels, and the mean of its absolute value."""
    errors = [scores[subject] - labels[subject] for subject in subjects]
    return {"mean_difference": _mean(errors), "mean_absolute_difference": _mean([abs(error) for error in errors])}


def _scores(payload: Mapping[str, Any]) -> list[tuple[str, float]]:
    label, value = str(payload["judge"]), value_of(payload)
    metrics = metric_values(payload) if label == "metrics" else {}
    own = [] if value is None else [(label, value)]
    return [*own, *metrics.items()]


def _chosen(scores: Mapping[str, object], run_id: str, label: str | None) -> str:
    known = ", ".join(scores) or "none"
    if label is None:
        if "metrics" in scores:
            return "metrics"
        if len(scores) == 1:
            return next(iter(scores))
        raise ConfigError(f"run {run_id} has verdicts of {known}: choose one with --judge")
    if label not in scores:
        message = f"run {run_id} has no verdicts of {label!r}; there are {known}"
        raise ConfigError(Problem(message, path="--judge", value=label, hint=nearest(label, scores)))
    return label


def paired_difference(differences: list[float], sessions: list[str]) -> dict[str, Any]:
    """The mean of *differences* with its t interval by session; null with a reason below :data:`LEAST` of them or two sessions.

    The variance is that of the sums by session, G/(G-1) Σ (Σ (d - mean))² / n², with G - 1 degrees of freedom.
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
    error = sqrt(groups / (groups - 1) * sum(one * one for one in sums.values())) / n
    figures |= {"difference": mean, "df": groups - 1}
    if error <= 1e-12:
        why = "all differences are alike: there is no variance to make a test of"
        return {**figures, "ci_low": mean, "ci_high": mean, "reasons": {"t": why}}
    from scipy.special import stdtr, stdtrit  # type: ignore[import-untyped]  # no types; heavy

    reach, t = float(stdtrit(groups - 1, 0.975)) * error, mean / error
    p_value = 2 * float(stdtr(groups - 1, -abs(t)))
    return {**figures, "ci_low": mean - reach, "ci_high": mean + reach, "t": t, "p_value": p_value}


def _shifted(ledger: Ledger, run_id: str, label: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """The mean of *label* in the run on the old scale: less the difference, with the errors of both."""
    run = read_scores(ledger, run_id, label)
    subjects = list(run.scores)
    values, sessions = [run.scores[one] for one in subjects], [run.sessions.get(one, repr(one)) for one in subjects]
    mean, own = _mean(values), paired_difference(values, sessions)
    told: dict[str, Any] = {
        "run_id": run_id,
        "n": len(values),
        "mean": mean,
        "shifted_mean": None,
        "ci_low": None,
        "ci_high": None,
    }
    if found["difference"] is None or mean is None:
        return told
    told["shifted_mean"] = mean - found["difference"]
    if found["ci_low"] is None or own["ci_low"] is None:
        return told
    reach = sqrt(sum(((one["ci_high"] - one["ci_low"]) / 2) ** 2 for one in (found, own)))
    return {**told, "ci_low": told["shifted_mean"] - reach, "ci_high": told["shifted_mean"] + reach}


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _words(found: Mapping[str, Any]) -> str:
    if found["difference"] is None:
        return f"no bridge: {found['reasons']['difference']} that both runs have judged with the same content"
    told = f"the new judge scores {found['difference']:+.4f} against the old one"
    if found["ci_low"] is None:
        return f"{told}; {found['reasons']['ci_low']}"
    told += f", 95 % {found['ci_low']:.4f} to {found['ci_high']:.4f}"
    if found["ci_low"] <= 0 <= found["ci_high"]:
        return f"{told}: no evidence that their scales differ"
    side = "higher" if found["difference"] > 0 else "lower"
    return f"{told}: its scale is {side}, so that scores of the two are not to be compared as they are"


def _lines(found: Mapping[str, Any]) -> list[str]:
    told = [f"{side}: run {found[side]['run_id']}, {found[side]['label']}" for side in ("old", "new")]
    told.append(
        f"{found['n']:,} anchors in {found['sessions']:,} sessions; {found['different_content']:,} more had another content"
    )
    if found["old_mean"] is not None:
        told.append(f"means on the anchors: old {found['old_mean']:.4f}, new {found['new_mean']:.4f}")
    told.append(found["words"])
    if found.get("gold") is not None and found["n"]:
        off = "; ".join(f"{side} {found['gold'][side]['mean_difference']:+.4f}" for side in ("old", "new"))
        told.append(f"mean difference to {found['n']:,} labels: {off}")
    if (shifted := found["shifted"]) is not None and shifted["shifted_mean"] is not None:
        ends = "" if shifted["ci_low"] is None else f", 95 % {shifted['ci_low']:.4f} to {shifted['ci_high']:.4f}"
        told.append(
            f"run {shifted['run_id']} on the old scale: {shifted['shifted_mean']:.4f}{ends} (as judged: {shifted['mean']:.4f})"
        )
    return [line for text in told for line in wrapped(one_line(text), WIDTH)]
