"""Checks for metrics and judges."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar, TypeVar

import attrs
import orjson

from .._kernel.contract.define import maybe_await
from .._kernel.contract.implements import implements
from .._kernel.contract.kinds import KINDS, parts
from .._kernel.contract.plugin_errors import describe_error
from .._kernel.contract.protocols import WrongEstimate, estimate
from .._kernel.values import Cost, Failure, Judgment, Score, Subject
from .._kernel.values.errors import ConfigError, InvalidCost, InvalidScore, ScoringError, UnknownName
from .._kernel.values.raw_score import RawScore
from .conformance import Conformance
from .pipeline import Bench
from .subjects import GOLDEN, read_only_copy
from .uses import FirstUse, PricedAnswer, SecondUse, Uses, content
from .variations import variations

MANY = 4
"""The fewest scored subjects for which equal scores are a fault."""

DEF_SECONDS = 0.05
"""Seconds of CPU that a ``def`` may take for a golden subject; all other calls wait for it."""

ASYNC_SECONDS = 120.0
"""Seconds that an ``async def`` may take for a golden subject."""

CANCEL_SECONDS = 1.0
"""Seconds that a call may go on after it was cancelled."""

Ask = Callable[[Subject], Any]
T = TypeVar("T")


class AnsweringConformance(Conformance):
    """Checks that metrics and judges share.

    - ``subjects``: the subjects that the component gets; by default the golden subjects of the kinds that it accepts.
    - ``deterministic``: False for a component that samples, so that its answers to one subject may differ.
    """

    subjects: Sequence[Subject] = GOLDEN
    deterministic: bool = True
    answer: ClassVar[tuple[type, ...]]

    def asking(self, live: Any) -> Ask:
        """Return the method of *live* that takes a subject and returns an answer."""
        raise NotImplementedError

    def accepted(self, component: Any) -> list[Subject]:
        """Return read-only copies of the ``subjects`` of the kinds that *component* judges."""
        accepts = getattr(component, "accepts", ())
        subjects = [read_only_copy(subject) for subject in self.subjects if not accepts or subject.kind in accepts]
        assert subjects, (
            f"{self.named} accepts {accepts}, and none of the subjects is of these kinds; give it some: subjects = [...]"
        )
        counts = Counter(subject.id for subject in subjects)
        twice = [repr(id) for id, count in counts.items() if count > 1]
        assert not twice, (
            f"several subjects of {type(self).__name__} have the id {', '.join(twice)}; give each subject its own: sample(…, id=…)"
        )
        return subjects

    def answers(self, component: Any, bench: Bench, *, backwards: bool = False) -> dict[str, object]:
        """Return the answers by subject id, with the exception in place of an answer if the component raised."""

        async def ask(live: Any) -> dict[str, object]:
            subjects = self.accepted(component)[:: -1 if backwards else 1]
            return {subject.id: await _answer(self.asking(live), subject) for subject in subjects}

        return self.opened(component, bench.folder, ask)

    def use(self, component: Any, bench: Bench) -> object:
        """Return the answers."""
        return self.answers(component, bench)

    def _uses(self, bench: Bench) -> Uses:
        """Return the uses of the component that the checks of this class share."""
        attributes = self.named, self.options, self.files, self.components, self.subjects
        cls: Any = type(self)
        uses: Uses | None = vars(cls).get("_shared")
        if uses is None or uses.attributes != attributes or not uses.bench.folder.is_dir():
            uses = cls._shared = Uses(attributes, bench)
        return uses

    def _first_use(self, bench: Bench) -> FirstUse:
        """Return the first use, which the checks of this class share."""
        uses = self._uses(bench)
        if uses.first is None:
            uses.first = super()._first_use(uses.bench)
        return uses.first

    def _second_use(self, bench: Bench) -> SecondUse:
        """Return the second use of the component, which the checks of this class share."""
        uses, component = self._uses(bench), self._first_use(bench).component

        async def ask(live: Any) -> SecondUse:
            use = SecondUse()
            for subject in self.accepted(component):
                before = content(subject)
                use.add(subject, before, await _answer(self.asking(live), subject))
            return use

        if uses.second is None:
            uses.second = self.opened(component, uses.bench.folder, ask)
        return uses.second

    def _priced_answers(self, bench: Bench) -> list[PricedAnswer]:
        """Return each subject's answer, with the estimates before and after it."""
        uses = self._uses(bench)
        component = self.built(uses.bench)

        async def ask(live: Any) -> list[PricedAnswer]:
            priced = live if hasattr(live, "estimate") else component
            answers = []
            for subject in self.accepted(component):
                before, answer = estimate(priced, subject), await _answer(self.asking(live), subject)
                answers.append(PricedAnswer(subject.id, before, answer, estimate(priced, subject)))
            return answers

        if uses.priced is None:
            uses.priced = self.opened(component, uses.bench.folder, ask)
        return uses.priced

    def test_answers_every_subject_with_a_score_or_a_failure(self, component: Any, bench: Bench) -> None:
        """No text, a mebibyte, objects, failed tools: a score in [0, 1], or a Failure that says why there is none."""
        answers = self._first_use(bench).answers
        wrong = {id: fault for id, answer in answers.items() if (fault := self._fault(answer))}
        assert not wrong, "\n".join(f"{id}: {fault}" for id, fault in wrong.items())

    def _fault(self, answer: object) -> str | None:
        if isinstance(answer, InvalidScore | InvalidCost | UnknownName):
            return f"{describe_error(answer)}; return a Failure of a known kind"
        if isinstance(answer, Failure | ScoringError):
            return None
        if isinstance(answer, BaseException):
            return f"raised {describe_error(answer)}; return a Failure, or raise a ScoringError"
        if not isinstance(answer, self.answer):
            return f"returned {answer!r:.200}, not a {self.answer[0].__name__} or a Failure"
        try:
            orjson.dumps(dict(getattr(answer, "signals")))  # noqa: B009  # every answer has them
        except TypeError as error:
            return f"has signals that are not JSON: {error}"
        return None

    def test_scores_at_least_one_subject(self, component: Any, bench: Bench) -> None:
        """If a component fails for every subject, the checks of its answers check nothing."""
        answers = self._first_use(bench).answers.values()
        kinds = Counter(_kind(answer) for answer in answers if not isinstance(answer, self.answer))
        reasons = ", ".join(f"{kind}: {number}" for kind, number in kinds.most_common())
        assert kinds.total() < len(answers), (
            f"{self.named} scores none of {len(answers)} subjects ({reasons}); fix it, or give it subjects that it can score: subjects = [...]"
        )

    def test_scores_differ_between_subjects(self, component: Any, bench: Bench) -> None:
        """A metric or a judge with the same score for every subject decides nothing. Components that contain another component are exempt: it decides."""
        answers = self._first_use(bench).answers.values()
        scores = {_figures(answer) for answer in answers if isinstance(answer, self.answer)}
        number = sum(isinstance(answer, self.answer) for answer in answers)
        assert number < MANY or len(scores) > 1 or _nests(component), (
            f"{self.named} gives all {number} subjects the same score, {next(iter(scores))}; fix it, or give it a subject with another score: "
            "subjects = [...]"
        )

    def test_same_subject_gets_the_same_answer(self, component: Any, bench: Bench) -> None:
        """The second answer to a subject has the same score and confidence."""
        if self.deterministic:
            first, second = self._first_use(bench).answers, self._second_use(bench).answers
            changed = [id for id in first if _figures(first[id]) != _figures(second[id])]
            assert not changed, (
                f"other answers the second time, about {', '.join(changed)}; or set deterministic = False"
            )

    def test_answer_does_not_depend_on_earlier_subjects(self, component: Any, bench: Bench) -> None:
        """Subjects are judged at the same time, in any order: no state of a subject may reach another."""
        if self.deterministic:
            use = self._first_use(bench)
            first, second = use.answers, self.answers(use.component, self._uses(bench).bench, backwards=True)
            changed = [id for id in first if _figures(first[id]) != _figures(second[id])]
            assert not changed, (
                f"other answers in another order of the subjects, about {', '.join(changed)}: state of a subject reaches later subjects"
            )

    def test_options_outside_the_fingerprint_change_no_score(self, component: Any, bench: Bench) -> None:
        """Runs with equal fingerprints are compared, so an option with ``metadata={"counts": False}`` must not change a score."""
        if not self.deterministic:
            return
        before = {id: _figures(answer) for id, answer in self._first_use(bench).answers.items()}
        for key, value in variations(component):
            try:
                variant = bench.build(self.kind, self.named, {**self.options, key: value})
            except ConfigError:
                continue
            after = {id: _figures(answer) for id, answer in self.answers(variant, bench).items()}
            changed = [id for id in before if before[id] != after[id]]
            assert not changed, (
                f"the option {key} changes the answer about {changed[0]}, but no fingerprint has it: remove counts: False from its metadata"
            )

    def test_def_is_quick(self, component: Any, bench: Bench) -> None:
        """A ``def`` runs inline, so it must be quick; slow work belongs into an ``async def``."""
        slow = self.opened(component, bench.folder, self._slow)
        limit = f"{DEF_SECONDS * 1000:g} ms of CPU"
        assert not slow, (
            f"takes more than {limit} about {slow}; make it quicker, or an async def that leaves the loop free"
        )

    async def _slow(self, live: Any) -> dict[str, str]:
        ask = self.asking(live)
        if inspect.iscoroutinefunction(ask):
            return {}
        durations = {subject.id: _seconds(ask, subject) for subject in self.accepted(live)}
        return {id: f"{seconds * 1000:.0f} ms" for id, seconds in durations.items() if seconds > DEF_SECONDS}

    def test_leaves_the_subject_as_it_was(self, component: Any, bench: Bench) -> None:
        """All metrics and judges share a subject, so it is read-only, in runs too."""
        changed = self._second_use(bench).changed
        assert not changed, f"{self.named} changes the subject {changed[0]}; change a copy (copy.deepcopy)"

    def test_estimate_is_a_cost(self, component: Any, bench: Bench) -> None:
        """The budget reserves the estimate before each call."""

        async def estimates(live: Any) -> None:
            priced = live if hasattr(live, "estimate") else component
            for subject in self.accepted(component):
                estimate(priced, subject)

        try:
            self.opened(component, bench.folder, estimates)
        except WrongEstimate as error:
            raise AssertionError(f"{self.named}: {error}") from error

    def test_costs_no_more_than_the_estimate(self, component: Any, bench: Bench) -> None:
        """A paid call without an estimate, or with one that is too low, breaks every cap. Runs refuse it."""
        for priced in self._priced_answers(bench):
            cost = getattr(priced.answer, "cost", None)  # an exception has none
            is_nested = (
                _nests(component) and priced.after.is_zero
            )  # the cost of a judge or a model inside needs no estimate
            fault = excess(cost, priced.after) if isinstance(cost, Cost) and not is_nested else None
            assert not fault, f"{self.named} about {priced.id}: {fault}"

    def test_estimate_is_spent(self, component: Any, bench: Bench) -> None:
        """An estimate reserves money before each call; without a cost in the answer it only takes from the budget."""
        priced = [] if _nests(component) else self._priced_answers(bench)
        answered = [item for item in priced if isinstance(item.answer, self.answer)]
        unspent = [item.before for item in answered if getattr(item.before, "amount", None)]
        assert not unspent or any(not item.answer.cost.is_zero for item in answered), (
            f"{self.named} has an estimate of {unspent[0]}, and no answer has a cost; add cost=… to the answers, or remove the estimate"
        )

    def test_cancelled_call_ends(self, component: Any, bench: Bench) -> None:
        """A cancelled ``async def`` ends soon. Timeouts and Ctrl-C cancel calls."""
        lingering = self.opened(component, bench.folder, self._lingering)
        assert not lingering, f"still running {CANCEL_SECONDS:g} s after being canceled, about {', '.join(lingering)}"

    async def _lingering(self, live: Any) -> list[str]:
        ask = self.asking(live)
        if not inspect.iscoroutinefunction(ask):
            return []
        return [subject.id async for subject in not_ending(ask, self.accepted(live))]


class MetricConformance(AnsweringConformance):
    """Checks for a metric. Name it with ``metric = "plugin/name"``."""

    kind = "metric"
    answer = (Score, RawScore)
    metric: str

    def asking(self, live: Any) -> Ask:
        """Return ``score``."""
        method: Ask = live.score
        return method

    def test_a_batch_gets_the_same_answers(self, component: Any, bench: Bench) -> None:
        """``score_batch``, if the metric has one, returns the same answer for each subject as ``score``."""
        if self.deterministic:
            changed = self.opened(component, bench.folder, self._changed_together)
            assert not changed, f"score_batch and score differ about {', '.join(changed)}; or set deterministic = False"

    async def _changed_together(self, live: Any) -> list[str]:
        if not hasattr(live, "score_batch"):
            return []
        answers = [(subject, await _answer(live.score, subject)) for subject in self.accepted(live)]
        answers = [(subject, alone) for subject, alone in answers if not isinstance(alone, Exception)]
        together = await maybe_await(live.score_batch([subject for subject, _ in answers]))
        pairs = zip(answers, together, strict=True)
        return [subject.id for (subject, alone), answer in pairs if _figures(alone) != _figures(answer)]


class JudgeConformance(AnsweringConformance):
    """Checks for a judge. Name it with ``judge = "plugin/name"``."""

    kind = "judge"
    answer = (Judgment,)
    judge: str

    def asking(self, live: Any) -> Ask:
        """Return ``judge``, called without children."""
        method = live.judge
        if inspect.iscoroutinefunction(method):

            async def wait(subject: Subject) -> object:
                return await method(subject, ())

            return wait
        return lambda subject: method(subject, ())


async def _answer(ask: Ask, subject: Subject) -> object:
    await asyncio.sleep(0)  # a turn of the event loop between calls, for the watch
    try:
        async with asyncio.timeout(ASYNC_SECONDS):
            return await maybe_await(ask(subject))
    except Exception as error:  # reported along with the other answers
        return error


async def not_ending(ask: Callable[[T], Awaitable[object]], requests: Sequence[T]) -> AsyncIterator[T]:
    """Yield each of *requests* whose call with *ask* goes on for too long after it was cancelled right at its start."""
    for request in requests:
        task = asyncio.ensure_future(ask(request))
        await asyncio.sleep(0)
        task.cancel()
        _, pending = await asyncio.wait({task}, timeout=CANCEL_SECONDS)
        if pending:
            yield request
        elif not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it


def _seconds(ask: Ask, subject: Subject) -> float:
    """Return the least CPU time of up to five calls, since other processes slow calls down through shared caches."""
    durations = []
    for _ in range(5):
        began = time.thread_time()
        with suppress(ScoringError):  # a failure takes its time too
            ask(subject)
        durations.append(time.thread_time() - began)
        if durations[-1] <= DEF_SECONDS:
            break
    return min(durations)


def _figures(answer: object) -> object:
    if isinstance(answer, Score | RawScore):
        return answer.value, answer.confidence
    if isinstance(answer, Judgment):
        return answer.score, answer.confidence
    return answer.kind if isinstance(answer, Failure) else type(answer)


def excess(cost: Cost, most: Cost) -> str | None:
    """Describe how *cost* exceeds the estimate *most*; return None if it does not."""
    if cost.is_zero or cost.amount is None or most.amount is None:
        return None
    if most.is_zero:
        return f"costs {cost} without an estimate; add estimate(...), which returns the highest cost of one call"
    if cost.unit != most.unit:
        return f"costs {cost}, and the estimate is in {most.unit}"
    return f"costs {cost}, more than the estimate of {most}" if cost.amount > most.amount else None


def _kind(answer: object) -> str:
    return answer.kind if isinstance(answer, Failure) else type(answer).__name__


def _nests(component: Any) -> bool:
    """Return whether *component* contains another component, which may decide and pay in its place."""
    protocols = tuple(kind.protocol for kind in KINDS.values())
    values = (getattr(component, field.name) for field in attrs.fields(type(component)))
    return any(implements(value, protocol) for option in values for value in parts(option) for protocol in protocols)
