"""Checks of the plan and the synthesis of a task together."""

from __future__ import annotations

import math

import attrs

from dicast import ConfigError, Score, Subject
from dicast.toolkit.json_values import check_field

from .checks import grade, problems, results
from .planning import all_verbs, plan_checks, words
from .synthesis import synthesis_checks
from .values import Record


def _check_weight(_instance: object, attribute: attrs.Attribute[float], weight: float) -> None:
    if not (math.isfinite(weight) and weight >= 0):
        raise ConfigError(f"{attribute.name} is {weight}; a weight is a finite number, never negative")


@attrs.frozen
class Combined:
    """Weighted mean of ``agent_steps/subtask_planning`` (.6) and ``agent_steps/synthesis`` (.4).

    The signals have both scores and the results of their eight checks.

    :param planning_weight: the weight of the plan.
    :param synthesis_weight: the weight of the synthesis; the two weights sum to 1.
    :param more_verbs: additional first words of an instruction, as for ``agent_steps/subtask_planning``.
    :param field: the place of the object with ``subtasks``, ``success``, ``summary``, ``modified_files`` and ``confidence`` in the
        output: a dotted path (``task.0``) or a JSON pointer (``/task/0``). Text on the way is parsed as JSON. By default the object
        is the whole output.
    """

    tier = "proxy"
    needs_output = "always"

    planning_weight: float = attrs.field(default=0.6, validator=_check_weight)
    synthesis_weight: float = attrs.field(default=0.4, validator=_check_weight)
    more_verbs: tuple[str, ...] = attrs.field(default=(), converter=words)
    field: str | None = attrs.field(default=None, validator=check_field)
    _verbs: tuple[str, ...] = attrs.field(init=False, eq=False, repr=False)

    @_verbs.default
    def _default_verbs(self) -> tuple[str, ...]:
        return all_verbs(self.more_verbs)

    def __attrs_post_init__(self) -> None:
        total = self.planning_weight + self.synthesis_weight
        if not math.isclose(total, 1, abs_tol=1e-6):
            raise ConfigError(f"planning_weight and synthesis_weight sum to {total:g}, not to 1: change both")

    def score(self, subject: Subject) -> Score:
        """Return the score of the plan and the synthesis in the output of *subject*."""
        record = Record.of(subject, self.field)
        plan, synthesis = plan_checks(record.values, self._verbs), synthesis_checks(record.values)
        plan_score, synthesis_score = grade(plan).value or 0.0, grade(synthesis).value or 0.0
        total = self.planning_weight + self.synthesis_weight  # 1, up to rounding
        value = (self.planning_weight * plan_score + self.synthesis_weight * synthesis_score) / total
        checks = [*plan, *synthesis]
        scores: dict[str, object] = {"planning": plan_score, "synthesis": synthesis_score}
        return Score(value, details=record.problem or problems(checks), signals=scores | results(checks))
