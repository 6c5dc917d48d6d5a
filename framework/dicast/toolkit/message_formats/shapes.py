"""Unknown and wrong shapes of a record, collected while it is read."""

from __future__ import annotations

from collections import Counter
from typing import NoReturn

import attrs

from dicast import DataError, Problem, nearest

from ..parts import UnknownPart
from ..roles import ROLES

_EXCERPT = 80


@attrs.define
class Shapes:
    """Shapes that a record has.

    With *is_marked* an unknown role, part or item becomes a marker and is counted in *marked*; else it is one of the *problems*.
    *dialects* has the names of the dialects that were recognized; a plain text belongs to no dialect.
    """

    is_marked: bool = False
    marked: Counter[str] = attrs.field(factory=Counter)
    problems: list[Problem] = attrs.field(factory=list)
    dialects: set[str] = attrs.field(factory=set)

    def unknown(self, kind: str, name: object, path: str, names: tuple[str, ...] = (), why: str = "") -> UnknownPart:
        """Return the marker of an unknown *kind* of value at *path*; *names* are the names of that kind, *why* is added to the problem."""
        text = name if isinstance(name, str) else repr(name)
        if self.is_marked:
            self.marked[f"{kind} {text:.{_EXCERPT}}"] += 1
        else:
            value = repr(name)
            short = value if len(value) <= _EXCERPT else f"{value[:_EXCERPT]}…"
            hint = nearest(text, names)
            wrong = f"unknown {kind} {short}{why} (unknown: mark reads it as a marker)"
            self.problems.append(Problem(wrong, path=path, value=name, hint=hint))
        return UnknownPart(kind, text)

    def unknown_role(self, name: object, path: str) -> UnknownPart:
        """Return the marker of an unknown role."""
        return self.unknown("role", name, f"{path}.role", tuple(ROLES))

    def finish(self) -> None:
        """Raise the problems.

        :raises DataError: (without a line) if there are any.
        """
        if self.problems:
            raise DataError(self.problems)


def refuse(what: str, path: str) -> NoReturn:
    """Refuse a value that no dialect has at *path*.

    :raises DataError: always, without a line.
    """
    raise DataError(Problem(what, path=path))
