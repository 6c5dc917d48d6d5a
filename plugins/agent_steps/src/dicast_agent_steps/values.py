"""Values of an output, and their short form in messages."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import orjson

from dicast import Subject
from dicast.toolkit.json_values import MISSING, locate

_MAX_SHOWN = 40


@attrs.frozen
class Record:
    """The checked object. If it could not be read, it has no values and *problem* is the reason."""

    values: Mapping[str, object]
    problem: str = ""

    @classmethod
    def of(cls, subject: Subject, field: str | None, bare_list: str | None = None) -> Record:
        """Return the output of *subject*, or the object at *field* in it; text is parsed as JSON.

        A plain list counts as an object with the list under the key *bare_list*.
        """
        value = subject.output if field is None else locate(subject.output, field)
        where = "the output" if field is None else f"the output's field {field!r}"
        if value is MISSING:
            return cls({}, f"the output has no field {field!r}")
        try:
            value = parsed(value)
        except orjson.JSONDecodeError as error:
            return cls({}, f"{where} is text that is not JSON: {error}")
        if bare_list is not None and isinstance(value, list | tuple):
            return cls({bare_list: value})
        return cls(value) if isinstance(value, Mapping) else cls({}, f"{where} is {shorten(value)}, not an object")


def parsed(value: object) -> object:
    """Return *value*; a text is parsed as JSON.

    :raises orjson.JSONDecodeError: if a text is not JSON.
    """
    return orjson.loads(value) if isinstance(value, str) else value


def shorten(value: object) -> str:
    """Return a short form of *value* for a message; the content of lists and objects is left out."""
    if isinstance(value, str):
        return repr(value if len(value) <= _MAX_SHOWN else f"{value[:_MAX_SHOWN]}…")
    if value is None or isinstance(value, bool):
        return orjson.dumps(value).decode()
    if isinstance(value, int | float):
        return str(value) if isinstance(value, float) or abs(value) < 10**20 else "a huge number"
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else type(value).__name__
