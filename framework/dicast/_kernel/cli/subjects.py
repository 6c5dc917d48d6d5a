"""A subject with its verdicts, in the runs that judged it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from ...toolkit.printable import one_line, short_name
from ...toolkit.terminal import Drawing, Line, Part, folded
from ...toolkit.text_table import TextTable
from ..classes import frozen
from ..contract.protocols import Ledger
from ..events import EVAL_COMPLETED, EVAL_FAILED, RECORD_FAILED, SUBJECT_READ
from ..report.evidence import hidden_media, listed_media
from ..resume.named_runs import LEAST, TOOL, run_kind
from ..resume.reading import Selection, failure, subject, verdict
from ..values import MAX_TOKENS, REFUSAL, Event, Query, Verdict, normalize_stop_reason
from ..values.errors import ConfigError
from ..values.rationale import RATIONALE, SCOPE
from .steps import Trace, step_lines, trace
from .summary import failure_line, reply_line
from .trees import cut, tree

_SIGNAL_WORDS = {RATIONALE: "reasons"}
"""Clearer words for names of signals."""

_MOST_EXAMPLES = 3
"""Largest number of runs that an error message lists."""

_NEWEST = 10_000
"""The number of the newest subjects among which the first characters of an id are looked up."""


@frozen
class SubjectInRun:
    """A subject in one run: the run's ``run.started`` event, the subject as it was read, its verdicts, its failures, and its trace."""

    start: Event
    subject: Mapping[str, Any]
    verdicts: Sequence[Verdict]
    failures: Sequence[Mapping[str, Any]]
    trace: Trace = Trace()

    @classmethod
    def of(cls, ledger: Ledger, subject_id: str, start: Event) -> SubjectInRun:
        """Return the subject in the run of the event *start*."""
        selection = Selection(start.run_id, subject_id)
        verdicts = [verdict(event) for event in selection.events(ledger, EVAL_COMPLETED)]
        failures = [failure(event) for event in selection.events(ledger, EVAL_FAILED, RECORD_FAILED)]
        steps = trace(ledger, subject_id, start.run_id)
        return cls(start, subject(ledger, subject_id, start.run_id) or {}, verdicts, failures, steps)

    def json(self) -> dict[str, Any]:
        """Return the document for one run."""
        return {"subject": self.subject, "verdicts": self.verdicts, "failures": self.failures}

    def lines(self) -> Iterator[Part]:
        """Yield the subject and the evidence for each verdict."""
        keys = (key for key in ("input", "output", "reference") if self.subject.get(key) is not None)
        run = f"run {self.start.run_id} ({self.start.payload['name']})"
        yield Line(one_line(f"{self.subject['kind']} {short_name(self.subject['id'])}  in {run}"))
        if "place" in self.subject:
            yield Line(one_line(f"  from {self.subject['place']}"))
        record = self.subject.get("record", {})
        responses = record.get("responses") or {"response": record.get("response")}
        outputs = {name: response for name, response in responses.items() if response is not None}
        names = {"output": "output of the data, not judged"} if outputs else {}
        yield from (f"  {names.get(key, key)}: {cut(repr(self.subject[key]))}" for key in keys)
        yield from (f"  {name}: {cut(repr(response['content']))}" for name, response in outputs.items())
        if "parent_id" in self.subject:
            yield one_line(f"  part of: {short_name(self.subject['parent_id'])}")
        ending = self.subject.get("finish_reason")
        if normalize_stop_reason(ending) in (MAX_TOKENS, REFUSAL):
            yield one_line(f"  the output ended early: {ending}")
        yield from step_lines(self.trace, self.subject)
        if record.get("metrics"):
            yield from map(one_line, tree("metrics", record["metrics"], 1))
        for verdict_ in self.verdicts:
            yield Line(verdict_line(verdict_))
            yield from _evidence_parts(verdict_)
        for failed in self.failures:
            yield Line(failure_line(failed))
            if (line := reply_line(failed)) is not None:
                yield Line(line)
            yield from _adapted_lines(failed.get("adapted", {}))


@frozen
class SubjectHistory:
    """Result of ``dicast show SUBJECT``: the subject in the shown *runs*, and the number of *other_runs* that judged it."""

    runs: Sequence[SubjectInRun]
    other_runs: int
    every: bool

    def json(self) -> dict[str, Any]:
        """Return the document; with *every*, the verdicts of all runs, oldest first, followed by the document of each run under ``runs``."""
        if not self.every:
            return self.runs[0].json()
        return {
            "subject": self.runs[0].subject,
            "verdicts": [item for run in reversed(self.runs) for item in run.verdicts],
            "failures": [item for run in reversed(self.runs) for item in run.failures],
            "runs": [{"run_id": run.start.run_id, **run.json()} for run in self.runs],
        }

    def lines(self) -> Iterator[Part]:
        """Yield the subject in each shown run, the newest run first."""
        for number, run in enumerate(self.runs):
            if number:
                yield ""
            yield from run.lines()
        if self.other_runs:
            yield f"also judged in {self.other_runs:,} other run{'s' * (self.other_runs > 1)}; --all shows them"


def subject_history(
    ledger: Ledger, subject_id: str, starts: Sequence[Event], only: str | None, *, every: bool
) -> SubjectHistory:
    """Return the subject in the newest of the runs *starts* that judged it, or in the run *only*, or in *every* run.

    :raises ConfigError: when none of these runs judged it.
    """
    if not starts:
        raise ConfigError(_unknown(ledger, subject_id))
    by_kind = sorted(starts, key=lambda event: run_kind(event.payload) == TOOL)  # stable: the newest of each kind first
    selected = starts if every else [event for event in by_kind if only in (None, event.run_id)][:1]
    if not selected:
        examples = _examples([event.run_id for event in starts])
        raise ConfigError(f"run {only} has not judged {subject_id!r}; these runs have: {examples}")
    runs = [SubjectInRun.of(ledger, subject_id, event) for event in selected]
    return SubjectHistory(runs, len(starts) - len(selected), every)


def whole_id(ledger: Ledger, part: str) -> str | None:
    """Return the only session or subject whose id begins with *part*, among the newest subjects; None if there is none.

    :raises ConfigError: if there are several.
    """
    if len(part) < LEAST:
        return None
    reads = ledger.read(Query(types=(SUBJECT_READ,), newest_first=True, limit=_NEWEST))
    ids = dict.fromkeys((entry.event.session_id, entry.event.subject_id) for entry in reads)
    for kind, number in (("sessions", 0), ("subjects", 1)):
        names = dict.fromkeys(name for id_ in ids if (name := id_[number]) is not None and name.startswith(part))
        if len(names) > 1:
            raise ConfigError(f"{len(names):,} {kind} begin with {part!r}: {_examples([*names])}; name more of the id")
        if names:
            return next(iter(names))
    return None


def _examples(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_EXAMPLES]) + " …" * (len(names) > _MOST_EXAMPLES)


def _unknown(ledger: Ledger, name: str) -> str:
    """Return the message about a name that is no subject and no run: the subjects of the session of that name, if there is one."""
    reads = ledger.read(Query(types=(SUBJECT_READ,), session_id=name, newest_first=True))
    parts = dict.fromkeys(str(entry.event.subject_id) for entry in islice(reads, _MOST_EXAMPLES + 1))
    if parts:
        return f"the session {name!r} was not judged as a whole; dicast show shows its parts: {_examples([*parts])}"
    return (
        f"the ledger has neither a run nor a subject {name!r}; dicast runs lists its runs, dicast verdicts its subjects"
    )


def _evidence_parts(verdict: Verdict) -> Iterator[Part]:
    """Yield the result of each metric, or the signals of a judge."""
    rows = [
        (
            f"    {score['metric']}",
            _figure(score),
            str(score.get("basis", score["tier"])),
            cut(str(score["details"])),
        )
        for score in verdict.scores
    ]
    for entry in (*verdict.skipped, *verdict.spared):
        reason = f"skipped: {entry['reason']}" if "reason" in entry else "not run because of the gate"
        rows.append((f"    {entry['metric']}", "", "", reason))
    lines = [folded(line) for row in rows for line in _evidence_line(*row).split("\n")]
    if any("\n" in details for *_, details in rows):  # a table cell has one line
        yield from lines
    elif rows:
        yield Drawing(TextTable(("    metric", "score", "basis", ""), rows, right=("score",)), lines)
    yield from _adapted_lines(verdict.adapted)
    yield from _hidden_media_lines(verdict)
    if not verdict.scores:
        by = " ".join(filter(None, (verdict.judge_kind, verdict.judge_model)))
        signals = [(key, value) for key, value in verdict.signals.items() if key != SCOPE]
        signals_by_length = sorted(signals, key=lambda signal: len(str(signal[1])))  # only the last one may be cut
        yield Line(
            one_line(
                "    "
                + cut(
                    ", ".join(
                        [f"by {by}", *(f"{_SIGNAL_WORDS.get(key, key)}: {value}" for key, value in signals_by_length)]
                    )
                )
            )
        )
        if "rationale_hash" in verdict.signals and RATIONALE not in verdict.signals:
            yield "    its reasons were not recorded (capture_rationale: false, or a ledger with content: digest)"


def _hidden_media_lines(verdict: Verdict) -> Iterator[Line]:
    """Yield the media that a judge or a metric saw as markers, one line for each label."""
    scores: Sequence[Mapping[str, Any]] = verdict.scores
    by_label = {verdict.judge: hidden_media(verdict.signals)}
    for score in scores:
        by_label[score["metric"]] = by_label.get(score["metric"], Counter()) | hidden_media(score.get("signals") or {})
    for label, counts in by_label.items():
        if counts:
            yield Line(one_line(f"    not shown to {label}: {listed_media(counts)} (it received markers)"))


def _adapted_lines(by_label: Mapping[str, Iterable[str]]) -> Iterator[Line]:
    """Yield the parameters that endpoints refused, one line for each label."""
    for label, names in by_label.items():
        yield Line(one_line(f"    adapted: [{', '.join(names)}] (refused by the endpoint of {label})"))


def _figure(score: Mapping[str, Any]) -> str:
    """Return the value of a metric, with its raw number if a range mapped it, or the raw number alone."""
    value, raw = score["value"], score.get("raw")
    if value is None:
        return f"{raw:g} raw"
    return f"{value:.4f}" if raw in (None, value) else f"{value:.4f} (raw {raw:g})"


def _evidence_line(metric: str, value: str, basis: str, details: str) -> str:
    head = f"{one_line(metric)}  {value} ({basis})" if value else one_line(metric)
    return head + ("  " + details.replace("\n", "\n      ") if details else "")


def _value(verdict: Verdict) -> str:
    if verdict.score is not None:
        return f"{verdict.score:.4f}"
    return "no value (the gate on proxy metrics failed)" if verdict.raw is None else f"{verdict.raw:g} raw"


def verdict_line(verdict: Verdict) -> str:
    """Return a verdict in one line."""
    subject = f"{verdict.subject_kind} {short_name(verdict.subject_id)}"
    rubric = f"{verdict.rubric_id}@{verdict.rubric_version}"
    return one_line(
        f"{verdict.created_at}  {subject}  {verdict.judge}: {_value(verdict)}, confidence {verdict.confidence:.2f} "
        f"({verdict.basis}, {rubric})"
    )
