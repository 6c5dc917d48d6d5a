"""A subject with the verdicts on it, in the runs that judged it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...toolkit.printable import one_line, short_name
from ...toolkit.terminal import Drawing, Line, Part, folded
from ...toolkit.text_table import TextTable
from ..classes import frozen
from ..contract.protocols import Ledger
from ..events import EVAL_COMPLETED, EVAL_FAILED, RECORD_FAILED
from ..report.evidence import hidden_media, listed_media
from ..resume.named_runs import TOOL, run_kind
from ..resume.reading import Selection, failure, subject, verdict
from ..values import MAX_TOKENS, REFUSAL, Event, Verdict, normalize_stop_reason
from ..values.errors import ConfigError
from ..values.rationale import RATIONALE, SCOPE
from .summary import cut, failure_line, reply_line, tree

_SHOWN = {RATIONALE: "reasons"}
"""Words for names of signals that a reader would misunderstand."""

_NAMED = 3
"""How many runs are named to choose from."""


@frozen
class FoundSubject:
    """A subject as one run judged it: the run's ``run.started``, what was read, and what was said of it."""

    begun: Event
    subject: Mapping[str, Any]
    verdicts: Sequence[Verdict]
    failures: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, ledger: Ledger, subject_id: str, begun: Event) -> FoundSubject:
        """The subject in the run that *begun* began."""
        wanted = Selection(begun.run_id, subject_id)
        verdicts = [verdict(event) for event in wanted.events(ledger, EVAL_COMPLETED)]
        failures = [failure(event) for event in wanted.events(ledger, EVAL_FAILED, RECORD_FAILED)]
        return cls(begun, subject(ledger, subject_id, begun.run_id) or {}, verdicts, failures)

    def json(self) -> dict[str, Any]:
        """The document of one run."""
        return {"subject": self.subject, "verdicts": self.verdicts, "failures": self.failures}

    def lines(self) -> Iterator[Part]:
        """The subject, and what each verdict rests on."""
        shown = (key for key in ("input", "output", "reference") if self.subject.get(key) is not None)
        run = f"run {self.begun.run_id} ({self.begun.payload['name']})"
        yield Line(one_line(f"{self.subject['kind']} {short_name(self.subject['id'])}  in {run}"))
        record = self.subject.get("record", {})
        responses = record.get("responses") or {"response": record.get("response")}
        made = {name: response for name, response in responses.items() if response is not None}
        names = {"output": "output of the data, not judged"} if made else {}
        yield from (f"  {names.get(key, key)}: {cut(repr(self.subject[key]))}" for key in shown)
        yield from (f"  {name}: {cut(repr(response['content']))}" for name, response in made.items())
        ending = self.subject.get("finish_reason")
        if normalize_stop_reason(ending) in (MAX_TOKENS, REFUSAL):
            yield one_line(f"  the output ended early: {ending}")
        if record.get("metrics"):
            yield from map(one_line, tree("metrics", record["metrics"], 1))
        for one in self.verdicts:
            yield Line(verdict_line(one))
            yield from _grounds(one)
        for failed in self.failures:
            yield Line(failure_line(failed))
            if (line := reply_line(failed)) is not None:
                yield Line(line)
            yield from _adapted(failed.get("adapted", {}))


@frozen
class ShownSubject:
    """What ``dicast show`` has to say of a subject: in the *runs* shown, and that *others* have judged it, too."""

    runs: Sequence[FoundSubject]
    others: int
    every: bool

    def json(self) -> dict[str, Any]:
        """The document: of all runs together, oldest first, where *every* one is shown, and then of each under ``runs``."""
        if not self.every:
            return self.runs[0].json()
        return {
            "subject": self.runs[0].subject,
            "verdicts": [one for run in reversed(self.runs) for one in run.verdicts],
            "failures": [one for run in reversed(self.runs) for one in run.failures],
            "runs": [{"run_id": run.begun.run_id, **run.json()} for run in self.runs],
        }

    def lines(self) -> Iterator[Part]:
        """The subject in each run that is shown, the newest first."""
        for number, run in enumerate(self.runs):
            if number:
                yield ""
            yield from run.lines()
        if self.others:
            yield f"also judged in {self.others:,} other run{'s' * (self.others > 1)}; --all shows them"


def shown_subject(
    ledger: Ledger, subject_id: str, begun: Sequence[Event], only: str | None, *, every: bool
) -> ShownSubject:
    """The subject in the first of the runs *begun* that judged it, or in the run *only*, or in *every* one.

    :raises ConfigError: when none has.
    """
    if not begun:
        raise ConfigError(
            f"the ledger has neither a run nor a subject {subject_id!r}; dicast runs and dicast verdicts list what it has"
        )
    by_weight = sorted(begun, key=lambda event: run_kind(event.payload) == TOOL)  # stable: the newest of each first
    wanted = begun if every else [event for event in by_weight if only in (None, event.run_id)][:1]
    if not wanted:
        named = ", ".join(event.run_id for event in begun[:_NAMED]) + (" …" if len(begun) > _NAMED else "")
        raise ConfigError(f"run {only} has not judged {subject_id!r}; these have: {named}")
    shown = [FoundSubject.of(ledger, subject_id, event) for event in wanted]
    return ShownSubject(shown, len(begun) - len(wanted), every)


def _grounds(verdict: Verdict) -> Iterator[Part]:
    """What each metric said; of a judge its signals."""
    rows = [
        (
            f"    {score['metric']}",
            _figure(score),
            str(score.get("basis", score["tier"])),
            cut(str(score["details"])),
        )
        for score in verdict.scores
    ]
    for one in (*verdict.skipped, *verdict.spared):
        why = f"skipped: {one['reason']}" if "reason" in one else "spared by the gate"
        rows.append((f"    {one['metric']}", "", "", why))
    lines = [folded(line) for row in rows for line in _ground(*row).split("\n")]
    if any("\n" in said for *_, said in rows):  # a cell has one line
        yield from lines
    elif rows:
        yield Drawing(TextTable(("    metric", "score", "basis", ""), rows, right=("score",)), lines)
    yield from _adapted(verdict.adapted)
    yield from _unseen(verdict)
    if not verdict.scores:
        by = " ".join(filter(None, (verdict.judge_kind, verdict.judge_model)))
        signals = [(key, value) for key, value in verdict.signals.items() if key != SCOPE]
        told = sorted(signals, key=lambda signal: len(str(signal[1])))  # a long one is cut, no other
        yield Line(
            one_line(
                "    " + cut(", ".join([f"by {by}", *(f"{_SHOWN.get(key, key)}: {value}" for key, value in told)]))
            )
        )
        if "rationale_hash" in verdict.signals and RATIONALE not in verdict.signals:
            yield "    its reasons were not kept (capture_rationale: false, or a ledger with content: digest)"


def _unseen(verdict: Verdict) -> Iterator[Line]:
    """Yield the media that a judge or a metric saw as markers, a line for each label."""
    scores: Sequence[Mapping[str, Any]] = verdict.scores
    by_label = {verdict.judge: hidden_media(verdict.signals)}
    for score in scores:
        by_label[score["metric"]] = by_label.get(score["metric"], Counter()) | hidden_media(score.get("signals") or {})
    for label, counts in by_label.items():
        if counts:
            yield Line(one_line(f"    not shown to {label}: {listed_media(counts)} (it saw markers)"))


def _adapted(by_label: Mapping[str, Iterable[str]]) -> Iterator[Line]:
    """Yield the parameters that endpoints refused, a line for each label."""
    for label, names in by_label.items():
        yield Line(one_line(f"    adapted: [{', '.join(names)}] (refused by the endpoint of {label})"))


def _figure(score: Mapping[str, Any]) -> str:
    """Return the value of a metric, with its number before a range mapped it, or the number alone."""
    value, raw = score["value"], score.get("raw")
    if value is None:
        return f"{raw:g} raw"
    return f"{value:.4f}" if raw in (None, value) else f"{value:.4f} (raw {raw:g})"


def _ground(metric: str, value: str, basis: str, said: str) -> str:
    found = f"{one_line(metric)}  {value} ({basis})" if value else one_line(metric)
    return found + ("  " + said.replace("\n", "\n      ") if said else "")


def _value(verdict: Verdict) -> str:
    if verdict.score is not None:
        return f"{verdict.score:.4f}"
    return "no value (held back by the proxies)" if verdict.raw is None else f"{verdict.raw:g} raw"


def verdict_line(verdict: Verdict) -> str:
    """One verdict in one line."""
    subject = f"{verdict.subject_kind} {short_name(verdict.subject_id)}"
    rubric = f"{verdict.rubric_id}@{verdict.rubric_version}"
    return one_line(
        f"{verdict.created_at}  {subject}  {verdict.judge}: {_value(verdict)}, confidence {verdict.confidence:.2f} "
        f"({verdict.basis}, {rubric})"
    )
