"""The live model: requests to the Messages API, and the parameters that the model accepts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import orjson

from dicast import ChatRequest, Cost, Failure, Reply
from dicast.toolkit.endpoint import Address, Answer, CallFault, ClientLimits
from dicast.toolkit.endpoint.client import OK, Client, Exchange, connect

from .accepted import Accepted
from .chat import Chat
from .replies import Unreadable, read_reply
from .requests import body, media_counts

_REFUSED = (400, 422)


@asynccontextmanager
async def open_live(chat: Chat, concurrency: int) -> AsyncIterator[Live]:
    """Open the client of *chat* for a run that judges *concurrency* subjects at the same time."""
    proxy = chat.proxy.value if chat.proxy else None
    address, limits = Address(chat.base_url, model=chat.model), ClientLimits.of(chat)
    async with connect(
        address, limits, concurrency, headers=chat.sent_headers(), secrets=chat.secrets(), proxy=proxy
    ) as client:
        yield Live(chat, client)


class Live:
    """Answers requests by asking the API."""

    def __init__(self, chat: Chat, client: Client) -> None:
        self._chat, self._client = chat, client
        self._accepted = Accepted()

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
        call = self._client.new_call(lambda: self.estimate(request), request.input_tokens + room if is_paced else 0)
        return await self._client.call(call, lambda: self._attempt(call, request))

    async def _attempt(self, call: Exchange, request: ChatRequest) -> Reply:
        reply, accepted = await self._ask(call, request, self._accepted)
        if not _is_used_up(reply, accepted, self._chat):
            return call.paid(*self._finished(call, request, reply, accepted))
        self._note_used_up(call, reply)
        reply, accepted = await self._ask(call, request, attrs.evolve(accepted, doublings=1, thinks=True))
        if _is_used_up(reply, accepted, self._chat):
            raise self._used_up(call, request, reply, accepted)
        return call.paid(*self._finished(call, request, reply, accepted))

    def _note_used_up(self, call: Exchange, reply: Reply) -> None:
        """Count a reply without an answer among the failed tries of *call*."""
        cost = self._cost(call, reply)
        call.spent += cost
        self._client.limiter.spent(cost)
        call.history.append({"attempt": call.tries, "error": "thinking left no tokens for the answer"})
        call.tries += 1

    async def _ask(self, call: Exchange, request: ChatRequest, accepted: Accepted) -> tuple[Reply, Accepted]:
        """Ask until no parameter is refused; return the reply, and the parameters of its request."""
        doublings = accepted.doublings
        while True:
            sent = orjson.dumps(body(self._chat, request, accepted))
            answer = await self._client.send(call, "POST", self._chat.path, sent)
            if answer.status == OK:
                return self._read(call, answer), accepted
            changed = accepted.without(answer.complaint(), self._chat, request) if answer.status in _REFUSED else None
            if changed is None:
                raise self._client.refusal(call, answer)
            self._accepted = self._accepted.merged(changed)
            accepted = attrs.evolve(self._accepted, doublings=doublings)

    def _read(self, call: Exchange, answer: Answer) -> Reply:
        try:
            reply = read_reply(answer)
        except Unreadable as error:
            is_free = error.is_error and error.usage is None
            cost = Cost.zero() if is_free else call.most if error.usage is None else self._chat.cost(error.usage)
            raise self._client.fault(call, str(error), cost=cost) from error
        if reply.usage is not None and reply.usage.reasoning_tokens and not self._accepted.thinks:
            self._accepted = attrs.evolve(self._accepted, thinks=True)
        return reply

    def _cost(self, call: Exchange, reply: Reply) -> Cost:
        return call.most if reply.usage is None else self._chat.cost(reply.usage)

    def _finished(self, call: Exchange, request: ChatRequest, reply: Reply, accepted: Accepted) -> tuple[Reply, Cost]:
        adapted, media = accepted.adapted_for(self._chat, request), media_counts(request, accepted)
        return attrs.evolve(reply, adapted=adapted, media=media), self._cost(call, reply)

    def _used_up(self, call: Exchange, request: ChatRequest, reply: Reply, accepted: Accepted) -> CallFault:
        room = accepted.room(self._chat, request)
        thought = f" ({reply.usage.output_tokens:,} tokens)" if reply.usage is not None else ""
        message = (
            f"thinking used up the limit of {room.total:,} tokens{thought}, and left none for the answer; raise "
            f"max_reasoning_tokens (now {room.reasoning:,} with the second try), or lower reasoning_effort"
        )
        return self._client.fault(call, message, again=False, cost=self._cost(call, reply), kind="judge_output_invalid")


def _is_used_up(reply: Reply, accepted: Accepted, chat: Chat) -> bool:
    """Return whether thinking left no room for an answer."""
    return (
        reply.stop_reason == "max_tokens"
        and not reply.text.strip()
        and (accepted.is_thinking(chat) or (reply.usage is not None and reply.usage.reasoning_tokens > 0))
    )
