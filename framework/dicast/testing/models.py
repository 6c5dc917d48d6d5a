"""Checks for chat models."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from .._kernel.contract.define import maybe_await
from .._kernel.contract.protocols import WrongEstimate, estimate
from .._kernel.values import ChatRequest, Cost, Failure, Message, Reply, Token, Usage
from .._kernel.values.endpoint_errors import AccessRefused, EndpointUnreachable
from .._kernel.values.errors import ScoringError
from .conformance import Conformance
from .judging import ASYNC_SECONDS, CANCEL_SECONDS, excess, not_ending
from .pipeline import Bench
from .secrets import secrets

_SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "number"}},
    "required": ["score"],
    "additionalProperties": False,
}

REQUESTS: Sequence[ChatRequest] = (
    ChatRequest((Message("user", "Say yes."),), max_output_tokens=8),
    ChatRequest(
        (Message("system", "Judge what is asked.", cache=True), Message("user", "2 + 2 = 5\nseal: 0123456789ab"))
    ),
    ChatRequest((Message("user", "Grade: “ÆØÅ” 你好 \U0001f600 \x00"),), schema=_SCHEMA, max_output_tokens=32),
    ChatRequest((Message("user", "Yes or no?"),), temperature=0.5, logprobs=True, max_output_tokens=2),
    ChatRequest(
        (Message("user", "Hello"), Message("assistant", "Hello."), Message("user", "Again")),
        nonces=("Again",),
        attempt=1,
        rollout=2,
        max_output_tokens=8,
    ),
)
"""Requests of every shape that judges and tasks make."""

_DEAD_CALLS = 20
"""The number of failed connections in a row after which a model has to report its endpoint as dead."""


class ChatModelConformance(Conformance):
    """Checks for a chat model. Name it with ``model = "plugin/name"``.

    A model with an endpoint also passes if the endpoint is missing: it returns a Failure.

    - ``requests``: the requests that the model gets; :data:`REQUESTS` by default.
    - ``unreachable``: for a model with an endpoint, the options that lead to an endpoint where nothing listens:
      ``{"base_url": "http://127.0.0.1:9/v1"}``.
    """

    kind = "model"
    model: str
    requests: Sequence[ChatRequest] = REQUESTS
    unreachable: Mapping[str, object] = {}

    def answers(self, component: Any, bench: Bench) -> list[object]:
        """Return the answers to the ``requests``, sent one after the other, with the exception in place of an answer if the model raised."""

        async def ask(live: Any) -> list[object]:
            return [await _answer(live, request) for request in self.requests]

        return self.opened(component, bench.folder, ask)

    def use(self, component: Any, bench: Bench) -> object:
        """Return the answers to the ``requests``, and the live object's repr and identity."""

        async def ask(live: Any) -> list[object]:
            answers = []
            for request in self.requests:
                await asyncio.sleep(0)  # a turn of the event loop between calls
                answers.append(await _answer(live, request))
            return [*answers, repr(live), _identity(live)]

        return self.opened(component, bench.folder, ask)

    def test_answers_every_request_with_a_reply_or_a_failure(self, component: Any, bench: Bench) -> None:
        """A schema, log probabilities, odd letters and several turns get a valid Reply or a Failure."""
        answers = enumerate(self.answers(component, bench))
        wrong = [f"requests[{number}]: {fault}" for number, answer in answers for fault in _faults(answer)]
        assert not wrong, "\n".join(wrong)

    def test_answers_several_at_once(self, component: Any, bench: Bench) -> None:
        """A run sends requests for many subjects at the same time, and two requests may be equal."""

        async def ask(live: Any) -> list[object]:
            return await asyncio.gather(*(_answer(live, request) for request in (*self.requests, *self.requests)))

        wrong = [fault for answer in self.opened(component, bench.folder, ask) for fault in _faults(answer)]
        assert not wrong, "\n".join(wrong)

    def test_opens_again_after_it_was_closed(self, component: Any, bench: Bench) -> None:
        """A program may run a pipeline twice, so a model can be opened twice."""
        for _ in range(2):
            wrong = [fault for answer in self.answers(component, bench) for fault in _faults(answer)]
            assert not wrong, "\n".join(wrong)

    def test_a_dead_endpoint_ends_the_run(self, bench: Bench) -> None:
        """Under ``unreachable`` calls fail, and an early call raises EndpointUnreachable: see :class:`dicast.toolkit.rate_limit.Reachability`."""

        async def ask(live: Any) -> list[object]:
            answers = [await _answer(live, self.requests[0])]
            while isinstance(answers[-1], Failure) and len(answers) < _DEAD_CALLS:
                answers.append(await _answer(live, self.requests[0]))
            return answers

        if self.unreachable:
            dead = bench.build(self.kind, self.named, {**self.options, **self.unreachable})
            last = self.opened(dead, bench.folder, ask)[-1]
            assert isinstance(last, EndpointUnreachable), (
                f"without an endpoint the last of its calls gave {last!r:.200}"
            )

    def test_estimate_is_a_cost(self, component: Any, bench: Bench) -> None:
        """The budget reserves the estimate; ``dicast check`` computes it before anything is opened."""

        async def estimates(live: Any) -> list[object]:
            return [estimate(live, request) for request in self.requests]

        try:
            costs: list[object] = [estimate(component, request) for request in self.requests]
        except WrongEstimate as error:
            raise AssertionError(f"{self.named}: {error}") from error
        costs += self.opened(component, bench.folder, estimates)
        wrong = [cost for cost in costs if not isinstance(cost, Cost)]
        assert not wrong, f"estimate must return a dicast.Cost, not {wrong[0]!r}"

    def test_costs_no_more_than_the_estimate(self, component: Any, bench: Bench) -> None:
        """The amount reserved before a call must cover the call, or a cap does not hold."""

        async def costs(live: Any) -> list[tuple[Cost, object]]:
            priced = live if hasattr(live, "estimate") else component
            return [(estimate(priced, request), await _answer(live, request)) for request in self.requests]

        for number, (most, answer) in enumerate(self.opened(component, bench.folder, costs)):
            if isinstance(answer, Reply | Failure):
                fault = excess(answer.cost, most)
                assert not fault, f"requests[{number}]: {fault}"

    def test_identity_is_json_without_secrets(self, component: Any, bench: Bench) -> None:
        """Replies are cached under ``identity()``: it is the same before and after opening, and contains no secret."""

        async def ask(live: Any) -> object:
            return _identity(live)

        identity = _identity(component)
        assert self.opened(component, bench.folder, ask) == identity, "another identity once it is open"
        if identity is not None:
            assert isinstance(identity, Mapping), f"identity() must return a mapping, not {identity!r}"
            written = orjson.dumps(identity).decode()
            assert not [secret for secret in secrets(component) if secret and secret in written], (
                "identity() holds a secret"
            )

    def test_repr_holds_no_secret(self, component: Any, bench: Bench) -> None:
        """Text printed with an error must not contain a key."""

        async def show(live: Any) -> str:
            return repr(live)

        text = repr(component) + self.opened(component, bench.folder, show)
        assert not [secret for secret in secrets(component) if secret and secret in text]

    def test_cancelled_call_ends(self, component: Any, bench: Bench) -> None:
        """A cancelled ``async def`` ends soon. Timeouts and Ctrl-C cancel calls."""

        async def lingering(live: Any) -> list[ChatRequest]:
            if not inspect.iscoroutinefunction(live.complete):
                return []
            return [request async for request in not_ending(live.complete, self.requests)]

        requests = self.opened(component, bench.folder, lingering)
        assert not requests, f"still running {CANCEL_SECONDS:g} s after being canceled: {requests[0]!r:.200}"


async def _answer(live: Any, request: ChatRequest) -> object:
    try:
        async with asyncio.timeout(ASYNC_SECONDS):
            return await maybe_await(live.complete(request))
    except Exception as error:  # reported along with the other answers
        return error


def _faults(answer: object) -> Iterator[str]:
    if isinstance(answer, Failure):
        yield from _retry_faults(answer.retry)
    elif isinstance(answer, ScoringError | AccessRefused):
        return
    elif isinstance(answer, BaseException):
        yield f"raised {type(answer).__name__}: {answer}; return a Failure, or raise AccessRefused"
    elif not isinstance(answer, Reply):
        yield f"returned {answer!r:.200}, not a Reply or a Failure"
    else:
        yield from _reply_faults(answer)


def _reply_faults(reply: Reply) -> Iterator[str]:
    for name in ("text", "model", "stop_reason"):
        value = getattr(reply, name)
        if not isinstance(value, str) and (name == "text" or value is not None):
            yield f"{name} is {value!r:.100}, not a text"
    cost: object = reply.cost
    if not isinstance(cost, Cost):
        yield f"cost is {cost!r}, not a dicast.Cost"
    if reply.usage is not None and not _is_usage(reply.usage):
        yield f"usage is {reply.usage!r}, not a dicast.Usage of numbers that are not negative"
    if reply.logprobs is not None and not all(map(_is_token, reply.logprobs)):
        yield f"logprobs are {reply.logprobs!r:.200}, not Tokens with the natural logarithms of probabilities"
    try:
        orjson.dumps(dict(reply.metrics))
    except TypeError as error:
        yield f"metrics are not JSON: {error}"
    yield from _retry_faults(reply.retry)


def _retry_faults(retry: object) -> Iterator[str]:
    match retry:
        case None:
            return
        case {"attempts": int(attempts), "max_attempts": int(most), "history": list(history)} if 1 <= attempts <= most:
            numbers = [attempt["attempt"] for attempt in history if _is_tried(attempt)]
            if len(numbers) == len(history) and numbers == sorted({*numbers} & {*range(1, attempts + 1)}):
                return
    yield f"retry is {retry!r:.200}, not {{attempts, max_attempts, history: [{{attempt, error}}]}}, numbered from 1"


def _is_tried(attempt: object) -> bool:
    match attempt:
        case {"attempt": int(), "error": str()}:
            return True
    return False


def _is_usage(usage: object) -> bool:
    return isinstance(usage, Usage) and all(
        type(n) is int and n >= 0 for n in (usage.input_tokens, usage.output_tokens)
    )


def _is_token(token: object) -> bool:
    return isinstance(token, Token) and not math.isnan(token.logprob) and token.logprob <= 0


def _identity(model: Any) -> object:
    method = getattr(model, "identity", None)
    return None if method is None else method()
