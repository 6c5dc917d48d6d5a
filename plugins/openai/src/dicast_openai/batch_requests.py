"""The requests of the batch API: files, batches, and the items of their results."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol
from urllib.parse import quote

import attrs
import orjson

from dicast import ChatRequest, Cost, Reply, RunContext
from dicast.toolkit.batches import BatchModel, EndpointBatch, ItemFault, Unconfirmed, seconds_of
from dicast.toolkit.batches.opening import RESULT_BYTES, BatchOptions, open_batch_model
from dicast.toolkit.batches.requests import FINE, MOST_PAGES, BatchClient, batches_on, endless_list, json_object
from dicast.toolkit.endpoint import Answer, CallFault
from dicast.toolkit.endpoint.answers import json_bytes
from dicast.toolkit.endpoint.chat_form import RequestForm, adapted, request_body
from dicast.toolkit.endpoint.chat_parts import is_carried
from dicast.toolkit.endpoint.client import Client
from dicast.toolkit.endpoint.media import MediaReader, count_media
from dicast.toolkit.endpoint.parameters import SYSTEM_ROLE, named_parameter

from .answers import Unreadable, read_body, read_reply
from .chat import OPENAI, Chat

_PATH = "/chat/completions"
_FINAL_STATES = ("completed", "failed", "expired", "cancelled")
_PAGE = 100
_CLOCK_LAG = timedelta(hours=1)
"""Longest assumed lag of the endpoint's clock: the search ends at batches that are older than the intent by more than this."""
_FILE_BYTES = 200 * 10**6
LIMITS = frozenset(("max_tokens", "max_completion_tokens"))
ADAPTABLE = LIMITS | {
    "temperature",
    "top_p",
    "seed",
    "stop",
    "reasoning_effort",
    "response_format",
    "cache_control",
    SYSTEM_ROLE,
    "top_logprobs",
}
"""Parameters that later requests leave out or translate if the endpoint refused items of a batch because of them."""


class Options(BatchOptions, Protocol):
    """The options of ``openai/batch``."""

    @property
    def address(self) -> str: ...  # noqa: D102
    @property
    def window(self) -> str: ...  # noqa: D102
    @property
    def chat(self) -> Chat: ...  # noqa: D102

    def estimate(self, request: ChatRequest, room: int | None = None) -> Cost: ...  # noqa: D102


@asynccontextmanager
async def open_batches(options: Options, run: RunContext) -> AsyncIterator[BatchModel]:
    """Open the live object of *options* for *run*."""
    window, endpoint = seconds_of(options.window), partial(BatchRequests, options)
    async with open_batch_model(options, run, "openai/batch", options.address, window, endpoint) as model:
        yield model


class BatchRequests:
    """The batches of an endpoint that speaks the OpenAI format; see :class:`~dicast.toolkit.batches.BatchEndpoint`."""

    max_bytes = _FILE_BYTES

    def __init__(self, options: Options, client: Client) -> None:
        self._options, self._client, self.max_items = options, BatchClient(client), options.max_items
        self._form, self._room, self._is_sealed = _first_form(options), options.chat.reasoning_room(), True
        self._media, self._kinds_sent = MediaReader(is_carried), set[str]()

    def check(self, request: ChatRequest) -> None:
        """Refuse no request: the format has a field for each of its members."""

    def line(self, item_id: str, request: ChatRequest) -> bytes:
        """Return the line of *request* in the file of a batch."""
        self._is_sealed = self._is_sealed and is_sealed(request)
        sent = self._sent(request)
        self._kinds_sent |= set(count_media(sent))
        content = request_body(self._options.chat, sent, self._form, self._room)
        return orjson.dumps({"custom_id": item_id, "method": "POST", "url": f"/v1{_PATH}", "body": content})

    def bound(self, request: ChatRequest) -> Cost:
        """Return the upper bound of the cost of *request*."""
        return self._options.estimate(request, self._room)

    def completed(self, request: ChatRequest, reply: Reply) -> Reply:
        """Return *reply* to *request* with the media, the adapted parameters, and the upper bound as its cost if it has no usage."""
        cost = reply.cost if reply.usage is not None else self.bound(request)
        media = dict(count_media(self._sent(request)))
        return attrs.evolve(reply, cost=cost, adapted=adapted(self._options.chat, request, self._form), media=media)

    def _sent(self, request: ChatRequest) -> ChatRequest:
        """Return *request* with markers in place of media that the endpoint does not read. If the request needs the media, its judge fails it later."""
        return self._media.sent(attrs.evolve(request, needs_media=False))

    async def upload(self, key: str, lines: Sequence[bytes]) -> str:
        """Upload the file of the batch *key*, and return its id. A file is not paid for."""
        border = secrets.token_hex(16)
        head = (
            f'--{border}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--{border}\r\n'
            f'Content-Disposition: form-data; name="file"; filename="dicast-{key}.jsonl"\r\n'
            "Content-Type: application/jsonl\r\n\r\n"
        )
        content = b"".join((head.encode(), b"\n".join(lines), f"\n\r\n--{border}--\r\n".encode()))
        form = {"Content-Type": f"multipart/form-data; boundary={border}"}
        answer = await self._client.ask("POST", "/files", content, form)
        return str(_value(answer, "id"))

    async def create(self, key: str, uploaded: str) -> EndpointBatch:
        """Create the batch of an uploaded file. The request is sent once and never repeated."""
        batch = {
            "input_file_id": uploaded,
            "endpoint": f"/v1{_PATH}",
            "completion_window": self._options.window,
            "metadata": {"key": key, "created_by": "dicast"},
        }
        created = await self._client.create("/batches", orjson.dumps(batch))
        try:
            return _batch(created)
        except CallFault as fault:
            raise Unconfirmed(str(fault)) from fault

    async def find(self, key: str, since: datetime, size: int) -> list[EndpointBatch]:
        """Return the batches whose metadata has *key*; the newest are listed first."""
        matches: list[EndpointBatch] = []
        after = ""
        for _ in range(MOST_PAGES):
            page = json_object(await self._client.ask("GET", f"/batches?limit={_PAGE}{after}"))
            batches = batches_on(page)
            matches += [_batch(listed) for listed in batches if _key(listed) == key]
            oldest = batches[-1].get("created_at") if batches else None
            is_before = isinstance(oldest, int | float) and oldest < (since - _CLOCK_LAG).timestamp()
            if not batches or not page.get("has_more") or is_before:
                return matches
            after = f"&after={quote(str(batches[-1].get('id')), safe='')}"
        raise endless_list()

    async def status(self, batch_id: str) -> EndpointBatch:
        """Return the batch as it is now."""
        return _batch(json_object(await self._client.ask("GET", f"/batches/{quote(batch_id, safe='')}")))

    async def cancel(self, batch_id: str) -> None:
        """Ask the endpoint to cancel the batch; a batch that has ended stays unchanged."""
        await self._client.cancel(f"/batches/{quote(batch_id, safe='')}/cancel")

    async def results(self, batch: EndpointBatch) -> AsyncIterator[tuple[str, Reply | ItemFault]]:
        """Yield the items of the batch's files of outputs and of errors."""
        for name in ("output_file_id", "error_file_id"):
            if file := batch.data.get(name):
                answer = await self._client.ask(
                    "GET", f"/files/{quote(str(file), safe='')}/content", max_bytes=RESULT_BYTES
                )
                for line in answer.data.splitlines():
                    if line.strip() and (item := self._item(line)) is not None:
                        yield item

    def _item(self, line: bytes) -> tuple[str, Reply | ItemFault] | None:
        """Return the item on a line of a file of results; None for a line without the id of an item, whose call is then sent again."""
        try:
            item = orjson.loads(line)
        except orjson.JSONDecodeError:
            return None
        match item:
            case {"custom_id": str(item_id), "response": {"status_code": int(status), "body": body}} if not item.get(
                "error"
            ):
                return item_id, self._outcome(Answer(status, {}, json_bytes(body)))
            case {"custom_id": str(item_id), "error": {"message": str(message), **more}}:
                return item_id, ItemFault(f"{more.get('code') or 'error'}: {message}")
            case {"custom_id": str(item_id)}:
                return item_id, ItemFault(
                    f"an item without a response: {json_bytes(item)[:200].decode(errors='replace')}"
                )
        return None

    def _outcome(self, answer: Answer) -> Reply | ItemFault:
        if answer.status not in FINE:
            message = f"HTTP {answer.status}: {answer.complaint().message}"
            if answer.is_refused_by_policy:
                return ItemFault(message, "refused", again=False)
            if not self._media.learn_kinds(answer, self._kinds_sent):
                self._adapt(answer)
            return ItemFault(message)
        try:
            reply = read_reply(read_body(answer))
        except Unreadable as error:
            cost = Cost.zero() if error.usage is None else self._options.cost(error.usage)
            return ItemFault(str(error), cost=cost, is_uncounted=error.usage is None and not error.is_free)
        cost = Cost.zero() if reply.usage is None else self._options.cost(reply.usage)
        if reply.stop_reason == "max_tokens" and not reply.text.strip():
            self._room = max(self._room, 2 * self._options.chat.reasoning_room(has_reasoned=True))
            message = "the reply is empty: its limit ended it while the model reasoned; raise max_reasoning_tokens"
            return ItemFault(message, "judge_output_invalid", cost=cost)
        return attrs.evolve(reply, cost=cost)

    def _adapt(self, answer: Answer) -> None:
        """Change the form of later requests if the endpoint has refused a parameter."""
        name = named_parameter(answer, ADAPTABLE - self._form.omitted)
        if name is None or (name in LIMITS and name != self._form.limit):
            return
        form = self._form.without(name, self._options.chat, answer.complaint().message)
        if form is not None and (self._is_sealed or form.response_format != "text"):
            self._form = form


def _value(answer: Answer, name: str) -> object:
    body = json_object(answer)
    if name not in body:
        raise CallFault(f"the endpoint's answer has no {name!r}: {answer.data[:200]!r}", again=False)
    return body[name]


def _batch(body: Mapping[str, Any]) -> EndpointBatch:
    """Return the batch that *body* describes.

    :raises CallFault: if *body* is not a batch.
    """
    match body:
        case {"id": str(id_), "status": str(status)}:
            fault = _faults(body) if status == "failed" else None
            return EndpointBatch(id_, status, status in _FINAL_STATES, fault, body)
    raise CallFault(f"the endpoint's answer is not a batch: {json_bytes(body)[:200].decode(errors='replace')}")


def _key(batch: Mapping[str, Any]) -> object:
    """Return the key in the metadata of a listed batch."""
    metadata = batch.get("metadata")
    return metadata.get("key") if isinstance(metadata, dict) else None


def _faults(body: Mapping[str, Any]) -> str:
    """Return the endpoint's reasons for refusing a whole batch, as text."""
    match body.get("errors"):
        case {"data": [{"message": str(message)}, *rest]}:
            return message + (f" (and {len(rest)} more errors)" if rest else "")
    return "the endpoint gave no reason"


def is_sealed(request: ChatRequest) -> bool:
    """Return whether the reply to *request* has to repeat a seal."""
    return any(f"seal: {nonce}" in request.messages[-1].content for nonce in request.nonces)


def _first_form(options: Options) -> RequestForm:
    """Return the form of the first batch. A refused parameter costs a whole window, so parameters that OpenAI refuses are not sent to OpenAI."""
    form = RequestForm.of(options.chat)
    if options.address != OPENAI:
        return form
    omitted = frozenset(("temperature", "top_p")) if options.chat.reasoning_room() else frozenset()
    return attrs.evolve(form, limit="max_completion_tokens", omitted=omitted)
