"""Components that do as they are told, and remember what they were asked."""

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
    """What a fake answers: the items of *given* one after the other, or, when it is no list, the same each time."""

    given: Sequence[R | Failure | Exception] | R | Failure | Exception
    asked: list[Subject] = attrs.field(factory=list, eq=False)

    def next(self, subject: Subject) -> R | Failure:
        """The next answer; an exception is raised.

        :raises AssertionError: when there are no replies left.
        """
        self.asked.append(subject)
        reply: Any = self.given
        if isinstance(self.given, list | tuple):
            if len(self.asked) > len(self.given):
                raise AssertionError(f"asked about {subject.kind} {subject.id!r} after all {len(self.given)} replies")
            reply = self.given[len(self.asked) - 1]
        if isinstance(reply, Exception):
            raise reply
        answer: R | Failure = reply
        return answer

    def check(self, who: str) -> None:
        """See :meth:`FakeJudge.assert_all_asked`."""
        wanted = len(self.given) if isinstance(self.given, list | tuple) else max(1, len(self.asked))
        ids = ", ".join(subject.id for subject in self.asked) or "nobody"
        assert len(self.asked) == wanted, (
            f"{who} has {wanted} replies and was asked {len(self.asked)} times, about: {ids}"
        )


def _highest(cost: Cost, replies: object) -> Cost:
    """Return *cost*, or the highest known cost of *replies* if it is zero; two units are not compared."""
    if not cost.is_zero:
        return cost
    listed = replies if isinstance(replies, list | tuple) else [replies]
    costs = [getattr(reply, "cost", cost) for reply in listed]
    paid = [one for one in costs if one.amount]
    return max((one for one in paid if one.unit == paid[0].unit), key=lambda one: one.amount or 0, default=cost)


@attrs.frozen
class FakeJudge:
    """A judge that gives the replies it was made with.

    :param replies: a list of judgments, failures and exceptions, given one after the other; or one that is given each time.
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
        """The subjects it was asked about, in their order."""
        return self._script.asked

    async def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment | Failure:
        """Give the next reply.

        :raises AssertionError: when there are no replies left; in a run that becomes a failure ``crashed``, and
            :meth:`assert_all_asked` says so.
        """
        if self.seconds:
            await asyncio.sleep(self.seconds)
        return self._script.next(subject)

    def estimate(self, subject: Subject) -> Cost:
        """What one call may cost at most."""
        return _highest(self.cost, self.replies)

    def assert_all_asked(self) -> None:
        """Fail unless each reply was asked for exactly once, or the single one at least once."""
        self._script.check("FakeJudge")


@attrs.frozen
class FakeMetric:
    """A metric that gives the scores it was made with; write it under ``metrics: {truth: []}`` to make it one.

    :param replies: a list of scores, failures and exceptions, given one after the other; or one that is given each time.
    """

    tier = "proxy"
    needs_output = False

    replies: Sequence[Score | Failure | Exception] | Score | Failure | Exception = _GOOD_SCORE
    _script: Replies[Score] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_script", Replies(self.replies))

    @property
    def asked(self) -> Sequence[Subject]:
        """The subjects it was asked about, in their order."""
        return self._script.asked

    def score(self, subject: Subject) -> Score | Failure:
        """Give the next reply; see :meth:`FakeJudge.judge`."""
        return self._script.next(subject)

    def assert_all_asked(self) -> None:
        """Fail unless each reply was asked for exactly once, or the single one at least once."""
        self._script.check("FakeMetric")


@attrs.frozen
class FakeChatModel:
    """A chat model that gives the replies it was made with.

    :param replies: a list of replies, failures and exceptions, given one after the other; one that is given each time; or a
        function that makes one of a request. A text is a reply with ``usage`` and ``cost`` as below.
    :param model: what its replies say that answered, and its identity.
    :param seconds: how long it waits before each reply, as a slow endpoint does.
    :param cost: what a reply costs that is given as a text, and the estimate of each call; by default the highest cost of a reply.
    """

    replies: Sequence[Answer] | Answer | Callable[[ChatRequest], Answer] = "{}"
    model: str = "fake"
    seconds: float = 0.0
    cost: Cost = _NOTHING
    asked: list[ChatRequest] = attrs.field(init=False, factory=list, eq=False, repr=False)
    """The requests, in their order."""

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        """Give the next reply.

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
        """What one call may cost at most."""
        return _highest(self.cost, self.replies)

    def identity(self) -> dict[str, object]:
        """What decides its replies."""
        return {"model": self.model}

    def assert_all_asked(self) -> None:
        """Fail unless each reply of a list was asked for exactly once, or the single one, or the function, at least once."""
        wanted = len(self.replies) if isinstance(self.replies, list | tuple) else max(1, len(self.asked))
        assert len(self.asked) == wanted, f"FakeChatModel has {wanted} replies and was asked {len(self.asked)} times"


@attrs.frozen
class MemorySink:
    """A sink that keeps what it is told.

    :param wants: the event types it is told; all by default.
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
        """Do nothing: what was told stays."""

    def of(self, type_: str) -> list[Event]:
        """The events of one type, in their order."""
        return [event for event in self.events if event.type == type_]
