"""Mapping of the columns of a row to the parts of a subject."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal

import attrs
import orjson

from dicast import ConfigError, DataError, Problem, Trail, identifier, nearest
from dicast.toolkit.json_values import MISSING, lookup, read_json
from dicast.toolkit.surrogates import with_lone_surrogates

from .failed import ERROR, WhyFailed
from .ids import columns_in, filled, is_template, template_fault
from .row_paths import absent, drop

PARTS = ("id", "input", "output", "reference", "session_id", "context")
FIELDS = (*PARTS, ERROR)

_CONTEXT, _COLUMNS = 5, 10
_FILLED = "\0id"
"""The column that holds an id from a template while a row is read; no file can have a column with this name."""
_NO_TRAIL = Trail()
_NO_COLUMNS: Mapping[str, object] = {}

Parts = tuple[Any, ...]
"""The arguments of a Subject, in their order."""

Take = Callable[[int, dict[str, Any]], Parts]


@attrs.frozen
class Column:
    """A column, and how its cells are read.

    :param column: its name, or a dotted path.
    :param json: read a text there as JSON: a list or an object is one then. A blank text has no value.
    :param media: the cells are images, sounds or files: each is a path, an ``http(s)`` address or a data URL, or a list of these. The
        field may have any name then, and templates and judges know the media by this name.
    :param folder: the folder that the paths of *media* lead into; relative to the folder of the data file, which is the default.
    """

    column: str
    json: bool = False
    media: Literal["image", "audio", "file"] | None = None
    folder: str | None = None


Fields = Mapping[str, str | Column]
"""The option ``fields``: the column of each part of a subject."""


def paths_of(fields: Fields) -> dict[str, str]:
    """Return the column of each of *fields*."""
    return {name: column if isinstance(column, str) else column.column for name, column in fields.items()}


def named_paths(fields: Fields) -> Iterator[tuple[str, str]]:
    """Yield each path into a row that *fields* name, with its field; a template of ids names several."""
    for name, path in paths_of(fields).items():
        if name == "id" and is_template(path):
            yield from ((name, column) for column in columns_in(path))
        else:
            yield name, path


def check_fields(fields: Fields) -> None:
    """Refuse keys that are neither parts of a subject nor media, and empty paths.

    :raises ConfigError: naming all of them.
    """
    problems = [
        Problem(
            f"unknown field {name!r}; a row has {', '.join(FIELDS)}, and media: {{column: …, media: image}}",
            path=f"fields.{name}",
            hint=nearest(name, FIELDS),
        )
        for name, column in fields.items()
        if name not in FIELDS and not (isinstance(column, Column) and column.media)
    ]
    problems += [
        Problem(f"the path of the field {name!r} is empty; name a column", path=f"fields.{name}", value=path)
        for name, path in paths_of(fields).items()
        if not path
    ]
    problems += [
        Problem(f"the field {name!r} is no JSON; leave json out", path=f"fields.{name}.json")
        for name in _json_fields(fields)
        if name in ("id", "session_id", ERROR)
    ]
    problems += [
        Problem(f"the field {name!r} is no media; leave media out", path=f"fields.{name}.media")
        for name in media_columns(fields)
        if name in ("id", "session_id", "context", ERROR)
    ]
    problems += [
        Problem("folder is for columns with media", path=f"fields.{name}.folder", value=column.folder)
        for name, column in fields.items()
        if isinstance(column, Column) and column.folder is not None and column.media is None
    ]
    template = paths_of(fields).get("id", "")
    if is_template(template) and (wrong := template_fault(template)):
        problems.append(Problem(wrong, path="fields.id", value=template))
    if problems:
        raise ConfigError(problems)


def _json_fields(fields: Fields) -> list[str]:
    """Return the fields whose texts are read as JSON, without fields of media, which parse their own texts."""
    return [
        name for name, column in fields.items() if isinstance(column, Column) and column.json and column.media is None
    ]


def media_columns(fields: Fields) -> dict[str, Column]:
    """Return the columns of media, by the names of their fields."""
    return {name: column for name, column in fields.items() if isinstance(column, Column) and column.media is not None}


def taker(kind: str, fields: Fields, *, failed: bool = False, folder: Path | None = None) -> Take:
    """Return the function ``(line, row) -> parts``, which changes the row, so each row can be passed to it once.

    Paths of media are relative to *folder*, the folder of the data file. The function raises DataError (without file and line) if a path in
    *fields* is not in the row, or if an id or a session id is neither a string nor a number. A *failed* record needs only its id.
    """
    given = paths_of(fields)
    if is_template(template := given.get("id", "")):
        return _templated(taker(kind, {**fields, "id": _FILLED}, failed=failed, folder=folder), template)
    if (media := media_columns(fields)) and not failed:
        parts = {name: source for name, source in fields.items() if name in FIELDS}
        columns: Fields = {name: column if name not in media else given[name] for name, column in parts.items()}
        return _with_media(taker(kind, columns), media, set(paths_of(columns).values()), folder)
    paths = {name: given.get(name, name) for name in PARTS}
    given.pop(ERROR, None)
    if failed:
        return _nested(kind, paths, {name: path for name, path in given.items() if name == "id"})
    plain = len(set(paths.values())) == len(paths) and not any("." in path for path in paths.values())
    take = _flat(kind, paths, given) if plain else _nested(kind, paths, given)
    parsed = {paths[name]: name for name in _json_fields(fields)}
    return _parsing(take, parsed) if parsed else take


def example_taker(kind: str, fields: Fields, folder: Path | None = None) -> Take:
    """Return the function that takes the parts of a dataset's record, which may have any fields. Its ``id`` counts only if *fields* names it.

    The whole record is in the context, as ``example``.
    """
    take = taker(kind, fields, folder=folder)

    def take_whole(line: int, record: dict[str, Any]) -> Parts:
        row = deepcopy(record)
        if "id" not in fields:
            row.pop("id", None)
        parts = take(line, row)
        return *parts[:_CONTEXT], {**parts[_CONTEXT], "example": record}, *parts[_CONTEXT + 1 :]

    return take_whole


def media_in(parts: Parts, fields: Fields) -> Iterator[str]:
    """Yield the content of each of the media in *parts*, in base64."""
    for name in media_columns(fields):
        value = _media_value(parts, name)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Mapping) and isinstance(data := item.get("data"), str):
                yield data


def blank_media(parts: Parts, fields: Fields) -> Iterator[str]:
    """Yield the fields of media that have no value in *parts*."""
    for name in media_columns(fields):
        if _media_value(parts, name) in (None, [], ()):
            yield name


def _media_value(parts: Parts, name: str) -> Any:
    return parts[PARTS.index(name) + 1] if name in PARTS else parts[_CONTEXT].get(name)


def _with_media(take: Take, media: Mapping[str, Column], other_columns: Collection[str], folder: Path | None) -> Take:
    """Read the columns of *media*, and put them into the parts that *take* returns.

    A column outside *other_columns* becomes a value of the context under its field's name. Its cells stay under the column's name, except
    data URLs.
    """
    from .media import MediaColumn, read_columns  # imported late: few sources have columns of media

    columns = {
        name: MediaColumn(column.column, column.media or "file", column.json, _inside(folder, column.folder))
        for name, column in media.items()
    }

    def read(line: int, row: dict[str, Any]) -> Parts:
        values, cells = read_columns(columns, row)
        for path in cells:
            if path not in other_columns:
                drop(row, path)
        parts = [*take(line, row)]
        for name, value in values.items():
            if name in PARTS:
                parts[PARTS.index(name) + 1] = value
        named = {name: value for name, value in values.items() if name not in PARTS and value is not None}
        parts[_CONTEXT] = {**parts[_CONTEXT], **named}
        plain_cells = {path: cell for path, cell in cells.items() if path not in media}
        parts[_COLUMNS] = {**parts[_COLUMNS], **plain_cells}
        return tuple(parts)

    return read


def _inside(folder: Path | None, name: str | None) -> Path | None:
    """Return the folder *name*, which is relative to *folder*."""
    return folder if name is None else (Path() if folder is None else folder) / name


def _templated(take: Take, template: str) -> Take:
    """Name each row by the id that *template* makes before *take*."""

    def named(line: int, row: dict[str, Any]) -> Parts:
        row[_FILLED] = filled(template, line, row)
        parts = [*take(line, row)]
        parts[_COLUMNS] = {name: value for name, value in parts[_COLUMNS].items() if name != _FILLED}
        return tuple(parts)

    return named


def _parsing(take: Take, parsed: Mapping[str, str]) -> Take:
    """Read the text in the columns *parsed* as JSON before *take*; the columns keep it as it is."""

    def parse(line: int, row: dict[str, Any]) -> Parts:
        texts = {path: lookup(row, path) for path in parsed}
        values = {parsed[path]: _json(text, path) for path, text in texts.items() if isinstance(text, str)}
        parts = [*take(line, row)]
        for name, value in values.items():
            if name == "context":
                context = {key: part for key, part in parts[_CONTEXT].items() if key != "context"}
                parts[_CONTEXT] = context if value is None else _merged(value, context)
            else:
                parts[PARTS.index(name) + 1] = value
        return tuple(parts)

    return parse


def json_failure(fields: Fields) -> WhyFailed | None:
    """Return the function that finds lone surrogates in texts that *fields* read as JSON; None if they read none."""
    paths = [path for name, path in paths_of(fields).items() if name in _json_fields(fields)]

    def why(row: Mapping[str, Any]) -> str | None:
        texts = ((path, text) for path in paths if isinstance(text := lookup(row, path), str) and "\\u" in text)
        broken = ((path, with_lone_surrogates(text.encode())) for path, text in texts)
        return next((f"in the JSON of {path!r}, {record.why}" for path, record in broken if record is not None), None)

    return why if paths else None


def _json(text: str, path: str) -> Any:
    """Return the JSON value of *text*, or None for a blank text.

    :raises DataError: (without file and line) if it is not JSON.
    """
    try:
        return read_json(text) if text.strip() else None
    except orjson.JSONDecodeError as error:
        wrong = f"the column {path!r} is not JSON: {error}; write JSON there, or leave json out of fields"
        raise DataError(Problem(wrong, path=path, value=text)) from error


def _flat(kind: str, paths: Mapping[str, str], fields: Mapping[str, str]) -> Take:
    """Return the function for fields that are all columns: it needs no search and no copy."""
    id_, input_, output_, reference_, session_, context_ = (paths[name] for name in PARTS)
    required = frozenset(fields.values())
    renamed = [path for name, path in paths.items() if path != name]

    def take(line: int, row: dict[str, Any]) -> Parts:
        if not required <= row.keys():
            raise absent(next(path for path in fields.values() if path not in row), row)
        columns = {path: row[path] for path in renamed} if renamed else _NO_COLUMNS
        pop = row.pop
        name, session, context = pop(id_, line), pop(session_, None), pop(context_, None)
        if type(name) is not str or not name:
            name = identifier(name, id_)
        if session is not None and (type(session) is not str or not session):
            session = _session(session, session_)
        values = pop(input_, None), pop(output_, None), pop(reference_, None)
        rest = row if context is None else _merged(context, row)
        return kind, name, *values, rest, (), session, None, _NO_TRAIL, columns

    return take


def _nested(kind: str, paths: Mapping[str, str], fields: Mapping[str, str]) -> Take:
    """Return the function for fields that lie inside columns or share a column: it looks up all fields, then removes them from the row."""
    take = _flat(kind, {name: name for name in PARTS}, {})

    def rename(line: int, row: dict[str, Any]) -> Parts:
        values = {name: lookup(row, path) for name, path in paths.items()}
        for name, path in fields.items():
            if values[name] is MISSING:
                raise absent(path, row)
        columns = _mapped_columns(row, paths)
        for path in paths.values():
            drop(row, path)
        present = {name: value for name, value in values.items() if value is not MISSING}
        try:
            *parts, context, events, session, parent, trail, _ = take(line, present)
        except DataError as error:
            raise DataError(_moved(problem, paths) for problem in error.problems) from error
        return *parts, {**context, **row}, events, session, parent, trail, columns

    return rename


def _mapped_columns(row: Mapping[str, Any], paths: Mapping[str, str]) -> dict[str, Any]:
    """Return the whole columns of *row* that *paths* with other names lead into."""
    mapped = [path for name, path in paths.items() if path != name]
    names = dict.fromkeys(path if path in row else path.partition(".")[0] for path in mapped)
    return {name: row[name] for name in names if name in row}


def _moved(problem: Problem, paths: Mapping[str, str]) -> Problem:
    """Return the same problem at the path that the user wrote for the field."""
    return Problem(problem.message, path=paths.get(problem.path or "", problem.path), value=problem.value)


def _merged(context: object, rest: dict[str, Any]) -> dict[str, Any]:
    return {**context, **rest} if isinstance(context, dict) else {"context": context, **rest}


def _session(value: object, path: str) -> str | None:
    if value == "":
        return None
    if isinstance(value, bool):
        raise DataError(Problem("a session id is a string or a number, not a truth value", path=path, value=value))
    return identifier(value, path)
