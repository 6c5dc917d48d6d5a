"""A test of whether at least a given share of cases pass: shown, refuted, or undecided."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import attrs

if TYPE_CHECKING:
    from dicast import Run

Decision = Literal["pass", "fail", "undecided"]

_DECISIONS: Any = {"above": "pass", "below": "fail", None: "undecided"}
_MOST = 20_000
"""Largest number that the search for the fewest sufficient cases tries."""

PASS_AT = 0.5
"""The lowest score of a passing case, unless another is set."""


@attrs.frozen
class PassRate:
    """Evidence about the rate *at_least*: *passed* of *n* cases passed.

    *decision* is ``pass`` if a rate below *at_least* is refuted, ``fail`` if a rate of *at_least* or more is refuted, each with an error
    probability of at most *alpha*, else ``undecided``. *low* and *high* bound the rate with the probability 1 - *alpha*. *method* is
    ``betting``, which may be evaluated after every case, or ``exact binomial``, for a number of cases fixed in advance. *fewest* is the
    smallest number of cases that can show the rate, if all pass. *given* is the number of all cases; the first *n* of them decided.
    """

    decision: Decision
    n: int
    passed: int
    at_least: float
    alpha: float
    low: float
    high: float
    method: Literal["betting", "exact binomial"]
    fewest: int | None = None
    given: int | None = None

    def __str__(self) -> str:
        rate = f"{self.passed:,} of {self.n:,} passed ({self.passed / self.n:.4f})"
        if self.given is not None and self.given > self.n:
            rate += f", the first of {self.given:,} cases, which decide"
        bounds = f"{100 * (1 - self.alpha):.6g}% interval {self.low:.4f} to {self.high:.4f} ({self.method})"
        return f"{self.decision}: {rate}, required: at least {self.at_least:g}; {bounds}"


class Undecided(AssertionError):
    """The cases are too few for a decision."""


def assert_pass_rate(
    cases: Iterable[object] | Run,
    at_least: float = 0.9,
    alpha: float = 0.05,
    *,
    undecided: Literal["fail", "skip"] = "fail",
) -> PassRate:
    """Fail unless the *cases* show that a share of at least *at_least* of their population passes.

    The test is ``trust/anytime``: cases must be in random order, and the test may be repeated with more cases. If later cases contradict
    the decision of the first ones, the order was not random, which is an error. A version of dicast without that component uses an exact
    binomial test, which needs a number of cases fixed in advance.

    :param cases: booleans; Scores, Judgments, numbers in [0, 1] and Verdicts, which pass at 0.5; Failures, which do not pass; or a Run,
        whose subjects pass by its ``pass_at``; failed subjects do not pass, and all subjects of a session are one case.
    :param at_least: the required rate, between 0 and 1.
    :param alpha: the highest probability of a wrong ``pass``, and of a wrong ``fail``.
    :param undecided: the result if the cases are too few: fail, or skip the test.
    :returns: the evidence of a ``pass``.
    :raises AssertionError: if the rate is refuted; :class:`Undecided` if nothing is shown.
    :raises ValueError: if there are no cases, a case has another type, a number is out of range, or the order is not random.
    """
    __tracebackhide__ = True
    if undecided not in ("fail", "skip"):
        raise ValueError(f"undecided is {undecided!r}; it is 'fail' or 'skip'")
    evidence = pass_rate(cases, at_least, alpha)
    if evidence.decision == "fail":
        raise AssertionError(str(evidence))
    if evidence.decision == "undecided":
        message = f"{evidence}; {_advice(evidence)}"
        if undecided == "skip":
            import pytest  # the function also works without pytest

            pytest.skip(message)
        raise Undecided(message)
    return evidence


def pass_rate(cases: Iterable[object] | Run, at_least: float = 0.9, alpha: float = 0.05) -> PassRate:
    """Return the evidence of *cases*, without an assertion; see :func:`assert_pass_rate`."""
    for name, value in (("at_least", at_least), ("alpha", alpha)):
        if not 0 < value < 1:
            raise ValueError(f"{name} is {value!r}; it must be between 0 and 1, exclusive")
    passes = [*passed(cases)]
    if not passes:
        raise ValueError("there is no case: a rate needs at least one")
    return betting(passes, at_least, alpha) if has_betting() else exact(passes, at_least, alpha)


def passed(cases: Iterable[object] | Run) -> Iterator[bool]:
    """Yield for each case whether it passes, in order."""
    from dicast import Run

    if isinstance(cases, Run):
        yield from _of_run(cases)
        return
    for number, case in enumerate(cases):
        yield _passes(case, number)


def _passes(case: object, number: int) -> bool:
    from dicast import Failure, Judgment, Score, Verdict

    case = case.item() if hasattr(case, "item") else case  # a numpy scalar
    if isinstance(case, bool):
        return case
    if isinstance(case, Failure):
        return False
    if isinstance(case, Score | Judgment | Verdict):
        value = case.value if isinstance(case, Score) else case.score
        if value is None:
            raise ValueError(f"case {number} has a raw value and no score in [0, 1]: give its metric a range")
        return value >= PASS_AT
    if isinstance(case, int | float) and 0 <= case <= 1:
        return case >= PASS_AT
    kinds = "a boolean, a Score, a Judgment, a Verdict, a Failure or a number in [0, 1]"
    raise ValueError(f"case {number} is {case!r:.100}; it is {kinds}")


def _of_run(run: Run) -> Iterator[bool]:
    """Yield the cases of *run*. A subject passes if all counted labels pass; all subjects of a session are one case."""
    from dicast.reporting import OutcomeReader

    reader = OutcomeReader()

    def read(events: Iterable[Any]) -> list[bool]:
        subjects = [*reader.take([*events]), *reader.end()]
        cases, counted = dict[object, bool](), reader.counted
        for subject in (subject for subject in subjects if subject.outcomes):
            key = (subject.kind, subject.id) if subject.session_id is None else subject.session_id
            cases[key] = cases.get(key, True) and subject.worst(counted) is None
        return [*cases.values()]

    yield from run.read(reader.wants, read)


def has_betting() -> bool:
    """Return whether this version of dicast can create ``trust/anytime`` for a program; earlier ones cannot."""
    import dicast

    return hasattr(dicast, "component")


def betting(passes: Sequence[bool], at: float, alpha: float) -> PassRate:
    """Return the result of ``trust/anytime`` for a population's mean, which is valid at any time. It ends at the first decision."""
    import dicast

    options = {"at": at, "alpha": alpha, "target": "population"}
    make: Any = dicast.component
    early_stop = make("early_stop", {"trust/anytime": options})
    test = early_stop.test()
    test.observe_all(map(float, passes))
    document = test.document()
    decision: Decision = _DECISIONS[document["decision"]]
    seen, later_test = passes[: document["n"]], early_stop.test()
    later_test.observe_all(map(float, passes[document["n"] :]))
    if later_test.decision and later_test.decision != test.decision:
        raise ValueError(
            f"the first {len(seen):,} of {len(passes):,} cases result in {decision}, the later cases in {_DECISIONS[later_test.decision]}: their "
            "order is not random; shuffle them (random.shuffle, or shuffle: SEED at the source of a pipeline)"
        )
    evidence = PassRate(
        decision, len(seen), sum(seen), at, alpha, document["low"], document["high"], "betting", given=len(passes)
    )
    if decision == "undecided":
        best = early_stop.test()
        best.observe_all([1.0] * _MOST)
        evidence = attrs.evolve(evidence, fewest=best.n if best.decision else None)
    return evidence


def exact(passes: Sequence[bool], at: float, alpha: float) -> PassRate:
    """Return the result of exact binomial tests of both sides, and the interval of Clopper and Pearson (1934)."""
    n, k = len(passes), sum(passes)
    low = 0.0 if k == 0 else _root(lambda p: _above(n, k, p), alpha / 2)
    high = 1.0 if k == n else 1 - _root(lambda p: _above(n, n - k, p), alpha / 2)
    is_shown, is_refuted = _above(n, k, at) <= alpha, _above(n, n - k, 1 - at) <= alpha
    decision: Decision = "pass" if is_shown else "fail" if is_refuted else "undecided"
    fewest = math.ceil(math.log(alpha) / math.log(at))
    return PassRate(decision, n, k, at, alpha, low, high, "exact binomial", fewest, n)


def _above(n: int, k: int, p: float) -> float:
    """Return the probability that at least *k* of *n* pass if each passes with the probability *p*."""
    if k <= 0:
        return 1.0
    log_total = math.lgamma(n + 1)
    ways = (
        log_total - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * math.log(p) + (n - i) * math.log1p(-p)
        for i in range(k, n + 1)
    )
    return min(1.0, math.fsum(map(math.exp, ways)))


def _root(function: Any, value: float) -> float:
    """Return the argument at which the increasing *function* reaches *value*, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if function(middle) > value else (middle, high)
    return (low + high) / 2


def _advice(evidence: PassRate) -> str:
    if evidence.fewest is not None and evidence.n < evidence.fewest:
        return f"{evidence.fewest:,} passing cases are the fewest that can show it"
    return "more cases may decide"
