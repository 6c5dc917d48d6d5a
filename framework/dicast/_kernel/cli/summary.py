"""A run, a subject and a verdict for a reader. Every mean is next to its coverage."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import orjson

from ...toolkit.money import amounts_text
from ...toolkit.printable import one_line, short_name
from ...toolkit.terminal import Drawing, Line, Part, folded
from ...toolkit.text_table import TextTable
from ..pipeline.ledger_path import ledger_option
from ..plan.clauses import GATE_LEFT_OUT
from ..report.caps import cap_lines, raise_caps_text, reached_caps
from ..report.corrections import refusal_words
from ..report.failure_words import failure_kind, failure_label, failures_text, may_pass_again
from ..report.read_counts import READ_WARNINGS
from ..resume.open_runs import RunCommand
from ..values.passes import shown_label
from .findings import findings_lines
from .gate_summary import gate_coverage, gate_parts
from .read_lines import read_lines
from .score_lines import plan_lines, score_lines
from .trees import cut

Document = Mapping[str, Any]

_FIRST = 3
"""Number of subjects named for one failure."""

_COMMAND = "    dicast run"
"""Start of a line with a command; the line is not wrapped, so that it can be copied."""

_STATUS = re.compile(r": HTTP (\d{3}): ")
"""The status of the response in the message of a refused call."""

SHOWN_ELSEWHERE = (*READ_WARNINGS, GATE_LEFT_OUT)
"""Kinds of warnings that the lines about the data and about the gate have."""

RUN = 6
"""Number of last characters of a run's id in lists of runs; the first characters encode the time."""


def run_parts(done: Document, command: RunCommand | None = None, *, resumes: bool = True) -> Iterator[Part]:
    """Yield the summary of a run's document.

    :param command: the command that started the run, for the next step.
    :param resumes: False leaves out the command that resumes a stopped run.
    """
    if done.get("disabled"):
        yield f"{done['name']}: disabled; nothing was read and nothing judged"
    elif done["run_id"] is None:
        yield f"{done['name']}: {done['stopped']['reason']} before anything was judged"
    else:
        yield from map(_wrapped, _parts(done, command, resumes=resumes))


def _wrapped(part: str | Drawing) -> Part:
    if isinstance(part, str):
        return one_line(part) if part.startswith(_COMMAND) else Line(one_line(part))
    return attrs.evolve(part, lines=[folded(one_line(line)) for line in part.lines])


def _parts(done: Document, command: RunCommand | None, *, resumes: bool) -> Iterator[str | Drawing]:
    yield f"{done['name']}  run {done['run_id']}"
    yield headline(done)
    yield from read_lines(done)
    yield from score_lines(done)
    if len(done["labels"]) > 1:
        yield _labels(done)
    yield from _tallies("metrics", done["metrics"])
    if len(done["labels"]) <= 1:
        yield from _tallies("judges", done["judges"])
    yield from _tallies("recorded by other tools", done.get("recorded", {}))  # documents of older versions have none
    yield from _worst_lines(done)
    yield from _failed_lines(done)
    yield from findings_lines(done)
    yield from model_lines(done)
    yield from _money_lines(done)
    yield from _ending_lines(done, command, resumes=resumes)
    if done.get("head"):
        from .head import head_parts  # few runs need a table

        yield from head_parts(done, lowest_label(done))


def headline(done: Document) -> str:
    """Return the number of subjects by their results."""
    scored, failed, skipped = done["scored"], done["failed"], done["skipped"]
    unscored = done["subjects"] - scored - failed - skipped
    unjudged = "that no metric or judge accepts"
    if done["stopped"] or done["unaffordable"]:
        unjudged = (
            "not judged" if done["unaffordable"] else "not judged (the run stopped, or no metric or judge accepts them)"
        )
    parts = [
        "none scored"
        if done["coverage"] is None
        else f"{scored:,} scored of {scored + failed + done['unaffordable']:,} (coverage {done['coverage']:.1%}{gate_coverage(done)})",
        f"{failed:,} failed" if failed else "",
        f"{unscored:,} judged without a score" if unscored else "",
        f"{skipped:,} {unjudged}" if skipped else "",
    ]
    return f"{done['subjects']:,} subject{'s' * (done['subjects'] != 1)}: " + ", ".join(part for part in parts if part)


def _labels(done: Document) -> Drawing:
    """Return a table with the mean, the interval and the pass rate of every label of the file, and a judge's confidence, skips and fallbacks."""
    heads = ("labels:", "mean", "95 % interval", "pass", "scored", "")
    labels, judges = done["labels"], done["judges"]
    rows = [(f"  {shown_label(done, name)}", *_label_row(row, judges.get(name, {}))) for name, row in labels.items()]
    width = max(len(row[0]) for row in rows)
    lines = ["labels: mean (95 % interval), pass, scored"]
    for label, mean, interval, passed, scored, extra in rows:
        ends = f" ({interval})" if interval else ""
        details = ", ".join(part for part in (f"{scored} scored", passed and f"{passed} pass", extra) if part)
        lines.append(f"{label:<{width}}  {mean:>6}{ends}: {details}")
    return _drawing(heads, rows, lines, right=heads[1:2])


def _label_row(figures: Document, judge: Document) -> tuple[str, str, str, str, str]:
    mean, counts, sure, extra = _tally_row("", {**judge, **figures})[1:]
    interval = "" if figures["ci_low"] is None else f"{figures['ci_low']:.4f} to {figures['ci_high']:.4f}"
    passes = figures.get("passes")
    passed = "" if passes is None else f"{passes['passed']:,} of {passes['n']:,}"
    if passes is not None and passes.get("open"):
        extra = ", ".join(filter(None, (f"{passes['open']:,} open", extra)))
    return mean, interval, passed, counts, ", ".join(part for part in (sure and f"confidence {sure}", extra) if part)


def _tallies(title: str, tallies: Document) -> Iterator[str | Drawing]:
    if tallies:
        rows = [_tally_row(label, tally) for label, tally in tallies.items()]
        width = max(len(label) for label in tallies)
        lines = [f"{title}: mean (scored of judged)"]
        for label, mean, counts, sure, extra in rows:
            suffix = f", {extra}" if extra else ""
            lines.append(
                f"  {label:<{width}}  {mean:>6}  ({counts}{suffix})" + (f", confidence {sure}" if sure else "")
            )
        heads = (f"{title}:", "mean", "scored", "confidence", "")
        filled = [at for at in range(len(heads)) if any(row[at] for row in rows)]
        cells = [[f"  {row[0]}", *(row[at] for at in filled[1:])] for row in rows]
        yield _drawing([heads[at] for at in filled], cells, lines, right=heads[1:4])


def _drawing(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    lines: Iterable[str],
    *,
    right: Sequence[str] = (),
    marked: str | None = None,
) -> Drawing:
    return Drawing(TextTable(heads, rows, right=right), [*lines], marked)


def _tally_row(label: str, tally: Document) -> tuple[str, str, str, str, str]:
    mean = "-" if tally["mean"] is None else f"{tally['mean']:.4f}"
    sure = "" if tally.get("mean_confidence") is None else f"{tally['mean_confidence']:.2f}"
    extra = [f"{tally[state]:,} {state}" for state in ("skipped", "escalated") if tally.get(state)]
    extra += ["raw scale"] if tally.get("scale") == "raw" and "total" in tally and "by_basis" in tally else []
    extra += (f"{count:,} {one_line(name)}" for name, count in tally.get("categories", {}).items())
    extra += (fallback_text(reason, count) for reason, count in tally.get("fallbacks", {}).items())
    return label, mean, f"{tally['scored']:,} of {tally['total']:,}", sure, ", ".join(extra)


def fallback_text(reason: str, count: int) -> str:
    """Return the number of subjects for which a judge fell back for *reason*."""
    return (
        f"{count:,} kept by explicit feedback" if reason == "explicit_feedback" else f"{count:,} fell back ({reason})"
    )


def lowest_label(done: Document) -> str | None:
    """Return the first label of the gate, else of the score: the lowest scores are about it."""
    gated = (clause["on"] for clause in (done["gate"] or {}).get("clauses", ()) if clause.get("on"))
    return next(gated, (done["score"] or {}).get("label"))


def lowest(done: Document) -> list[Document]:
    """Return the subjects with the lowest scores; empty if all scores are equal."""
    subjects = [subject for subject in done["worst"] if subject["score"] < 1]
    label = lowest_label(done)
    mean = (done["labels"].get(label) or done["metrics"].get(label) or done["score"] or {}).get("mean")
    is_equal = len(done["worst"]) > 1 and mean is not None and math.isclose(mean, done["worst"][0]["score"])
    return [] if is_equal else subjects


def _worst_lines(done: Document) -> Iterator[str]:
    if subjects := lowest(done):
        yield "lowest scores: (see dicast show ID)"
        yield from (
            f"  {subject['score']:.4f}  {subject['subject_kind']} {short_name(subject['subject_id'])}"
            for subject in subjects
        )


def _failed_lines(done: Document) -> Iterator[str | Drawing]:
    listed = done["failed_subjects"]
    if done["failures"] or listed:
        yield "failed: " + (failures_text(done) or "none counted")
        if listed:
            yield _failed_table(done, listed)
        if sum(done["failures"].values()) > len(listed):
            yield f"  … (all: dicast verdicts --run {done['run_id']} --failed{ledger_option(done['ledger'])})"


def _failed_table(done: Document, failures: Sequence[Document]) -> Drawing:
    """Return a table of the failures; subjects with the same message share one line."""
    groups: dict[tuple[str, str, str], list[Document]] = {}
    for failure in failures:
        message = str(failure["error_message"]).replace(repr(failure["subject_id"]), "it")
        similar = groups.setdefault((shown_label(done, failure_label(failure)), failure_kind(failure), message), [])
        if "origin" not in failure or not similar or _subject_key(similar[-1]) != _subject_key(failure):
            similar.append(failure)  # if the task fails, all labels of the subject fail
    rows = [
        (f"  {_subject_names(group)}", label, mode, group[0]["error_message"] if len(group) == 1 else message)
        for (label, mode, message), group in groups.items()
    ]
    heads = ("  subject", "label", "failure", "message")
    lines = [one_line(f"{subjects_text}  {label}: {mode}: {message}") for subjects_text, label, mode, message in rows]
    return _drawing(heads, rows, lines, marked="failure")


def _subject_key(failure: Document) -> tuple[str, str]:
    return failure["subject_kind"], failure["subject_id"]


def _subject_names(subjects: Sequence[Document]) -> str:
    """Return the number of *subjects* and the names of the first of them."""
    first = [f"{subject['subject_kind']} {short_name(subject['subject_id'])}" for subject in subjects[:_FIRST]]
    suffix = "" if len(subjects) <= _FIRST else ", …"
    return first[0] if len(subjects) == 1 else f"{len(subjects):,} subjects ({', '.join(first)}{suffix})"


def model_lines(done: Document) -> Iterator[str]:
    """Yield the parameters that endpoints refused, and the values that components assume."""
    for label, names in done.get("adapted", {}).items():  # documents of older versions have neither
        yield f"adapted: [{', '.join(names)}] (refused by the endpoint of {label}: left out, or sent in another form)"
    yield from (f"assumed: {text}" for text in done.get("assumed", ()))


def _money_lines(done: Document) -> Iterator[str]:
    yield f"spent: {amounts_text(done['cost']) or 'nothing'}"
    if lost := amounts_text(done["spend_lost"]):
        yield f"  lost, reserved for calls without a reply: {lost}"
    if reserved := amounts_text(done.get("reserved", {})):  # present if batches wait
        yield f"  reserved for calls in batches: {reserved}"
    yield from waiting_lines(done)
    if done.get("plan"):
        yield from plan_lines(done["plan"])
    yield from spared_lines(done)
    if done["overruns"]:
        yield f"  calls that cost more than projected: {done['overruns']:,}"
    yield from (f"  {line}" for line in cap_lines(done))


def waiting_lines(done: Document) -> Iterator[str]:
    """Yield a line for each batch that was canceled or waits."""
    cancelled = {batch["batch_id"] for batch in done.get("cancelled_batches", ())}
    for batch in done.get("cancelled_batches", ()):
        yield f"  canceled: batch {batch['batch_id']} of calls to {batch['model']}"
    for batch in done.get("batches", ()):
        if batch["batch_id"] in cancelled:
            continue
        name = batch["batch_id"] or "not confirmed by the endpoint"
        yield f"  waiting: a batch of {batch['calls']:,} calls to {batch['model']} ({name}) ends by {batch['until']}"


def spared_lines(done: Document) -> Iterator[str]:
    """Yield a line for each metric that the gate on proxies spared, with the saved cost."""
    for label, tally in done["metrics"].items():
        if tally.get("spared"):
            runs = "1 run" if tally["spared"] == 1 else f"{tally['spared']:,} runs"
            yield f"  the gate spared {runs} of {label}: {amounts_text(tally['saved']) or 'free'}"


def _ending_lines(done: Document, command: RunCommand | None, *, resumes: bool) -> Iterator[str | Drawing]:
    yield from loss_lines(done)
    yield from stop_lines(done)
    yield from next_lines(done, command) if resumes else ()
    yield from shard_lines(done)
    warnings = done.get("warnings", ())  # documents of older versions have none
    yield from (f"warning: {warning['message']}" for warning in warnings if warning["kind"] not in SHOWN_ELSEWHERE)
    yield from gate_parts(done)
    if (ledger := done["ledger"]) and ledger["head"]:
        yield f"ledger: {ledger['path']}, row {ledger['head']['seq']:,}, {ledger['head']['digest']}"
        yield from (f"shards: root {root}" for root in (ledger.get("root"),) if root)


def shard_lines(done: Document) -> Iterator[str]:
    """Yield the line of a shard: its subjects, its share of the caps, and the sections that the merge adds."""
    if notice := done.get("shard", {}).get("notice"):  # documents of older versions have a warning
        yield notice


def _detail(value: object) -> str:
    """Return a value of a stop's data: a text unchanged, other data as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def loss_lines(done: Document) -> Iterator[str]:
    """Yield a line for each sink that lost events."""
    for label, sink in done["sinks"].items():
        if sink["lost"]:
            yield f"sink {label} LOST {sink['lost']:,} event{'s' * (sink['lost'] != 1)}: {sink.get('error')}"


def stop_lines(done: Document) -> Iterator[str]:
    """Yield the reason why the run stopped early, if it did."""
    if (stopped := done["stopped"]) is not None:
        is_early = stopped["reason"] == "early_stop" and "plugin" in stopped
        hidden = ("reason", "live", "message", "variables", "empty_variables", *(["plugin"] if is_early else []))
        details = ", ".join(f"{key}: {_detail(value)}" for key, value in stopped.items() if key not in hidden)
        reason = f"{stopped['plugin']} ended the run early" if is_early else stopped["reason"]
        message = f": {stopped['message']}" if "message" in stopped else ""
        yield f"stopped: {reason}{message}" + (f" ({details})" if details else "")


def is_resumed(done: Document) -> bool:
    """Return whether a command continues the run: it stopped, and not because of an early stop."""
    return done["stopped"] is not None and done["stopped"]["reason"] != "early_stop"


def _refused_settings(settings: Iterable[str], message: str) -> Iterator[str]:
    """Yield the path of each of *settings*, ``PATH=VALUE``, that is a model or an address named by the *message* of an endpoint."""
    for setting in settings:
        path, _, value = (part.strip() for part in setting.partition("="))
        if path.rpartition(".")[2] in ("model", "base_url") and value.strip("\"'") in message:
            yield path


def next_lines(done: Document, command: RunCommand | None) -> Iterator[str]:
    """Yield the commands that continue a stopped run. An early stop needs no next step."""
    if not is_resumed(done):
        return
    command = command or RunCommand("FILE")
    caps, notice = reached_caps(done), "verdicts are recorded; " if done["scored"] else ""
    resuming = command.raising(caps).resuming
    if "live" in done["stopped"]:
        yield f"  {notice}the same command continues the run"
        return
    if not command.is_resumable:
        yield f"  {notice}this run cannot be resumed (--head, or a suite with --filter); the same command starts a new run"
        return
    condition, correction = refusal_words(done["stopped"])
    steps = ", ".join([*([raise_caps_text(caps)] if caps else []), *([condition] if condition else [])])
    yield f"  {notice}to judge the remaining subjects{steps and f', {steps}'}:"
    has_retry = done["failures"] and may_pass_again(done) and "shards" not in done["stopped"]
    yield f"    {resuming(done['run_id'], *['--retry-failed'] * bool(has_retry))}"
    if correction:
        refused = [*_refused_settings(command.settings, done["stopped"]["message"])]
        other = f", or of {' and '.join(refused)} in --set (left out here)" if refused else ""
        yield f"  after a correction of {correction}{other}, a new run:"
        yield f"    {command.raising(refused).starting()}"
    cancelled = {batch["batch_id"] for batch in done.get("cancelled_batches", ())}
    if any(batch["batch_id"] not in cancelled for batch in done.get("batches", ())):
        yield "  The batches continue and are billed. To cancel them:"
        yield f"    {resuming(done['run_id'], '--cancel-batches')}"


def short_run(run_id: str) -> str:
    """Return the end of a run's id; ``--run`` accepts it as long as no other run's id ends with it."""
    return run_id[-RUN:]


def failure_line(failure: Mapping[str, Any]) -> str:
    """Return a failure in one line."""
    subject = f"{failure['subject_kind']} {short_name(failure['subject_id'])}"
    kind = failure_kind(failure)
    return one_line(f"{subject}  {failure_label(failure)}: {kind}: {failure['error_message']}")


def reply_line(failure: Mapping[str, Any]) -> str | None:
    """Return the reply of a failed judgment in one line; None if there is none."""
    reply = failure.get("reply")
    return None if not reply else one_line(f"    reply: {cut(repr(reply))}")
