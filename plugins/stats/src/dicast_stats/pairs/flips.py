"""How many subjects went from failing to passing, and back, on a scale of grades."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any

import attrs

from dicast import ConfigError, Results, Within

from ..numbers.adjustment import Adjustment, adjust_all, check_adjustment
from ..numbers.ties import reaches
from ..scores.sides import Sides, compared
from ..text.reasons import explained
from ..text.sentences import subjects
from .pass_changes import even, rate_interval
from .scores import PairedScores, named, other_scale, paired_rows

if TYPE_CHECKING:
    from ..scores.table import Rows

_NONE = "no subject has a score in both runs"


@attrs.frozen
class Flips:
    """How many subjects went from failing to passing and back, and how many changed by a lot, where both runs judged the same subjects.

    The defaults are for grades from 1 to 5; where all scores are from 0 to 1, ``words`` says so. A score of *pass_at* or more passes, one of *fail_at* or less fails; what lies between does neither. For each criterion, over the ``n``
    subjects with a score in both: ``fail_to_pass`` and ``pass_to_fail``; ``major_gains`` and ``major_drops``, of *major* or more;
    ``p_value``, McNemar's exact test of whether as many rise as fall, with ``adjusted_p_value``; ``effect_size``, (``fail_to_pass`` less ``pass_to_fail``)/``n``, with
    ``ci_low`` and ``ci_high`` (95 %; R. G. Newcombe, Statistics in Medicine 17, 1998, 2635-2650, method 10); ``subjects``, the first of each
    direction; and ``words``. What is not defined is null, and ``reasons`` says why.

    :param pass_at: from which score on a subject passes.
    :param fail_at: up to which score it fails; below *pass_at*.
    :param major: how large a change is a major one; more than 0.
    :param listed: how many subjects of each direction are listed.
    :param adjustment: how ``adjusted_p_value`` accounts for several criteria: ``holm``, ``fdr``, ``bonferroni`` or ``none``.
    :param criteria: only these; all by default.
    """

    name = "flips"

    pass_at: float = 3.0
    fail_at: float = 2.0
    major: float = attrs.field(default=2.0, validator=Within(0, inf, "more than 0", open=True))
    listed: int = attrs.field(default=20, validator=Within(0, inf, "0 or more"))
    adjustment: Adjustment = attrs.field(default="holm", validator=check_adjustment)
    criteria: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        if self.fail_at >= self.pass_at:
            raise ConfigError(f"fail_at is {self.fail_at:g}, and has to be below pass_at, {self.pass_at:g}")

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """The counts for each criterion."""
        rows = paired_rows(baseline, variant)
        found = compared(baseline, variant, self.criteria, lambda sides: self._counted(sides, rows))
        adjust_all(found["criteria"].values(), self.adjustment)
        return found

    def _counted(self, sides: Sides, rows: tuple[Rows, Rows]) -> dict[str, Any]:
        import numpy as np  # 0.1 s, which starting a run does not spend

        scores = PairedScores.of(sides, rows)
        count = len(scores.change)
        passed, passes = reaches(scores.was, self.pass_at), reaches(scores.now, self.pass_at)
        failed, fails = reaches(-scores.was, -self.fail_at), reaches(-scores.now, -self.fail_at)
        up, down = np.flatnonzero(failed & passes), np.flatnonzero(passed & fails)
        figures: dict[str, Any] = {
            "n": count,
            "fail_to_pass": len(up),
            "pass_to_fail": len(down),
            "major_gains": int(reaches(scores.change, self.major).sum()),
            "major_drops": int(reaches(-scores.change, self.major).sum()),
            **dict.fromkeys(("p_value", "adjusted_p_value", "effect_size", "ci_low", "ci_high")),
        }
        if not count:
            return explained({**figures, "subjects": {}, "words": _NONE}, {"n": _NONE})
        low, high = rate_interval(int((passed & passes).sum()), len(up), len(down), count)
        p_value = even(len(up), len(down))
        figures |= {
            "p_value": p_value,
            "adjusted_p_value": p_value,
            "effect_size": (len(up) - len(down)) / count,
            "ci_low": low,
            "ci_high": high,
        }
        listed = {
            direction: [named(scores.subjects[place]) for place in places[: self.listed].tolist()]
            for direction, places in (("fail_to_pass", up), ("pass_to_fail", down))
        }
        scale = f"failing ({self.fail_at:g} or less)", f"passing ({self.pass_at:g} or more)"
        words = f"of {subjects(count)} {len(up):,} went from {scale[0]} to {scale[1]}, {len(down):,} from passing to failing"
        words += other_scale(scores, self.pass_at, sides.variant.line(sides.criterion), "pass_at, fail_at and major")
        return explained({**figures, "subjects": listed, "words": words}, {})
