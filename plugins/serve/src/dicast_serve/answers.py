"""Answers: made of the ledger, and kept as long as it stands still."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import chain, count
from pathlib import Path
from time import monotonic, time
from typing import Any, cast

import attrs
import orjson
from starlette.requests import Request
from starlette.responses import Response

from dicast import ConfigError, Head, Ledger, nearest

from .documents import dumped
from .first_page import asked
from .kept import Columns, Remembering
from .parameters import BadRequest, in_parameters, values_of
from .reading import ServedLedger
from .rounds import Rounds
from .routes import ROUTES, Route

ROUND = "dicast-round"
"""The header by which a viewer says which round it asks in."""

ANY = "*"
"""In place of the ETags that a client has: any answer, as long as there is one."""

AT_ONCE = 1
"""Answers about all verdicts that are made at the same time; the others wait. Two would take no less time, and twice the memory."""

LIGHT_AT_ONCE = 2
"""Likewise of those that do not look at all verdicts, which need not wait for the others."""

KEPT_BYTES = 20_000_000
"""Answers that are kept, in all."""


@attrs.frozen
class Served:
    """The ledgers, by the names that they are asked for by; the first is meant where none is named."""

    ledgers: Mapping[str, ServedLedger]

    @classmethod
    def of(cls, paths: Sequence[Path]) -> Served:
        """The ledgers at *paths*, each named after its file, and of several alike with a number."""
        found: dict[str, ServedLedger] = {}
        for path in dict.fromkeys(paths):
            stem = path.stem or "ledger"
            names = chain([stem], (f"{stem}-{number}" for number in count(2)))
            found[next(name for name in names if name not in found)] = ServedLedger(path)
        return cls(found)

    def ledger(self, name: str | None) -> ServedLedger:
        """What reads the ledger *name*.

        :raises BadRequest: when there is none.
        """
        if name is None:
            return next(iter(self.ledgers.values()))
        if name not in self.ledgers:
            from dicast import Problem

            message = f"no ledger {name!r:.100} is served; there are {', '.join(self.ledgers)}"
            raise BadRequest(
                [Problem(message, path="ledger", value=name[:100], hint=nearest(name[:100], self.ledgers))]
            )
        return self.ledgers[name]


class Answers:
    """Makes answers, and keeps those of the newest heads: an answer is made anew as soon as the ledger has grown."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self._kept: OrderedDict[bytes, bytes] = OrderedDict()
        self._size = 0
        self._making: dict[bytes, asyncio.Task[bytes]] = {}
        self._columns: dict[ServedLedger, Columns] = {}
        self._rounds: dict[ServedLedger, Rounds] = {}
        self._light = asyncio.Semaphore(LIGHT_AT_ONCE)
        self._heavy = ThreadPoolExecutor(AT_ONCE, "answers")  # threads of their own: each one's memory is apart

    def prepare(self) -> None:
        """Read the columns of the first ledger in the background, and join them, before the first page asks for what is made of them.

        A ledger that cannot be read is left to whoever asks for it, who is told.
        """
        ledger = self.served.ledger(None)
        self._heavy.submit(prepared, ledger, self._columns.setdefault(ledger, Columns()))

    def rounds(self, ledger: ServedLedger) -> Rounds:
        """The rounds of *ledger*."""
        return self._rounds.setdefault(ledger, Rounds())

    async def answer(self, route: Route, values: Mapping[str, Any], request: Request) -> Response:
        """The answer of a route, or that it is still the one that the client has."""
        name = values["ledger"]
        ledger = self.served.ledger(name)
        given = {name: value for name, value in values.items() if name != "ledger"}
        head = await self.rounds(ledger).head(request.headers.get(ROUND), lambda: asyncio.to_thread(ledger.head))
        key = _key(route, values, head, name)
        had = tags_of(request)
        if not route.by_clock and _tag(key) in had:
            return Response(status_code=304, headers={"etag": _tag(key)})
        body = self._kept.get(key)
        if body is None:
            task = self._making.get(key)
            if task is None:
                task = self._making[key] = asyncio.create_task(self._make(key, route, ledger, given, head))
            body = await asyncio.shield(task)
        else:
            self._kept.move_to_end(key)  # what nobody asks for goes first: an answer of a second ago, too
        tag = _tag(body if route.by_clock else key)
        if had & {tag, ANY}:
            return Response(status_code=304, headers={"etag": tag})
        return Response(body, media_type="application/json", headers={"etag": tag})

    async def _make(
        self, key: bytes, route: Route, ledger: ServedLedger, given: Mapping[str, Any], head: Head | None
    ) -> bytes:
        try:
            if route.light:
                async with self._light:
                    body = await asyncio.to_thread(answered, route, ledger, given)
            else:
                body = await asyncio.get_running_loop().run_in_executor(
                    self._heavy, self._timed, route, ledger, given, head
                )
        finally:
            del self._making[key]
        self._keep(key, body)
        return body

    def _timed(self, route: Route, ledger: ServedLedger, given: Mapping[str, Any], head: Head | None) -> bytes:
        began = monotonic()
        try:
            return answered(route, ledger, given, self._columns.setdefault(ledger, Columns()), head)
        finally:
            self.rounds(ledger).took(monotonic() - began)

    def _keep(self, key: bytes, body: bytes) -> None:
        self._kept[key] = body
        self._size += len(body)
        while self._size > KEPT_BYTES:
            self._size -= len(self._kept.popitem(last=False)[1])


def tags_of(request: Request) -> set[str]:
    """The ETags that the client has, weak ones as if they were strong (RFC 9110, 13.1.2)."""
    given = ",".join(request.headers.getlist("if-none-match"))
    return {one.strip().removeprefix("W/") for one in given.split(",")}


def answered(
    route: Route,
    ledger: ServedLedger,
    given: Mapping[str, Any],
    columns: Columns | None = None,
    head: Head | None = None,
) -> bytes:
    """The answer of a route, in JSON; with *columns* made of those that are kept for this *head*, or else for the newest."""

    def answer(live: Ledger) -> Mapping[str, Any]:
        known = live if columns is None else cast(Ledger, Remembering(live, columns, head or live.head()))
        try:
            return route.answer(known, given)
        except ConfigError as error:
            raise type(error)(in_parameters(error, given)) from error

    return dumped(ledger.read(answer))


def prepared(ledger: ServedLedger, columns: Columns) -> None:
    """Make *columns* ready for what the first page asks."""
    routes = {route.path: route for route in ROUTES}

    def ask(path: str, query: Sequence[tuple[str, str]] = ()) -> Any:
        return orjson.loads(answered(routes[path], ledger, values_of(routes[path].parameters, query, {}), columns))

    for path, query in asked(ask("/judges")["data"]):
        ask(path, query)


def _key(route: Route, values: Mapping[str, Any], head: Head | None, ledger: str | None) -> bytes:
    """What tells one answer from another: the route, its values, how far the ledger goes, and the time where that matters."""
    told: list[object] = [
        route.path,
        ledger,
        sorted((name, str(value)) for name, value in values.items()),
        head and head.digest,
    ]
    if {"from", "to"} <= values.keys() and values["to"] is None:
        told.append(int(time() // 60))  # the window moves with the clock
    if route.by_clock:
        told.append(int(time()))
    return orjson.dumps(told)


def _tag(told: bytes) -> str:
    """The ETag of what is *told*."""
    return f'"{sha256(told).hexdigest()[:32]}"'
