"""Mean difference of two runs, corrected by labels of some pairs where a judge scored all pairs.

A judge's bias may differ between two arms: a judge that prefers long outputs favors the arm with the longer ones. Labels of both outputs
of some pairs, drawn at random, measure the difference in bias. The judge's scores of all pairs keep the interval narrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from dicast import DataError, Problem, nearest
from dicast.toolkit.input_file import InputCheck, InputFile

if TYPE_CHECKING:
    from dicast import Results
    from dicast.toolkit.gold import GoldLabel

    from ..numbers.values import Column

MIN_LABELED_PAIRS = 10
"""Smallest number of labeled pairs that measures the judge's error."""

ARMS = ("baseline", "variant")
METHOD = "general"

ROUNDING = 1e-12
"""Largest ratio of a sum to its terms that is only rounding."""

_FIELDS = ("mean", "ci_low", "ci_high", "method", "n_pairs", "n_labelled", "sessions", "lambda", "plain_bias")
Labels = Mapping[str, Mapping[str, tuple[float, float]]]
"""Labels of the baseline's and the variant's output, by criterion ("" without one) and subject id."""


def read_labels(path: Path, baseline: Results, variant: Results) -> Labels:
    """Read the labels in the file at *path*; each names its arm by ``arm`` (``baseline`` or ``variant``) or by ``run``.

    :raises DataError: with each line that names no arm; also if all labels are of one arm.
    """
    names = {
        **{arm: place for place, arm in enumerate(ARMS)},
        **{run.name: place for place, run in enumerate((baseline, variant)) if baseline.name != variant.name},
        **{run.run_id: place for place, run in enumerate((baseline, variant))},
    }
    scores: dict[tuple[str, str], dict[int, float]] = {}
    with InputFile.opened(path) as file, InputCheck(file) as check:
        from dicast.toolkit.gold import gold_labels

        for number, label in gold_labels(file, check):
            try:
                place = _arm(label, names)
                _record_score(
                    scores.setdefault((str(label.others.get("criterion") or ""), label.subject_id), {}), place, label
                )
            except DataError as error:
                file.fault(error, number, check)
        check.finish(bool(scores))
    return _pairs(scores, path)


def _arm(label: GoldLabel, names: Mapping[str, int]) -> int:
    """Return the index in :data:`ARMS` of the arm whose output *label* is about.

    :raises DataError: if the label names no arm, or an unknown one.
    """
    arm = label.others.get("arm") or label.run or label.others.get("run_id")
    if arm is None:
        message = "the label does not name the run of its output; add arm: baseline or variant, or run: its id"
        raise DataError(Problem(message, path="arm"))
    if str(arm) not in names:
        message = f"{arm!r} is neither an arm nor one of the two runs ({', '.join(names)})"
        raise DataError(Problem(message, path="arm", value=arm, hint=nearest(str(arm), names)))
    return names[str(arm)]


def _record_score(pair: dict[int, float], place: int, label: GoldLabel) -> None:
    if pair.setdefault(place, label.score) != label.score:
        message = f"two labels of {label.subject_id!r} in {ARMS[place]} differ: {pair[place]:g} and {label.score:g}"
        raise DataError(Problem(message, path="score", value=label.score))


def _pairs(scores: Mapping[tuple[str, str], Mapping[int, float]], path: Path) -> Labels:
    labels: dict[str, dict[str, tuple[float, float]]] = {}
    for (criterion, subject_id), pair in scores.items():
        if len(pair) == len(ARMS):
            labels.setdefault(criterion, {})[subject_id] = pair[0], pair[1]
    labeled_arms = {place for pair in scores.values() for place in pair}
    if scores and len(labeled_arms) < len(ARMS):
        (place,) = labeled_arms
        message = (
            f"{path} has labels of the {ARMS[place]} alone: a judge may be wrong in one arm and right in the other, so that "
            f"these labels do not measure the difference; label the same subjects' outputs in the {ARMS[1 - place]} too"
        )
        raise DataError(Problem(message, path="arm", value=ARMS[place]))
    if scores and not labels:
        message = f"no subject in {path} has labels of both outputs; label the baseline's and the variant's output of the same subjects"
        raise DataError(Problem(message, path="subject_id"))
    return labels


def correct_difference(
    truth: Column, judged: Column, sessions: Sequence[object] | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the corrected mean difference with its 95 % interval, and the reasons for null figures.

    *judged* has the differences of the judge's scores, one for each pair; *truth* the differences of the labels, NaN for a pair without
    labels. The labeled pairs have to be drawn with equal probabilities. The method is PPI++ (A. N. Angelopoulos, J. C. Duchi and T. Zrnic,
    2023), with the degrees of freedom by F. E. Satterthwaite (1946). If pairs share *sessions*, the variance is that of sums over sessions.
    """
    import numpy as np  # 0.1 s, which starting a run does not spend

    is_labeled = ~np.isnan(truth)
    n, m = len(judged), int(is_labeled.sum())
    figures: dict[str, Any] = dict.fromkeys(_FIELDS) | {"n_pairs": n, "n_labelled": m}
    if m < MIN_LABELED_PAIRS:
        return figures, {"corrected": f"too_few_audits: {m} labeled pairs of the {MIN_LABELED_PAIRS} needed"}
    y, f = truth[is_labeled], judged[is_labeled]
    share = _slope_share(y, f)
    error = y - share * f
    mean = share * float(judged.mean()) + float(error.mean())
    figures |= {"mean": mean, "method": METHOD, "lambda": share, "plain_bias": float(judged.mean()) - mean}
    spread = float(((error - error.mean()) ** 2).sum())
    freedom = m - 1 - (share > 0)
    labeled_variance = spread / freedom / m
    pseudo = share * judged + error.mean()
    pseudo[is_labeled] += (error - error.mean()) * (n / m)
    clusters = _clusters(sessions, is_labeled)
    figures["sessions"] = clusters.count if clusters is not None else None
    if clusters is None:
        rest, degrees = float(pseudo.var(ddof=1)) / n - spread / m**2, (n - 1, freedom)
    elif clusters.labeled < 2:
        return figures, {"ci_low": "too_few_sessions: all labeled pairs are of one session, and two are needed"}
    else:
        rest, degrees = clusters.variance(pseudo) - labeled_variance, (clusters.count - 1, clusters.labeled - 1)
    variance = rest + labeled_variance
    if variance < 0 or not (terms := rest**2 / degrees[0] + labeled_variance**2 / degrees[1]):
        return figures, {"ci_low": "all labeled pairs are equal: there is no variance for an interval"}
    from scipy.special import stdtrit  # type: ignore[import-untyped]  # no types

    reach = float(stdtrit(variance**2 / terms, 0.975)) * sqrt(variance)
    return {**figures, "ci_low": mean - reach, "ci_high": mean + reach}, {}


@attrs.frozen
class _Clusters:
    """Sessions of pairs: the session number of each pair, the count of sessions, and the count of sessions with a labeled pair."""

    places: Any
    count: int
    labeled: int

    def variance(self, values: Column) -> float:
        """Return the variance of the mean of *values*: ``G/(G-1) * sum over sessions of (sum of (value - mean))^2 / n^2``."""
        import numpy as np

        sums = np.bincount(self.places, values - values.mean())
        return self.count / (self.count - 1) * float(sums @ sums) / len(values) ** 2


def _clusters(sessions: Sequence[object] | None, is_labeled: Any) -> _Clusters | None:
    """Return the clusters of pairs; None if no two pairs share a session."""
    import numpy as np

    if sessions is None or len(set(sessions)) == len(sessions):
        return None
    numbers: dict[object, int] = {}
    places = np.array([numbers.setdefault(session, len(numbers)) for session in sessions], np.intp)
    return _Clusters(places, len(numbers), len(set(places[is_labeled].tolist())))


def _slope_share(y: Column, f: Column) -> float:
    """Return the weight of the judge's differences, from 0 to 1: the slope of the labels' differences on the judge's."""
    spread = float(((f - f.mean()) ** 2).sum())
    products = (y - y.mean()) * (f - f.mean())
    total = float(products.sum())
    if not spread or abs(total) <= ROUNDING * float(abs(products).sum()):  # a slope of 0 costs no degree of freedom
        return 0.0
    return min(max(total / spread, 0.0), 1.0)


def correction_text(figures: Mapping[str, Any]) -> str:
    """Return a sentence on the corrected difference."""
    labeled_pairs = f"{figures['n_labelled']:,} labeled pairs"
    if figures["mean"] is None:
        return f"not corrected: {labeled_pairs} of the {MIN_LABELED_PAIRS} needed"
    if figures["ci_low"] is None:
        return f"by {labeled_pairs} {figures['mean']:+.4f}, without an interval"
    sides = "better" if figures["ci_low"] > 0 else "worse" if figures["ci_high"] < 0 else "cannot tell"
    return f"by {labeled_pairs} {sides}: {figures['mean']:+.4f}, 95 % interval {figures['ci_low']:.4f} to {figures['ci_high']:.4f}"
