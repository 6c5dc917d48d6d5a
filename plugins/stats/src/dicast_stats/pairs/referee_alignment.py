"""How close two runs' scores are to referees' marks in the rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import TYPE_CHECKING, Any

import attrs

from dicast import ConfigError, Record, Results, Within

from ..numbers.scale import TOO_LARGE, divided, multiplied, power_of
from ..numbers.ties import differences, reaches, varies
from ..numbers.values import number, plain, quiet
from ..scores.records import mapping, score_of
from ..scores.row_values import row_values, unkept
from ..text.reasons import explained
from ..text.sentences import subjects
from .scores import mean_change

if TYPE_CHECKING:
    from ..scores.table import Key

_MARKS: Mapping[str, float] = {"yes": 5.0, "no": 1.0, "partial": 3.0, "partially": 3.0}
"""What referees write, on the scale from 1 to 5."""

_FIGURES = ("mae", "rmse", "correlation", "agreement_rate_within_1")
_NONE = "no subject has a score and a referee's mark in both runs"

Marked = dict["Key", tuple[float, float]]
"""The score and the referees' mark of each subject that has both."""


@attrs.frozen
class RefereeAlignment:
    """How close two runs' scores are to the marks of referees, who are columns of the rows.

    A mark is a number, or ``yes`` (5), ``no`` (1), ``partial`` or ``partially`` (3), in any case; anything else, such as ``n/a``, is none. A
    row's mark is the mean of its referees'. ``baseline`` and ``variant`` have ``n``, the rows with a score and a mark; ``mae`` and ``rmse``, the mean
    absolute error and the root of the mean squared error; Pearson's ``correlation``; and ``agreement_rate_within_1``, the share of scores that are
    *within* the mark. ``comparison`` says whether the variant is better: ``mae_improved``, ``rmse_improved``, ``correlation_improved``,
    ``agreement_improved``. ``n``, ``mean_difference``, ``effect_size`` (d_z), ``ci_low`` and ``ci_high`` are of the change in absolute error
    over the rows of both runs (paired t, 95 %; below 0 is better). ``words`` says it. What is not defined is null.

    :param referee_fields: the rows' columns with the marks.
    :param criterion: which of ``metrics.scores`` is compared; by default the record's score, or the mean of its scores.
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
        """The figures of both runs, and of the change."""
        before, after = self._marked(baseline), self._marked(variant)
        with quiet():
            sides = {"baseline": self._close(before), "variant": self._close(after)}
            change = self._change(before, after)
        if not change["n"]:
            change["words"] += unkept(baseline=baseline, variant=variant)
        better = {
            f"{name.partition('_')[0]}_improved": _improved(
                sides["baseline"][name], sides["variant"][name], less=name in ("mae", "rmse")
            )
            for name in _FIGURES
        }
        return {**sides, "comparison": better, **change}

    def _marked(self, results: Results) -> Marked:
        found: Marked = {}
        of_row = row_values(results, self.referee_fields)
        for subject_id, record in results.records():
            key = (str(record.get("subject_kind", "row")), subject_id)
            score, mark = self._score(record), _mean_mark(of_row(key, record))
            found.pop(key, None)
            if score is not None and mark is not None:
                found[key] = score, mark
        return found

    def _score(self, record: Record) -> float | None:
        return score_of(record) if self.criterion is None else number(mapping(record, "scores").get(self.criterion))

    def _close(self, marked: Marked) -> dict[str, Any]:
        import numpy as np  # 0.1 s, which starting a run does not spend

        if not marked:
            return explained({"n": 0, **dict.fromkeys(_FIGURES)}, {"n": "no row has a score and a referee's mark"})
        scores, marks = np.array(list(marked.values())).T
        power = power_of(scores, marks)
        scores, marks, within = divided(scores, power), divided(marks, power), float(np.ldexp(self.within, -power))
        errors = abs(scores - marks)
        known = len(scores) > 1 and varies(scores) and varies(marks)
        why = {} if known else {"reasons": {"correlation": "the scores or the marks are all alike, or there is one"}}
        return why | {
            "n": len(scores),
            "mae": multiplied(errors.mean(), power),
            "rmse": multiplied(np.sqrt((errors**2).mean()), power),
            "correlation": plain(np.corrcoef(scores, marks)[0, 1]) if known else None,
            "agreement_rate_within_1": float(reaches(-errors, -within).mean()),
        }

    def _change(self, before: Marked, after: Marked) -> dict[str, Any]:
        """The change in absolute error over the subjects of both."""
        import numpy as np

        both = [subject for subject in before if subject in after]
        was, now = (
            np.array([abs(score - mark) for score, mark in (side[one] for one in both)]) for side in (before, after)
        )
        change = differences(now, was)
        figures = mean_change(change)
        if not both:
            return explained({**figures, "words": _NONE}, {"n": _NONE})
        low, high, mean = figures["ci_low"], figures["ci_high"], figures["mean_difference"]
        known = low is not None and high is not None
        words = (
            "closer to the referees"
            if known and high < 0
            else "farther from the referees"
            if known and low > 0
            else "no evidence either way"
        )
        if mean is None:
            return explained({**figures, "words": f"not known over {subjects(len(both))}: {TOO_LARGE}"}, {})
        alike = {} if known else {"effect_size": "the changes are all alike, or there is one"}
        if len(both) > 1 and not varies(change):
            words = (
                f"the distances to the referees of all {subjects(len(both))} changed by {mean:+.4g}"
                if mean
                else "no distance to the referees changed"
            )
        else:
            words = f"{words}: the distance to the referees changed by {mean:+.4g} over {subjects(len(both))}"
        return explained({**figures, "words": words}, alike)


def _mean_mark(values: Iterable[object]) -> float | None:
    marks = [mark for value in values if (mark := _read(value)) is not None]
    return sum(marks) / len(marks) if marks else None


def _read(value: object) -> float | None:
    """The mark that a referee wrote; None where it is none."""
    return _MARKS[text] if isinstance(value, str) and (text := value.strip().lower()) in _MARKS else number(value)


def _improved(before: float | None, after: float | None, *, less: bool) -> bool | None:
    if before is None or after is None:
        return None
    return after < before if less else after > before
