"""One step of a cascade: from which signal on a stage's verdicts are kept, as the labels left for it say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import attrs

from dicast.signals import TextLengths, TrustModel
from dicast.toolkit.gold import GoldLabel

from ..statistics.binomial import upper
from ..statistics.representativeness import Difference, label_difference
from ..verdicts.outcomes import Outcome
from ..verdicts.rules import Rules
from ..verdicts.stages import Stage, Subject
from .failures import causes
from .labels_needed import Needed, needed
from .ladder import Climb, Labelled, Method, RungTest, climb, first_rung, sequential_start, thresholds
from .signals import FOLDS, LEAST, QUANTILES, Features, cross_fitted, features_of, fit, fold, scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]

LEFT = 30
"""So many labels a later step needs of those that the earlier ones do not keep."""

FEW_SESSIONS = 20


@attrs.frozen
class Step:
    """What a step came to; *keeps* says of an outcome on a subject whether it is kept."""

    stage: Stage
    signal: Literal["confidence", "model"]
    model: TrustModel | None
    climb: Climb
    method: str
    n: int
    failures: int
    kept_labels: int
    share: float
    sessions: int | None
    needed: Needed | None
    reasons: tuple[str, ...]
    kept: frozenset[Subject]
    """The labelled subjects whose verdict here is kept."""
    reached_kept: int
    """How many of the subjects that reach the step have a verdict that is kept; *reached* counts them all."""
    reached: int
    difference: Difference | None = None
    """How far the signals of labeled subjects differ from those of all."""


@attrs.frozen
class Given:
    """Input of a step: the *stage*, the *labels* of the subjects that reach it, and whether a subject of the ledger reaches it.

    *is_one_class* says that all labels of the calibration say the same.
    """

    stage: Stage
    labels: Mapping[Subject, GoldLabel]
    reach: Callable[[Subject], bool]
    lengths: Mapping[Subject, TextLengths]
    later: bool
    is_one_class: bool = False

    @property
    def all(self) -> dict[Subject, Outcome]:
        """The outcomes of all subjects that reach the stage."""
        return {key: one for key, one in self.stage.outcomes.items() if self.reach(key)}


def take(given: Given, rules: Rules, alpha: float) -> Step:
    """Calibrate one step at the level *alpha*; its best signal where the rules leave that open."""
    good = sum(_has_score(given.stage, key) for key in given.labels)
    if given.later and len(given.labels) < LEFT:
        return _none(given, f"too_few_labels: {len(given.labels)} are left for this step, and it needs {LEFT}")
    if good == 0:
        failed = "; ".join(causes(given.stage.outcomes[key] for key in given.labels if key in given.stage.outcomes))
        return _none(given, f"all_failed: every verdict on a labeled subject is a failure: {failed}")
    if rules.signals == "confidence" or (rules.signals == "auto" and (good < LEAST or rules.sequential)):
        return _by_confidence(given, rules, alpha)
    if good < LEAST:
        return _none(
            given, f"too_few_labels: a model of the signals needs {LEAST} labels with a verdict, and there are {good}"
        )
    if rules.signals == "model":
        return _by_model(given, rules, alpha)
    one, other = _by_confidence(given, rules, alpha / 2), _by_model(given, rules, alpha / 2)
    return other if other.climb.threshold is not None and other.share > one.share else one


def _has_score(stage: Stage, key: Subject) -> bool:
    one = stage.outcomes.get(key)
    return one is not None and one.score is not None


def _none(given: Given, reason: str, signal: Literal["confidence", "model"] = "confidence") -> Step:
    failures = sum(not _has_score(given.stage, key) for key in given.labels)
    left = len(given.labels) - failures
    method = "exact" if signal == "confidence" else "cross-fitted"
    reached = len(given.all)
    return Step(
        given.stage,
        signal,
        None,
        Climb(None, ()),
        method,
        left,
        failures,
        0,
        0.0,
        None,
        None,
        (reason,),
        frozenset(),
        0,
        reached,
    )


@attrs.frozen
class _Read:
    """The labels of a step as arrays: the subjects that have a verdict, in the labels' order."""

    keys: tuple[Subject, ...]
    errors: Numbers
    sessions: Numbers
    groups: tuple[str, ...]


def _read(given: Given, rules: Rules) -> _Read:
    import numpy as np

    keys = tuple(key for key in given.labels if _has_score(given.stage, key))
    outcomes, labels = [given.stage.outcomes[key] for key in keys], [given.labels[key] for key in keys]
    pairs = zip(outcomes, labels, strict=True)
    errors = np.array([rules.wrong(one.score or 0.0, label.score) for one, label in pairs], dtype=int)
    groups = tuple(_group(one, label) for one, label in zip(outcomes, labels, strict=True))
    numbers: dict[str, int] = {}
    sessions = np.array([numbers.setdefault(group, len(numbers)) for group in groups], dtype=int)
    return _Read(keys, errors, sessions, groups)


def _group(one: Outcome, label: GoldLabel) -> str:
    """What a subject hangs together with: its session, else itself alone."""
    return _session_of(one) if label.session_id is None else f"session\n{label.session_id}"


def _session_of(one: Outcome) -> str:
    return f"subject\n{one.kind}\n{one.id}" if one.session is None else f"session\n{one.session}"


def _by_confidence(given: Given, rules: Rules, alpha: float) -> Step:
    import numpy as np

    read, reach = _read(given, rules), given.all
    own = np.array([given.stage.outcomes[key].confidence for key in read.keys])
    everyone = np.array([one.confidence for one in reach.values() if one.score is not None])
    labelled = Labelled(own, read.errors, read.sessions)
    at = thresholds(np.array([one.confidence for one in given.stage.outcomes.values() if one.score is not None]))
    method: Method = "sequential" if rules.sequential else "korn-graubard" if labelled.repeated else "exact"
    start = None
    if rules.sequential:
        rest = np.array(
            [one.confidence for key, one in reach.items() if one.score is not None and key not in given.labels]
        )
        start = sequential_start(at, rest if len(rest) else everyone)
    test = RungTest(rules.risk, alpha, method)
    found = climb(labelled, at, test, start)
    signals = {key: one.confidence for key, one in reach.items() if one.score is not None}
    return _step(given, rules, read, labelled, signals, found, test, method, None)


def _by_model(given: Given, rules: Rules, alpha: float) -> Step:
    import numpy as np

    read, reach = _read(given, rules), given.all
    features = features_of(given.stage.outcomes, given.lengths, rules.features)
    agrees = 1.0 - read.errors
    if agrees.min() == agrees.max():
        return _none(
            given, "one_class: the verdicts agree with all labels, or with none, and a model learns nothing", "model"
        )
    values = np.array([features.values[key] for key in read.keys])
    folds = np.array([fold(rules.seed, group) for group in read.groups])
    if len(np.unique(folds)) < 2:
        return _none(
            given,
            f"few_sessions: the labels' sessions are all in one of {FOLDS} parts, and no other is left to learn from",
            "model",
        )
    own = cross_fitted(values, agrees, folds, features.names)
    if own is None:
        return _none(given, f"one_class: in {FOLDS - 1} of {FOLDS} parts the verdicts agree with all labels", "model")
    model = fit(values, agrees, features.names)
    found_all = dict(
        zip(features.values, scores(model, np.array(list(features.values.values()))).tolist(), strict=True)
    )
    signals = {key: score for key, score in found_all.items() if key in reach}
    labelled = Labelled(own, read.errors, read.sessions)
    method: Method = "korn-graubard" if labelled.repeated else "exact"
    test = RungTest(rules.risk, alpha, method)
    found = climb(labelled, thresholds(np.array(list(found_all.values())), QUANTILES), test)
    return _step(given, rules, read, labelled, signals, found, test, "cross-fitted", (model, features))


def _step(
    given: Given,
    rules: Rules,
    read: _Read,
    labelled: Labelled,
    signals: Mapping[Subject, float],
    found: Climb,
    test: RungTest,
    method: str,
    model: tuple[TrustModel, Features] | None,
) -> Step:
    import numpy as np

    everyone = np.array(list(signals.values()))
    difference = _difference(given, read, signals, found, rules.seed)
    doubts = _doubts(given, difference, rules)
    if doubts and not rules.assume_random:
        found = Climb(None, found.rungs)
    reached, at = len(given.all), found.threshold
    kept = 0 if at is None else int((everyone >= at).sum())
    sessions = len(set(read.sessions.tolist())) if labelled.repeated else None
    is_undecided = at is None and not (doubts and not rules.assume_random)
    return Step(
        given.stage,
        "confidence" if model is None else "model",
        None if model is None else model[0],
        found,
        method,
        len(read.keys),
        len(given.labels) - len(read.keys),
        0 if at is None else int((labelled.signals >= at).sum()),
        kept / reached if reached else 0.0,
        sessions,
        _needed(found, labelled, test, rules.seed) if is_undecided else None,
        (*doubts, *_reasons(found, labelled, test, sessions, everyone, is_undecided=is_undecided), *_failed(given)),
        frozenset() if at is None else _kept(read.keys, labelled.signals >= at),
        kept,
        reached,
        difference,
    )


def _difference(
    given: Given, read: _Read, signals: Mapping[Subject, float], found: Climb, seed: int
) -> Difference | None:
    """Compare the signals of the labeled subjects with those of all subjects that reach the step."""
    import numpy as np

    labeled = set(read.keys)
    groups = dict(zip(read.keys, read.groups, strict=True))
    return label_difference(
        np.array(list(signals.values())),
        np.array([key in labeled for key in signals]),
        [rung.threshold for rung in found.rungs],
        [groups.get(key) or _session_of(given.stage.outcomes[key]) for key in signals],
        seed,
    )


def _doubts(given: Given, difference: Difference | None, rules: Rules) -> tuple[str, ...]:
    """Return the reasons to doubt that the labels are a random draw; without ``assume_random`` they leave no threshold."""
    step = "assumed random" if rules.assume_random else "--assume-random takes them for a random draw all the same"
    doubts = []
    if difference is not None and difference.is_significant:
        doubts.append(
            f"labels_not_drawn_from_ledger: the signals of labeled subjects differ from those of all by up to {difference.greatest:.2f} "
            f"(p {difference.p_value:.4f}); label subjects drawn at random (dicast label --random N), or name the runs that they were drawn from (--run ID); {step}"
        )
    if given.is_one_class:
        doubts.append(
            f"labels_of_one_class: all labels say the same, which no random draw of both kinds would; label some of the other kind; {step}"
        )
    return tuple(doubts)


def _failed(given: Given) -> Iterator[str]:
    """Yield the causes of failed verdicts on labeled subjects."""
    failed = [one for key in given.labels if (one := given.stage.outcomes.get(key)) is not None and one.score is None]
    yield from (f"failed: {cause}" for cause in causes(failed))


def _kept(keys: Sequence[Subject], kept: Numbers) -> frozenset[Subject]:
    return frozenset(key for key, one in zip(keys, kept.tolist(), strict=True) if one)


def _needed(found: Climb, labelled: Labelled, test: RungTest, seed: int) -> Needed:
    """How many labels a threshold needs, from the bins between the rungs; what lies below the last one is a bin of its own."""
    counts = [0, *(rung.n for rung in found.rungs), labelled.n]
    errors = [0, *(rung.errors for rung in found.rungs), int(labelled.errors.sum())]
    bins = [(n - m, k - j) for n, m, k, j in zip(counts[1:], counts, errors[1:], errors, strict=False)]
    bins = bins if bins[-1][0] else bins[:-1]
    return needed([n for n, _ in bins], [k for _, k in bins], test, seed)


def _reasons(
    found: Climb, labelled: Labelled, test: RungTest, sessions: int | None, everyone: Numbers, *, is_undecided: bool
) -> list[str]:
    """Return the limits of the threshold, or the reasons why there is none."""
    said = []
    if is_undecided:
        begun = any(rung.passed is not None for rung in found.rungs)
        first = next((rung for rung in found.rungs if rung.passed is not None), None)
        if begun and first is not None and first.upper is None:
            said.append("one_session: the labels kept are of one session, which says nothing of others")
        elif begun and first is not None:
            said.append(f"not_passed: {first.errors} of {first.n} are wrong at the first rung, {first.threshold:.4g}")
        elif first_rung(found.rungs, labelled.n, test.least) == len(found.rungs):
            said.append(f"too_few_labels: no rung has the {test.least} labels that a test needs")
    if len(everyone) and everyone.min() == everyone.max():
        said.append("constant_signal: every verdict has the same signal, so that all are kept or none")
    said += [] if sessions is None else _of_sessions(sessions, labelled, test)
    if sessions is not None and test.method == "sequential":
        said.append("sessions: the sequential test takes labels for independent, and some are of one session")
    return said


def _of_sessions(sessions: int, labelled: Labelled, test: RungTest) -> Iterator[str]:
    """Where so many *sessions* are too few for the bound to be as sure as alpha says."""
    rough = f"with fewer than {FEW_SESSIONS} the bound is rough"
    if sessions < FEW_SESSIONS:
        yield f"few_sessions: the labels are of {sessions} session{'s' if sessions > 1 else ''}; {rough}, and too low more often than alpha says"
        return
    if (alike := labelled.alike_sessions) < FEW_SESSIONS:
        yield f"unequal_sessions: {sessions} sessions of such different sizes tell as much as {alike:.0f} alike ones; {rough}"
    if sessions < test.least:
        yield (
            f"alike_sessions: were all subjects of a session alike, {sessions} sessions would be too few, for a test takes {test.least}: the bound is rough where "
            "they nearly are"
        )


def next_risk(step: Step, later: Stage | None, rules: Rules) -> float | None:
    """The upper bound, at the level alpha, of how often the *later* stage disagrees with what *step* keeps, from the labelled subjects both have judged."""
    if later is None:
        return None
    n = wrong = 0
    for key in step.kept:
        one, other = step.stage.outcomes[key], later.outcomes.get(key)
        if other is not None and other.score is not None and one.score is not None:
            n += 1
            wrong += rules.wrong(one.score, other.score)
    return float(upper(wrong, n, rules.alpha)) if n else None
