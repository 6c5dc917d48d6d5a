"""The loop of a chat model: it asks the endpoint in the form that the endpoint accepts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Generic, Protocol, TypeVar

import attrs

from ..._kernel.values import ChatRequest, Cost, Failure, Reply, Usage
from ..._kernel.values.endpoint_errors import AccessRefused
from .answers import Answer
from .chat_form import ChatOptions, RequestForm, adapted, parameters, request_body
from .chat_parts import is_carried
from .client import OK, Client, Exchange
from .first_call import FirstCall
from .media import MediaReader, count_media
from .parameters import SYSTEM_ROLE, is_about_length, named_parameter

_MAY_BE_FORMAT = (400, 422)
"""Statuses after which another form of the schema is tried although the error does not name it."""
_MOST_FORMS = 16
_NEEDED = {
    "logprobs": "the judge needs log probabilities (confidence: logprob, or a form that asks for one token); use a model that has them, or another option of the judge",
    "response_format": "the reply has no seal, so its form depends on response_format; write seal: true, or use another model",
}


S = TypeVar("S")


@attrs.frozen
class ReadReply:
    """A reply without its cost.

    :param has_reasoning: whether the model reasons before it answers.
    :param reported_cost: the cost in usd that the endpoint reports; 0 if it reports none.
    """

    reply: Reply
    has_reasoning: bool = False
    reported_cost: Decimal = Decimal(0)


class Sender(Protocol[S]):
    """The way of a request to the endpoint and back."""

    async def prepare(self) -> None:
        """Do work that is needed once before the first request, such as imports."""
        ...

    async def send(self, call: Exchange, body: dict[str, Any]) -> S | Answer:
        """Return the response to *body*; an :class:`~.answers.Answer` for each status other than 200.

        :raises CallFault: if there is none.
        """
        ...

    def read(self, call: Exchange, answer: S) -> ReadReply:
        """Return the reply in *answer*, whose status is 200.

        :raises CallFault: if there is none.
        :raises dicast.AccessRefused: if no later call can succeed.
        """
        ...


@attrs.frozen
class _Sent(Generic[S]):
    """A *request* as it was sent, with markers for media that the endpoint does not read, its *form* and its *room* for reasoning."""

    answer: S | Answer
    request: ChatRequest
    form: RequestForm
    room: int


class ChatLoop(Generic[S]):
    """Loop of a chat model that answers requests through a *sender*."""

    def __init__(self, options: ChatOptions, client: Client, sender: Sender[S]) -> None:
        self._options, self._client, self._sender = options, client, sender
        self._form = RequestForm.of(options)
        self._media = MediaReader(is_carried)
        self._first = FirstCall()
        self._reasons = False

    def estimate(self, request: ChatRequest) -> Cost:
        """Return the most that one try of *request* may cost."""
        return self._options.estimate(request, self._room)

    def identity(self) -> dict[str, object]:
        """Return the options that decide a reply along with the request."""
        return self._options.identity()

    @property
    def _room(self) -> int:
        return self._options.reasoning_room(has_reasoned=self._reasons)

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        """Ask, and ask again after faults that may pass.

        :raises dicast.AccessRefused: for 401, 402, 403, 404, an account without quota, and a refused parameter that is needed; and if
            too many calls in a row get no connection.
        """
        is_paced = self._options.tokens_per_minute is not None
        tokens = self._options.most_input_tokens(request) + request.max_output_tokens + self._room if is_paced else 0
        call = self._client.new_call(lambda: self.estimate(request), tokens)
        return await self._client.call(call, lambda: self._attempt(call, request))

    async def _attempt(self, call: Exchange, request: ChatRequest) -> Reply:
        await self._sender.prepare()
        sent = await self._first.before(lambda: self._ask(call, request, self._room))
        reply, cost = self._read(call, sent)
        if not _ended_before_text(reply):
            return call.paid(reply, cost)
        self._client.record(call, self._client.fault(call, _empty(reply, sent, self._options), cost=cost))
        call.tries += 1
        self._reasons = True
        sent = await self._ask(call, request, max(2 * sent.room, self._room) or request.max_output_tokens)
        reply, cost = self._read(call, sent)
        if _ended_before_text(reply):
            message = _empty(reply, sent, self._options)
            reason = reply.finish_reason or reply.stop_reason
            raise self._client.fault(
                call, message, again=False, cost=cost, kind="judge_output_invalid", finish_reason=reason
            )
        return call.paid(reply, cost)

    async def _ask(self, call: Exchange, request: ChatRequest, room: int) -> _Sent[S]:
        """Send the request in the form that the endpoint accepts, and return it with the response.

        A refusal that names a parameter changes the form for the run. After another refusal a changed form is kept only if it is accepted.
        """
        guess: RequestForm | None = None
        for _ in range(_MOST_FORMS):
            form, sent_request = guess or self._form, self._media.sent(request)
            if room > self._options.reasoning_room():
                await self._client.reserve(call, self._options.estimate(sent_request, room))
            call.adapted = adapted(self._options, sent_request, self._form)
            answer = await self._sender.send(call, request_body(self._options, sent_request, form, room))
            sent = _Sent(answer, sent_request, form, room)
            if not isinstance(answer, Answer) or answer.status == OK:
                if guess is not None and self._form.response_format == RequestForm.of(self._options).response_format:
                    self._form = attrs.evolve(self._form, response_format=guess.response_format)
                return sent
            if self._media.learn(answer, sent_request):
                continue
            name = named_parameter(answer, self._names(sent_request, form, room))
            if name is None:
                guess = self._guess(sent_request, form, answer)
            elif self._adapt(call, sent_request, form, name, answer):
                guess = None if guess is None else guess.without(name, self._options, answer.complaint().message)
                continue
            if guess is None or name is not None:
                return sent
        return sent

    def _names(self, request: ChatRequest, form: RequestForm, room: int) -> set[str]:
        """Return the names of the parameters that the endpoint may refuse."""
        names = set(parameters(self._options, request, form, room))
        if form.role != "user" and any(message.role == "system" for message in request.messages):
            names.add(SYSTEM_ROLE)
        if self._options.cache_control and any(message.cache for message in request.messages):
            names.add("cache_control")
        return names - form.omitted

    def _adapt(self, call: Exchange, request: ChatRequest, form: RequestForm, name: str, answer: Answer) -> bool:
        """Change the form of the run after the refusal of *name* in *form*; False if nothing is left to change.

        :raises dicast.AccessRefused: if *name* is needed.
        """
        if self._form.value(name) != form.value(name):  # another call has changed it
            return True
        following = self._form.without(name, self._options, answer.complaint().message)
        if self._is_needed(name, request, following):
            message = f"{name} is refused: HTTP {answer.status}: {answer.complaint().message}"
            advice = _NEEDED["response_format" if name == "response_format" else "logprobs"]
            raise AccessRefused(f"{self._client.message(message, call.path)}; {advice}", call.spent)
        if following is None:
            return False
        self._form = following
        return True

    @staticmethod
    def _is_needed(name: str, request: ChatRequest, following: RequestForm | None) -> bool:
        """Return whether *following*, the form after the refusal of *name*, lacks a parameter that the judgment depends on."""
        if name == "response_format":
            return not _is_sealed(request) and (following is None or following.response_format == "text")
        return name in ("logprobs", "top_logprobs") and following is None

    def _guess(self, request: ChatRequest, form: RequestForm, answer: Answer) -> RequestForm | None:
        """Return a form with another format of the schema, which an error without a name may be about."""
        may_be_format = answer.status in _MAY_BE_FORMAT and request.schema is not None
        if not may_be_format or answer.is_out_of_money or answer.is_refused_by_policy or is_about_length(answer):
            return None
        guess = form.without("response_format", self._options)
        return guess if guess is not None and (_is_sealed(request) or guess.response_format != "text") else None

    def _read(self, call: Exchange, sent: _Sent[S]) -> tuple[Reply, Cost]:
        """Return the reply and its cost.

        :raises CallFault: if there is none.
        :raises dicast.AccessRefused: as ``complete``.
        """
        answer = sent.answer
        if isinstance(answer, Answer) and answer.status != OK:
            raise self._client.refusal(call, answer)
        read = self._sender.read(call, answer)  # type: ignore[arg-type]  # a response with status 200 is the sender's own
        reply = read.reply
        self._reasons = self._reasons or read.has_reasoning
        self._check_free(call, read.reported_cost)
        cost = (
            self._options.estimate(sent.request, sent.room) if reply.usage is None else self._options.cost(reply.usage)
        )
        changes = adapted(self._options, sent.request, sent.form)
        return attrs.evolve(reply, adapted=changes, media=dict(count_media(sent.request))), cost

    def _check_free(self, call: Exchange, cost: Decimal) -> None:
        """Refuse a reply that reports a cost although the price was only assumed to be free."""
        if cost and self._options.is_assumed_free:
            message = f"the reply reports a cost of {cost:f} usd, and the file has no price; write price"
            raise AccessRefused(self._client.message(message, call.path), call.spent + Cost(cost, "usd", "reported"))


def _is_sealed(request: ChatRequest) -> bool:
    """Return whether the reply to *request* has to show a seal."""
    return any(f"seal: {nonce}" in request.messages[-1].content for nonce in request.nonces)


def _ended_before_text(reply: Reply) -> bool:
    """Return whether the limit ended *reply* before its first token; a blank with its probability is a token."""
    return reply.stop_reason == "max_tokens" and not reply.text.strip() and not reply.logprobs


def _empty(reply: Reply, sent: _Sent[Any], options: ChatOptions) -> str:
    """Return the message about a reply whose limit ended it before its text."""
    usage = reply.usage or Usage(0, 0)
    spent = usage.reasoning_tokens or usage.output_tokens
    reasoning = f" after {spent:,} {'reasoning' if usage.reasoning_tokens else 'output'} tokens" if spent else ""
    most = options.reasoning_room(has_reasoned=True)
    option = f"{most:,}{' by default' if options.max_reasoning_tokens is None else ''}"
    room = f"{sent.room:,} for reasoning" + (", twice max_reasoning_tokens" if sent.room == 2 * most else "")
    return (
        f"the reply is empty: its limit ended it{reasoning}; the limit had {sent.request.max_output_tokens:,} tokens for the answer and "
        f"{room}; raise max_reasoning_tokens ({option})"
    )
