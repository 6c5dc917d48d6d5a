"""A run, a subject and a verdict for a reader. Every mean stands beside its coverage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import fill
from typing import Any

from ..._toolkit.printable import one_line, short_name
from ..values import BASES, Verdict

Document = Mapping[str, Any]

CUT = 300
"""How many characters of a text are shown."""

WIDTH = 80
"""How many columns a line has that is wrapped."""

_ON = ("humans", "truth", "models that are not calibrated", "heuristics", "proxies alone")
"""What scores rest on, in the order of :data:`BASES`."""


def run_text(done: Document) -> str:
    """The summary of a run's document."""
    if done.get("disabled"):
        return f"{done['name']}: disabled; nothing was read and nothing judged"
    if done["run_id"] is None:
        return f"{done['name']}: {done['stopped']['reason']} before anything was judged"
    return "\n".join(_folded(one_line(line)) for line in _run_lines(done))


def _run_lines(done: Document) -> Iterator[str]:
    for row in done.get("head", ()):
        yield from (_cut(f"{name}: {_figure(value)}") for name, value in row.items())
        yield ""
    yield f"{done['name']}  run {done['run_id']}"
    yield _headline(done)
    yield from _score_lines(done)
    yield from _table("metrics", done["metrics"])
    yield from _table("judges", done["judges"])
    yield from _worst_lines(done)
    yield from _failed_lines(done)
    yield from _findings_lines(done)
    yield from _money_lines(done)
    yield from _ending_lines(done)


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


def _score_lines(done: Document) -> Iterator[str]:
    score, scored = done["score"], done["scored"]
    if score is None and not done["judges"] and not done["metrics"]:
        return
    if score is None:
        yield "score: none for the whole run; gate: {on: LABEL} says which judge counts"
    elif score["mean"] is not None:
        over = f"over {scored:,} of {scored + done['failed'] + done['unaffordable']:,} subjects"
        yield f"score: mean {score['mean']:.4f}, {_aggregate(score)}{over}"
        if score["ci_low"] is not None:
            yield f"  95 % interval of the mean {score['ci_low']:.4f} to {score['ci_high']:.4f} ({score['ci_method']})"
        bases = score.get("by_basis") or {basis: n for basis, n in score["by_tier"].items() if n}  # of earlier versions
        yield "  resting " + ", ".join(f"on {_ON[BASES.index(basis)]}: {n:,}" for basis, n in bases.items())


def _aggregate(score: Document) -> str:
    """The aggregate under its method's name; nothing where that is the mean, which is told anyway."""
    method = score["aggregation"]
    if method == "mean":
        return ""
    name = method if isinstance(method, str) else f"mean without {method['trimmed_mean']:g} % at each end"
    return f"{name} {score['aggregate']:.4f}, "


def _table(title: str, tallies: Document) -> Iterator[str]:
    if tallies:
        yield f"{title}: mean (scored of judged)"
        width = max(len(label) for label in tallies)
        for label, tally in tallies.items():
            mean = "-" if tally["mean"] is None else f"{tally['mean']:.4f}"
            extra = f", {tally['skipped']:,} skipped" if tally.get("skipped") else ""
            extra += f", {tally['escalated']:,} escalated" if tally.get("escalated") else ""
            extra += "".join(_fallback(why, count) for why, count in tally.get("fallbacks", {}).items())
            sure = "" if tally.get("mean_confidence") is None else f", confidence {tally['mean_confidence']:.2f}"
            yield f"  {label:<{width}}  {mean:>6}  ({tally['scored']:,} of {tally['total']:,}{extra}){sure}"


def _fallback(why: str, count: int) -> str:
    return f", {count:,} kept for explicit feedback" if why == "explicit_feedback" else f", {count:,} fell back ({why})"


def _worst_lines(done: Document) -> Iterator[str]:
    worst = [one for one in done["worst"] if one["score"] < 1]
    if worst:
        yield "worst: (dicast show ID says why)"
        yield from (f"  {one['score']:.4f}  {one['subject_kind']} {short_name(one['subject_id'])}" for one in worst)


def _failed_lines(done: Document) -> Iterator[str]:
    shown = done["failed_subjects"]
    if done["failures"] or shown:
        yield "failed: " + (
            ", ".join(f"{count:,} {kind}" for kind, count in done["failures"].items()) or "none that counts"
        )
        messages = [failed["error_message"] for failed in shown]
        for place, failed in enumerate(shown):  # of a dead endpoint each row says the same, at some length
            repeats = failed["failure_mode"] == "judge_call_failed" and messages[place] in messages[:place]
            yield f"  {failure_line({**failed, 'error_message': 'as above'} if repeats else failed)}"
        if sum(done["failures"].values()) > len(shown):
            yield f"  … (dicast verdicts --run {done['run_id']} --failed lists them all)"


def _findings_lines(done: Document) -> Iterator[str]:
    """What the records come to, and how they compare with the baseline's."""
    for name, found in done["aggregates"].items():  # whose failures stand above already
        yield from _tree(name, found and {k: v for k, v in found.items() if k != "failures" or not _is_of_rows(v)})
    baseline = done["baseline"]
    if baseline is not None and baseline["run_id"] is None:
        yield f"compared with nothing: no run of {done['name']} has ended before this one (baseline: {baseline['run']})"
    elif done["comparison"] is not None:
        yield f"compared with run {baseline['run_id']} ({baseline['name']})"
        more = ", ".join(section for section in baseline["differs"] if section != "task")
        if more == "fingerprints":
            yield "  whether they are alike is not known: a file of records does not say how they were made"
        elif more:
            yield f"  NOT ALIKE: they differ in {more}"
        for label, found in done["comparison"].items():
            yield from _tree(label, found)
    yield from (f"BROKEN: {message}" for message in done["broken"].values())


def _is_of_rows(failures: object) -> bool:
    """Whether *failures* are the rows without a record, which the run adds to what an aggregate says."""
    row = {"subject_kind", "subject_id", "failure_mode"}
    return isinstance(failures, list | tuple) and all(
        isinstance(one, Mapping) and one.keys() == row for one in failures
    )


def _tree(name: str, found: object, depth: int = 0) -> Iterator[str]:
    """*found* under its *name*: its figures in one line, mappings below it."""
    margin = "  " * depth
    if not isinstance(found, Mapping):
        yield _cut(f"{margin}{name}: {_figure(found)}")
    else:
        figures = [f"{key} {_figure(value)}" for key, value in found.items() if not isinstance(value, Mapping)]
        inside = {key: value for key, value in found.items() if isinstance(value, Mapping)}
        yield _cut(f"{margin}{name}" + (f": {', '.join(figures)}" if figures or not inside else ""))
        for key, value in inside.items():
            yield from _tree(key, value, depth + 1)


def _figure(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _money_lines(done: Document) -> Iterator[str]:
    yield f"spent: {_money(done['cost']) or 'nothing'}"
    if lost := _money(done["spend_lost"]):
        yield f"  lost, reserved for calls that ended unheard: {lost}"
    for label, tally in done["metrics"].items():
        if tally.get("spared"):
            runs = "1 run" if tally["spared"] == 1 else f"{tally['spared']:,} runs"
            yield f"  the gate spared {runs} of {label}: {_money(tally['saved']) or 'free'}"
    if done["overruns"]:
        yield f"  calls that cost more than was projected: {done['overruns']:,}"
    for reason, count in done["throttled"].items():
        yield f"  calls not made because of the {reason}: {count:,}"


def _money(amounts: Mapping[str, str | None]) -> str:
    return ", ".join(
        f"{'unknown' if value is None else value} {unit}" for unit, value in amounts.items() if value != "0"
    )


def _ending_lines(done: Document) -> Iterator[str]:
    for label, sink in done["sinks"].items():
        if sink["lost"]:
            yield f"sink {label} LOST {sink['lost']:,} events: {sink.get('error')}"
    if (stopped := done["stopped"]) is not None:
        more = ", ".join(f"{key}: {value}" for key, value in stopped.items() if key not in ("reason", "live"))
        yield f"stopped: {stopped['reason']}" + (f" ({more})" if more else "")
        new = " (with another address or model in the file it is a new run)" if "message" in stopped else ""
        goes_on = "the same command goes on" if "live" in stopped else f"--resume {done['run_id']} judges the rest"
        if stopped["reason"] != "early_stop":  # which is an end like any other
            yield f"  what was judged is kept; {goes_on}{new}"
    yield from (f"warning: {warning['message']}" for warning in done.get("warnings", ()))  # earlier versions had none
    yield from _gate_lines(done["gate"])
    if (ledger := done["ledger"]) and ledger["head"]:
        yield f"ledger: {ledger['path']}, row {ledger['head']['seq']:,}, {ledger['head']['digest']}"


def _folded(line: str) -> str:
    margin = " " * (len(line) - len(line.lstrip()) + 2)
    return fill(line, WIDTH, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False)


def _gate_lines(gate: Document) -> Iterator[str]:
    """What the gate says and why, and each of its clauses where it has more than a coverage to ask for."""
    answer = {True: "passed", False: "failed"}.get(gate["passed"], "undecided")
    yield f"gate: {answer}" + (": " if gate["reasons"] else "") + "; ".join(gate["reasons"])
    clauses = gate.get("clauses", ())  # earlier versions had none
    if any(clause["rule"] != "min_coverage" for clause in clauses):
        width = max(len(clause["on"] or "") for clause in clauses)
        for clause in clauses:
            value, line = (f"{one:.4g}" if isinstance(one, float) else one for one in (clause["value"], clause["line"]))
            interval = "" if clause["low"] is None else f" ({clause['low']:.4f} to {clause['high']:.4f})"
            ended = {True: "", False: ", failed"}.get(clause["passed"], ", undecided")
            yield f"  {clause['on'] or '':<{width}}  {clause['rule']} {line}: {value or '-'}{interval}{ended}"


def subject_text(found: Document) -> str:
    """A subject with every verdict on it, and what each verdict rests on."""
    subject = found["subject"]
    shown = (key for key in ("input", "output", "reference") if subject.get(key) is not None)
    lines = [
        f"{subject['kind']} {short_name(subject['id'])}",
        *(f"  {key}: {_cut(repr(subject[key]))}" for key in shown),
    ]
    record = subject.get("record", {})
    for name, response in (record.get("responses") or {"response": record.get("response")}).items():
        if response is not None:
            lines.append(f"  {name}: {_cut(repr(response['content']))}")
    if record.get("metrics"):
        lines += map(one_line, _tree("metrics", record["metrics"], 1))
    for verdict in found["verdicts"]:
        lines += [verdict_line(verdict), *_grounds(verdict)]
    lines += [failure_line(failure) for failure in found["failures"]]
    return "\n".join(lines)


def _grounds(verdict: Verdict) -> Iterator[str]:
    """What each metric said; of a judge its signals."""
    for score in verdict.scores:
        said = "  " + _cut(str(score["details"])).replace("\n", "\n      ") if score["details"] else ""
        yield f"    {one_line(str(score['metric']))}  {score['value']:.4f} ({score.get('basis', score['tier'])}){said}"
    for one in (*verdict.skipped, *verdict.spared):
        why = f"skipped: {one['reason']}" if "reason" in one else "spared by the gate"
        yield one_line(f"    {one['metric']}  {why}")
    if not verdict.scores:
        by = " ".join(filter(None, (verdict.judge_kind, verdict.judge_model)))
        told = sorted(verdict.signals.items(), key=lambda signal: len(str(signal[1])))  # a long one is cut, no other
        yield _folded(one_line("    " + _cut(", ".join([f"by {by}", *(f"{key}: {value}" for key, value in told)]))))
        if "rationale_hash" in verdict.signals and "rationale_redacted" not in verdict.signals:
            yield "    its reasons were not kept; capture_rationale: true keeps them"


def _cut(text: str) -> str:
    return text if len(text) <= CUT else f"{text[:CUT]}… ({len(text):,} characters)"


def verdict_line(verdict: Verdict) -> str:
    """One verdict in one line."""
    subject = f"{verdict.subject_kind} {short_name(verdict.subject_id)}"
    rubric = f"{verdict.rubric_id}@{verdict.rubric_version}"
    return one_line(
        f"{verdict.created_at}  {subject}  {verdict.judge}: {verdict.score:.4f}, confidence {verdict.confidence:.2f} "
        f"({verdict.basis}, {rubric})"
    )


def failure_line(failure: Mapping[str, Any]) -> str:
    """One failure in one line."""
    subject = f"{failure['subject_kind']} {short_name(failure['subject_id'])}"
    return one_line(f"{subject}  {failure['judge']}: {failure['failure_mode']}: {failure['error_message']}")
