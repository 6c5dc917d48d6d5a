"""Check of the result of an executed step."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import orjson

from dicast import Score, Subject
from dicast.toolkit.json_values import check_field

from .checks import Check, absent, grade, text_problem
from .values import Record, parsed, shorten

_REASONING_BYTES = 20


@attrs.frozen
class SubtaskExecution:
    """Usability of a step's result: .33 for a result, .33 for an edit, a command or content in it, .34 for reasoning.

    ``result_valid``: ``result`` exists and is not null; a text is valid JSON. ``edit_or_command_present``: the
    result is an object with the texts ``old_string`` and ``new_string``, or with a ``command`` that is text or a list of words; or
    it is the JSON of a text, such as the content of a file. ``reasoning_substantive``: ``reasoning`` is text of at least 20 bytes of
    UTF-8 without surrounding blanks.

    :param field: the place of the object with ``result`` and ``reasoning`` in the output: a dotted path (``steps.0``) or a
        JSON pointer (``/steps/0``). Text on the way is parsed as JSON. By default the object is the whole output.
    """

    tier = "proxy"
    needs_output = "always"

    field: str | None = attrs.field(default=None, validator=check_field)

    def score(self, subject: Subject) -> Score:
        """Return the score of the step in the output of *subject*."""
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
    """Return the result and its problem, or None if it has no problem."""
    try:
        result = parsed(values.get("result"))
    except orjson.JSONDecodeError as error:
        return None, f"result is text that is not JSON: {error}"
    return result, None if result is not None else absent(values, "result") or "result is null"


def _nothing_to_apply(result: object) -> str | None:
    if isinstance(result, str):
        return None if result else "result is an empty text"
    if not isinstance(result, Mapping):
        return f"result is {shorten(result)}, with no edit and no command"
    is_edit = isinstance(result.get("old_string"), str) and isinstance(result.get("new_string"), str)
    if is_edit or _is_command(result.get("command")):
        return None
    return "result has neither the texts old_string and new_string nor a command"


def _is_command(value: object) -> bool:
    if isinstance(value, str):
        return bool(value.strip())
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(word, str) for word in value)
