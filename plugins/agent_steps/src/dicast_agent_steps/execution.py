"""Did carrying out a step bring something to apply?"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import orjson

from dicast import Score, Subject, check_field

from .checks import Check, absent, grade, text_problem
from .values import Record, parsed, shown

_REASONING_BYTES = 20


@attrs.frozen
class SubtaskExecution:
    """How usable the result of a step is: .33 for a result, .33 for an edit, a command or content in it, .34 for reasoning.

    ``result_valid``: ``result`` is there, and if it is text it is JSON; null is no result. ``edit_or_command_present``: the
    result is an object with ``old_string`` and ``new_string``, both text, or with a ``command``, text or a list of words; or
    it is JSON text of a text, such as what was read. ``reasoning_substantive``: ``reasoning`` is text of 20 bytes of UTF-8,
    blanks around it not counted.

    :param field: where in the output the object with ``result`` and ``reasoning`` stands: a dotted path (``steps.0``) or a
        JSON pointer (``/steps/0``); text is read as JSON to get there. By default the output is it.
    """

    tier = "proxy"
    needs_output = "always"

    field: str | None = attrs.field(default=None, validator=check_field)

    def score(self, subject: Subject) -> Score:
        """Check the step in the output of *subject*."""
        record = Record.of(subject, self.field)
        values = record.values
        result, unread = _result(values)
        checks = [
            Check.of("result_valid", 0.33, unread),
            Check.of("edit_or_command_present", 0.33, "" if unread else _nothing_to_apply(result)),
            Check.of("reasoning_substantive", 0.34, text_problem(values, "reasoning", _REASONING_BYTES)),
        ]
        return grade(checks, record.problem)


def _result(values: Mapping[str, object]) -> tuple[object, str | None]:
    """The result, and what is wrong with it."""
    try:
        result = parsed(values.get("result"))
    except orjson.JSONDecodeError as error:
        return None, f"result is text that is not JSON: {error}"
    return result, None if result is not None else absent(values, "result") or "result is null"


def _nothing_to_apply(result: object) -> str | None:
    if isinstance(result, str):
        return None if result else "result is an empty text"
    if not isinstance(result, Mapping):
        return f"result is {shown(result)}, with no edit and no command"
    is_edit = isinstance(result.get("old_string"), str) and isinstance(result.get("new_string"), str)
    if is_edit or _is_command(result.get("command")):
        return None
    return "result has neither the texts old_string and new_string nor a command"


def _is_command(value: object) -> bool:
    if isinstance(value, str):
        return bool(value.strip())
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(word, str) for word in value)
