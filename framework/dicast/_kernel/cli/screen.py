"""Summary of a run on one screen: the gate, a line for each label, the failures, the cost, and the next command."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain, islice
from textwrap import wrap
from typing import Any

from ...toolkit.money import amounts_text
from ...toolkit.printable import column_count, first_words, one_line, short_name
from ...toolkit.terminal import Drawing, Line, Part, wrap_columns
from ...toolkit.text_table import WIDTH
from ..classes import define, field
from ..pipeline.ledger_path import ledger_option
from ..report.caps import cap_lines, raise_caps_text, reached_caps
from ..report.failure_words import failure_numbers, failure_origin, failure_text, failures_text, may_pass_again
from ..report.gate_words import gate_reasons
from ..resume.open_runs import RunCommand
from ..values.passes import shown_label
from .findings import aggregates, baseline_lines, sentences
from .gate_summary import clause_lines, gate_head
from .label_rows import label_rows, labels_table
from .read_lines import read_lines
from .score_lines import corrected_lines, plan_lines
from .summary import (
    SHOWN_ELSEWHERE,
    fallback_text,
    headline,
    loss_lines,
    lowest,
    lowest_label,
    model_lines,
    next_lines,
    run_parts,
    shard_lines,
    short_run,
    spared_lines,
    stop_lines,
    waiting_lines,
)
from .trees import tree

Document = Mapping[str, Any]

ROWS = 22
"""The most rows of the summary at 80 columns. With the command and the prompt they fill a terminal of 24 rows."""

HEAD_ROWS = 24
"""The most rows of the summary and of the table of tried rows, if the table fits."""

_LABELS = 6
"""The most labels."""

_LEAST_LABELS = 2
"""The labels that are shown even if the other lines need more rows than the screen has."""

_LOWEST = 3
"""The most subjects with the lowest scores."""

_BATCHES = 2
"""The waiting batches that are shown even if the other lines need more rows than the screen has."""

_HEIGHT = 2
"""The most rows of a line."""

_LONGEST_NAME = WIDTH - 4
"""The most columns of the pipeline's name."""

_LONGEST_ID = 40
"""The most columns of a subject's id in a command."""

_COMMANDS = ("    dicast ", "next: ", "details: ")
"""Starts of lines with a command; they are not wrapped, so that the command can be copied."""


@define
class _Section:
    """Lines that belong together: *lines*, always shown, then *items*, the last of which are omitted if they do not fit.

    *noun* names an item, *least* is the number of items that are always shown, and *omitted* the number of omitted items.
    *has_first_item* is True if *lines* has the first item.
    """

    lines: Sequence[str] = ()
    items: list[Any] = field(factory=list)
    noun: str = ""
    least: int = 0
    omitted: int = 0
    has_first_item: bool = False
    draw: Callable[[list[Any]], Sequence[Part]] = field(default=lambda items: [Line(one_line(item)) for item in items])

    def parts(self) -> Iterator[Part]:
        """Yield the lines, the items, and the number of omitted items."""
        for line in map(one_line, self.lines):
            yield line if line.startswith(_COMMANDS) else Line(line)
        if self.items:
            yield from self.draw(self.items)
        if self.omitted:
            adjective = "more " * bool(self.items or self.has_first_item)
            yield f"  + {self.omitted:,} {adjective}{self.noun}{'s' * (self.omitted != 1)}"

    def cut(self) -> None:
        """Cut each text to :data:`_HEIGHT` rows."""
        self.lines = [line if line.startswith(_COMMANDS) else _short(line) for line in self.lines]
        self.items = [_short(item) if isinstance(item, str) else item for item in self.items]

    def omit(self, is_over: Callable[[], bool]) -> None:
        """Omit the last items until *is_over* returns False or :attr:`least` items are left.

        A single item of one row stays, as the number of omitted items needs a row too.
        """
        last = None
        while len(self.items) > self.least and is_over():
            last = self.items.pop()
            self.omitted += 1
        if self.omitted == 1 and last is not None:
            rows = self.rows()
            self.items.append(last)
            self.omitted = 0
            if self.rows() > rows:
                self.items.pop()
                self.omitted = 1

    def rows(self) -> int:
        """Return the number of rows at 80 columns."""
        return sum(map(_rows, self.parts()))


def screen_parts(
    done: Document,
    command: RunCommand | None = None,
    *,
    rows: int = ROWS,
    is_in_suite: bool = False,
    resumes: bool = True,
    next_command: str | None = None,
    reported: Collection[str] = (),
) -> Iterator[Part]:
    """Yield the summary of a run's document in at most *rows* rows of 80 columns, unless the lines that are always shown need more.

    :param command: the command that started the run, for the next step.
    :param is_in_suite: leave out the figures that the table of a suite has.
    :param resumes: False leaves out the next commands, which the suite has for all its runs.
    :param next_command: the next command of a run that did not stop, in place of a look at a failure or at the lowest score.
    :param reported: the messages of warnings that the command has printed before the summary, which leaves them out.
    """
    if done.get("disabled") or done["run_id"] is None:
        yield from run_parts(done, command)
        return
    gate, failures, findings, notes = _gate(done), _failures(done), _findings(done), _notes(done, reported)
    labels, comparison = _Section() if is_in_suite else _labels(done), _comparison(done)
    worst = _Section((), [*_lowest_lines(done)], "line: the lowest scores")
    spent = _spent(done, is_in_suite=is_in_suite)
    steps = _next_lines(done, command, next_command, is_in_suite=is_in_suite) if resumes else ()
    next_ = _Section([*steps])
    sections = [gate, _title(done), labels, comparison, worst, failures, findings, notes, spent, next_]
    other_sections = [section for section in sections if section is not gate]
    _fit(sections, ((notes, findings, comparison, failures, spent), (labels,), other_sections), rows)
    # the reasons of the gate come before the lowest scores and the examples of failures, unless one example is the only cause
    failures.least = int(len(failures.items) + failures.omitted == 1)
    _fit(sections, ((worst, failures), (gate,)), rows)
    for section in sections:
        yield from section.parts()
    if done.get("head"):
        from .head import head_parts  # few runs need a table

        parts = head_parts(done, lowest_label(done), HEAD_ROWS - sum(section.rows() for section in sections))
        yield from (Line(one_line(part)) if isinstance(part, str) else part for part in parts)


def _fit(sections: Sequence[_Section], groups: Sequence[Sequence[_Section]], rows: int) -> None:
    """Cut texts, then omit items, of each of *groups* until *sections* have at most *rows* rows; the least important group comes first."""

    def is_over() -> bool:
        return sum(section.rows() for section in sections) > rows

    for group in groups:
        for section in group:
            if is_over():
                section.cut()
        for section in group:
            section.omit(is_over)


def _rows(part: Part) -> int:
    if isinstance(part, str | Line):
        text = part if isinstance(part, str) else part.text
        rows = len(_wrapped(text))
        return rows + (rows > 1 and column_count(text) > len(text))  # a terminal may break before a long wide word
    return len(part.lines) if isinstance(part, Drawing) else len([*part.lines()])


_REST = "… (see details)"
"""End of a text that was cut; the last line of a summary begins with ``details:``."""


def _short(text: str) -> str:
    """Return *text* as one line, cut after a word to :data:`_HEIGHT` rows."""
    line = one_line(text)
    rows = _wrapped(line)
    if len(rows) <= _HEIGHT:
        return line
    shown = " ".join(rows[:_HEIGHT])
    return f"{first_words(shown, len(shown) - len(_REST))}{_REST}"


def _wrapped(line: str) -> list[str]:
    """Return *line* in rows of 80 columns, as a terminal wraps it; plain output needs as many rows, or fewer."""
    margin = len(line) - len(line.lstrip()) + 2
    if column_count(line) <= WIDTH:
        return [line]
    if column_count(line) == len(line):  # no wide characters
        return wrap(line, WIDTH - margin, break_on_hyphens=False)
    return wrap_columns(line, WIDTH - margin)


def gate_line(done: Document) -> str:
    """Return the first line of the summary: the gate's decision with a reason against it, whole."""
    return one_line(_gate(done).lines[0])


def _gate(done: Document) -> _Section:
    """Return the gate's decision with the reasons against it, or the clauses that passed and the reasons of undecided clauses."""
    gate = done["gate"]
    reasons = gate_reasons(done) if gate is None or gate["reasons"] else []
    head = gate_head(done)
    means = [*_compared_means(done)]
    if reasons and (gate is None or not gate["passed"]):
        items = [*(f"  {reason}" for reason in reasons[1:]), *means]
        return _Section([f"{head}: {reasons[0]}"], items, "reason", has_first_item=True)
    clauses = [clause for clause in (gate or {}).get("clauses", ()) if clause["rule"] != "min_coverage"]
    decided = clause_lines(done, [clause for clause in clauses if clause["passed"] is not None])
    open_reasons = [f"  undecided: {reason}" for reason in reasons]
    return _Section([head], [*open_reasons, *decided, *means], "clause")


def _compared_means(done: Document) -> Iterator[str]:
    """Yield a line with the means that the gate compared with a baseline, if the table of labels has pass rates that differ from them."""
    rows = {row.label: row for row in label_rows(done)}
    compared = dict.fromkeys(
        clause["on"]
        for clause in (done["gate"] or {}).get("clauses", ())
        if clause["rule"] == "max_drop" and clause["value"] is not None
    )
    figures = {**done["metrics"], **done["labels"]}
    means = [
        f"{short_name(name, 24)} {figures[label]['mean']:.4f}"
        for label, name in ((label, shown_label(done, label)) for label in compared)
        if name in rows
        and rows[name].figure == "pass rate"
        and figures.get(label, {}).get("mean") not in (None, figures.get(label, {}).get("pass_rate"))
    ]
    if means:
        yield f"  the gate compares the mean score with the baseline's: {', '.join(means)}"


def _title(done: Document) -> _Section:
    lines = [
        f"{short_name(done['name'], _LONGEST_NAME)}  run {done['run_id']}",
        headline(done),
        *(f"warning: {warning['message']}" for warning in done.get("warnings", ()) if warning.get("accepts_all")),
        *loss_lines(done),
        *stop_lines(done),
    ]
    return _Section(lines)


def _labels(done: Document) -> _Section:
    rows = label_rows(done)
    omitted = max(0, len(rows) - _LABELS)
    return _Section((), rows[:_LABELS], "label", _LEAST_LABELS, omitted, draw=lambda items: [labels_table(items)])


def _lowest_lines(done: Document) -> Iterator[str]:
    subjects = [
        f"{subject['score']:.4f} {subject['subject_kind']} {short_name(subject['subject_id'], 24)}"
        for subject in lowest(done)[:_LOWEST]
    ]
    if subjects:
        label = lowest_label(done)
        name = f" of {short_name(shown_label(done, label), 24)}" if label and len(label_rows(done)) > 1 else ""
        yield f"lowest scores{name}: {', '.join(subjects)}"


def _failures(done: Document) -> _Section:
    """Return the failures by kind, with one example of each kind."""
    numbers, examples = [*failure_numbers(done)], dict[tuple[str, str | None], Document]()
    for failure in done["failed_subjects"]:
        examples.setdefault((failure["failure_mode"], failure_origin(failure)), failure)
    if not numbers and not examples:
        return _Section()
    counts = failures_text(done) or "none counted"
    counted = [(kind, origin) for kind, origin, _ in numbers]
    listed = [key for key in dict.fromkeys((*counted, *examples)) if key in examples]
    items = [f"  {failure_text(examples[key])}: {_example(done, examples[key])}" for key in listed]
    return _Section([f"failed: {counts}"], items, "example", 1)


def _example(done: Document, failure: Document) -> str:
    label = "" if "origin" in failure else f", {shown_label(done, failure['judge'])}"
    return f"{failure['subject_kind']} {short_name(failure['subject_id'], 24)}{label}: {failure['error_message']}"


def _comparison(done: Document) -> _Section:
    """Return the answers of the comparison with the baseline, which are always shown for six labels, then the subjects that pass in one run alone."""
    if done["comparison"] is None:
        return _Section([*baseline_lines(done, short_run)])
    answers = [f"  {text}" for text in sentences(done["comparison"])]
    passes = [f"  {counts['words']}" for counts in (done["baseline"] or {}).get("passes", {}).values()]
    least = min(len(answers), _LABELS)
    return _Section([*baseline_lines(done, short_run)], [*answers, *passes], "comparison line", least)


def _findings(done: Document) -> _Section:
    """Return the corrected means, and the aggregates: the first line of each if the run has labels."""
    broken = [f"BROKEN: {message}" for message in done["broken"].values()]
    lines = [*broken, *corrected_lines(done)]
    most = 1 if done["labels"] else None  # without labels the aggregates are the result
    lines += chain.from_iterable(islice(tree(name, result), most) for name, result in aggregates(done).items())
    return _Section((), lines, "finding", len(broken))


def _notes(done: Document, reported: Collection[str]) -> _Section:
    """Return the notes that cast doubt on a figure or explain a cost."""
    warnings = done.get("warnings", ())  # documents of older versions have none
    lines = [*read_lines(done), *shard_lines(done)]
    lines += _warning_lines(
        [
            warning
            for warning in warnings
            if warning["kind"] not in SHOWN_ELSEWHERE
            and not warning.get("accepts_all")
            and warning["message"] not in reported
        ]
    )
    lines += cap_lines(done)
    for label, judge in done["judges"].items():
        lines += [f"{label}: {fallback_text(*fallback)}" for fallback in judge.get("fallbacks", {}).items()]
    lines += plan_lines(done["plan"]) if done.get("plan") else []
    return _Section((), [*lines, *model_lines(done)], "note")


def _warning_lines(warnings: Sequence[Document]) -> Iterator[str]:
    """Yield the first warning of each kind, with the number of the other warnings of the kind."""
    counts = Counter(warning["kind"] for warning in warnings)
    for kind, count in counts.items():
        message = next(warning["message"] for warning in warnings if warning["kind"] == kind)
        yield f"warning: {message}" + (f" (+ {count - 1:,} more of this kind)" if count > 1 else "")


def _spent(done: Document, *, is_in_suite: bool) -> _Section:
    lost, reserved = amounts_text(done["spend_lost"]), amounts_text(done.get("reserved", {}))
    parts = [f"spent: {amounts_text(done['cost']) or 'nothing'}"]
    parts += [f"lost, reserved for calls without a reply: {lost}"] if lost else []
    parts += [f"reserved for calls in batches: {reserved}"] if reserved else []
    waiting = [*waiting_lines(done)]
    items = waiting if is_in_suite else [*waiting, *spared_lines(done)]
    lines = [] if is_in_suite and len(parts) == 1 else ["; ".join(parts)]  # the table of a suite has the cost
    return _Section(lines, items, "line", min(len(waiting), _BATCHES))


def _next_lines(
    done: Document, command: RunCommand | None, next_command: str | None, *, is_in_suite: bool
) -> Iterator[str]:
    """Yield the command that continues a stopped run, or *next_command*, or shows why subjects failed, and the command for all figures."""
    run, ledger = short_run(done["run_id"]), ledger_option(done["ledger"])
    steps = [*next_lines(done, command)]
    yield from steps
    if is_in_suite:  # the suite's last lines have the commands for details
        return
    if not steps and next_command is not None:
        yield f"next: {next_command}"
    elif not steps and (done["failures"] or done["failed_subjects"]):
        yield f"next: dicast verdicts --run {run} --failed{ledger}"
        yield from retry_lines(done, command)
    elif not steps and (id_ := _lowest_id(done)) is not None:
        yield f"next: dicast show {shlex.quote(id_)} --run {run}{ledger}"
    yield f"details: dicast show {run} --full{ledger}"


def retry_lines(done: Document, command: RunCommand | None) -> Iterator[str]:
    """Yield the command that judges the failures of a run that has ended again, after the caps to raise; nothing if no command would give another result."""
    if command is None or not command.is_resumable or not done["failures"] or not may_pass_again(done):
        return
    if caps := reached_caps(done):
        yield f"to judge the subjects left out, {raise_caps_text(caps)}; then:"
    yield f"next: {command.raising(caps).retrying(done['run_id'])}"


def _lowest_id(done: Document) -> str | None:
    """Return the id of the subject with the lowest score, if it is short enough for a command and has no characters that a terminal escapes."""
    id_ = next((subject["subject_id"] for subject in done["worst"] if subject["score"] < 1), "")
    is_usable = 0 < column_count(id_) <= _LONGEST_ID and one_line(id_) == id_ and not id_.startswith("-")
    return id_ if is_usable else None
