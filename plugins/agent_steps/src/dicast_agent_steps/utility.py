"""Check of an agent's assessment of its tool step."""

from __future__ import annotations

import attrs

from dicast import Score, Subject
from dicast.toolkit.json_values import check_field

from .checks import Check, fraction_problem, grade, text_problem, truth_value_problem
from .values import Record

_HINT_BYTES = 6
_WEIGHT = 0.25


@attrs.frozen
class ToolStepUtility:
    """Share of four checks of an agent's assessment of a tool step that pass, a quarter each.

    ``step_utility_in_range``: ``step_utility_norm``, or ``step_utility`` without it, is a number from 0 to 1, or
    the text of such a number. ``should_continue_boolean``: ``should_continue`` is true or false, or the text of either in any case.
    ``next_action_hint_substantive``: ``next_action_hint`` is text of at least 6 bytes of UTF-8 without surrounding blanks.
    ``confidence_calibrated``: ``confidence`` is a number from 0 to 1, or the text of such a number.

    :param field: the place of the object with these four keys in the output: a dotted path (``steps.0``) or a JSON pointer
        (``/steps/0``). Text on the way is parsed as JSON. By default the object is the whole output.
    """

    tier = "proxy"
    needs_output = "always"

    field: str | None = attrs.field(default=None, validator=check_field)

    def score(self, subject: Subject) -> Score:
        """Return the score of the assessment in the output of *subject*."""
        record = Record.of(subject, self.field)
        values = record.values
        # If both keys exist, step_utility has the scale from -1 to 1.
        utility = "step_utility_norm" if "step_utility_norm" in values else "step_utility"
        checks = [
            Check.of("step_utility_in_range", _WEIGHT, fraction_problem(values, utility)),
            Check.of("should_continue_boolean", _WEIGHT, truth_value_problem(values, "should_continue")),
            Check.of("next_action_hint_substantive", _WEIGHT, text_problem(values, "next_action_hint", _HINT_BYTES)),
            Check.of("confidence_calibrated", _WEIGHT, fraction_problem(values, "confidence")),
        ]
        return grade(checks, record.problem)
