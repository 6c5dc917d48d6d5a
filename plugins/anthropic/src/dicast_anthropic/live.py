"""The live model: requests to the Messages API, and the parameters that the model accepts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import attrs
import orjson

from dicast import AccessRefused, ChatRequest, Cost, Failure, Reply, Secret, Usage
from dicast.toolkit.endpoint import Address, Answer, CallFault, ClientLimits
from dicast.toolkit.endpoint.client import OK, Client, Exchange, connect
from dicast.toolkit.endpoint.first_call import FirstCall
from dicast.toolkit.endpoint.media import MediaReader, count_media
from dicast.toolkit.media_tokens import most_input_tokens

from .accepted import Accepted, is_about_form, is_sealed
from .replies import Unreadable, read_reply
from .requests import RequestOptions, body, media_block

_REFUSED = (400, 422)
_MOST_FORMS = 16
_COST_HEADER = "x-litellm-response-cost"


NO_LOGPROBS = (
    "the Messages API has no log probabilities, and the judge needs them (confidence: logprob, or a form that asks for one token); "
    "use another option of the judge, or a model that has them"
)
_NO_FORM = "the reply has no seal, so its form depends on response_format; write seal: true, or use another model"


class LiveOptions(RequestOptions, Protocol):
    """The options of ``anthropic/chat``, with the address, the headers and the secrets of its requests."""

    @property
    def base_url(self) -> str: ...  # noqa: D102
    @property
    def path(self) -> str: ...  # noqa: D102
    @property
    def proxy(self) -> Secret | None: ...  # noqa: D102
    @property
    def tokens_per_minute(self) -> float | None: ...  # noqa: D102
    @property
    def is_assumed_free(self) -> bool: ...  # noqa: D102

    def estimate_for(self, request: ChatRequest, accepted: Accepted) -> Cost: ...  # noqa: D102
    def cost(self, usage: Usage) -> Cost: ...  # noqa: D102
    def identity(self) -> dict[str, object]: ...  # noqa: D102
    def sent_headers(self) -> dict[str, str]: ...  # noqa: D102
    def secrets(self) -> set[str]: ...  # noqa: D102


@attrs.frozen
class _Sent:
    """A *request* as it was sent, with the parameters that were *accepted*, and its *reply*."""

    request: ChatRequest
    accepted: Accepted
    reply: Reply

    def is_used_up(self, chat: LiveOptions) -> bool:
        """Return whether thinking left no tokens for the answer."""
        usage = self.reply.usage
        has_thought = self.accepted.is_thinking(chat) or (usage is not None and usage.reasoning_tokens > 0)
        return has_thought and self.reply.stop_reason == "max_tokens" and not self.reply.text.strip()


@asynccontextmanager
async def open_live(chat: LiveOptions, concurrency: int) -> AsyncIterator[Live]:
    """Open the client of *chat* for a run that judges *concurrency* subjects at the same time."""
    proxy = chat.proxy.value if chat.proxy else None
    address, limits = Address(chat.base_url, model=chat.model), ClientLimits.of(chat)
    async with connect(
        address, limits, concurrency, headers=chat.sent_headers(), secrets=chat.secrets(), proxy=proxy
    ) as client:
        yield Live(chat, client)


class Live:
    """Live object that answers requests by calling the API."""

    def __init__(self, chat: LiveOptions, client: Client) -> None:
        self._chat, self._client = chat, client
        self._accepted = Accepted()
        self._first = FirstCall()
        self._media = MediaReader(lambda media: media_block(media) is not None)

    def estimate(self, request: ChatRequest) -> Cost:
        """Return the upper bound of the cost of one try of *request*."""
        return self._chat.estimate_for(request, self._accepted)

    def identity(self) -> dict[str, object]:
        """Return the options that decide a reply, next to the request."""
        return self._chat.identity()

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        """Ask, and ask again after faults that may pass.

        :raises dicast.AccessRefused: for 401 to 404 and an account without credit, and if too many calls in a row get no
            connection.
        """
        is_paced = self._chat.tokens_per_minute is not None
        room = self._accepted.room(self._chat, request).total
        tokens = most_input_tokens(self._chat.model, request) + room if is_paced else 0
        call = self._client.new_call(lambda: self.estimate(request), tokens)
        return await self._client.call(call, lambda: self._attempt(call, request))

    async def _attempt(self, call: Exchange, request: ChatRequest) -> Reply:
        if request.logprobs:
            raise AccessRefused(self._client.message(NO_LOGPROBS, self._chat.path), call.spent)
        sent = await self._first.before(lambda: self._ask(call, request, self._accepted))
        if not sent.is_used_up(self._chat):
            return call.paid(*self._finished(call, sent))
        self._note_used_up(call, sent.reply)
        sent = await self._ask(call, request, attrs.evolve(sent.accepted, doublings=1, thinks=True))
        if sent.is_used_up(self._chat):
            raise self._used_up(call, sent)
        return call.paid(*self._finished(call, sent))

    def _note_used_up(self, call: Exchange, reply: Reply) -> None:
        """Count a reply without an answer among the failed tries of *call*."""
        cost = self._cost(call, reply)
        call.spent += cost
        self._client.limiter.spent(cost)
        call.history.append({"attempt": call.tries, "error": "thinking left no tokens for the answer"})
        call.tries += 1

    async def _ask(self, call: Exchange, request: ChatRequest, accepted: Accepted) -> _Sent:
        """Ask until no parameter is refused, or too many were."""
        doublings = accepted.doublings
        for _ in range(_MOST_FORMS):
            marked = self._media.sent(request)
            if accepted.room(self._chat, request).total > Accepted().room(self._chat, request).total:
                await self._client.reserve(call, self._chat.estimate_for(marked, accepted))
            call.adapted = accepted.adapted_for(self._chat, marked)
            data = orjson.dumps(body(self._chat, marked, accepted))
            answer = await self._client.send(call, "POST", self._chat.path, data)
            if answer.status == OK:
                return _Sent(marked, accepted, self._read(call, answer))
            if answer.status not in _REFUSED:
                raise self._client.refusal(call, answer)
            if not self._media.learn(answer, marked):
                self._accepted = self._accepted.merged(self._adapted(call, marked, accepted, answer))
                accepted = attrs.evolve(self._accepted, doublings=doublings)
        raise self._client.refusal(call, answer)

    def _adapted(self, call: Exchange, request: ChatRequest, accepted: Accepted, answer: Answer) -> Accepted:
        """Return *accepted* without the parameter that *answer* refuses.

        :raises dicast.CallFault: if it names none.
        :raises dicast.AccessRefused: if the form of the reply depends on it.
        """
        complaint = answer.complaint()
        is_plain = not (answer.is_out_of_money or answer.is_refused_by_policy)
        changed = accepted.without(complaint, self._chat, request) if is_plain else None
        if changed is not None:
            return changed
        if is_plain and not is_sealed(request) and is_about_form(complaint, self._chat, request, accepted):
            message = f"response_format is refused: HTTP {answer.status}: {complaint.message}"
            raise AccessRefused(f"{self._client.message(message, self._chat.path)}; {_NO_FORM}", call.spent)
        raise self._client.refusal(call, answer)

    def _read(self, call: Exchange, answer: Answer) -> Reply:
        try:
            reply = read_reply(answer)
        except Unreadable as error:
            is_free = error.is_error and error.usage is None
            cost = Cost.zero() if is_free else call.most if error.usage is None else self._chat.cost(error.usage)
            raise self._client.fault(call, str(error), cost=cost) from error
        self._check_free(call, answer)
        if reply.usage is not None and reply.usage.reasoning_tokens and not self._accepted.thinks:
            self._accepted = attrs.evolve(self._accepted, thinks=True)
        return reply

    def _check_free(self, call: Exchange, answer: Answer) -> None:
        """Refuse a reply for which a gateway reports a cost although the price was only assumed to be free."""
        cost = answer.headers.get(_COST_HEADER, "0")
        if self._chat.is_assumed_free and cost.replace(".", "", 1).strip("0").isdecimal():
            message = f"the reply reports a cost of {cost} usd, and the file has no price; write price"
            raise AccessRefused(self._client.message(message, self._chat.path), call.spent)

    def _cost(self, call: Exchange, reply: Reply) -> Cost:
        return call.most if reply.usage is None else self._chat.cost(reply.usage)

    def _finished(self, call: Exchange, sent: _Sent) -> tuple[Reply, Cost]:
        reply = attrs.evolve(sent.reply, adapted=call.adapted, media=dict(count_media(sent.request)))
        return reply, self._cost(call, reply)

    def _used_up(self, call: Exchange, sent: _Sent) -> CallFault:
        room, usage = sent.accepted.room(self._chat, sent.request), sent.reply.usage
        tokens = "" if usage is None else f" ({usage.reasoning_tokens or usage.output_tokens:,} tokens)"
        message = (
            f"thinking used up the limit of {room.total:,} tokens{tokens}, and left none for the answer; raise "
            f"max_reasoning_tokens (now {room.reasoning:,} with the second try), or lower reasoning_effort"
        )
        cost = self._cost(call, sent.reply)
        return self._client.fault(call, message, again=False, cost=cost, kind="judge_output_invalid")
