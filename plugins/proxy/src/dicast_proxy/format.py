"""Is the output there, and is it JSON?"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import orjson

from dicast import Score, Subject
from dicast.toolkit.json_values import MISSING, check_field, locate

_PASSED = Score(1.0)
_EMPTY = Score(0.0, details="the output is empty", signals={"non_empty": False})


@attrs.frozen
class Format:
    """1 if the output has content and, on request, is JSON; else 0.

    An object or list is empty if none of its values has content; blank text and null are no content. With
    ``require_json`` text must parse as JSON; an object is JSON already, but a text in it that starts like JSON must parse.

    :param require_non_empty: 0 for an output without content.
    :param require_json: 0 for text that is not JSON. ``require_valid_json`` is another name of this option.
    :param field: check only this place in the output, a dotted path (``steps.0.code``) or a JSON pointer
        (``/steps/0/code``); text is read as JSON to get there. A missing field is empty.
    """

    name = "format"
    tier = "proxy"
    needs_output = "always"

    require_non_empty: bool = True
    require_json: bool = attrs.field(default=False, metadata={"keys": ("require_json", "require_valid_json")})
    field: str | None = attrs.field(default=None, validator=check_field)

    def score(self, subject: Subject) -> Score:
        """Look at the output of *subject*, or at its field."""
        value = subject.output if self.field is None else locate(subject.output, self.field)
        if value is MISSING and (self.require_non_empty or self.require_json):
            return Score(0.0, details=f"the output has no field {self.field!r}", signals=self._signals(False, False))
        if self.require_non_empty and not _has_content(value):
            return _EMPTY
        problem = _json_problem(value) if self.require_json else None
        if problem:
            return Score(0.0, details=f"cannot be read as JSON: {problem}", signals=self._signals(True, False))
        return _PASSED

    def _signals(self, non_empty: bool, json: bool) -> dict[str, object]:
        """Return the results of the requested checks, for a subject that did not pass them all."""
        return {
            **({"non_empty": non_empty} if self.require_non_empty else {}),
            **({"json": json} if self.require_json else {}),
        }


def _has_content(value: object) -> bool:
    if isinstance(value, str):
        return bool(value) and not value.isspace()
    if isinstance(value, Mapping):
        return any(_is_content(item) for item in value.values())
    if isinstance(value, list | tuple):
        return any(_is_content(item) for item in value)
    return value is not None


def _is_content(item: object) -> bool:
    return item is not None and not (isinstance(item, str) and not item.strip())


def _json_problem(value: object) -> str | None:
    if value is None:
        return "there is no output"
    if isinstance(value, str):
        return _parse_problem(value)
    if isinstance(value, Mapping):
        like_json = ((key, item) for key, item in value.items() if _starts_like_json(item))
        return next((f"in {key!r}, {problem}" for key, item in like_json if (problem := _parse_problem(item))), None)
    return None


def _starts_like_json(item: object) -> bool:
    return isinstance(item, str) and item.lstrip().startswith(("{", "["))


def _parse_problem(text: str) -> str | None:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return str(error)
    return None
