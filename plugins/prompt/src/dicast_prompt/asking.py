"""Requests to the model, one criterion after the other, with retries of empty replies."""

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
    normalize_stop_reason,
)

from .bounds import Unrenderable
from .criterion import Criterion
from .media import MediaOptions, MediaRequest, Printing
from .template import Template

_LEAST = ChatRequest((Message("user", "?"),))
"""A request that is free only with a free model."""


class PromptOptions(MediaOptions, Protocol):
    """Options of ``prompt/chat``."""

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
    """Compiled templates of one criterion."""

    criterion: str
    system: Template | None
    user: Template

    @classmethod
    def of(cls, criterion: str, texts: Criterion, place: str) -> Prompt:
        """Compile *texts*; errors name their *place*."""
        system = None if texts.system is None else Template.of(texts.system, f"template {place}system")
        return cls(criterion, system, Template.of(texts.user or "", f"template {place}user"))

    def request(self, names: Mapping[str, object], options: PromptOptions) -> MediaRequest:
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
        return MediaRequest(request, printing.marked)


@attrs.frozen
class Asker:
    """Live task that answers rows with the model of *options*."""

    default_timeout = 600.0

    options: PromptOptions
    prompts: Sequence[Prompt]

    @classmethod
    def of(cls, options: PromptOptions) -> Asker:
        """Compile the templates of *options*."""
        places = {name: f"criteria.{name}." for name in options.criteria} or {ONLY: ""}
        return cls(options, [Prompt.of(name, texts, places[name]) for name, texts in options.prompts().items()])

    def produce(self, subject: Subject) -> Failure | Awaitable[Answered | Failure]:
        """Render the prompts under the kernel's timer, and return an awaitable that asks the model."""
        try:
            requests = self._requests(subject)
        except Unrenderable as error:
            return Failure(error.kind, str(error))
        return self._answer(subject, requests)

    def estimate(self, subject: Subject) -> Cost:
        """Return the highest cost of the calls, with all retries; zero for a row whose prompt cannot be rendered."""
        model = self.options.model
        if estimate(model, _LEAST).is_zero:
            return Cost.zero()
        try:
            requests = self._requests(subject)
        except Unrenderable:
            return Cost.zero()  # no call is made
        return sum(
            [estimate(model, question.request) for question in requests] * (self.options.retries + 1), Cost.zero()
        )

    def _requests(self, subject: Subject) -> list[MediaRequest]:
        names = names_of(subject)
        return [prompt.request(names, self.options) for prompt in self.prompts]

    async def _answer(self, subject: Subject, requests: Sequence[MediaRequest]) -> Answered | Failure:
        responses, cost = {}, Cost.zero()
        for question in requests:
            request = question.request
            tries = Tries(self.options.retries + 1)
            answer = await tries.ask(self.options.model, request)
            cost += tries.cost
            if isinstance(answer, Failure):
                criterion = f"criterion {request.label}: " if self.options.criteria else ""
                return attrs.evolve(
                    answer, message=f"{criterion}{answer.message}", cost=cost, retry=tries.retry_record()
                )
            responses[request.label] = tries.response(answer, question.hidden(answer))
        return Answered.of(subject, responses)


@attrs.define
class Tries:
    """Attempts at one request, and their sums.

    The model is called at most *most* times; *calls* counts the calls. In each call it may make up to *attempts_per_call* attempts.
    *attempts* counts all attempts so far; *left* counts further attempts that were possible.
    """

    most: int
    calls: int = 0
    attempts_per_call: int = 1
    attempts: int = 0
    left: int = 0
    cost: Cost = Cost.zero()
    usage: Usage | None = attrs.field(factory=lambda: Usage(0, 0))
    seconds: float = 0.0
    history: list[Mapping[str, object]] = attrs.field(factory=list)

    async def ask(self, model: ChatModel, request: ChatRequest) -> Reply | Failure:
        """Call the model until its reply is not empty. A Failure of the model ends it at once."""
        while True:
            answer = await self._once(model, attrs.evolve(request, attempt=self.calls) if self.calls else request)
            fault = _fault(answer)
            self._note(answer, fault)
            if fault is None or isinstance(answer, Failure):
                return answer
            if fault.kind == "refused" or self.calls == self.most:
                return fault

    def retry_record(self) -> Mapping[str, object] | None:
        """Return the record of the attempts; None if the first one succeeded."""
        if not self.history:
            return None
        return {"attempts": self.attempts, "max_attempts": self.attempts + self.left, "history": self.history}

    def response(self, reply: Reply, hidden: Mapping[str, int]) -> Mapping[str, Any]:
        """Return the record's response for *reply*; *hidden* has the number of media that the model did not read."""
        retry = self.retry_record()
        metrics = {
            **self._figures(),
            **_reply_fields(reply),
            **reply.metrics,
            **({"hidden_media": hidden} if hidden else {}),
            "latency_seconds": round(self.seconds, 6),
        }
        response = {"content": reply.text, "metrics": metrics}
        return response if retry is None else {**response, "retry": retry}

    async def _once(self, model: ChatModel, request: ChatRequest) -> Reply | Failure:
        began = time.monotonic()
        answer = await model.complete(request)
        self.seconds += _seconds(answer, time.monotonic() - began)
        self.calls += 1
        self.cost += answer.cost
        usage = answer.usage if isinstance(answer, Reply) else None
        self.usage = usage and self.usage and _sum(self.usage, usage)
        return answer

    def _note(self, answer: Reply | Failure, fault: Failure | None) -> None:
        """Record the attempts of one call, numbered after the earlier ones. *fault* is the reason why the last one is no output, if any."""
        model_retry = answer.retry or {"attempts": 1, "max_attempts": 1, "history": ()}
        is_model_failure = answer.retry is not None and isinstance(answer, Failure)
        self.history += [{**tried, "attempt": self.attempts + tried["attempt"]} for tried in model_retry["history"]]
        self.attempts += model_retry["attempts"]
        if fault is not None and not is_model_failure:
            self.history.append({"attempt": self.attempts, "error": fault.message})
        self.attempts_per_call = max(self.attempts_per_call, model_retry["max_attempts"])
        # After a fault retried by the model there is no further call, and after an empty reply the model does not retry.
        again = 0 if is_model_failure else (self.most - self.calls) * self.attempts_per_call
        self.left = again + (model_retry["max_attempts"] - model_retry["attempts"] if is_model_failure else 0)
        if fault is None:  # as if the last fault had repeated
            self.left = (
                model_retry["max_attempts"] - model_retry["attempts"]
                if model_retry["history"]
                else self.most - self.calls
            )

    def _figures(self) -> dict[str, object]:
        figures: dict[str, object] = {}
        if self.usage is not None:
            read, written = self.usage.input_tokens, self.usage.output_tokens
            figures = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        if self.cost.amount is not None:
            figures["cost" if self.cost.unit == "usd" else "cost_msat"] = float(self.cost.amount)
        return figures


def names_of(subject: Subject) -> Mapping[str, object]:
    """Return the names for templates of the row *subject*; null values are left out."""
    names = {name: value for name, value in columns(subject).items() if value is not None}
    return {"context": subject.context, **names}


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
    advice, word = (
        "; raise max_output_tokens" if reason == "max_tokens" else "",
        answer.finish_reason or answer.stop_reason,
    )
    return Failure("judge_output_invalid", f"the model's reply is empty (stop reason {word!r:.40}){advice}")


def _seconds(answer: Reply | Failure, measured: float) -> float:
    """Return the time of an answer: its own figure if it has one, as a cached reply comes at once, else the *measured* time."""
    seconds = answer.metrics.get("latency_seconds") if isinstance(answer, Reply) else None
    return float(seconds) if isinstance(seconds, int | float) else measured


def _reply_fields(reply: Reply) -> dict[str, object]:
    fields = {"model": reply.model, "stop_reason": reply.stop_reason, "finish_reason": reply.finish_reason}
    return {name: value for name, value in fields.items() if value is not None}


def _sum(first: Usage, second: Usage) -> Usage:
    return Usage(first.input_tokens + second.input_tokens, first.output_tokens + second.output_tokens)
