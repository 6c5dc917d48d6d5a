"""Which columns of a row become which parts of a subject."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from dicast import MISSING, ConfigError, DataError, Failure, Problem, identifier, lookup, nearest

FIELDS = ("id", "input", "output", "reference", "session_id", "context")

ERROR = "error"
"""A field that a row has only where ``fields`` names its column: why the row failed where it was recorded."""

_CONTEXT = 5

Parts = tuple[Any, ...]
"""The first arguments of a Subject, from its kind to its session_id."""

Take = Callable[[int, dict[str, Any]], Parts]


def check_fields(fields: Mapping[str, str]) -> None:
    """Refuse keys that are no parts of a subject, and empty paths.

    :raises ConfigError: naming all of them.
    """
    problems = [
        Problem(
            f"unknown field {name!r}; a row has {', '.join((*FIELDS, ERROR))}",
            path=f"fields.{name}",
            hint=nearest(name, (*FIELDS, ERROR)),
        )
        for name in fields
        if name not in (*FIELDS, ERROR)
    ]
    problems += [
        Problem(f"the path of the field {name!r} is empty; name a column", path=f"fields.{name}", value=path)
        for name, path in fields.items()
        if not path
    ]
    if problems:
        raise ConfigError(problems)


def taker(kind: str, fields: Mapping[str, str]) -> Take:
    """Make the function ``(line, row) -> parts``; it takes the row apart, so each row can be taken once.

    It raises DataError (without file and line) when a path named in *fields* is not in the row, or when an id or a session id
    is neither a string nor a number.
    """
    fields = {name: path for name, path in fields.items() if name != ERROR}
    paths = {name: fields.get(name, name) for name in FIELDS}
    plain = len(set(paths.values())) == len(paths) and not any("." in path for path in paths.values())
    return _flat(kind, paths, fields) if plain else _nested(kind, paths, fields)


def failure_in(row: Mapping[str, Any], path: str) -> Failure | None:
    """Return the failure that *row* records at *path*; None where the column is absent, null, false or empty."""
    value = lookup(row, path)
    if value is MISSING or not value:
        return None
    texts = value if isinstance(value, list) else [value]
    return Failure("source_error", "; ".join(map(str, texts)))


def example_taker(kind: str, fields: Mapping[str, str]) -> Take:
    """The same for a record of a dataset, which may have any fields: its ``id`` counts only where *fields* says so.

    All of the record is in the context, as ``example``.
    """
    take = taker(kind, fields)

    def whole(line: int, record: dict[str, Any]) -> Parts:
        row = deepcopy(record)
        if "id" not in fields:
            row.pop("id", None)
        parts = take(line, row)
        return *parts[:_CONTEXT], {**parts[_CONTEXT], "example": record}, *parts[_CONTEXT + 1 :]

    return whole


def _flat(kind: str, paths: Mapping[str, str], fields: Mapping[str, str]) -> Take:
    """Every field is a column of its own: no searching, no copying."""
    id_, input_, output_, reference_, session_, context_ = (paths[name] for name in FIELDS)
    required = frozenset(fields.values())

    def take(line: int, row: dict[str, Any]) -> Parts:
        if not required <= row.keys():
            raise _absent(next(path for path in fields.values() if path not in row), row)
        pop = row.pop
        name, session, context = pop(id_, line), pop(session_, None), pop(context_, None)
        if type(name) is not str or not name:
            name = identifier(name, id_)
        if session is not None and (type(session) is not str or not session):
            session = _session(session, session_)
        values = pop(input_, None), pop(output_, None), pop(reference_, None)
        return kind, name, *values, row if context is None else _merged(context, row), (), session

    return take


def _nested(kind: str, paths: Mapping[str, str], fields: Mapping[str, str]) -> Take:
    """Some field lies inside a column, or two fields share one: look all up, then take what was used out of the rest."""
    take = _flat(kind, {name: name for name in FIELDS}, {})

    def rename(line: int, row: dict[str, Any]) -> Parts:
        values = {name: lookup(row, path) for name, path in paths.items()}
        for name, path in fields.items():
            if values[name] is MISSING:
                raise _absent(path, row)
        for path in paths.values():
            _drop(row, path)
        given = {name: value for name, value in values.items() if value is not MISSING}
        try:
            *parts, context, events, session = take(line, given)
        except DataError as error:
            raise DataError(_moved(problem, paths) for problem in error.problems) from error
        return *parts, {**context, **row}, events, session

    return rename


def _moved(problem: Problem, paths: Mapping[str, str]) -> Problem:
    """The same problem at the path the user gave for the field."""
    return Problem(problem.message, path=paths.get(problem.path or "", problem.path), value=problem.value)


def _drop(row: dict[str, Any], path: str) -> None:
    """Take the value at *path* out of *row*, and the objects that it leaves empty."""
    if path in row:
        del row[path]
        return
    head, _, rest = path.partition(".")
    inner = row.get(head)
    if rest and isinstance(inner, dict):
        _drop(inner, rest)
        if not inner:
            del row[head]


def _merged(context: object, rest: dict[str, Any]) -> dict[str, Any]:
    return {**context, **rest} if isinstance(context, dict) else {"context": context, **rest}


def _session(value: object, path: str) -> str | None:
    if value == "":
        return None
    if isinstance(value, bool):
        raise DataError(Problem("a session id is a string or a number, not a truth value", path=path, value=value))
    return identifier(value, path)


def _absent(path: str, row: Mapping[str, Any]) -> DataError:
    names = ", ".join(list(row)[:10]) or "nothing"
    return DataError(Problem(f"the row has no {path!r}; it has {names}", path=path, hint=nearest(path, row)))
