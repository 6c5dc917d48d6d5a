"""Changes of subjects from failing to passing, and back, on a scale of grades."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any

import attrs

from dicast import ConfigError, Results, Within

from ..changes.label_changes import adjust_criteria
from ..numbers.adjustment import Adjustment, check_adjustment
from ..numbers.ties import reaches
from ..scores.sides import Sides, compare_criteria
from ..text.reasons import with_reasons
from ..text.sentences import count_subjects
from .pass_changes import exact_sign_p, rate_difference_interval
from .scores import PairedScores, pair_rows, scale_warning, subject_key

if TYPE_CHECKING:
    from ..scores.table import Rows

_NO_PAIRS = "no subject has a score in both runs"


@attrs.frozen
class Flips:
    """Counts of subjects that went from failing to passing and back, and of large changes, if both runs judged the same subjects.

    The defaults are for grades from 1 to 5; if all scores are from 0 to 1, ``words`` warns of it. A score of *pass_at* or more passes, a score
    of *fail_at* or less fails, and a score between does neither. For each criterion, over the ``n`` subjects with a score in both runs:
    ``fail_to_pass`` and ``pass_to_fail``; ``major_gains`` and ``major_drops``, changes of *major* or more; ``p_value``, McNemar's exact test
    of equal chances of both directions, with ``adjusted_p_value``; ``effect_size``, (``fail_to_pass`` minus ``pass_to_fail``)/``n``, with
    ``ci_low`` and ``ci_high`` (95 %; R. G. Newcombe, Statistics in Medicine 17, 1998, 2635-2650, method 10); ``subjects``, the first subjects
    of each direction; and ``words``. An undefined figure is null, and ``reasons`` has the cause.

    :param pass_at: the lowest score that passes.
    :param fail_at: the highest score that fails; below *pass_at*.
    :param major: the smallest change that is major; more than 0.
    :param listed: how many subjects of each direction are listed.
    :param adjustment: how ``adjusted_p_value`` accounts for several criteria, without the gate's labels: ``holm``, ``fdr``, ``bonferroni`` or ``none``.
    :param criteria: only these criteria; all by default.
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
            raise ConfigError(f"fail_at is {self.fail_at:g}; it has to be below pass_at, {self.pass_at:g}")

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """Return the counts for each criterion."""
        rows = pair_rows(baseline, variant)
        document = compare_criteria(baseline, variant, self.criteria, lambda sides: self._count_flips(sides, rows))
        adjust_criteria(document["criteria"], (baseline, variant), self.adjustment)
        return document

    def _count_flips(self, sides: Sides, rows: tuple[Rows, Rows]) -> dict[str, Any]:
        import numpy as np  # 0.1 s, which starting a run does not spend

        scores = PairedScores.of(sides, rows)
        count = len(scores.change)
        passed, passes = reaches(scores.before, self.pass_at), reaches(scores.after, self.pass_at)
        failed, fails = reaches(-scores.before, -self.fail_at), reaches(-scores.after, -self.fail_at)
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
            return with_reasons({**figures, "subjects": {}, "words": _NO_PAIRS}, {"n": _NO_PAIRS})
        low, high = rate_difference_interval(int((passed & passes).sum()), len(up), len(down), count)
        p_value = exact_sign_p(len(up), len(down))
        figures |= {
            "p_value": p_value,
            "adjusted_p_value": p_value,
            "effect_size": (len(up) - len(down)) / count,
            "ci_low": low,
            "ci_high": high,
        }
        listed = {
            direction: [subject_key(scores.subjects[place]) for place in places[: self.listed].tolist()]
            for direction, places in (("fail_to_pass", up), ("pass_to_fail", down))
        }
        scale = f"failing ({self.fail_at:g} or less)", f"passing ({self.pass_at:g} or more)"
        words = f"of {count_subjects(count)} {len(up):,} went from {scale[0]} to {scale[1]}, {len(down):,} from passing to failing"
        words += scale_warning(
            scores, self.pass_at, sides.variant.pass_line(sides.criterion), "pass_at, fail_at and major"
        )
        return with_reasons({**figures, "subjects": listed, "words": words}, {})
