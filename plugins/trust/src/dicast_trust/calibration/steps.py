"""Calibration of one step of a cascade: the signal above which a stage's verdicts are kept, by the remaining labels."""

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
from .ladder import Climb, LabeledSignals, Method, RungTest, climb, first_rung, sequential_start, thresholds
from .signals import FOLDS, LEAST, QUANTILES, Features, cross_fitted, features_of, fit, fold, scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]

LEAST_REMAINING = 30
"""Least number of labels for a later step, among the labels that earlier steps do not keep."""

FEW_SESSIONS = 20


@attrs.frozen
class Step:
    """Result of the calibration of a step."""

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
    kept_subjects: frozenset[Subject]
    """Labeled subjects with a kept verdict of this stage."""
    reached_kept: int
    """Number of subjects that reach the step and have a kept verdict."""
    reached: int
    """Number of subjects that reach the step."""
    difference: Difference | None = None
    """Difference between the signals of labeled subjects and of all subjects."""


@attrs.frozen
class StepInput:
    """Input of a step: the *stage*, the *labels* of the subjects that reach it, and whether a subject of the ledger reaches it.

    *is_one_class* is set if all labels of the calibration have the same class.
    """

    stage: Stage
    labels: Mapping[Subject, GoldLabel]
    reach: Callable[[Subject], bool]
    lengths: Mapping[Subject, TextLengths]
    is_later: bool
    is_one_class: bool = False

    @property
    def outcomes(self) -> dict[Subject, Outcome]:
        """Outcomes of all subjects that reach the stage."""
        return {key: outcome for key, outcome in self.stage.outcomes.items() if self.reach(key)}


def take(step_input: StepInput, rules: Rules, alpha: float) -> Step:
    """Calibrate one step at the level *alpha*, with the better signal if the rules allow both."""
    good = sum(_has_score(step_input.stage, key) for key in step_input.labels)
    if step_input.is_later and len(step_input.labels) < LEAST_REMAINING:
        return _without_threshold(
            step_input,
            f"too_few_labels: {len(step_input.labels)} labels remain for this step, and it needs {LEAST_REMAINING}",
        )
    if good == 0:
        failed = "; ".join(
            causes(step_input.stage.outcomes[key] for key in step_input.labels if key in step_input.stage.outcomes)
        )
        return _without_threshold(step_input, f"all_failed: every verdict on a labeled subject is a failure: {failed}")
    if rules.signals == "confidence" or (rules.signals == "auto" and (good < LEAST or rules.sequential)):
        return _by_confidence(step_input, rules, alpha)
    if good < LEAST:
        return _without_threshold(
            step_input,
            f"too_few_labels: a model of the signals needs {LEAST} labels with a verdict, but {good} have one",
        )
    if rules.signals == "model":
        return _by_model(step_input, rules, alpha)
    by_confidence, by_model = _by_confidence(step_input, rules, alpha / 2), _by_model(step_input, rules, alpha / 2)
    return by_model if by_model.climb.threshold is not None and by_model.share > by_confidence.share else by_confidence


def _has_score(stage: Stage, key: Subject) -> bool:
    outcome = stage.outcomes.get(key)
    return outcome is not None and outcome.score is not None


def _without_threshold(
    step_input: StepInput, reason: str, signal: Literal["confidence", "model"] = "confidence"
) -> Step:
    failures = sum(not _has_score(step_input.stage, key) for key in step_input.labels)
    with_score = len(step_input.labels) - failures
    method = "exact" if signal == "confidence" else "cross-fitted"
    reached = len(step_input.outcomes)
    return Step(
        step_input.stage,
        signal,
        None,
        Climb(None, ()),
        method,
        with_score,
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
class _Arrays:
    """Labels of a step as arrays: the subjects with a verdict, in the labels' order."""

    keys: tuple[Subject, ...]
    errors: Numbers
    sessions: Numbers
    groups: tuple[str, ...]


def _arrays(step_input: StepInput, rules: Rules) -> _Arrays:
    import numpy as np

    keys = tuple(key for key in step_input.labels if _has_score(step_input.stage, key))
    outcomes, labels = [step_input.stage.outcomes[key] for key in keys], [step_input.labels[key] for key in keys]
    pairs = zip(outcomes, labels, strict=True)
    errors = np.array([rules.is_wrong(outcome.score or 0.0, label.score) for outcome, label in pairs], dtype=int)
    groups = tuple(_group(outcome, label) for outcome, label in zip(outcomes, labels, strict=True))
    numbers: dict[str, int] = {}
    sessions = np.array([numbers.setdefault(group, len(numbers)) for group in groups], dtype=int)
    return _Arrays(keys, errors, sessions, groups)


def _group(outcome: Outcome, label: GoldLabel) -> str:
    """Return the cluster of a subject: its session, else the subject itself."""
    return _session_of(outcome) if label.session_id is None else f"session\n{label.session_id}"


def _session_of(outcome: Outcome) -> str:
    return f"subject\n{outcome.kind}\n{outcome.id}" if outcome.session is None else f"session\n{outcome.session}"


def _by_confidence(step_input: StepInput, rules: Rules, alpha: float) -> Step:
    import numpy as np

    arrays, reach = _arrays(step_input, rules), step_input.outcomes
    confidences = np.array([step_input.stage.outcomes[key].confidence for key in arrays.keys])
    everyone = np.array([outcome.confidence for outcome in reach.values() if outcome.score is not None])
    labeled = LabeledSignals(confidences, arrays.errors, arrays.sessions)
    at = thresholds(
        np.array([outcome.confidence for outcome in step_input.stage.outcomes.values() if outcome.score is not None])
    )
    method: Method = "sequential" if rules.sequential else "korn-graubard" if labeled.has_repeats else "exact"
    start = None
    if rules.sequential:
        rest = np.array(
            [
                outcome.confidence
                for key, outcome in reach.items()
                if outcome.score is not None and key not in step_input.labels
            ]
        )
        start = sequential_start(at, rest if len(rest) else everyone)
    test = RungTest(rules.risk, alpha, method)
    result = climb(labeled, at, test, start)
    signals = {key: outcome.confidence for key, outcome in reach.items() if outcome.score is not None}
    return _step(step_input, rules, arrays, labeled, signals, result, test, method, None)


def _by_model(step_input: StepInput, rules: Rules, alpha: float) -> Step:
    import numpy as np

    arrays, reach = _arrays(step_input, rules), step_input.outcomes
    features = features_of(step_input.stage.outcomes, step_input.lengths, rules.features)
    agrees = 1.0 - arrays.errors
    if agrees.min() == agrees.max():
        return _without_threshold(
            step_input,
            "one_class: the verdicts agree with all labels, or with no label, so a model learns nothing",
            "model",
        )
    values = np.array([features.values[key] for key in arrays.keys])
    folds = np.array([fold(rules.seed, group) for group in arrays.groups])
    if len(np.unique(folds)) < 2:
        return _without_threshold(
            step_input,
            f"few_sessions: the labels' sessions are all in one of {FOLDS} parts, so no other part remains to learn from",
            "model",
        )
    fold_scores = cross_fitted(values, agrees, folds, features.names)
    if fold_scores is None:
        return _without_threshold(
            step_input, f"one_class: in {FOLDS - 1} of {FOLDS} parts the verdicts agree with all labels", "model"
        )
    model = fit(values, agrees, features.names)
    all_scores = dict(
        zip(features.values, scores(model, np.array(list(features.values.values()))).tolist(), strict=True)
    )
    signals = {key: score for key, score in all_scores.items() if key in reach}
    labeled = LabeledSignals(fold_scores, arrays.errors, arrays.sessions)
    method: Method = "korn-graubard" if labeled.has_repeats else "exact"
    test = RungTest(rules.risk, alpha, method)
    result = climb(labeled, thresholds(np.array(list(all_scores.values())), QUANTILES), test)
    return _step(step_input, rules, arrays, labeled, signals, result, test, "cross-fitted", (model, features))


def _step(
    step_input: StepInput,
    rules: Rules,
    arrays: _Arrays,
    labeled: LabeledSignals,
    signals: Mapping[Subject, float],
    result: Climb,
    test: RungTest,
    method: str,
    model: tuple[TrustModel, Features] | None,
) -> Step:
    import numpy as np

    everyone = np.array(list(signals.values()))
    difference = _difference(step_input, arrays, signals, result, rules.seed)
    doubts = _doubts(step_input, difference, rules)
    if doubts and not rules.assume_random:
        result = Climb(None, result.rungs)
    reached, at = len(step_input.outcomes), result.threshold
    kept_count = 0 if at is None else int((everyone >= at).sum())
    sessions = len(set(arrays.sessions.tolist())) if labeled.has_repeats else None
    is_undecided = at is None and not (doubts and not rules.assume_random)
    return Step(
        step_input.stage,
        "confidence" if model is None else "model",
        None if model is None else model[0],
        result,
        method,
        len(arrays.keys),
        len(step_input.labels) - len(arrays.keys),
        0 if at is None else int((labeled.signals >= at).sum()),
        kept_count / reached if reached else 0.0,
        sessions,
        _needed(result, labeled, test, rules.seed) if is_undecided else None,
        (
            *doubts,
            *_reasons(result, labeled, test, sessions, everyone, is_undecided=is_undecided),
            *_failed(step_input),
        ),
        frozenset() if at is None else _keys_where(arrays.keys, labeled.signals >= at),
        kept_count,
        reached,
        difference,
    )


def _difference(
    step_input: StepInput, arrays: _Arrays, signals: Mapping[Subject, float], result: Climb, seed: int
) -> Difference | None:
    """Compare the signals of the labeled subjects with the signals of all subjects that reach the step."""
    import numpy as np

    labeled = set(arrays.keys)
    groups = dict(zip(arrays.keys, arrays.groups, strict=True))
    return label_difference(
        np.array(list(signals.values())),
        np.array([key in labeled for key in signals]),
        [rung.threshold for rung in result.rungs],
        [groups.get(key) or _session_of(step_input.stage.outcomes[key]) for key in signals],
        seed,
    )


def _doubts(step_input: StepInput, difference: Difference | None, rules: Rules) -> tuple[str, ...]:
    """Return the reasons to doubt that the labels are a random draw; without ``assume_random`` they prevent a threshold."""
    step = "assumed random" if rules.assume_random else "to accept them as a random draw, add --assume-random"
    doubts = []
    if difference is not None and difference.is_significant:
        doubts.append(
            f"labels_not_drawn_from_ledger: the signals of labeled subjects differ from the signals of all subjects by up to {difference.greatest:.2f} "
            f"(p {difference.p_value:.4f}); label subjects drawn at random (dicast label --random N), or name their runs (--run ID); {step}"
        )
    if step_input.is_one_class:
        doubts.append(
            f"labels_of_one_class: all labels are of one class, which is improbable for a random draw; label subjects of the other class too; {step}"
        )
    return tuple(doubts)


def _failed(step_input: StepInput) -> Iterator[str]:
    """Yield the causes of failed verdicts on labeled subjects."""
    failed = [
        outcome
        for key in step_input.labels
        if (outcome := step_input.stage.outcomes.get(key)) is not None and outcome.score is None
    ]
    yield from (f"failed: {cause}" for cause in causes(failed))


def _keys_where(keys: Sequence[Subject], mask: Numbers) -> frozenset[Subject]:
    return frozenset(key for key, is_kept in zip(keys, mask.tolist(), strict=True) if is_kept)


def _needed(result: Climb, labeled: LabeledSignals, test: RungTest, seed: int) -> Needed:
    """Return the labels that a threshold needs, from the bins between the rungs; labels below the last rung are a separate bin."""
    counts = [0, *(rung.n for rung in result.rungs), labeled.n]
    errors = [0, *(rung.errors for rung in result.rungs), int(labeled.errors.sum())]
    bins = [(n - m, k - j) for n, m, k, j in zip(counts[1:], counts, errors[1:], errors, strict=False)]
    bins = bins if bins[-1][0] else bins[:-1]
    return needed([n for n, _ in bins], [k for _, k in bins], test, seed)


def _reasons(
    result: Climb,
    labeled: LabeledSignals,
    test: RungTest,
    sessions: int | None,
    everyone: Numbers,
    *,
    is_undecided: bool,
) -> list[str]:
    """Return the limits of the threshold, or the reasons why there is none."""
    reasons = []
    if is_undecided:
        is_tested = any(rung.passed is not None for rung in result.rungs)
        first = next((rung for rung in result.rungs if rung.passed is not None), None)
        if is_tested and first is not None and first.upper is None:
            reasons.append("one_session: the kept labels are of one session, which is no evidence about other sessions")
        elif is_tested and first is not None:
            reasons.append(
                f"not_passed: {first.errors} of {first.n} are wrong at the first rung, {first.threshold:.4g}"
            )
        elif first_rung(result.rungs, labeled.n, test.least) == len(result.rungs):
            reasons.append(f"too_few_labels: no rung has the {test.least} labels that a test needs")
    if len(everyone) and everyone.min() == everyone.max():
        reasons.append("constant_signal: every verdict has the same signal, so all verdicts are kept or all escalate")
    reasons += [] if sessions is None else _of_sessions(sessions, labeled, test)
    if sessions is not None and test.method == "sequential":
        reasons.append("sessions: the sequential test assumes independent labels, but some share a session")
    return reasons


def _of_sessions(sessions: int, labeled: LabeledSignals, test: RungTest) -> Iterator[str]:
    """Yield the reasons why *sessions* are too few for a bound at the level alpha."""
    rough = f"with fewer than {FEW_SESSIONS} the bound is rough"
    if sessions < FEW_SESSIONS:
        yield f"few_sessions: the labels are of {sessions} session{'s' if sessions > 1 else ''}; {rough}, and too low more often than alpha"
        return
    if (equal_sessions := labeled.effective_sessions) < FEW_SESSIONS:
        yield f"unequal_sessions: {sessions} sessions of such different sizes are worth {equal_sessions:.0f} of equal size; {rough}"
    if sessions < test.least:
        yield (
            f"alike_sessions: if all subjects of a session were equal, {sessions} sessions would be too few, because a test needs {test.least}: the bound is rough "
            "if they are nearly equal"
        )


def next_risk(step: Step, later: Stage | None, rules: Rules) -> float | None:
    """Return the upper bound, at the level alpha, of how often the *later* stage disagrees with kept verdicts of *step*.

    It is from the labeled subjects that both stages have judged; None without any.
    """
    if later is None:
        return None
    n = disagreements = 0
    for key in step.kept_subjects:
        outcome, later_outcome = step.stage.outcomes[key], later.outcomes.get(key)
        if later_outcome is not None and later_outcome.score is not None and outcome.score is not None:
            n += 1
            disagreements += rules.is_wrong(outcome.score, later_outcome.score)
    return float(upper(disagreements, n, rules.alpha)) if n else None
