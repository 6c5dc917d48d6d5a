"""Check of an agent's summary of its work."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import orjson

from dicast import Score, Subject
from dicast.toolkit.json_values import check_field

from .checks import Check, absent, fraction_problem, grade, text_problem, truth_value_problem
from .values import Record, parsed, shorten

_SUMMARY_BYTES = 15
_WEIGHT = 0.25


@attrs.frozen
class Synthesis:
    """Share of four checks of an agent's summary that pass, a quarter each.

    ``success_boolean``: ``success`` is true or false, or the text of either in any case. ``summary_substantive``: ``summary`` is
    text of at least 15 bytes of UTF-8 without surrounding blanks. ``modified_files_valid``: ``modified_files`` is a list, or the JSON
    of a list, of paths; it may be empty. ``confidence_calibrated``: ``confidence`` is a number from 0 to 1, or the text of such a
    number.

    :param field: the place of the object with these four keys in the output: a dotted path (``summary.0``) or a JSON pointer
        (``/summary/0``). Text on the way is parsed as JSON. By default the object is the whole output.
    """

    tier = "proxy"
    needs_output = "always"

    field: str | None = attrs.field(default=None, validator=check_field)

    def score(self, subject: Subject) -> Score:
        """Return the score of the synthesis in the output of *subject*."""
        record = Record.of(subject, self.field)
        return grade(synthesis_checks(record.values), record.problem)


def synthesis_checks(values: Mapping[str, object]) -> list[Check]:
    """Return the four checks of the synthesis in *values*."""
    return [
        Check.of("success_boolean", _WEIGHT, truth_value_problem(values, "success")),
        Check.of("summary_substantive", _WEIGHT, text_problem(values, "summary", _SUMMARY_BYTES)),
        Check.of("modified_files_valid", _WEIGHT, _files_problem(values)),
        Check.of("confidence_calibrated", _WEIGHT, fraction_problem(values, "confidence")),
    ]


def _files_problem(values: Mapping[str, object]) -> str | None:
    try:
        files = parsed(values.get("modified_files"))
    except orjson.JSONDecodeError as error:
        return f"modified_files is text that is not JSON: {error}"
    if not isinstance(files, list | tuple):
        return absent(values, "modified_files") or f"modified_files is {shorten(files)}, not a list"
    for number, path in enumerate(files):
        if not isinstance(path, str) or not path.strip():
            return f"modified_files.{number} is {shorten(path)}, not a path"
    return None
