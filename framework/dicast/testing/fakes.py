"""Fake components with scripted answers, which record the requests that they get."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import attrs

from .._kernel.values import ChatRequest, Cost, Event, Failure, Judgment, Reply, Score, Subject, Usage, Verdict

R = TypeVar("R", Score, Judgment)
Answer = Reply | Failure | Exception | str

_NOTHING = Cost.zero()
_GOOD_JUDGMENT, _GOOD_SCORE = Judgment(1.0), Score(1.0)


@attrs.frozen
class Replies(Generic[R]):
    """Scripted answers of a fake: the items of *replies* in their order, or always the same answer if *replies* is not a list."""

    replies: Sequence[R | Failure | Exception] | R | Failure | Exception
    asked: list[Subject] = attrs.field(factory=list, eq=False)

    def next(self, subject: Subject) -> R | Failure:
        """Return the next answer, or raise it if it is an exception.

        :raises AssertionError: when there are no replies left.
        """
        self.asked.append(subject)
        reply: Any = self.replies
        if isinstance(self.replies, list | tuple):
            if len(self.asked) > len(self.replies):
                raise AssertionError(f"asked about {subject.kind} {subject.id!r} after all {len(self.replies)} replies")
            reply = self.replies[len(self.asked) - 1]
        if isinstance(reply, Exception):
            raise reply
        answer: R | Failure = reply
        return answer

    def check(self, who: str) -> None:
        """Fail as :meth:`FakeJudge.assert_all_asked` does; *who* is the name of the fake."""
        expected = len(self.replies) if isinstance(self.replies, list | tuple) else max(1, len(self.asked))
        ids = ", ".join(subject.id for subject in self.asked) or "nobody"
        assert len(self.asked) == expected, (
            f"{who} has {expected} replies and was asked {len(self.asked)} times, about: {ids}"
        )


def _highest(cost: Cost, replies: object) -> Cost:
    """Return *cost*; if it is zero, the highest known cost of *replies* in the unit of the first paid reply."""
    if not cost.is_zero:
        return cost
    listed = replies if isinstance(replies, list | tuple) else [replies]
    costs = [getattr(reply, "cost", cost) for reply in listed]
    paid = [cost_of_reply for cost_of_reply in costs if cost_of_reply.amount]
    return max(
        (cost_of_reply for cost_of_reply in paid if cost_of_reply.unit == paid[0].unit),
        key=lambda cost_of_reply: cost_of_reply.amount or 0,
        default=cost,
    )


@attrs.frozen
class FakeJudge:
    """A judge with scripted replies.

    :param replies: a list of judgments, failures and exceptions, one per call; or one reply for every call. A list in a variable needs a type,
        such as ``list[Judgment | Failure]``.
    :param seconds: how long it waits before each reply, as a slow model does.
    :param cost: the estimate of each call; by default the highest cost of a reply.
    """

    accepts = ()
    needs_output = False

    replies: Sequence[Judgment | Failure | Exception] | Judgment | Failure | Exception = _GOOD_JUDGMENT
    seconds: float = 0.0
    cost: Cost = _NOTHING
    _script: Replies[Judgment] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_script", Replies(self.replies))

    @property
    def asked(self) -> Sequence[Subject]:
        """The subjects of all calls, in their order."""
        return self._script.asked

    async def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment | Failure:
        """Return the next reply.

        :raises AssertionError: when there are no replies left; a run records this as a failure ``crashed``, and
            :meth:`assert_all_asked` reports it.
        """
        if self.seconds:
            await asyncio.sleep(self.seconds)
        return self._script.next(subject)

    def estimate(self, subject: Subject) -> Cost:
        """Return the highest cost of one call."""
        return _highest(self.cost, self.replies)

    def assert_all_asked(self) -> None:
        """Fail unless each reply of a list was requested exactly once, or a single reply at least once."""
        self._script.check("FakeJudge")


@attrs.frozen
class FakeMetric:
    """A metric with scripted scores. Write it under ``metrics: {truth: []}`` to make it a truth metric.

    :param replies: a list of scores, failures and exceptions, one per call; or one reply for every call. A list in a variable needs a type,
        such as ``list[Score | Failure]``.
    """

    tier = "proxy"
    needs_output = False

    replies: Sequence[Score | Failure | Exception] | Score | Failure | Exception = _GOOD_SCORE
    _script: Replies[Score] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_script", Replies(self.replies))

    @property
    def asked(self) -> Sequence[Subject]:
        """The subjects of all calls, in their order."""
        return self._script.asked

    def score(self, subject: Subject) -> Score | Failure:
        """Return the next reply; see :meth:`FakeJudge.judge`."""
        return self._script.next(subject)

    def assert_all_asked(self) -> None:
        """Fail unless each reply of a list was requested exactly once, or a single reply at least once."""
        self._script.check("FakeMetric")


@attrs.frozen
class FakeChatModel:
    """A chat model with scripted replies.

    :param replies: a list of replies, failures and exceptions, one per call; one reply for every call; or a
        function that returns the reply to a request. A text is a reply with ``usage`` and ``cost`` as below.
    :param model: the model that replies name, which is also the identity.
    :param seconds: how long it waits before each reply, as a slow endpoint does.
    :param cost: the cost of a reply that is a text, and the estimate of each call; by default the highest cost of a reply.
        If *replies* is a function that returns paid replies, give it: their costs are unknown before.
    """

    replies: Sequence[Answer] | Answer | Callable[[ChatRequest], Answer] = "{}"
    model: str = "fake"
    seconds: float = 0.0
    cost: Cost = _NOTHING
    asked: list[ChatRequest] = attrs.field(init=False, factory=list, eq=False, repr=False)
    """The requests, in their order."""

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        """Return the next reply.

        :raises AssertionError: when there are no replies left; see :meth:`assert_all_asked`.
        """
        self.asked.append(request)
        number = len(self.asked) - 1
        if self.seconds:
            await asyncio.sleep(self.seconds)
        answer = self._answer(number, request)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, str):
            return Reply(answer, self.model, usage=Usage(request.input_tokens, len(answer)), cost=self.cost)
        return answer

    def _answer(self, number: int, request: ChatRequest) -> Answer:
        if callable(self.replies):
            return self.replies(request)
        if isinstance(self.replies, str | Reply | Failure | Exception):
            return self.replies
        if number >= len(self.replies):
            raise AssertionError(f"asked for reply {number + 1}, and has {len(self.replies)}")
        return self.replies[number]

    def estimate(self, request: ChatRequest) -> Cost:
        """Return the highest cost of one call."""
        return _highest(self.cost, self.replies)

    def identity(self) -> dict[str, object]:
        """Return the settings that decide its replies."""
        return {"model": self.model}

    def assert_all_asked(self) -> None:
        """Fail unless each reply of a list was requested exactly once, or a single reply or function at least once."""
        expected = len(self.replies) if isinstance(self.replies, list | tuple) else max(1, len(self.asked))
        assert len(self.asked) == expected, (
            f"FakeChatModel has {expected} replies and was asked {len(self.asked)} times"
        )


@attrs.frozen
class MemorySink:
    """A sink that keeps its events in memory.

    :param wants: the event types that it receives; all by default.
    :param error: raised by every ``write``, as by a sink whose disk is full.
    """

    wants: tuple[str, ...] = ()
    error: Exception | None = None
    events: list[Event] = attrs.field(init=False, factory=list, eq=False, repr=False)

    def write(self, events: Sequence[Event]) -> None:
        """Keep *events*."""
        if self.error is not None:
            raise self.error
        self.events.extend(events)

    def close(self) -> None:
        """Do nothing; the events remain available."""

    def of(self, type_: str) -> list[Event]:
        """Return the events of one type, in their order."""
        return [event for event in self.events if event.type == type_]
