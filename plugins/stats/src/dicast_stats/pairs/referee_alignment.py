"""Distance of two runs' scores from referees' marks in the rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import TYPE_CHECKING, Any

import attrs

from dicast import ConfigError, Record, Results, Within

from ..numbers.scale import TOO_LARGE, common_power, divide_by_power, multiply_by_power
from ..numbers.ties import differences, reaches, varies
from ..numbers.values import ignore_float_warnings, json_number, parse_number
from ..scores.records import read_metrics, record_score
from ..scores.row_values import missing_columns_text, row_values
from ..text.reasons import with_reasons
from ..text.sentences import count_subjects
from .scores import describe_change

if TYPE_CHECKING:
    from ..scores.table import Key

_MARKS: Mapping[str, float] = {"yes": 5.0, "no": 1.0, "partial": 3.0, "partially": 3.0}
"""Words of referees, on the scale from 1 to 5."""

_FIGURES = ("mae", "rmse", "correlation", "agreement_rate_within_1")
_NO_PAIRS = "no subject has a score and a referee's mark in both runs"

Marked = dict["Key", tuple[float, float]]
"""Score and referees' mark of each subject that has both."""


@attrs.frozen
class RefereeAlignment:
    """Distance of two runs' scores from the marks of referees, which are columns of the rows.

    A mark is a number, or ``yes`` (5), ``no`` (1), ``partial`` or ``partially`` (3), in any case; any other value, such as ``n/a``, is ignored. A
    row's mark is the mean of its referees' marks. ``baseline`` and ``variant`` have ``n``, the rows with a score and a mark; ``mae`` and
    ``rmse``, the mean absolute error and the root of the mean squared error; Pearson's ``correlation``; and ``agreement_rate_within_1``, the
    share of scores with a distance from the mark of *within* or less. ``comparison`` states whether the variant is better: ``mae_improved``,
    ``rmse_improved``, ``correlation_improved``, ``agreement_improved``. ``n``, ``mean_difference``, ``effect_size`` (d_z), ``ci_low`` and
    ``ci_high`` are of the change in absolute error over the rows of both runs (paired t, 95 %; below 0 is better). ``words`` is a sentence. An
    undefined figure is null.

    :param referee_fields: the rows' columns with the marks.
    :param criterion: the name in ``metrics.scores`` whose score is compared; by default the record's score, or the mean of its scores.
    :param within: how far a score may be from the mark to agree; 0 or more.
    """

    name = "referee_alignment"

    referee_fields: tuple[str, ...]
    criterion: str | None = None
    within: float = attrs.field(default=1.0, validator=Within(0, inf, "0 or more"))

    def __attrs_post_init__(self) -> None:
        if not self.referee_fields:
            raise ConfigError("referee_fields is empty; name the columns that have the referees' marks")

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """Return the figures of both runs, and of the change."""
        before, after = self._read_marks(baseline), self._read_marks(variant)
        with ignore_float_warnings():
            sides = {"baseline": self._error_figures(before), "variant": self._error_figures(after)}
            change = self._error_change(before, after)
        if not change["n"]:
            change["words"] += missing_columns_text(baseline=baseline, variant=variant)
        better = {
            f"{name.partition('_')[0]}_improved": _is_better(
                sides["baseline"][name], sides["variant"][name], lower_is_better=name in ("mae", "rmse")
            )
            for name in _FIGURES
        }
        return {**sides, "comparison": better, **change}

    def _read_marks(self, results: Results) -> Marked:
        marked: Marked = {}
        of_row = row_values(results, self.referee_fields)
        for subject_id, record in results.records():
            key = (str(record.get("subject_kind", "row")), subject_id)
            score, mark = self._score(record), _mean_mark(of_row(key, record))
            marked.pop(key, None)
            if score is not None and mark is not None:
                marked[key] = score, mark
        return marked

    def _score(self, record: Record) -> float | None:
        return (
            record_score(record)
            if self.criterion is None
            else parse_number(read_metrics(record, "scores").get(self.criterion))
        )

    def _error_figures(self, marked: Marked) -> dict[str, Any]:
        import numpy as np  # 0.1 s, which starting a run does not spend

        if not marked:
            return with_reasons(
                {"n": 0, **dict.fromkeys(_FIGURES)}, {"n": "no row has both a score and a referee's mark"}
            )
        scores, marks = np.array(list(marked.values())).T
        power = common_power(scores, marks)
        scores, marks, within = (
            divide_by_power(scores, power),
            divide_by_power(marks, power),
            float(np.ldexp(self.within, -power)),
        )
        errors = abs(scores - marks)
        is_defined = len(scores) > 1 and varies(scores) and varies(marks)
        reasons = (
            {}
            if is_defined
            else {"reasons": {"correlation": "all scores or all marks are equal, or there is only one"}}
        )
        return reasons | {
            "n": len(scores),
            "mae": multiply_by_power(errors.mean(), power),
            "rmse": multiply_by_power(np.sqrt((errors**2).mean()), power),
            "correlation": json_number(np.corrcoef(scores, marks)[0, 1]) if is_defined else None,
            "agreement_rate_within_1": float(reaches(-errors, -within).mean()),
        }

    def _error_change(self, before: Marked, after: Marked) -> dict[str, Any]:
        """Return the change in absolute error over the subjects of both runs."""
        import numpy as np

        both = [subject for subject in before if subject in after]
        was, now = (
            np.array([abs(score - mark) for score, mark in (side[name] for name in both)]) for side in (before, after)
        )
        change = differences(now, was)
        figures = describe_change(change)
        if not both:
            return with_reasons({**figures, "words": _NO_PAIRS}, {"n": _NO_PAIRS})
        low, high, mean = figures["ci_low"], figures["ci_high"], figures["mean_difference"]
        is_known = low is not None and high is not None
        words = (
            "closer to the referees"
            if is_known and high < 0
            else "farther from the referees"
            if is_known and low > 0
            else "cannot tell"
        )
        if mean is None:
            return with_reasons({**figures, "words": f"not known over {count_subjects(len(both))}: {TOO_LARGE}"}, {})
        reasons = {} if is_known else {"effect_size": "all changes are equal, or there is only one"}
        if len(both) > 1 and not varies(change):
            words = (
                f"the distances to the referees of all {count_subjects(len(both))} changed by {mean:+.4g}"
                if mean
                else "no distance to the referees changed"
            )
        else:
            words = f"{words}: the distance to the referees changed by {mean:+.4g} over {count_subjects(len(both))}"
        return with_reasons({**figures, "words": words}, reasons)


def _mean_mark(values: Iterable[object]) -> float | None:
    marks = [mark for value in values if (mark := _parse_mark(value)) is not None]
    return sum(marks) / len(marks) if marks else None


def _parse_mark(value: object) -> float | None:
    """Return the mark in a referee's column as a number; None if there is no mark."""
    return _MARKS[text] if isinstance(value, str) and (text := value.strip().lower()) in _MARKS else parse_number(value)


def _is_better(before: float | None, after: float | None, *, lower_is_better: bool) -> bool | None:
    if before is None or after is None:
        return None
    return after < before if lower_is_better else after > before
