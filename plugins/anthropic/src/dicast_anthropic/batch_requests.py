"""The requests of the Message Batches API, and the items of its results."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Protocol
from urllib.parse import quote

import attrs
import orjson

from dicast import AccessRefused, ChatRequest, Cost, Reply, RunContext
from dicast.toolkit.batches import BatchModel, EndpointBatch, ItemFault, Unconfirmed
from dicast.toolkit.batches.opening import RESULT_BYTES, BatchOptions, open_batch_model
from dicast.toolkit.batches.requests import MOST_PAGES, BatchClient, batches_on, endless_list, json_object
from dicast.toolkit.endpoint import Answer, CallFault
from dicast.toolkit.endpoint.answers import json_bytes
from dicast.toolkit.endpoint.client import Client
from dicast.toolkit.endpoint.media import MediaReader, count_media

from .accepted import Accepted
from .chat import Chat
from .live import NO_LOGPROBS
from .replies import Unreadable, read_reply
from .requests import body, media_block

_PAGE = 1000
_CLOCKS = timedelta(minutes=10)
"""How far the API's clock may be behind, when batches before the intent are passed over."""
_REQUEST_BYTES = 256 * 10**6


WINDOW = 24 * 3600.0
"""Seconds in which the API processes a batch."""


class Options(BatchOptions, Protocol):
    """The options of ``anthropic/batch``."""

    @property
    def base_url(self) -> str: ...  # noqa: D102
    @property
    def chat(self) -> Chat: ...  # noqa: D102

    def estimate_for(self, request: ChatRequest, accepted: Accepted) -> Cost: ...  # noqa: D102


@asynccontextmanager
async def open_batches(options: Options, run: RunContext) -> AsyncIterator[BatchModel]:
    """Open the live object of *options* for *run*."""
    endpoint = partial(MessageBatches, options)
    async with open_batch_model(options, run, "anthropic/batch", options.base_url, WINDOW, endpoint) as model:
        yield model


class MessageBatches:
    """The batches of the Message Batches API; see :class:`~dicast.toolkit.batches.BatchEndpoint`."""

    max_bytes = _REQUEST_BYTES

    def __init__(self, options: Options, client: Client) -> None:
        self._options, self._client, self.max_items = options, BatchClient(client), options.max_items
        self._path = f"{options.chat.path}/batches"
        self._accepted = Accepted()
        self._media = MediaReader(lambda media: media_block(media) is not None)
        self._sample: ChatRequest | None = None
        self._kinds_sent: set[str] = set()

    def check(self, request: ChatRequest) -> None:
        """Refuse a request for log probabilities, which the API does not have."""
        if request.logprobs:
            raise AccessRefused(f"{self._options.model}: {NO_LOGPROBS}")

    def line(self, item_id: str, request: ChatRequest) -> bytes:
        """Return the item of *request*."""
        self._sample, sent = request, self._sent(request)
        self._kinds_sent |= set(count_media(sent))
        params = body(self._options.chat, sent, self._accepted)
        return orjson.dumps({"custom_id": item_id, "params": params})

    def bound(self, request: ChatRequest) -> Cost:
        """Return the upper bound of the cost of *request*."""
        return self._options.estimate_for(request, self._accepted)

    def completed(self, request: ChatRequest, reply: Reply) -> Reply:
        """Return *reply* to *request* with its cost where it has no usage, its media and the adapted parameters."""
        cost = reply.cost if reply.usage is not None else self.bound(request)
        media = dict(count_media(self._sent(request)))
        return attrs.evolve(
            reply, cost=cost, media=media, adapted=self._accepted.adapted_for(self._options.chat, request)
        )

    def _sent(self, request: ChatRequest) -> ChatRequest:
        """Return *request* with markers for media that the model does not read, also if it needs them: its judge then fails it."""
        return self._media.sent(attrs.evolve(request, needs_media=False))

    async def upload(self, key: str, lines: Sequence[bytes]) -> bytes:
        """Return the body of the request that creates the batch: the API has no files."""
        return b'{"requests":[' + b",".join(lines) + b"]}"

    async def create(self, key: str, uploaded: bytes) -> EndpointBatch:
        """Create the batch with one request, which is not repeated."""
        created = await self._client.create(self._path, uploaded)
        try:
            return _batch(created)
        except CallFault as fault:
            raise Unconfirmed(str(fault)) from fault

    async def find(self, key: str, since: datetime, size: int) -> list[EndpointBatch]:
        """Return the batches of *size* items since *since* whose items have *key*; one that goes on is waited for."""
        matches = []
        for batch in await self._listed(since):
            if _size(batch) != size:
                continue
            while not batch.is_ended:
                await asyncio.sleep(self._options.poll)
                batch = await self.status(batch.id)  # noqa: PLW2901  # the same batch, later
            first = next(iter(await self._lines(batch)), {})
            if str(first.get("custom_id")).rpartition("-")[0] == key:
                matches.append(batch)
        return matches

    async def _listed(self, since: datetime) -> list[EndpointBatch]:
        """Return the batches that were created since *since*; the newest come first."""
        listed: list[EndpointBatch] = []
        after = ""
        for _ in range(MOST_PAGES):
            page = json_object(await self._client.ask("GET", f"{self._path}?limit={_PAGE}{after}"))
            batches = [_batch(batch) for batch in batches_on(page)]
            newer = [batch for batch in batches if _created_at(batch) >= since - _CLOCKS]
            listed += newer
            if len(newer) < len(batches) or not page.get("has_more") or not batches:
                return listed
            after = f"&after_id={quote(batches[-1].id, safe='')}"
        raise endless_list()

    async def status(self, batch_id: str) -> EndpointBatch:
        """Return the batch as it is now."""
        return _batch(json_object(await self._client.ask("GET", f"{self._path}/{quote(batch_id, safe='')}")))

    async def cancel(self, batch_id: str) -> None:
        """Ask the API to end the batch; one that has ended is left alone."""
        await self._client.cancel(f"{self._path}/{quote(batch_id, safe='')}/cancel")

    async def results(self, batch: EndpointBatch) -> AsyncIterator[tuple[str, Reply | ItemFault]]:
        """Yield the items of the batch."""
        for item in await self._lines(batch):
            match item:
                case {"custom_id": str(item_id), "result": {"type": "succeeded", "message": message}}:
                    yield item_id, self._outcome(Answer(200, {}, json_bytes(message)))
                case {"custom_id": str(item_id), "result": {"type": "errored", "error": error}}:
                    yield item_id, self._fault(Answer(400, {}, json_bytes(error)))
                case {"custom_id": str(item_id), "result": {"type": str(kind)}}:
                    yield item_id, ItemFault(f"the item is {kind}")

    async def _lines(self, batch: EndpointBatch) -> list[Mapping[str, Any]]:
        answer = await self._client.ask(
            "GET", f"{self._path}/{quote(batch.id, safe='')}/results", max_bytes=RESULT_BYTES
        )
        items = []
        for line in filter(bytes.strip, answer.data.splitlines()):
            try:
                items.append(orjson.loads(line))
            except orjson.JSONDecodeError:  # the call of such a line is sent again
                continue
        return [item for item in items if isinstance(item, Mapping)]

    def _outcome(self, answer: Answer) -> Reply | ItemFault:
        try:
            reply = read_reply(answer)
        except Unreadable as error:
            cost = Cost.zero() if error.usage is None else self._options.cost(error.usage)
            return ItemFault(str(error), cost=cost, is_uncounted=error.usage is None and not error.is_error)
        usage = reply.usage
        cost = Cost.zero() if usage is None else self._options.cost(usage)
        if reply.stop_reason == "max_tokens" and not reply.text.strip():
            self._accepted = attrs.evolve(self._accepted, doublings=1, thinks=True)
            message = "thinking left no tokens for the answer; raise max_reasoning_tokens, or lower reasoning_effort"
            return ItemFault(message, "judge_output_invalid", cost=cost)
        return attrs.evolve(reply, cost=cost)

    def _fault(self, answer: Answer) -> ItemFault:
        """Return the fault of an item, and leave a parameter that was refused out of later batches."""
        complaint = answer.complaint()
        if answer.is_refused_by_policy:
            return ItemFault(complaint.message, "refused", again=False)
        changed = None
        if not self._media.learn_kinds(answer, self._kinds_sent) and self._sample is not None:
            changed = self._accepted.without(complaint, self._options.chat, self._sample)
        self._accepted = changed or self._accepted
        return ItemFault(complaint.message)


def _size(batch: EndpointBatch) -> int:
    """Return the number of items of *batch*."""
    counts = batch.data.get("request_counts")
    return sum(count for count in counts.values() if isinstance(count, int)) if isinstance(counts, Mapping) else 0


def _created_at(batch: EndpointBatch) -> datetime:
    """Return when *batch* was created; now if the API does not say."""
    try:
        created = datetime.fromisoformat(str(batch.data.get("created_at")))
        return created if created.tzinfo else created.replace(tzinfo=UTC)
    except ValueError:
        return datetime.now(UTC)


def _batch(document: Mapping[str, Any]) -> EndpointBatch:
    """Return the batch that *document* describes.

    :raises CallFault: if it describes none.
    """
    match document:
        case {"id": str(id_), "processing_status": str(status)}:
            return EndpointBatch(id_, status, status == "ended", None, document)
    raise CallFault(f"the API's answer is no batch: {json_bytes(document)[:200].decode(errors='replace')}")
