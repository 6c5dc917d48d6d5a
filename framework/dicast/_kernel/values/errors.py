"""Errors that dicast raises on purpose.

DicastError
├── RequestError        the request was wrong; nothing was judged, nothing spent (exit 2)
│   ├── ConfigError     in the pipeline file, an override or an option
│   ├── DataError       in the input data
│   └── PluginError     in an installed plugin: broken, blocked, duplicate, missing
├── LedgerError         the ledger could not be read or written
│   └── LedgerRefused   the file is not a ledger, is newer, locked or absent (exit 2)
├── AccessRefused       a model's endpoint answered 401, 403 or 404; the run ends (exit 2 or 3)
│   └── EndpointUnreachable  too many calls in a row got no connection; the run ends (exit 2 or 3)
├── Interrupted         Ctrl-C or SIGTERM (exit 130)
└── ScoringError        raised inside a component's call, becomes a counted Failure
    ├── InvalidScore    a score outside [0, 1], or no score at all
    ├── UnknownName     a failure kind, a judge kind or a basis that does not exist
    └── InvalidCost     a negative, non-finite or binary-float amount of money
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..classes import frozen


@frozen
class Problem:
    """A problem of a request, with its fix.

    *line* and *column* count from 1; *path* addresses the value (``metrics[1].forbiden``); *hint* is the nearest valid
    name, or None.

    :param message: the problem and its fix.
    :param file: the file, or None.
    :param value: the wrong value, or None.
    """

    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    path: str | None = None
    value: object = None
    hint: str | None = None

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        hint = f", did you mean {self.hint!r}?" if self.hint else ""
        path = f" ({self.path})" if self.path else ""
        return f"{place}{': ' if place else ''}{self.message}{hint}{path}"


class DicastError(Exception):
    """Base class of all errors that dicast raises on purpose."""


class RequestError(DicastError):
    """The request was wrong. ``problems`` has every :class:`Problem` of the request, not only the first.

    :param problems: a message, a problem, or a list of problems.
    """

    def __init__(self, problems: str | Problem | Iterable[Problem]) -> None:
        if isinstance(problems, str):
            problems = Problem(problems)
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class ConfigError(RequestError):
    """The pipeline file, an override or an option is wrong."""


class DataError(RequestError):
    """The input data is wrong: unreadable, malformed, or with duplicate ids."""


class PluginError(RequestError):
    """An installed plugin is broken, blocked or offered twice, or a plugin is missing."""


class LedgerError(DicastError):
    """The ledger could not be read or written."""


class LedgerRefused(LedgerError):
    """The file is not a ledger, comes from a newer version, is locked by another process, or does not exist."""


class Interrupted(DicastError):
    """The user stopped the run; recorded verdicts stay in the ledger."""


class ScoringError(DicastError):
    """A failure of a component; the kernel turns it into a :class:`~dicast.Failure`."""


class InvalidScore(ScoringError, ValueError):
    """A score or confidence that is not a finite number in [0, 1]."""


class InvalidCost(ScoringError, ValueError):
    """An amount of money that is negative, not finite, or a binary float."""


class UnknownName(ScoringError):
    """A name outside a fixed list, such as an unknown kind of failure.

    :param noun: the noun for the names, such as ``failure kind``.
    """

    def __init__(self, noun: str, name: object, names: Sequence[str]) -> None:
        from difflib import get_close_matches  # needed for an unknown name alone

        near = get_close_matches(str(name), names, 1)
        hint = f", did you mean {near[0]!r}?" if near else f"; one of {', '.join(names)}"
        super().__init__(f"unknown {noun} {name!r:.100}{hint}")
