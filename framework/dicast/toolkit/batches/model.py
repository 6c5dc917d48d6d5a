"""The live chat model whose calls are answered in batches."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, TypeVar

import attrs
import orjson

from ..._kernel.events import BATCH_CREATED, BATCH_ENDED, BATCH_INTENDED
from ..._kernel.values import BatchLog, ChatRequest, Cost, Failure, Reply, RunContext
from ..._kernel.values.errors import ConfigError
from ..endpoint.faults import CallFault
from ..rate_limit import WIRE, RequestTrace
from .earlier import EarlierBatch, EarlierBatches
from .endpoint import BatchEndpoint, EndpointBatch, ItemFault, Uncertain, Unconfirmed
from .polling import SLACK_SECONDS, ended_batch, patiently

T = TypeVar("T")
Outcome = Reply | ItemFault | None

_NEXT = "dicast run FILE --resume --retry-failed judges it in a new batch"
_DIGEST_CHARS = 32
_WORD = re.compile(r"[0-9A-Za-z]{8,}")


@attrs.define(eq=False)
class _Call:
    """A request that waits for its reply; *sent* has the random words of the request that an earlier process sent for it, else its own."""

    request: ChatRequest
    digest: str
    answer: asyncio.Future[Reply | Failure]
    wire: RequestTrace
    is_again: bool = False
    spent: Cost = Cost.zero()
    sent: Sequence[str] = ()

    def fail(self, message: str, kind: str = "judge_call_failed", **members: Any) -> None:
        """Answer the call with a Failure that has *members*, unless it is answered."""
        if not self.answer.done():
            self.answer.set_result(Failure(kind, message, cost=self.spent, **members))


class BatchModel:
    """Live object of a chat model that collects calls, and answers them when their batch comes back.

    :param model: the model's name.
    :param shown: the address of the endpoint without secrets, for the ledger.
    :param identity: the options that decide a reply in addition to the request.
    :param window: seconds in which the endpoint processes a batch.
    :param poll: seconds between two requests for the state of a batch.
    """

    def __init__(
        self,
        endpoint: BatchEndpoint,
        log: BatchLog,
        *,
        model: str,
        shown: str,
        identity: Mapping[str, object],
        window: float,
        poll: float,
    ) -> None:
        self._endpoint, self._log, self._model, self._address = endpoint, log, model, shown
        self._identity, self._window, self._poll = dict(identity), window, poll
        self._named = sha256(orjson.dumps(self._identity, option=orjson.OPT_SORT_KEYS)).hexdigest()[:_DIGEST_CHARS]
        self._collected: dict[_Call, None] = {}
        self._is_ending = False
        self._earlier: EarlierBatches[_Call] = EarlierBatches()
        self._quoted: set[str] = set()
        self._open: dict[str, str] = {}

    @property
    def longest_wait(self) -> float:
        """Seconds that a reply takes at most: a call whose batch returns none is sent again, once."""
        return 2 * (self._window + SLACK_SECONDS)

    def identity(self) -> Mapping[str, object]:
        """Return the options that decide a reply along with the request."""
        return self._identity

    def estimate(self, request: ChatRequest) -> Cost:
        """Return the upper bound of the cost of *request*."""
        return self._endpoint.bound(request)

    def load(self, run: RunContext) -> None:
        """Note the batches of earlier processes of *run*; with ``--cancel-batches`` no new ones are made."""
        self._is_ending = self._log.cancel
        self._earlier.load(run, self._named)

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        """Return the reply of *request* when its batch has come back."""
        self._endpoint.check(request)
        wire = WIRE.get() or RequestTrace()
        wire.paced = True  # nothing is sent yet
        call = _Call(request, self._digest(request), asyncio.get_running_loop().create_future(), wire)
        self._queue(call)
        try:
            return await call.answer
        finally:
            self._collected.pop(call, None)  # of a call that was given up before it was sent

    async def send_collected(self) -> None:
        """Send the calls that wait, and return when all of them are answered. Errors go to the calls."""
        while (batches := self._earlier.waiting_batches()) or self._collected:
            are_located = await asyncio.gather(*(self._locate(batch) for batch in batches))
            located = [batch for batch, is_located in zip(batches, are_located, strict=True) if is_located]
            collected, self._collected = self._collected, {}
            parts = [
                part
                for again in (False, True)
                for part in self._parts([call for call in collected if call.is_again is again])
            ]
            await asyncio.gather(*map(self._take_up, located), *map(self._send, parts))

    async def close(self) -> None:
        """Cancel the open batches under ``--cancel-batches``; else they continue at the endpoint."""
        for batch_id in self._open.values() if self._log.cancel else ():
            await self._cancel_by_user(batch_id)

    async def _cancel_by_user(self, batch_id: str) -> None:
        await self._endpoint.cancel(batch_id)
        self._log.cancelled[batch_id] = {"batch_id": batch_id, "model": self._model, "endpoint": self._address}

    def _digest(self, request: ChatRequest) -> str:
        """Return the digest of *request*. Random words that replies have quoted are replaced by one character, so they do not change it."""
        if self._quoted:
            nonces = {*request.nonces}
            words = self._quoted - nonces
            messages = tuple(
                attrs.evolve(message, content=_WORD.sub(lambda at: "\0" if at[0] in words else at[0], message.content))
                for message in request.messages
            )
            request = attrs.evolve(request, messages=messages)
        return request.digest(self._identity)[:_DIGEST_CHARS]

    def _queue(self, call: _Call) -> None:
        """Let *call* wait for its item in an earlier batch, or collect it for a new one."""
        item = self._earlier.take(call.digest, again=call.is_again)
        if item is not None:
            call.sent, call.wire.waits = item.words, True
            item.batch.waiting.append((item.number, call))
        elif self._is_ending:
            call.fail(f"no new batch is made under --cancel-batches; {_NEXT}")
        else:
            call.sent = call.request.nonces
            self._collected[call] = None

    async def _locate(self, batch: EarlierBatch[_Call]) -> bool:
        """Find an earlier batch at the endpoint, and return whether it is there; if it is not, its calls are queued again."""
        try:
            async with batch.lock:
                if batch.batch is None and self._earlier.has(batch):
                    batch.batch = await self._lookup(batch)
            if batch.batch is not None:
                return True
            if self._earlier.has(batch):
                self._record_end(batch.key, None, "not_created", 0, 0)
                self._earlier.forget(batch)
        except Exception as error:
            self._fail([call for _, call in batch.waiting], error)
            batch.waiting = []
            return False
        waiting, batch.waiting = batch.waiting, []
        for _, call in waiting:
            self._queue(call)
        return False

    async def _lookup(self, batch: EarlierBatch[_Call]) -> EndpointBatch | None:
        if batch.batch_id is not None:
            return await self._patiently(lambda: self._endpoint.status(str(batch.batch_id)), batch.until)
        hits = await self._patiently(lambda: self._endpoint.find(batch.key, batch.since, batch.size), batch.until)
        if not hits:
            await asyncio.sleep(self._poll)  # a request that was under way at the kill may still create it
            hits = await self._patiently(lambda: self._endpoint.find(batch.key, batch.since, batch.size), batch.until)
        if not hits:
            return None
        self._log.record(BATCH_CREATED, {"key": batch.key, "batch_id": hits[0].id})
        await self._cancel(hits[1:])
        return hits[0]

    async def _cancel(self, batches: Iterable[EndpointBatch]) -> None:
        for batch in batches:
            if not batch.is_ended:
                await self._endpoint.cancel(batch.id)

    async def _take_up(self, batch: EarlierBatch[_Call]) -> None:
        """Answer the calls that wait for items of an earlier batch."""
        waiting, batch.waiting = batch.waiting, []
        try:
            async with batch.lock:
                if batch.outcomes is None:
                    assert batch.batch is not None  # it was located
                    if self._is_ending and not batch.batch.is_ended:
                        await self._cancel_by_user(batch.batch.id)
                    batch.outcomes = await self._outcomes(batch.key, batch.batch, batch.until)
            for number, call in waiting:
                item = f"{batch.key}-{number}"
                self._answer(call, item, batch.outcomes.pop(item, None), batch.batch, is_last=False)
        except Exception as error:
            self._fail([call for _, call in waiting], error)

    def _parts(self, calls: list[_Call]) -> list[list[_Call]]:
        """Return *calls* in parts that the endpoint takes as one batch."""
        parts: list[list[_Call]] = []
        size = 0
        for call in calls:
            added = len(self._endpoint.line("0" * 40, call.request)) + 1
            if not parts or len(parts[-1]) == self._endpoint.max_items or size + added > self._endpoint.max_bytes:
                parts.append([])
                size = 0
            parts[-1].append(call)
            size += added
        return parts

    async def _send(self, calls: list[_Call]) -> None:
        """Send *calls* as one batch, and answer them when it comes back."""
        try:
            now = datetime.now(UTC)
            key, until = secrets.token_hex(16), now + timedelta(seconds=self._window)
            intended = {
                "key": key,
                "model": self._model,
                "endpoint": self._address,
                "identity": self._named,
                "calls": [[call.digest, list(call.sent)] for call in calls],
                "again": calls[0].is_again,
                "until": until.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            }
            self._log.record(BATCH_INTENDED, intended)
            for call in calls:
                call.wire.waits = True
            batch = await self._create(key, calls, now, until)
        except Uncertain as error:
            self._fail(calls, error.reason)
            return
        except Exception as error:
            _raise_in(calls, error)
            return
        try:
            outcomes = await self._outcomes(key, batch, until)
            for number, call in enumerate(calls):
                item = f"{key}-{number}"
                self._answer(call, item, outcomes.pop(item, None), batch, is_last=call.is_again)
        except Exception as error:
            self._fail(calls, error)

    def _fail(self, calls: list[_Call], error: Exception) -> None:
        """End the *calls* with *error*. Their batch may have been processed, so each call counts with the upper bound of its cost."""
        for call in calls if not isinstance(error, BatchRefused) else ():
            call.spent += self._endpoint.bound(call.request)
        _raise_in(calls, error)

    async def _create(self, key: str, calls: list[_Call], since: datetime, until: datetime) -> EndpointBatch:
        try:
            lines = [self._endpoint.line(f"{key}-{number}", call.request) for number, call in enumerate(calls)]
            uploaded = await self._endpoint.upload(key, lines)
            batch = await self._created(key, len(calls), uploaded, since, until)
        except Uncertain:  # a resumed run looks for it again
            raise
        except Exception:
            for call in calls:
                call.wire.waits = False
            self._record_end(key, None, "not_created", 0, len(calls))
            raise
        self._open[key] = batch.id
        self._log.record(BATCH_CREATED, {"key": key, "batch_id": batch.id})
        return batch

    async def _created(self, key: str, size: int, uploaded: Any, since: datetime, until: datetime) -> EndpointBatch:
        """Create the batch, and return it. If the endpoint does not confirm it, it is created again only after a listing without it.

        :raises Uncertain: if the endpoint returns no listing.
        """
        while True:
            try:
                return await self._endpoint.create(key, uploaded)
            except Unconfirmed:
                await asyncio.sleep(self._poll)
            try:
                batches = await self._patiently(lambda: self._endpoint.find(key, since, size), until)
            except Exception as error:
                raise Uncertain(error) from error
            if batches:
                await self._cancel(batches[1:])
                return batches[0]

    async def _outcomes(self, key: str, batch: EndpointBatch, until: datetime) -> dict[str, Reply | ItemFault]:
        """Wait for the end of *batch*, and return the results of its items."""
        self._open[key] = batch.id
        batch = await ended_batch(self._endpoint, batch, until, self._poll)
        outcomes: dict[str, Reply | ItemFault] = await self._patiently(lambda: self._read(batch), until)
        replies = sum(isinstance(outcome, Reply) for outcome in outcomes.values())
        self._record_end(key, batch.id, batch.status, replies, len(outcomes) - replies)
        self._open.pop(key, None)
        if batch.fault is not None:
            raise BatchRefused(f"batch {batch.id} was refused: {batch.fault}")
        return outcomes

    async def _read(self, batch: EndpointBatch) -> dict[str, Reply | ItemFault]:
        outcomes: dict[str, Reply | ItemFault] = {}
        async for item, outcome in self._endpoint.results(batch):
            if isinstance(outcome, Reply) or item not in outcomes:
                outcomes[item] = outcome
        return outcomes

    def _record_end(self, key: str, batch_id: str | None, status: str, replied: int, failed: int) -> None:
        payload = {"key": key, "batch_id": batch_id, "status": status, "replied": replied, "failed": failed}
        self._log.record(BATCH_ENDED, payload)

    def _answer(self, call: _Call, item: str, outcome: Outcome, batch: EndpointBatch | None, *, is_last: bool) -> None:
        """Answer *call* with the *outcome* of its item, or queue it again if this was not the last try."""
        if call.answer.done():
            return
        if isinstance(outcome, Reply):
            call.answer.set_result(self._reply(call, item, outcome))
            return
        fault = outcome or ItemFault("the batch came back without a reply for this call")
        call.spent += self._endpoint.bound(call.request) if fault.is_uncounted else fault.cost
        if is_last or not fault.again:
            members = {"retryable": fault.again, "adapted": self._endpoint.completed(call.request, Reply("")).adapted}
            call.fail(fault.message + " (sent in two batches)" * is_last, fault.kind, **members)
        elif batch is not None and batch.id in self._log.cancelled:
            call.fail(f"batch {batch.id} was canceled before it replied to this call; {_NEXT}")
        else:
            call.is_again = True
            self._queue(call)

    def _reply(self, call: _Call, item: str, reply: Reply) -> Reply:
        reply = self._endpoint.completed(call.request, reply)
        text = reply.text
        for old, new in zip(call.sent, call.request.nonces, strict=False):
            self._quoted |= {new} if old in text else set()
            text = text.replace(old, new)
        is_booked = item in self._earlier.booked
        cost = call.spent + (Cost.zero(reply.cost.unit) if is_booked else reply.cost)
        metrics = {**reply.metrics, "batch_item": item, **({"cached": True} if is_booked else {})}
        return attrs.evolve(reply, text=text, cost=cost, metrics=metrics)

    async def _patiently(self, request: Callable[[], Awaitable[T]], until: datetime) -> T:
        return await patiently(request, until, self._poll)


class BatchRefused(Exception):
    """The endpoint has refused all items of a batch."""


def _raise_in(calls: Iterable[_Call], error: Exception) -> None:
    """End the *calls* with *error*: with a Failure if it is about the batch, else the calls raise it."""
    for call in calls:
        if isinstance(error, CallFault):
            call.fail(str(error), error.kind, retryable=True)
        elif isinstance(error, BatchRefused):
            call.fail(str(error), retryable=True)
        elif isinstance(error, TimeoutError):
            call.fail(str(error), "timeout", retryable=True)
        elif not call.answer.done():
            call.answer.set_exception(error)


@asynccontextmanager
async def open_batches(run: RunContext, name: str, make: Callable[[BatchLog], BatchModel]) -> AsyncIterator[BatchModel]:
    """Open the model that *make* returns, for the component *name*, with the batches of earlier processes of *run*.

    :raises ConfigError: if *run* cannot wait for a batch, as outside of ``dicast run``.
    """
    if run.batches is None:
        raise ConfigError(
            f"{name} answers when its batch comes back, after minutes or hours: only dicast run waits for that. "
            f"Use the chat model of the same plugin here"
        )
    model = make(run.batches)
    if run.resumed:
        model.load(run)
    try:
        yield model
    finally:
        await model.close()
