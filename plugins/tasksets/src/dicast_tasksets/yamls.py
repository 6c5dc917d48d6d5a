"""Reading YAML: the 1.2 core schema, where every value remembers its place."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import attrs

from dicast import DataError, Problem

from .places import Path, Place

MAX_DEPTH = 100
"""How many mappings and lists may stand inside each other."""

MAX_VALUES = 1_000_000
"""How many values a file may have."""

_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


@attrs.frozen
class Yaml:
    """What a text of YAML says: its *value*, and the *places* of its values and, apart, of their keys."""

    value: Any
    places: dict[Path, Place]
    keys: dict[Path, Place]

    def place(self, path: Path, *, key: bool = False) -> Place:
        """Where the value at *path* stands, or with *key* its key; where it is not there, its nearest ancestor."""
        if key and path in self.keys:
            return self.keys[path]
        while path not in self.places and path:
            path = path[:-1]
        return self.places.get(path, (1, 1))


def read_yaml(text: str) -> Yaml:
    """Read the only document of *text*.

    :raises DataError: without the file's name, where it is no YAML, has aliases or tags, or says something twice.
    """
    import yaml  # most task sets are JSON

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Reader(iter(yaml.parse(text.removeprefix("\ufeff"), Loader=loader))).read()
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = (mark.line + 1, mark.column + 1) if mark else (None, None)
        raise DataError(Problem(f"not YAML: {getattr(error, 'problem', None) or error}", None, *where)) from error


class _Reader:
    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events
        self._values = 0
        self._read = Yaml(None, {}, {})

    def read(self) -> Yaml:
        next(self._events)  # the stream's start
        if type(next(self._events)).__name__ == "StreamEndEvent":
            return self._read
        value = self._value(next(self._events), ())
        next(self._events)  # the document's end
        if type(second := next(self._events)).__name__ != "StreamEndEvent":
            raise _fault(second, "a second document begins here; a file has one, or is JSON lines")
        return attrs.evolve(self._read, value=value)

    def _value(self, event: Any, path: Path) -> Any:
        self._values += 1
        if self._values > MAX_VALUES or len(path) > MAX_DEPTH:
            raise _fault(event, f"more than {MAX_VALUES:,} values, or {MAX_DEPTH} levels; write JSON lines")
        if not hasattr(event, "implicit"):
            raise _fault(event, "aliases are not read; write the value out")
        if event.tag is not None and event.tag != "!":
            raise _fault(event, f"the tag {event.tag} is not read; remove it")
        self._read.places[path] = _place(event)
        if hasattr(event, "value"):
            return _scalar(event)
        return self._mapping(path) if type(event).__name__ == "MappingStartEvent" else self._list(path)

    def _list(self, path: Path) -> list[Any]:
        items: list[Any] = []
        while type(event := next(self._events)).__name__ != "SequenceEndEvent":
            items.append(self._value(event, (*path, len(items))))
        return items

    def _mapping(self, path: Path) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while type(event := next(self._events)).__name__ != "MappingEndEvent":
            key = getattr(event, "value", None)
            if key is None:
                raise _fault(event, "a key is text")
            if key in members:
                raise _fault(event, f"the key {key!r} is there twice")
            self._read.keys[*path, key] = _place(event)
            members[key] = self._value(next(self._events), (*path, key))
        return members


def _scalar(event: Any) -> Any:
    text: str = event.value
    if not event.implicit[0]:  # quoted, or a block of text
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text


def _place(event: Any) -> Place:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _fault(event: Any, message: str) -> DataError:
    return DataError(Problem(message, None, *_place(event)))
