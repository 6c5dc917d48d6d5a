"""Whether cases pass at least at a rate: shown, refuted, or not known yet."""

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
"""How many cases are tried to find the fewest that can show a rate."""

PASS_AT = 0.5
"""The least score with which a case passes, where nothing else is said."""


@attrs.frozen
class PassRate:
    """What *n* cases, of which *passed* passed, say of the rate *at_least*.

    *decision* is ``pass`` where a rate below *at_least* is refuted, ``fail`` where one of *at_least* or more is, each with an error
    probability of at most *alpha*, else ``undecided``. *low* and *high* bound the rate with the probability 1 - *alpha*. *method* is
    ``betting``, which may be looked at after every case, or ``exact binomial``, for a number of cases that was fixed before; *fewest* is how
    many cases can show the rate at all, where all pass. *given* is how many cases there were, of which the first *n* decided.
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
        return f"{self.decision}: {rate}, at least {self.at_least:g} asked for; {bounds}"


class Undecided(AssertionError):
    """The cases are too few to tell."""


def assert_pass_rate(
    cases: Iterable[object] | Run,
    at_least: float = 0.9,
    alpha: float = 0.05,
    *,
    undecided: Literal["fail", "skip"] = "fail",
) -> PassRate:
    """Fail unless the *cases* show that at least *at_least* of the population they are drawn from passes.

    It decides as ``trust/anytime`` does: the cases come in random order, and it may be asked again with more of them. Where the first cases
    decide, and those after them decide otherwise, they came in no random order, which is an error. A kernel that cannot make that component decides by an exact binomial test, for which the number of cases has to be fixed before any of them is seen.

    :param cases: booleans; Scores, Judgments, numbers in [0, 1] and Verdicts, which pass at 0.5; Failures, which do not pass; or a Run,
        whose subjects pass as its ``pass_at`` says, those that failed do not, and those of one session are one case together.
    :param at_least: the rate that is asked for, between 0 and 1.
    :param alpha: the probability of a wrong ``pass``, and of a wrong ``fail``, at most.
    :param undecided: what to do where the cases are too few to tell: fail, or skip the test.
    :returns: what was found, where it is ``pass``.
    :raises AssertionError: where the rate is refuted; :class:`Undecided` where nothing is shown.
    :raises ValueError: when there is no case, one is something else, a number is out of range, or the order is not random.
    """
    __tracebackhide__ = True
    if undecided not in ("fail", "skip"):
        raise ValueError(f"undecided is {undecided!r}; it is 'fail' or 'skip'")
    found = pass_rate(cases, at_least, alpha)
    if found.decision == "fail":
        raise AssertionError(str(found))
    if found.decision == "undecided":
        message = f"{found}; {_more(found)}"
        if undecided == "skip":
            import pytest  # the function is of use without it

            pytest.skip(message)
        raise Undecided(message)
    return found


def pass_rate(cases: Iterable[object] | Run, at_least: float = 0.9, alpha: float = 0.05) -> PassRate:
    """What the *cases* say, without an assertion; see :func:`assert_pass_rate`."""
    for name, value in (("at_least", at_least), ("alpha", alpha)):
        if not 0 < value < 1:
            raise ValueError(f"{name} is {value!r}; it is between 0 and 1, neither of them")
    passes = [*passed(cases)]
    if not passes:
        raise ValueError("there is no case: a rate of nothing is nothing")
    return betting(passes, at_least, alpha) if has_betting() else exact(passes, at_least, alpha)


def passed(cases: Iterable[object] | Run) -> Iterator[bool]:
    """Whether each case passes, in their order."""
    from dicast import Run

    if isinstance(cases, Run):
        yield from _of_run(cases)
        return
    for number, case in enumerate(cases):
        yield _passes(case, number)


def _passes(case: object, number: int) -> bool:
    from dicast import Failure, Judgment, Score, Verdict

    case = case.item() if hasattr(case, "item") else case  # numpy's
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
    """The subjects of *run*, each of which passes where all labels that count do; those of one session are one case."""
    from dicast.reporting import OutcomeReader

    reader = OutcomeReader()

    def read(events: Iterable[Any]) -> list[bool]:
        told = [*reader.take([*events]), *reader.end()]
        cases, counted = dict[object, bool](), reader.counted
        for one in (one for one in told if one.outcomes):
            key = (one.kind, one.id) if one.session_id is None else one.session_id
            cases[key] = cases.get(key, True) and one.worst(counted) is None
        return [*cases.values()]

    yield from run.read(reader.wants, read)


def has_betting() -> bool:
    """Whether the kernel can make ``trust/anytime`` for a program; earlier ones cannot."""
    import dicast

    return hasattr(dicast, "component")


def betting(passes: Sequence[bool], at: float, alpha: float) -> PassRate:
    """The test of ``trust/anytime`` of a population's mean, which holds whenever it is looked at; the cases after its decision count no more."""
    import dicast

    options = {"at": at, "alpha": alpha, "target": "population"}
    make: Any = dicast.component
    made = make("early_stop", {"trust/anytime": options})
    test = made.test()
    test.observe_all(map(float, passes))
    told = test.document()
    decision: Decision = _DECISIONS[told["decision"]]
    seen, others = passes[: told["n"]], made.test()
    others.observe_all(map(float, passes[told["n"] :]))
    if others.decision and others.decision != test.decision:
        raise ValueError(
            f"the first {len(seen):,} of {len(passes):,} cases say {decision}, those after them {_DECISIONS[others.decision]}: they come in "
            "no random order; shuffle them (random.shuffle, or shuffle: SEED at the source of a pipeline)"
        )
    found = PassRate(decision, len(seen), sum(seen), at, alpha, told["low"], told["high"], "betting", given=len(passes))
    if decision == "undecided":
        best = made.test()
        best.observe_all([1.0] * _MOST)
        found = attrs.evolve(found, fewest=best.n if best.decision else None)
    return found


def exact(passes: Sequence[bool], at: float, alpha: float) -> PassRate:
    """The exact binomial test of each side, for a number of cases that was fixed before, and the interval of Clopper and Pearson (1934)."""
    n, k = len(passes), sum(passes)
    low = 0.0 if k == 0 else _root(lambda p: _above(n, k, p), alpha / 2)
    high = 1.0 if k == n else 1 - _root(lambda p: _above(n, n - k, p), alpha / 2)
    shown, refuted = _above(n, k, at) <= alpha, _above(n, n - k, 1 - at) <= alpha
    decision: Decision = "pass" if shown else "fail" if refuted else "undecided"
    fewest = math.ceil(math.log(alpha) / math.log(at))
    return PassRate(decision, n, k, at, alpha, low, high, "exact binomial", fewest, n)


def _above(n: int, k: int, p: float) -> float:
    """The probability that at least *k* of *n* pass where each does with the probability *p*."""
    if k <= 0:
        return 1.0
    whole = math.lgamma(n + 1)
    ways = (
        whole - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * math.log(p) + (n - i) * math.log1p(-p)
        for i in range(k, n + 1)
    )
    return min(1.0, math.fsum(map(math.exp, ways)))


def _root(function: Any, value: float) -> float:
    """Where the rising *function* reaches *value*, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if function(middle) > value else (middle, high)
    return (low + high) / 2


def _more(found: PassRate) -> str:
    if found.fewest is not None and found.n < found.fewest:
        return f"{found.fewest:,} cases are the fewest that can show it, all of them passing"
    return "more cases may tell"
