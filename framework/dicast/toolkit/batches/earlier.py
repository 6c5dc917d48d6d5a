"""The batches that earlier processes of a run sent, read from the ledger."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

import attrs

from ..._kernel.events import BATCH_CREATED, BATCH_EVENTS, BATCH_INTENDED, SPEND_SETTLED, VERDICT_ENDS
from ..._kernel.values import Entry, Query, Reply, RunContext
from .endpoint import EndpointBatch, ItemFault

T = TypeVar("T")


@attrs.define(eq=False)
class EarlierBatch(Generic[T]):
    """A batch of an earlier process of the run.

    :param since: when its key was drawn.
    :param until: when the endpoint ends it at the latest.
    :param size: the number of its items.
    :param batch_id: the endpoint's id, if the ledger has it.
    :param batch: the batch at the endpoint, once it is known.
    :param outcomes: the outcomes of its items that no call has taken yet, once they are read.
    :param waiting: the calls of this process that wait for its items, each with the item's number.
    """

    key: str
    since: datetime
    until: datetime
    size: int = 0
    batch_id: str | None = None
    batch: EndpointBatch | None = None
    outcomes: dict[str, Reply | ItemFault] | None = None
    waiting: list[tuple[int, T]] = attrs.field(factory=list)
    lock: asyncio.Lock = attrs.field(factory=asyncio.Lock)


@attrs.frozen
class EarlierItem(Generic[T]):
    """An item of a batch: its *number*, and the random words of its request."""

    batch: EarlierBatch[T]
    number: int
    words: Sequence[str]


class EarlierBatches(Generic[T]):
    """The batches of earlier processes, and their items by the digests of the requests.

    *booked* has the ids of the items that the ledger has paid for.
    """

    def __init__(self) -> None:
        self.booked: set[str] = set()
        self._batches: dict[str, EarlierBatch[T]] = {}
        self._items: dict[tuple[str, bool], deque[EarlierItem[T]]] = {}

    def load(self, run: RunContext, identity: str) -> None:
        """Read the batches of *run* for the model with *identity* from the ledger."""
        for entry in run.read(Query(run.run_id, BATCH_EVENTS)):
            self._note(entry, identity)
        self._drop(self._finished(run))

    def _note(self, entry: Entry, identity: str) -> None:
        payload: Mapping[str, Any] = entry.event.payload
        key, is_known = payload["key"], payload["key"] in self._batches
        if entry.event.type == BATCH_INTENDED:
            if payload["identity"] == identity:
                self._add(key, payload, datetime.fromisoformat(entry.event.time))
        elif entry.event.type == BATCH_CREATED and is_known:
            self._batches[key].batch_id = payload["batch_id"]
        elif is_known and not payload["replied"]:
            self.forget(self._batches[key])

    def _add(self, key: str, intended: Mapping[str, Any], since: datetime) -> None:
        batch = self._batches[key] = EarlierBatch(
            key, since, datetime.fromisoformat(intended["until"]), len(intended["calls"])
        )
        for number, (digest, words) in enumerate(intended["calls"]):
            same_request = self._items.setdefault((digest, intended["again"]), deque())
            same_request.append(EarlierItem(batch, number, words))

    def _finished(self, run: RunContext) -> Iterator[tuple[str, int]]:
        """Yield the batch key and the number of each item whose judgment has ended, or whose reply a task has recorded.

        A call that sends the same request again needs a new reply.
        """
        finished = {entry.event.payload["eval_id"] for entry in run.read(Query(run.run_id, VERDICT_ENDS))}
        for entry in run.read(Query(run.run_id, (SPEND_SETTLED,))):
            items: Any = entry.event.payload.get("batch_items") or ()
            self.booked.update(items)
            eval_id = entry.event.payload["eval_id"]
            for item in items if eval_id is None or eval_id in finished else ():
                key, _, number = item.rpartition("-")
                yield key, int(number)

    def _drop(self, finished: Iterable[tuple[str, int]]) -> None:
        items = {*finished}
        self._keep(lambda item: (item.batch.key, item.number) not in items)

    def _keep(self, is_kept: Callable[[EarlierItem[T]], bool]) -> None:
        for key, items in self._items.items():
            self._items[key] = deque(filter(is_kept, items))

    def forget(self, batch: EarlierBatch[T]) -> None:
        """Forget a batch that the endpoint does not have, or that has no reply."""
        del self._batches[batch.key]
        self._keep(lambda item: item.batch is not batch)

    def has(self, batch: EarlierBatch[T]) -> bool:
        """Return whether *batch* was not forgotten."""
        return batch.key in self._batches

    def take(self, digest: str, *, again: bool) -> EarlierItem[T] | None:
        """Remove and return an item for a request with *digest* that no call has taken; None if there is none.

        With *again* only items of requests that were sent a second time count, else only the other items.
        """
        items = self._items.get((digest, again))
        return items.popleft() if items else None

    def waiting_batches(self) -> list[EarlierBatch[T]]:
        """Return the batches with calls that wait for one of their items."""
        return [batch for batch in self._batches.values() if batch.waiting]
