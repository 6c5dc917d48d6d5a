"""``dicast show --browse``: the cases of a run, each in full, with keys on a terminal."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

import click

from .._kernel.classes import define, evolve, frozen
from .._kernel.cli.subjects import SubjectInRun, subject_passes
from .._kernel.contract.protocols import Ledger
from .._kernel.events import EVAL_COMPLETED, RECORD_COMPLETED, RUN_STARTED
from .._kernel.records.passes import recorded_rule
from .._kernel.values import Event, Query
from .._kernel.values.errors import ConfigError
from .._kernel.values.passes import METRICS, PassRule, SubjectKey, SubjectPasses
from .._kernel.values.payloads import metric_values, value_of
from ..toolkit.printable import one_line, short_name
from ..toolkit.terminal import Line, drawn, print_lines, terminal, width_of
from .case import case_blocks, case_lines, result_block, shown_width
from .view import open_page, report_of, row_address

PRINTED = 20
"""Most cases that are printed if standard output is no terminal."""

HELP = "n/p case  f/F failed  w order  e open  l label  o report  space/b page  q quit"
_FULL, _RESTORE, _CLEAR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[H\x1b[2J"
_BARS = 2
"""Lines of the screen below the case: the place, and the keys."""

_DOWN, _UP = (" ", "\x1b[6~", "\x06"), ("b", "\x1b[5~", "\x02")
_LINE_DOWN, _LINE_UP = ("j", "\x1b[B", "\r", "\n"), ("k", "\x1b[A")
_END = ("q", "\x1b", "\x04")


@frozen
class RunCases:
    """The cases of the run of the event *start*, in the order of the data, with the answers whether they pass."""

    ledger: Ledger
    start: Event
    rule: PassRule
    passes: SubjectPasses
    keys: Sequence[SubjectKey]

    @classmethod
    def of(cls, ledger: Ledger, run_id: str, only: str | None = None) -> RunCases:
        """Read the cases of a run, or the subject *only*.

        :raises ConfigError: if the run has judged no subject.
        """
        start = next(entry.event for entry in ledger.read(Query(run_id, (RUN_STARTED,), limit=1)))
        passes = subject_passes(ledger, start, () if only is None else (only,))
        if not passes.rows:
            name = "a subject" if only is None else repr(only)
            raise ConfigError(f"run {run_id} has not judged {name}, so there is no case to show")
        return cls(ledger, start, recorded_rule(start.payload), passes, [*passes.rows])

    def did_not_pass(self, at: int) -> bool:
        """Return whether the case fails, or is open, under the label of the gate or the score, else under any label of the file."""
        return any(answer is not True for answer in self._answers(self.keys[at]))

    @property
    def labels(self) -> Sequence[str]:
        """The label of the gate or the score, else all labels of the file."""
        return self.rule.labels if self.rule.label is None else (self.rule.label,)

    def _answers(self, key: SubjectKey) -> list[bool | None]:
        """Return whether the case passes each of :attr:`labels` that judged it, None if it is open."""
        judged = [label for label in self.labels if self.passes.is_judged(key, label)]
        return [self.passes.get(key, label) for label in judged]

    def worst_first(self) -> RunCases:
        """Return the cases that fail, then the open cases, then the others; the lowest score of :attr:`labels` comes first."""
        values = dict[SubjectKey, dict[str, float]]()
        types = (EVAL_COMPLETED, RECORD_COMPLETED)
        for event in (entry.event for entry in self.ledger.read(Query(self.start.run_id, types))):
            subject = values.setdefault((str(event.subject_kind), str(event.subject_id)), {})
            subject.update({label: value for label, value in _values(event).items() if label in self.labels})

        def rank(key: SubjectKey) -> tuple[int, float]:
            answers = self._answers(key)
            state = 0 if False in answers else 1 if None in answers else 2
            return state, min(values.get(key, {}).values(), default=math.inf)

        return evolve(self, keys=sorted(self.passes.rows, key=rank))

    def in_order(self) -> RunCases:
        """Return the cases in the order of the data."""
        return evolve(self, keys=[*self.passes.rows])

    def case(self, at: int) -> SubjectInRun:
        """Return the case number *at*."""
        return SubjectInRun.of(self.ledger, self.keys[at][1], self.start)

    def place_of(self, subject_id: str) -> int:
        """Return the number of the case of a subject.

        :raises ConfigError: if the run has not judged it.
        """
        for at, (_, id_) in enumerate(self.keys):
            if id_ == subject_id:
                return at
        raise ConfigError(f"run {self.start.run_id} has not judged {subject_id!r}")


def _values(event: Event) -> Mapping[str, float]:
    """Return the value of each label in a verdict or a record."""
    payload: Mapping[str, Any] = event.payload
    if event.type == RECORD_COMPLETED:
        scores = (payload.get("metrics") or {}).get("scores") or {}
        return {label: score for label, score in scores.items() if score is not None}
    label, value = str(payload["judge"]), value_of(payload)
    return (metric_values(payload) if label == METRICS else {}) | ({} if value is None else {label: value})


def browse(ledger: Ledger, run_id: str, subject_id: str | None) -> None:
    """Show the cases of the run on the terminal, the worst first, from the subject *subject_id* if it is given.

    Without a terminal, print that subject, or the cases that did not pass.
    """
    stream = terminal(sys.stdout)
    if stream is None or not sys.stdin.isatty():
        cases = RunCases.of(ledger, run_id, subject_id)
        print_cases(*((cases.worst_first(), None) if subject_id is None else (cases, 0)))
        return
    cases = RunCases.of(ledger, run_id).worst_first()
    raw = stream.stream
    screen = Browser(cases, 0 if subject_id is None else cases.place_of(subject_id))
    raw.write(_FULL)
    try:
        while True:
            screen.fit(Size(width_of(raw), shutil.get_terminal_size().lines))
            raw.write(_CLEAR + screen.text())
            raw.flush()
            if not screen.press(_key()):
                break
    finally:
        raw.write(_RESTORE)
        raw.flush()


def print_cases(cases: RunCases, only: int | None) -> None:
    """Print the case *only*, else the cases that did not pass, at most :data:`PRINTED`, with the number of the others."""
    failing = [at for at in range(len(cases.keys)) if cases.did_not_pass(at)]
    selected = failing[:PRINTED] if only is None else [only]
    for number, at in enumerate(selected):
        lines = case_lines(cases.case(at), shown_width())
        print_lines(["", *lines] if number else lines)
    if only is None:
        total, rest = len(cases.keys), len(failing) - len(selected)
        suffix = f"; {rest:,} more did not pass: dicast verdicts --run {cases.start.run_id}" if rest else ""
        print_lines(
            ["", Line(f"{len(failing):,} of {total:,} cases did not pass{suffix}")]
            if selected
            else [Line(f"all {total:,} cases passed")]
        )


@frozen
class Size:
    """Columns and lines of a screen."""

    width: int = 80
    height: int = 24

    @property
    def room(self) -> int:
        """The lines for the case."""
        return max(1, self.height - _BARS)


@define
class Browser:
    """The state of the screen: the case number *at*, drawn from the line *top*; *note* replaces the keys once.

    With *is_folded* only the start of a long prompt, input and context is shown.
    """

    cases: RunCases
    at: int
    size: Size = Size()
    top: int = 0
    note: str = ""
    is_worst_first: bool = True
    is_folded: bool = True
    _drawn: tuple[int, list[str], list[int]] | None = None

    def fit(self, size: Size) -> None:
        """Take the *size* of the screen, which the user may change."""
        if size != self.size:
            self.size, self._drawn = size, None

    def text(self) -> str:
        """Return the screen: a part of the case, its place among the cases, and the keys."""
        lines, _ = self._lines()
        width = self.size.width - 1
        note = wrap(one_line(self.note), width, break_on_hyphens=False) or [HELP[:width]]  # an address is cut nowhere
        room = max(1, self.size.room - len(note) + 1)
        self.top = max(0, min(self.top, len(lines) - room))
        window = lines[self.top : self.top + room]
        window += [""] * (room - len(window))
        kind, subject_id = self.cases.keys[self.at]
        state = "did not pass" if self.cases.did_not_pass(self.at) else "passed"
        last = min(len(lines), self.top + room)
        place = f"case {self.at + 1:,} of {len(self.cases.keys):,}, {state}: {kind} {short_name(subject_id)}  lines {self.top + 1} to {last} of {len(lines)}"
        bars = [one_line(place)[:width], *note]
        self.note = ""
        return "\n".join([*window, *bars])

    def _lines(self) -> tuple[list[str], list[int]]:
        """Return the drawn lines of the case, and the lines at which labels start."""
        if self._drawn is None or self._drawn[0] != self.at:
            lines: list[str] = []
            labels: list[int] = []
            case = self.cases.case(self.at)
            for number, (text, label) in enumerate(case_blocks(case, self.size.width, is_folded=self.is_folded)):
                if number == 1 and (results := result_block(case, self.size.width)):
                    lines += ["", *results]
                if label is not None:
                    labels.append(len(lines))
                lines += drawn(text, self.size.width).rstrip("\n").split("\n") if any(text) else text
            self._drawn = self.at, lines, labels
        return self._drawn[1], self._drawn[2]

    def press(self, key: str) -> bool:
        """Change the state by *key*; return False if the key ends the program."""
        moves: dict[str, Callable[[], Iterator[int]]] = {
            "n": lambda: iter(range(self.at + 1, len(self.cases.keys))),
            "p": lambda: iter(range(self.at - 1, -1, -1)),
            "f": lambda: filter(self.cases.did_not_pass, range(self.at + 1, len(self.cases.keys))),
            "F": lambda: filter(self.cases.did_not_pass, range(self.at - 1, -1, -1)),
        }
        scrolls = {_DOWN: self.size.room - 1, _UP: 1 - self.size.room, _LINE_DOWN: 1, _LINE_UP: -1}
        if key in _END:
            return False
        if key in moves:
            self._go(next(moves[key](), None), "that did not pass " if key in "fF" else "")
        elif key == "w":
            self._change_order()
        elif key == "e":
            self.is_folded, self._drawn = not self.is_folded, None
        elif key == "l":
            self._next_label()
        elif key == "o":
            self._open()
        else:
            self.top += next((lines for keys, lines in scrolls.items() if key in keys), 0)
        return True

    def _go(self, at: int | None, kind: str) -> None:
        if at is None:
            self.note = f"there is no further case {kind}in this direction"
        else:
            self.at, self.top = at, 0

    def _change_order(self) -> None:
        """Change between the worst case first and the order of the data; the case stays."""
        key = self.cases.keys[self.at]
        self.is_worst_first = not self.is_worst_first
        self.cases = self.cases.worst_first() if self.is_worst_first else self.cases.in_order()
        self.at, self._drawn = self.cases.keys.index(key), None
        worst = f"worst first, by {', '.join(self.cases.labels)}"
        self.note = f"order: {worst if self.is_worst_first else 'as in the data'}"

    def _next_label(self) -> None:
        _, labels = self._lines()
        following = [line for line in labels if line > self.top] or labels[:1]
        if following:
            self.top = following[0]
        else:
            self.note = "no label has judged this case"

    def _open(self) -> None:
        report = report_of(self.cases.ledger, self.cases.start.run_id)
        if report is None:
            self.note = f"the run has no report; {_how_to_report(self.cases.start.run_id)}"
            return
        address = row_address(report, *self.cases.keys[self.at])
        self.note = f"opened {report}" if open_page(address) else f"no browser could be opened: {address}"


def _how_to_report(run_id: str) -> str:
    """Return the command that writes the report of a run; first the command that installs the extra, if it is missing."""
    from .._kernel.cli.group import dicast  # the group imports this module

    if dicast.get_command(click.Context(dicast), "report") is not None:
        return f"dicast report {run_id} writes one"
    from ..toolkit.installing import how_to_install

    return f"dicast report needs an extra: {how_to_install('report')}"


def _key() -> str:
    """Return the next key; the end of the input ends the program."""
    try:
        return click.getchar()
    except EOFError:
        return _END[0]
