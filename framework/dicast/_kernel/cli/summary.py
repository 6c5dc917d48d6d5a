"""A run, a subject and a verdict for a reader. Every mean stands beside its coverage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..model import Verdict

Document = Mapping[str, Any]


def run_text(done: Document) -> str:
    """The summary of a run's document."""
    if done.get("disabled"):
        return f"{done['name']}: disabled; nothing was read and nothing judged"
    if done["run_id"] is None:
        return f"{done['name']}: {done['stopped']['reason']} before anything was judged"
    return "\n".join(_run_lines(done))


def _run_lines(done: Document) -> Iterator[str]:
    yield f"{done['name']}  run {done['run_id']}"
    yield _headline(done)
    if done["score"] is not None and done["score"]["mean"] is not None:
        yield from _score_lines(done["score"], done)
    yield from _table("metrics", done["metrics"])
    yield from _table("judges", done["judges"])
    yield from _worst_lines(done)
    yield from _money_lines(done)
    yield from _ending_lines(done)


def _headline(done: Document) -> str:
    parts = [f"{done['scored']:,} scored of {done['scored'] + done['failed']:,}"]
    if done["coverage"] is not None:
        parts[0] += f" (coverage {done['coverage']:.1%})"
    parts += [f"{done['failed']:,} failed"] if done["failed"] else []
    parts += [f"{done['skipped']:,} that nothing judges"] if done["skipped"] else []
    return f"{done['subjects']:,} subjects: " + ", ".join(parts)


def _score_lines(score: Document, done: Document) -> Iterator[str]:
    mean = f"score {score['mean']:.4f} mean, {score['aggregate']:.4f} aggregate"
    if score["ci_low"] is not None:
        mean += f", 95 % interval {score['ci_low']:.4f} to {score['ci_high']:.4f} ({score['ci_method']})"
    yield mean
    tiers = score["by_tier"]
    yield f"  resting on truth: {tiers['truth']:,}, on proxies alone: {tiers['proxy']:,}, of {done['scored']:,} scored"


def _table(title: str, tallies: Document) -> Iterator[str]:
    if tallies:
        yield f"{title}:"
        width = max(len(label) for label in tallies)
        for label, tally in tallies.items():
            mean = "-" if tally["mean"] is None else f"{tally['mean']:.4f}"
            extra = f", {tally['skipped']:,} skipped" if tally.get("skipped") else ""
            extra += f", {tally['escalated']:,} escalated" if tally.get("escalated") else ""
            yield f"  {label:<{width}}  {mean:>6}  ({tally['scored']:,} of {tally['total']:,}{extra})"


def _worst_lines(done: Document) -> Iterator[str]:
    if done["worst"]:
        yield "worst:"
        yield from (f"  {worst['score']:.4f}  {worst['subject_id']}" for worst in done["worst"])
    if done["failures"]:
        yield "failed: " + ", ".join(f"{count:,} {kind}" for kind, count in done["failures"].items())
    yield from (f"  {failure_line(failed)}" for failed in done["failed_subjects"])


def _money_lines(done: Document) -> Iterator[str]:
    cost, lost = done["cost"], done["spend_lost"]
    if any(value != "0" for value in (*cost.values(), *lost.values())):
        yield "cost: " + ", ".join(f"{'unknown' if value is None else value} {unit}" for unit, value in cost.items())
    if any(value != "0" for value in lost.values()):
        yield "  and reserved for calls that ended unheard: " + ", ".join(f"{v} {unit}" for unit, v in lost.items())
    if done["overruns"]:
        yield f"  {done['overruns']:,} calls cost more than was projected for them"
    for reason, count in done["throttled"].items():
        yield f"  {count:,} calls were not made: {reason}"


def _ending_lines(done: Document) -> Iterator[str]:
    for label, sink in done["sinks"].items():
        if sink["lost"]:
            yield f"sink {label} LOST {sink['lost']:,} events: {sink.get('error')}"
    if done["stopped"] is not None:
        more = ", ".join(f"{key}: {value}" for key, value in done["stopped"].items() if key != "reason")
        yield f"stopped: {done['stopped']['reason']}" + (f" ({more})" if more else "")
    gate = done["gate"]
    yield "gate: passed" if gate["passed"] else "gate: FAILED: " + "; ".join(gate["reasons"])
    ledger = done["ledger"]
    if ledger and ledger["head"]:
        yield f"ledger: {ledger['path']}, row {ledger['head']['seq']:,}, {ledger['head']['digest']}"


def subject_text(found: Document) -> str:
    """A subject with every verdict on it."""
    subject = found["subject"]
    lines = [f"{subject['kind']} {subject['id']}"]
    lines += [
        f"  {key}: {subject[key]!r:.300}" for key in ("input", "output", "reference") if subject.get(key) is not None
    ]
    lines += [verdict_line(verdict) for verdict in found["verdicts"]]
    lines += [failure_line(failure) for failure in found["failures"]]
    return "\n".join(lines)


def verdict_line(verdict: Verdict) -> str:
    """One verdict in one line."""
    rubric = f"{verdict.rubric_id}@{verdict.rubric_version}"
    return (
        f"{verdict.created_at}  {verdict.subject_kind} {verdict.subject_id}  {verdict.score:.4f}@{verdict.confidence:.2f}  "
        f"{verdict.judge} ({verdict.tier}, {rubric})"
    )


def failure_line(failure: Mapping[str, Any]) -> str:
    """One failure in one line."""
    subject = f"{failure['subject_kind']} {failure['subject_id']}"
    return f"{subject}  {failure['judge']}: {failure['failure_mode']}: {failure['error_message']}"
