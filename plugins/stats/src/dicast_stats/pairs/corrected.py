"""The mean difference of two runs as labels would have it, where some pairs are labelled and a judge scored all of them.

A judge's bias may differ between two arms: one that likes length favours the arm with the longer outputs. Labels of both outputs of some pairs, drawn at
random, measure by how much, and the judge's scores of all pairs keep the interval narrow.
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

LEAST = 10
"""Fewer labelled pairs than these say too little of the judge's error."""

ARMS = ("baseline", "variant")
METHOD = "general"

ROUNDING = 1e-12
"""A sum this small beside its terms is nothing but their rounding."""

_FIELDS = ("mean", "ci_low", "ci_high", "method", "n_pairs", "n_labelled", "sessions", "lambda", "plain_bias")
Labels = Mapping[str, Mapping[str, tuple[float, float]]]
"""By criterion ("" where the file names none) and subject id, what labels say of the baseline's output and of the variant's."""


def read_labels(path: Path, baseline: Results, variant: Results) -> Labels:
    """The labels in the file at *path*: each says by ``arm`` (``baseline`` or ``variant``) or ``run`` whose output it is about.

    :raises DataError: naming every line that does not; also where the labels are of one arm alone.
    """
    names = {
        **{arm: place for place, arm in enumerate(ARMS)},
        **{one.name: place for place, one in enumerate((baseline, variant)) if baseline.name != variant.name},
        **{one.run_id: place for place, one in enumerate((baseline, variant))},
    }
    found: dict[tuple[str, str], dict[int, float]] = {}
    with InputFile.opened(path) as file, InputCheck(file) as check:
        from dicast.toolkit.gold import gold_labels

        for number, label in gold_labels(file, check):
            try:
                place = _arm(label, names)
                _put(found.setdefault((str(label.others.get("criterion") or ""), label.subject_id), {}), place, label)
            except DataError as error:
                file.fault(error, number, check)
        check.finish(bool(found))
    return _pairs(found, path)


def _arm(label: GoldLabel, names: Mapping[str, int]) -> int:
    """Which arm's output *label* is about.

    :raises DataError: where it does not say.
    """
    given = label.others.get("arm") or label.run or label.others.get("run_id")
    if given is None:
        message = "the label does not say which run's output it is about; add arm: baseline or variant, or run: its id"
        raise DataError(Problem(message, path="arm"))
    if str(given) not in names:
        message = f"{given!r} is neither arm nor one of the two runs ({', '.join(names)})"
        raise DataError(Problem(message, path="arm", value=given, hint=nearest(str(given), names)))
    return names[str(given)]


def _put(pair: dict[int, float], place: int, label: GoldLabel) -> None:
    if pair.setdefault(place, label.score) != label.score:
        message = f"two labels of {label.subject_id!r} in {ARMS[place]} differ: {pair[place]:g} and {label.score:g}"
        raise DataError(Problem(message, path="score", value=label.score))


def _pairs(found: Mapping[tuple[str, str], Mapping[int, float]], path: Path) -> Labels:
    labels: dict[str, dict[str, tuple[float, float]]] = {}
    for (criterion, subject_id), pair in found.items():
        if len(pair) == len(ARMS):
            labels.setdefault(criterion, {})[subject_id] = pair[0], pair[1]
    labelled = {place for pair in found.values() for place in pair}
    if found and len(labelled) < len(ARMS):
        (place,) = labelled
        message = (
            f"{path} has labels of the {ARMS[place]} alone: a judge may be wrong in one arm and right in the other, so that "
            f"these say nothing of the difference; label the same subjects' outputs in the {ARMS[1 - place]} too"
        )
        raise DataError(Problem(message, path="arm", value=ARMS[place]))
    if found and not labels:
        message = f"no subject in {path} has labels of both outputs; label the baseline's and the variant's of the same"
        raise DataError(Problem(message, path="subject_id"))
    return labels


def corrected(
    truth: Column, judged: Column, sessions: Sequence[object] | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """The corrected mean difference with its 95 % interval, and why it is null where it is.

    *judged* are the differences of the judge's scores, a pair each; *truth* those of the labels, NaN where a pair has none. Labelled pairs are drawn
    with equal chances. A. N. Angelopoulos, J. C. Duchi and T. Zrnic, PPI++ (2023), with the degrees of freedom by F. E. Satterthwaite (1946).
    Where pairs share *sessions*, the variance is that of sums over sessions.
    """
    import numpy as np  # 0.1 s, which starting a run does not spend

    labelled = ~np.isnan(truth)
    n, m = len(judged), int(labelled.sum())
    figures: dict[str, Any] = dict.fromkeys(_FIELDS) | {"n_pairs": n, "n_labelled": m}
    if m < LEAST:
        return figures, {"corrected": f"too_few_audits: {m} labelled pairs of the {LEAST} needed"}
    y, f = truth[labelled], judged[labelled]
    share = _share(y, f)
    error = y - share * f
    mean = share * float(judged.mean()) + float(error.mean())
    figures |= {"mean": mean, "method": METHOD, "lambda": share, "plain_bias": float(judged.mean()) - mean}
    spread = float(((error - error.mean()) ** 2).sum())
    freedom = m - 1 - (share > 0)
    held = spread / freedom / m
    pseudo = share * judged + error.mean()
    pseudo[labelled] += (error - error.mean()) * (n / m)
    clusters = _clusters(sessions, labelled)
    figures["sessions"] = clusters.count if clusters is not None else None
    if clusters is None:
        rest, degrees = float(pseudo.var(ddof=1)) / n - spread / m**2, (n - 1, freedom)
    elif clusters.labelled < 2:
        return figures, {"ci_low": "too_few_sessions: the labelled pairs are all of one session, and it takes two"}
    else:
        rest, degrees = clusters.variance(pseudo) - held, (clusters.count - 1, clusters.labelled - 1)
    variance = rest + held
    if variance < 0 or not (terms := rest**2 / degrees[0] + held**2 / degrees[1]):
        return figures, {"ci_low": "the labelled pairs are all alike: there is no variance to make an interval of"}
    from scipy.special import stdtrit  # type: ignore[import-untyped]  # no types

    reach = float(stdtrit(variance**2 / terms, 0.975)) * sqrt(variance)
    return {**figures, "ci_low": mean - reach, "ci_high": mean + reach}, {}


@attrs.frozen
class _Clusters:
    """The sessions of pairs: the number of each one's, how many there are, and how many have a labelled pair."""

    places: Any
    count: int
    labelled: int

    def variance(self, values: Column) -> float:
        """The variance of the mean of *values*: ``G/(G-1) * sum of (sums over sessions less the mean)^2 / n^2``."""
        import numpy as np

        sums = np.bincount(self.places, values - values.mean())
        return self.count / (self.count - 1) * float(sums @ sums) / len(values) ** 2


def _clusters(sessions: Sequence[object] | None, labelled: Any) -> _Clusters | None:
    """The clusters of pairs; None where no two share a session."""
    import numpy as np

    if sessions is None or len(set(sessions)) == len(sessions):
        return None
    numbers: dict[object, int] = {}
    places = np.array([numbers.setdefault(session, len(numbers)) for session in sessions], np.intp)
    return _Clusters(places, len(numbers), len(set(places[labelled].tolist())))


def _share(y: Column, f: Column) -> float:
    """How much of a difference that the judge sees is to be believed, from 0 to 1: the slope of labels on scores."""
    spread = float(((f - f.mean()) ** 2).sum())
    products = (y - y.mean()) * (f - f.mean())
    total = float(products.sum())
    if not spread or abs(total) <= ROUNDING * float(abs(products).sum()):  # a slope of 0: it takes no degree of freedom
        return 0.0
    return min(max(total / spread, 0.0), 1.0)


def corrected_words(found: Mapping[str, Any]) -> str:
    """What the labels say, in a sentence."""
    labelled = f"{found['n_labelled']:,} labelled pairs"
    if found["mean"] is None:
        return f"not corrected: {labelled} of the {LEAST} needed"
    if found["ci_low"] is None:
        return f"by {labelled} {found['mean']:+.4f}, of which there is no interval"
    sides = "better" if found["ci_low"] > 0 else "worse" if found["ci_high"] < 0 else "no evidence either way"
    return f"by {labelled} {sides}: {found['mean']:+.4f}, 95 % {found['ci_low']:.4f} to {found['ci_high']:.4f}"
