"""Workflow commands that GitHub Actions shows beside a file: ``::error file=…,line=…::message``.

Their format and its escapes are those of the Actions toolkit
(https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import attrs

from dicast import ConfigError, Problem, one_line
from dicast.reporting import JudgedSubject, Outcome, gate_answer

Level = Literal["error", "warning", "notice"]

MOST = 10
"""How many annotations of a level GitHub shows of a step."""
_LONGEST = 1_000
"""How many characters of a message are told."""


@attrs.frozen
class Annotation:
    """A *message* beside a place in a file; *line* and *column* count from 1."""

    level: Level
    message: str
    title: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def command(self) -> str:
        """The workflow command, in one line."""
        given = {"file": self.file, "line": self.line, "col": self.column, "title": self.title}
        properties = ",".join(f"{name}={_property(value)}" for name, value in given.items() if value is not None)
        return f"::{self.level}{' ' if properties else ''}{properties}::{data(self.message)}"


def data(text: object) -> str:
    """*text* as the data of a command: percent signs and line ends escaped; what would steer a terminal is an escape of ours."""
    shown = str(text).replace("\r\n", "\n").replace("\r", "\n")
    shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
    return "%0A".join(one_line(line).replace("%", "%25") for line in shown.split("\n"))


def _property(value: object) -> str:
    """*value* as a property of a command, which also ends at a colon or a comma."""
    return data(value).replace(":", "%3A").replace(",", "%2C")


def of_run(
    done: Mapping[str, Any], failing: Sequence[tuple[JudgedSubject, Outcome]], of_failing: int, place: Place
) -> list[Annotation]:
    """What a run says: its gate where it did not pass, then the first of the subjects that did not, :data:`MOST` in all of a level."""
    title, gate = f"dicast {done['name']}", done["gate"]
    found = []
    if done["undecided"] or (gate is not None and gate["passed"] is False):
        level: Level = "warning" if done["undecided"] else "error"
        said = "undecided" if gate is None else f"gate {gate_answer(gate)}"
        message = f"{said}: {'; '.join(done['undecided'] if gate is None else gate['reasons'])}"
        found.append(Annotation(level, message, title, *place.of("gate")))
    room = MOST - sum(one.level == "warning" for one in found)
    shown = failing if of_failing <= room else failing[: room - 1]
    for subject, outcome in shown:
        section = "judges" if outcome.label in done["judges"] else "metrics"
        found.append(Annotation("warning", _words(subject, outcome), title, *place.of(section)))
    if left := of_failing - len(shown):
        more = f"{left:,} more subjects did not pass or have no verdict; the job summary has the first of them"
        found.append(Annotation("warning", more, title, *place.of("metrics")))
    return found


def _words(subject: JudgedSubject, outcome: Outcome) -> str:
    if outcome.failure is not None:
        said = f"{outcome.failure}: {outcome.reason or ''}"
    elif outcome.skipped is not None:
        said = f"skipped: {outcome.skipped}"
    else:
        said = outcome.shortfall + (f": {outcome.reason}" if outcome.reason else "")
    return f"{subject.kind} {subject.id}, {outcome.label}: {said}"


def of_problems(problems: Iterable[Problem]) -> Iterator[Annotation]:
    """What was wrong with a request, each problem at its place."""
    for problem in list(problems)[:MOST]:
        more = f" ({problem.path})" if problem.path else ""
        hint = f", did you mean {problem.hint!r}?" if problem.hint else ""
        message = f"{problem.message}{hint}{more}"
        yield Annotation("error", message, "dicast", problem.file, problem.line, problem.column)


@attrs.frozen
class Place:
    """The pipeline file, as GitHub names it, and the lines at which its sections begin."""

    file: str | None
    lines: Mapping[str, int]

    @classmethod
    def of_file(cls, path: Path, workspace: Path | None) -> Place:
        """Look for the sections in the file at *path*; its name is relative to the *workspace* where it lies in it."""
        from dicast.toolkit import yaml  # only a run under GitHub Actions needs it

        if not path.is_file():
            return cls(None, {})
        root = path.resolve()
        inside = workspace is not None and root.is_relative_to(workspace.resolve())
        name = str(root.relative_to(workspace.resolve())) if inside and workspace is not None else str(path)
        try:
            node = yaml.read_yaml(path.read_bytes(), name, [])
        except (ConfigError, OSError):  # the file was changed since it was read
            return cls(name, {})
        sections = node.value if isinstance(node.value, dict) else {}
        return cls(name, {section: (child.key or child.place).line or 1 for section, child in sections.items()})

    def of(self, section: str) -> tuple[str | None, int | None]:
        """The file, and the line of *section*; the first where it has none."""
        return self.file, None if self.file is None else self.lines.get(section, 1)
