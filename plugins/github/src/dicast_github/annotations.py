"""Workflow commands that GitHub Actions shows next to a line of a file: ``::error file=…,line=…::message``.

The source of the format and its escapes is the Actions toolkit
(https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import attrs

from dicast import ConfigError, Problem
from dicast.reporting import JudgedSubject, Outcome, run_answer
from dicast.toolkit.files import read_bytes
from dicast.toolkit.printable import first_words, one_line

Level = Literal["error", "warning", "notice"]

MOST = 10
"""Maximum number of annotations of a level that GitHub shows for a step."""
_LONGEST = 1_000
"""Maximum number of characters of a message."""


@attrs.frozen
class Annotation:
    """A *message* next to a place in a file; *line* and *column* count from 1."""

    level: Level
    message: str
    title: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def command(self) -> str:
        """Return the annotation as a workflow command in a single line."""
        fields = {"file": self.file, "line": self.line, "col": self.column, "title": self.title}
        properties = ",".join(f"{name}={_property(value)}" for name, value in fields.items() if value is not None)
        return f"::{self.level}{' ' if properties else ''}{properties}::{data(self.message)}"


def data(text: object) -> str:
    """Return *text* as the data of a command: percent signs, line ends and control characters are escaped."""
    message = str(text).replace("\r\n", "\n").replace("\r", "\n")
    message = message if len(message) <= _LONGEST else f"{first_words(message, _LONGEST)}…"
    return "%0A".join(one_line(line).replace("%", "%25") for line in message.split("\n"))


def _property(value: object) -> str:
    """Return *value* as a property of a command, in which colons and commas are escaped too."""
    return data(value).replace(":", "%3A").replace(",", "%2C")


def of_run(
    done: Mapping[str, Any], failing: Sequence[tuple[JudgedSubject, Outcome]], of_failing: int, place: Place
) -> list[Annotation]:
    """Return annotations for a gate and subjects that did not pass, at most :data:`MOST` of a level.

    A gate that passed has one if a clause was not decided, such as a comparison with a baseline that does not fit.
    """
    title, gate = f"dicast {done['name']}", done["gate"]
    annotations = []
    has_passed = gate is not None and gate["passed"] is True
    if done["undecided"] or (gate is not None and gate["reasons"]):
        level: Level = "warning" if has_passed and not done["undecided"] else "error"
        answer = run_answer(done)
        head = answer.removesuffix(", no gate") if gate is None else f"gate {answer}"
        message = f"{head}: {'; '.join(done['undecided'] if gate is None else gate['reasons'])}"
        annotations.append(Annotation(level, message, title, *place.of("gate")))
    limit = MOST - sum(annotation.level == "warning" for annotation in annotations)
    shown_first = failing if of_failing <= limit else failing[: limit - 1]
    for subject, outcome in shown_first:
        section = "judges" if outcome.label in done["judges"] else "metrics"
        annotations.append(Annotation("warning", _message(subject, outcome), title, *place.of(section)))
    if rest := of_failing - len(shown_first):
        message = f"{rest:,} more subjects did not pass or have no verdict; the job summary has the first of them"
        annotations.append(Annotation("warning", message, title, *place.of("metrics")))
    return annotations


def _message(subject: JudgedSubject, outcome: Outcome) -> str:
    if outcome.failure is not None:
        result = ": ".join(filter(None, (outcome.failure_words, outcome.reason)))
    elif outcome.skipped is not None:
        result = f"skipped: {outcome.skipped}"
    else:
        result = outcome.shortfall + (f": {outcome.reason}" if outcome.reason else "")
    return f"{subject.kind} {subject.id}, {outcome.label}: {result}"


def of_problems(problems: Iterable[Problem]) -> Iterator[Annotation]:
    """Yield an annotation for each problem of a request, at its place."""
    for problem in list(problems)[:MOST]:
        path = f" ({problem.path})" if problem.path else ""
        hint = f", did you mean {problem.hint!r}?" if problem.hint else ""
        message = f"{problem.message}{hint}{path}"
        yield Annotation("error", message, "dicast", problem.file, problem.line, problem.column)


@attrs.frozen
class Place:
    """The pipeline *file* by its name on GitHub, and the file and the first line of each of its *sections*, which may be in an included file."""

    file: str | None
    sections: Mapping[str, tuple[str, int]]

    @classmethod
    def of_file(cls, path: Path, workspace: Path | None) -> Place:
        """Return the sections of the file at *path* and of its includes. A file in the *workspace* has its name relative to it."""
        return cls(_shown_name(path, workspace), _sections(path, workspace, ())) if path.is_file() else cls(None, {})

    def of(self, section: str) -> tuple[str | None, int | None]:
        """Return the file and the line of *section*; 1 if the file has no such section."""
        return (None, None) if self.file is None else self.sections.get(section, (self.file, 1))


def _shown_name(path: Path, workspace: Path | None) -> str:
    """Return the name of *path* in the *workspace*; the path itself elsewhere."""
    root = None if workspace is None else workspace.resolve()
    file = path.resolve()
    return str(file.relative_to(root)) if root is not None and file.is_relative_to(root) else str(path)


def _sections(path: Path, workspace: Path | None, chain: tuple[Path, ...]) -> dict[str, tuple[str, int]]:
    """Return the file and the line of each section of the pipeline file at *path*; the sections of later files replace those of earlier ones.

    *chain* are the files that include it.
    """
    from dicast.toolkit import yaml  # only a run under GitHub Actions needs it

    name = _shown_name(path, workspace)
    try:
        node = yaml.read_yaml(read_bytes(path), name, [])
    except (ConfigError, OSError):  # the file was changed since it was read, or a variable is in its name
        return {}
    members = dict(node.value) if isinstance(node.value, dict) else {}
    include, sections = members.pop("include", None), dict[str, tuple[str, int]]()
    files = [] if include is None else include.value if isinstance(include.value, list) else [include]
    for item in files:
        if isinstance(item.value, str) and (target := (path.parent / item.value).resolve()) not in chain:
            sections |= _sections(target, workspace, (*chain, target))
    return sections | {section: (name, (child.key or child.place).line or 1) for section, child in members.items()}
