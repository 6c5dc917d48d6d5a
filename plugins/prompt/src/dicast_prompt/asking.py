"""Asking the model, criterion after criterion, and again after an empty reply."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol

import attrs

from dicast import (
    ONLY,
    Answered,
    ChatModel,
    ChatRequest,
    Cost,
    Failure,
    Message,
    Reply,
    Subject,
    Usage,
    columns,
    estimate,
    maybe_await,
    normalize_stop_reason,
)

from .bounds import Unrenderable
from .criterion import Criterion
from .media import Asked, MediaOptions, Printing
from .template import Template

_LEAST = ChatRequest((Message("user", "?"),))
"""What costs nothing only where nothing does."""


class PromptOptions(MediaOptions, Protocol):
    """The options of ``prompt/chat``."""

    @property
    def model(self) -> ChatModel: ...  # noqa: D102
    @property
    def criteria(self) -> Mapping[str, Criterion]: ...  # noqa: D102
    @property
    def temperature(self) -> float | None: ...  # noqa: D102
    @property
    def max_output_tokens(self) -> int: ...  # noqa: D102
    @property
    def retries(self) -> int: ...  # noqa: D102


@attrs.frozen
class Prompt:
    """What is asked for one criterion."""

    criterion: str
    system: Template | None
    user: Template

    @classmethod
    def of(cls, criterion: str, texts: Criterion, place: str) -> Prompt:
        """Compile *texts*, which stand at *place*."""
        system = None if texts.system is None else Template.of(texts.system, f"template {place}system")
        return cls(criterion, system, Template.of(texts.user or "", f"template {place}user"))

    def request(self, names: Mapping[str, object], options: PromptOptions) -> Asked:
        """Return the request about a row that has *names*.

        :raises Unrenderable: if the templates cannot be rendered, or media that they print cannot be sent.
        """
        printing = Printing.of(names, options)
        system = () if self.system is None else (printing.message("system", self.system),)
        messages = (*system, printing.message("user", self.user))
        request = ChatRequest(
            messages,
            options.max_output_tokens,
            options.temperature,
            label=self.criterion,
            needs_media=options.media == "show" and any(message.media for message in messages),
        )
        return Asked(request, printing.marked)


@attrs.frozen
class Asker:
    """Answers rows by asking the model of *options*."""

    default_timeout = 600.0

    options: PromptOptions
    prompts: Sequence[Prompt]

    @classmethod
    def of(cls, options: PromptOptions) -> Asker:
        """Compile the templates of *options*."""
        places = {name: f"criteria.{name}." for name in options.criteria} or {ONLY: ""}
        return cls(options, [Prompt.of(name, texts, places[name]) for name, texts in options.prompts().items()])

    def produce(self, subject: Subject) -> Failure | Awaitable[Answered | Failure]:
        """Render the prompts, under the kernel's timer; what is awaited asks."""
        try:
            requests = self._requests(subject)
        except Unrenderable as error:
            return Failure(error.kind, str(error))
        return self._answer(subject, requests)

    def estimate(self, subject: Subject) -> Cost:
        """What the calls may cost at most, with all retries; nothing for a row that cannot be asked about."""
        model = self.options.model
        if estimate(model, _LEAST).is_zero:
            return Cost.zero()
        try:
            requests = self._requests(subject)
        except Unrenderable:
            return Cost.zero()  # no call is made
        return sum([estimate(model, each.request) for each in requests] * (self.options.retries + 1), Cost.zero())

    def _requests(self, subject: Subject) -> list[Asked]:
        names = names_of(subject)
        return [prompt.request(names, self.options) for prompt in self.prompts]

    async def _answer(self, subject: Subject, requests: Sequence[Asked]) -> Answered | Failure:
        responses, cost = {}, Cost.zero()
        for asked in requests:
            request = asked.request
            tries = Tries(self.options.retries + 1)
            answer = await tries.ask(self.options.model, request)
            cost += tries.cost
            if isinstance(answer, Failure):
                criterion = f"criterion {request.label}: " if self.options.criteria else ""
                return attrs.evolve(answer, message=f"{criterion}{answer.message}", cost=cost, retry=tries.told())
            responses[request.label] = tries.response(answer, asked.hidden(answer))
        return Answered.of(subject, responses)


@attrs.define
class Tries:
    """The tries of one request, and what they came to together.

    The model is asked *most* times at most, and may try several times by itself when it is *asked*, as far as it says at most
    *each* times. Of all these tries *made* were made; *left* are those that there could have been besides.
    """

    most: int
    asked: int = 0
    each: int = 1
    made: int = 0
    left: int = 0
    cost: Cost = Cost.zero()
    usage: Usage | None = attrs.field(factory=lambda: Usage(0, 0))
    seconds: float = 0.0
    history: list[Mapping[str, object]] = attrs.field(factory=list)

    async def ask(self, model: ChatModel, request: ChatRequest) -> Reply | Failure:
        """Ask until there is a reply that is not empty; a Failure of the model ends it at once."""
        while True:
            answer = await self._once(model, attrs.evolve(request, attempt=self.asked) if self.asked else request)
            fault = _fault(answer)
            self._note(answer, fault)
            if fault is None or isinstance(answer, Failure):
                return answer
            if fault.kind == "refused" or self.asked == self.most:
                return fault

    def told(self) -> Mapping[str, object] | None:
        """How it was tried, where not the first try was the answer."""
        if not self.history:
            return None
        return {"attempts": self.made, "max_attempts": self.made + self.left, "history": self.history}

    def response(self, reply: Reply, hidden: Mapping[str, int]) -> Mapping[str, Any]:
        """Return the response that *reply* is in a record; *hidden* has the number of media that the model did not read."""
        retry = self.told()
        metrics = {
            **self._figures(),
            **_said(reply),
            **reply.metrics,
            **({"hidden_media": hidden} if hidden else {}),
            "latency_seconds": round(self.seconds, 6),
        }
        found = {"content": reply.text, "metrics": metrics}
        return found if retry is None else {**found, "retry": retry}

    async def _once(self, model: ChatModel, request: ChatRequest) -> Reply | Failure:
        began = time.monotonic()
        answer = await maybe_await(model.complete(request))
        self.seconds += _seconds(answer, time.monotonic() - began)
        self.asked += 1
        self.cost += answer.cost
        usage = answer.usage if isinstance(answer, Reply) else None
        self.usage = usage and self.usage and _sum(self.usage, usage)
        return answer

    def _note(self, answer: Reply | Failure, fault: Failure | None) -> None:
        """Number the model's own tries on from those before; *fault* is why the last one is no output, if it is none."""
        own = answer.retry or {"attempts": 1, "max_attempts": 1, "history": ()}
        told = answer.retry is not None and isinstance(answer, Failure)
        self.history += [{**tried, "attempt": self.made + tried["attempt"]} for tried in own["history"]]
        self.made += own["attempts"]
        if fault is not None and not told:
            self.history.append({"attempt": self.made, "error": fault.message})
        self.each = max(self.each, own["max_attempts"])
        # After a fault that the model has retried it is not asked again, and after an empty reply it does not retry.
        again = 0 if told else (self.most - self.asked) * self.each
        self.left = again + (own["max_attempts"] - own["attempts"] if told else 0)
        if fault is None:  # as many as there would have been, had the last fault come again and again
            self.left = own["max_attempts"] - own["attempts"] if own["history"] else self.most - self.asked

    def _figures(self) -> dict[str, object]:
        figures: dict[str, object] = {}
        if self.usage is not None:
            read, written = self.usage.input_tokens, self.usage.output_tokens
            figures = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        if self.cost.amount is not None:
            figures["cost" if self.cost.unit == "usd" else "cost_msat"] = float(self.cost.amount)
        return figures


def names_of(subject: Subject) -> Mapping[str, object]:
    """The names that templates know for the row *subject*; what is null has none."""
    found = {name: value for name, value in columns(subject).items() if value is not None}
    return {"context": subject.context, **found}


def _fault(answer: Reply | Failure) -> Failure | None:
    """Return the reason why *answer* is not an output, or None.

    A text that the endpoint's filter cut is not an output; a refusal that the model wrote is.
    """
    if isinstance(answer, Failure):
        return answer
    reason = normalize_stop_reason(answer.stop_reason)
    if reason == "refusal" and (not answer.text.strip() or normalize_stop_reason(answer.finish_reason) == reason):
        word = answer.finish_reason or answer.stop_reason
        return Failure("refused", f"the model or its filter refused to answer (finish reason {word!r:.40})")
    if answer.text.strip():
        return None
    more = "; raise max_output_tokens" if reason == "max_tokens" else ""
    return Failure("judge_output_invalid", f"the model's reply is empty (stop reason {answer.stop_reason!r:.40}){more}")


def _seconds(answer: Reply | Failure, measured: float) -> float:
    """How long an answer took: what it says itself, for one that was kept comes at once."""
    said = answer.metrics.get("latency_seconds") if isinstance(answer, Reply) else None
    return float(said) if isinstance(said, int | float) else measured


def _said(reply: Reply) -> dict[str, object]:
    said = {"model": reply.model, "stop_reason": reply.stop_reason, "finish_reason": reply.finish_reason}
    return {name: value for name, value in said.items() if value is not None}


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(one.input_tokens + other.input_tokens, one.output_tokens + other.output_tokens)
