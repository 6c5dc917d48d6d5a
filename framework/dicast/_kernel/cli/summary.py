"""A run, a subject and a verdict for a reader. Every mean stands beside its coverage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from ...toolkit.comparison_text import comparison_lines
from ...toolkit.money import amounts_text
from ...toolkit.printable import one_line, short_name
from ...toolkit.terminal import Drawing, Line, Part, folded
from ...toolkit.text_table import TextTable
from ..report.read_counts import READ_WARNINGS
from ..resume.open_runs import RunCommand
from .gate_summary import gate_parts
from .head import head_table
from .read_lines import read_lines
from .score_lines import plan_lines, score_lines

Document = Mapping[str, Any]

CUT = 300
"""How many characters of a text are shown."""

_FIRST = 3
"""How many subjects of one failure are named."""

_COMMAND = "    dicast run"
"""How a line begins that is a command: it is not wrapped, so that it can be copied."""

RUN = 6
"""How many characters of a run's id are shown where runs are listed: the last ones, as the first are those of the time."""


def run_parts(done: Document, command: RunCommand | None = None) -> Iterator[Part]:
    """Yield the summary of a run's document.

    :param command: the command that started the run, for the next step.
    """
    if done.get("disabled"):
        yield f"{done['name']}: disabled; nothing was read and nothing judged"
    elif done["run_id"] is None:
        yield f"{done['name']}: {done['stopped']['reason']} before anything was judged"
    else:
        yield from map(_wrapped, _parts(done, command))


def _wrapped(part: str | Drawing) -> Part:
    if isinstance(part, str):
        return one_line(part) if part.startswith(_COMMAND) else Line(one_line(part))
    return attrs.evolve(part, lines=[folded(one_line(line)) for line in part.lines])


def _parts(done: Document, command: RunCommand | None) -> Iterator[str | Drawing]:
    if done.get("head"):
        table, beside = head_table(done["head"])
        yield Drawing(table, [*table.lines()])
        if beside:
            yield f"  --json has more of each row: {', '.join(beside)}"
        yield ""
    yield f"{done['name']}  run {done['run_id']}"
    yield _headline(done)
    yield from read_lines(done)
    yield from score_lines(done)
    if len(done["labels"]) > 1:
        yield _labels(done["labels"], done["judges"])
    yield from _tallies("metrics", done["metrics"])
    if len(done["labels"]) <= 1:
        yield from _tallies("judges", done["judges"])
    yield from _worst_lines(done)
    yield from _failed_lines(done)
    yield from _findings_lines(done)
    yield from _model_lines(done)
    yield from _money_lines(done)
    yield from _ending_lines(done, command)


def _headline(done: Document) -> str:
    scored, failed, skipped = done["scored"], done["failed"], done["skipped"]
    beside = done["subjects"] - scored - failed - skipped
    unjudged = "not judged" if done["stopped"] or done["unaffordable"] else "that no metric or judge accepts"
    parts = [
        "none scored"
        if done["coverage"] is None
        else f"{scored:,} scored of {scored + failed + done['unaffordable']:,} (coverage {done['coverage']:.1%})",
        f"{failed:,} failed" if failed else "",
        f"{beside:,} judged beside the score" if beside else "",
        f"{skipped:,} {unjudged}" if skipped else "",
    ]
    return f"{done['subjects']:,} subject{'s' * (done['subjects'] != 1)}: " + ", ".join(part for part in parts if part)


def _labels(labels: Document, judges: Document) -> Drawing:
    """Every label of the file with its mean, its interval and its pass rate; a judge's with what else there is of it."""
    heads = ("labels:", "mean", "95 % interval", "pass", "scored", "")
    rows = [(f"  {label}", *_label_row(figures, judges.get(label, {}))) for label, figures in labels.items()]
    width = max(len(row[0]) for row in rows)
    lines = ["labels: mean (95 % interval), pass, scored"]
    for label, mean, interval, passed, scored, extra in rows:
        ends = f" ({interval})" if interval else ""
        more = ", ".join(part for part in (f"{scored} scored", passed and f"{passed} pass", extra) if part)
        lines.append(f"{label:<{width}}  {mean:>6}{ends}: {more}")
    return _drawing(heads, rows, lines, right=heads[1:2])


def _label_row(figures: Document, judge: Document) -> tuple[str, str, str, str, str]:
    mean, counts, sure, extra = _tally_row("", {**judge, **figures})[1:]
    interval = "" if figures["ci_low"] is None else f"{figures['ci_low']:.4f} to {figures['ci_high']:.4f}"
    passes = figures.get("passes")
    passed = "" if passes is None else f"{passes['passed']:,} of {passes['n']:,}"
    return mean, interval, passed, counts, ", ".join(part for part in (sure and f"confidence {sure}", extra) if part)


def _tallies(title: str, tallies: Document) -> Iterator[str | Drawing]:
    if tallies:
        rows = [_tally_row(label, tally) for label, tally in tallies.items()]
        width = max(len(label) for label in tallies)
        lines = [f"{title}: mean (scored of judged)"]
        for label, mean, counts, sure, extra in rows:
            more = f", {extra}" if extra else ""
            lines.append(f"  {label:<{width}}  {mean:>6}  ({counts}{more})" + (f", confidence {sure}" if sure else ""))
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
    extra = [f"{tally[what]:,} {what}" for what in ("skipped", "escalated") if tally.get(what)]
    extra += (_fallback(why, count) for why, count in tally.get("fallbacks", {}).items())
    return label, mean, f"{tally['scored']:,} of {tally['total']:,}", sure, ", ".join(extra)


def _fallback(why: str, count: int) -> str:
    return f"{count:,} kept for explicit feedback" if why == "explicit_feedback" else f"{count:,} fell back ({why})"


def _worst_lines(done: Document) -> Iterator[str]:
    worst = [one for one in done["worst"] if one["score"] < 1]
    if worst:
        yield "worst: (dicast show ID says why)"
        yield from (f"  {one['score']:.4f}  {one['subject_kind']} {short_name(one['subject_id'])}" for one in worst)


def _failed_lines(done: Document) -> Iterator[str | Drawing]:
    shown = done["failed_subjects"]
    if done["failures"] or shown:
        yield "failed: " + (
            ", ".join(f"{count:,} {kind}" for kind, count in done["failures"].items()) or "none that counts"
        )
        if shown:
            yield _failed_table(shown)
        if sum(done["failures"].values()) > len(shown):
            yield f"  … (dicast verdicts --run {done['run_id']} --failed lists them all)"


def _failed_table(failures: Sequence[Document]) -> Drawing:
    """The failures, those that say the same in one line, of whatever subject."""
    alike: dict[tuple[str, str, str], list[Document]] = {}
    for one in failures:
        message = str(one["error_message"]).replace(repr(one["subject_id"]), "it")
        same = alike.setdefault((one.get("origin") or one["judge"], one["failure_mode"], message), [])
        if "origin" not in one or not same or _subject(same[-1]) != _subject(one):
            same.append(one)  # all labels of a subject fail with its task
    rows = [
        (f"  {_named(those)}", label, mode, those[0]["error_message"] if len(those) == 1 else message)
        for (label, mode, message), those in alike.items()
    ]
    heads = ("  subject", "label", "failure", "message")
    lines = [one_line(f"{who}  {label}: {mode}: {message}") for who, label, mode, message in rows]
    return _drawing(heads, rows, lines, marked="failure")


def _subject(failure: Document) -> tuple[str, str]:
    return failure["subject_kind"], failure["subject_id"]


def _named(subjects: Sequence[Document]) -> str:
    """How many *subjects* there are, and the first of them."""
    first = [f"{one['subject_kind']} {short_name(one['subject_id'])}" for one in subjects[:_FIRST]]
    more = "" if len(subjects) <= _FIRST else ", …"
    return first[0] if len(subjects) == 1 else f"{len(subjects):,} subjects ({', '.join(first)}{more})"


def _findings_lines(done: Document) -> Iterator[str | Drawing]:
    """What the records come to, and how they compare with the baseline's."""
    for name, found in done["aggregates"].items():  # whose failures stand above already
        yield from tree(name, found and {k: v for k, v in found.items() if k != "failures" or not _is_of_rows(v)})
    baseline = done["baseline"]
    if baseline is not None and baseline["run_id"] is None:
        yield f"compared with nothing: no run of {done['name']} has ended before this one (baseline: {baseline['run']})"
    elif done["comparison"] is not None:
        yield f"compared with run {baseline['run_id']} ({baseline['name']}), which is A; differences are this one, B, less A"
        more = ", ".join(section for section in baseline["differs"] if section != "task")
        if more == "fingerprints":
            yield "  whether they are alike is not known: a file of records does not say how they were made"
        elif more:
            yield f"  NOT ALIKE: they differ in {more}"
        yield from _comparisons(done["comparison"])
        yield from (counts["words"] for counts in baseline.get("passes", {}).values())  # older documents have none
    yield from (f"BROKEN: {message}" for message in done["broken"].values())


def _comparisons(comparisons: Document) -> Iterator[str | Drawing]:
    """What ``dicast compare`` prints of each, and the sentence that one of them has, at the end."""
    for label, found in comparisons.items():
        is_by_criterion = isinstance(found, Mapping) and isinstance(found.get("criteria"), Mapping)
        yield from comparison_lines(label, found) if is_by_criterion else tree(label, found)
    with_words = [found for found in comparisons.values() if found and found.get("words")]
    yield from dict.fromkeys(str(words) for found in with_words for words in found.get("sentences") or [found["words"]])


def _is_of_rows(failures: object) -> bool:
    """Whether *failures* are the rows without a record, which the run adds to what an aggregate says."""
    row = {"subject_kind", "subject_id", "failure_mode"}
    return isinstance(failures, list | tuple) and all(
        isinstance(one, Mapping) and one.keys() == row for one in failures
    )


def tree(name: str, found: object, depth: int = 0) -> Iterator[str]:
    """*found* under its *name*: what it says in words, its figures in one line, mappings below it."""
    margin = "  " * depth
    if not isinstance(found, Mapping):
        yield cut(f"{margin}{name}: {_figure(found)}")
    else:
        plain = {key: value for key, value in found.items() if not isinstance(value, Mapping)}
        words = plain.pop("words", None)
        inside = {key: value for key, value in found.items() if isinstance(value, Mapping)}
        figures = ", ".join(f"{key} {_figure(value)}" for key, value in plain.items())
        if words is not None:
            yield cut(f"{margin}{name}: {words}")
            yield from [cut(f"{margin}  {figures}")] if figures else []
        else:
            yield cut(f"{margin}{name}" + (f": {figures}" if figures or not inside else ""))
        for key, value in inside.items():
            yield from tree(key, value, depth + 1)


def _figure(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, list | tuple):
        return f"[{', '.join(repr(one) if isinstance(one, str) else _figure(one) for one in value)}]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _model_lines(done: Document) -> Iterator[str]:
    """Return the parameters that endpoints refused, and values that components assume."""
    for label, names in done.get("adapted", {}).items():  # older documents have neither
        yield f"adapted: [{', '.join(names)}] (refused by the endpoint of {label}: left out, or sent in another form)"
    yield from (f"assumed: {text}" for text in done.get("assumed", ()))


def _money_lines(done: Document) -> Iterator[str]:
    yield f"spent: {amounts_text(done['cost']) or 'nothing'}"
    if lost := amounts_text(done["spend_lost"]):
        yield f"  lost, reserved for calls that ended unheard: {lost}"
    if reserved := amounts_text(done.get("reserved", {})):  # only where batches wait
        yield f"  reserved for calls in batches: {reserved}"
    cancelled = {batch["batch_id"] for batch in done.get("cancelled_batches", ())}
    for batch in done.get("cancelled_batches", ()):
        yield f"  cancelled: batch {batch['batch_id']} of calls to {batch['model']}"
    for batch in done.get("batches", ()):
        if batch["batch_id"] in cancelled:
            continue
        name = batch["batch_id"] or "not confirmed by the endpoint"
        yield f"  waiting: a batch of {batch['calls']:,} calls to {batch['model']} ({name}) goes on until {batch['until']} at the latest"
    if done.get("plan"):
        yield from plan_lines(done["plan"])
    for label, tally in done["metrics"].items():
        if tally.get("spared"):
            runs = "1 run" if tally["spared"] == 1 else f"{tally['spared']:,} runs"
            yield f"  the gate spared {runs} of {label}: {amounts_text(tally['saved']) or 'free'}"
    if done["overruns"]:
        advice = "if their model reasons, set max_reasoning_tokens, which is projected, too"
        yield f"  calls that cost more than was projected: {done['overruns']:,} ({advice})"
    for reason, count in done["throttled"].items():
        yield f"  calls not made because of the {reason}: {count:,}"


def _ending_lines(done: Document, command: RunCommand | None) -> Iterator[str | Drawing]:
    for label, sink in done["sinks"].items():
        if sink["lost"]:
            yield f"sink {label} LOST {sink['lost']:,} events: {sink.get('error')}"
    if (stopped := done["stopped"]) is not None:
        more = ", ".join(f"{key}: {value}" for key, value in stopped.items() if key not in ("reason", "live"))
        yield f"stopped: {stopped['reason']}" + (f" ({more})" if more else "")
        new = " (with another address or model in the file it is a new run)" if "message" in stopped else ""
        if stopped["reason"] != "early_stop":  # which is an end like any other
            yield from _next_lines(done, new, (command or RunCommand("FILE")).resuming)
    warnings = done.get("warnings", ())  # earlier versions had none
    yield from (f"warning: {one['message']}" for one in warnings if one["kind"] not in READ_WARNINGS)
    yield from gate_parts(done["gate"], done["undecided"])
    if (ledger := done["ledger"]) and ledger["head"]:
        yield f"ledger: {ledger['path']}, row {ledger['head']['seq']:,}, {ledger['head']['digest']}"


def _next_lines(done: Document, new: str, resuming: Callable[..., str]) -> Iterator[str]:
    """Return the commands that go on with a run that has stopped."""
    kept = "verdicts are kept; " if done["scored"] else ""
    if "live" in done["stopped"]:
        yield f"  {kept}the same command goes on{new}"
        return
    yield f"  {kept}to judge the rest{new}:"
    yield f"    {resuming(done['run_id'])}"
    cancelled = {batch["batch_id"] for batch in done.get("cancelled_batches", ())}
    if any(batch["batch_id"] not in cancelled for batch in done.get("batches", ())):
        yield "  The batches go on, and are billed. To cancel them:"
        yield f"    {resuming(done['run_id'], '--cancel-batches')}"


def short_run(run_id: str) -> str:
    """The end of a run's id, which ``--run`` takes for the whole where no other run's ends so."""
    return run_id[-RUN:]


def cut(text: str) -> str:
    """*text*, cut where it is long."""
    return text if len(text) <= CUT else f"{text[:CUT]}… ({len(text):,} characters)"


def failure_line(failure: Mapping[str, Any]) -> str:
    """One failure in one line."""
    subject = f"{failure['subject_kind']} {short_name(failure['subject_id'])}"
    label = failure.get("origin") or failure["judge"]
    return one_line(f"{subject}  {label}: {failure['failure_mode']}: {failure['error_message']}")


def reply_line(failure: Mapping[str, Any]) -> str | None:
    """Return the reply of a failed judgment in one line; None where there is none."""
    reply = failure.get("reply")
    return None if not reply else one_line(f"    reply: {cut(repr(reply))}")
