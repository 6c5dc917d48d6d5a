"""Answers to requests, cached while the ledger does not change."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import chain, count
from pathlib import Path
from time import thread_time
from types import MappingProxyType
from typing import Any, cast

import attrs
import orjson
from starlette.requests import Request
from starlette.responses import Response

from dicast import ConfigError, Head, Ledger, nearest

from .columns import CachedLedger, Columns
from .documents import dumped
from .first_page import first_requests
from .parameters import BadRequest, in_parameters, values_of
from .reading import ServedLedger
from .rounds import Rounds
from .routes import ROUTES, Route

_NAME = re.compile(r"[\w.-]+")

ROUND = "dicast-round"
"""Header with the name of the round of a viewer's request."""

ANY = "*"
"""Value of ``If-None-Match`` that matches any answer."""

HEAVY_LIMIT = 1
"""Answers about all verdicts computed at the same time; others wait. Two would take the same time and twice the memory."""

LIGHT_LIMIT = 2
"""Answers computed at the same time that do not read all verdicts. They need not wait for the heavy ones."""

PREPARED_ROWS = 20_000
"""Rows of a table that is read before anybody asks for it, at most."""

NONE: Mapping[str, str] = MappingProxyType({})

CACHE_BYTES = 20_000_000
"""Size of all cached answers, at most."""


@attrs.frozen
class Served:
    """The served ledgers by name; a request without a name gets the first."""

    ledgers: Mapping[str, ServedLedger]

    @classmethod
    def of(cls, paths: Sequence[Path | str], *, may_be_missing: bool = False) -> Served:
        """Return the ledgers at *paths*, each named after its file, or after the last part of its URL. Equal names get a number.

        If *may_be_missing*, a missing file is an empty ledger until a run writes it.
        """
        ledgers: dict[str, ServedLedger] = {}
        for path in dict.fromkeys(paths):
            stem = Path(path).stem
            stem = stem if stem and (isinstance(path, Path) or _NAME.fullmatch(stem)) else "ledger"
            names = chain([stem], (f"{stem}-{number}" for number in count(2)))
            ledgers[next(name for name in names if name not in ledgers)] = ServedLedger(path, may_be_missing)
        return cls(ledgers)

    def ledger(self, name: str | None) -> ServedLedger:
        """Return the reader of the ledger *name*, by default of the first.

        :raises BadRequest: when no ledger has this name.
        """
        if name is None:
            return next(iter(self.ledgers.values()))
        if name not in self.ledgers:
            from dicast import Problem

            message = f"no ledger {name!r:.100} is served; the served ledgers are {', '.join(self.ledgers)}"
            raise BadRequest(
                [Problem(message, path="ledger", value=name[:100], hint=nearest(name[:100], self.ledgers))]
            )
        return self.ledgers[name]


class Answers:
    """Computes answers and caches the newest of them. A new row in the ledger makes its cached answers obsolete."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self._cache: OrderedDict[bytes, bytes] = OrderedDict()
        self._size = 0
        self._making: dict[bytes, asyncio.Task[bytes]] = {}
        self._columns: dict[ServedLedger, Columns] = {}
        self._rounds: dict[ServedLedger, Rounds] = {}
        self._light = asyncio.Semaphore(LIGHT_LIMIT)
        self._heavy = ThreadPoolExecutor(
            HEAVY_LIMIT, "answers"
        )  # separate threads: each thread has its own memory arena
        self._of_runs = ThreadPoolExecutor(1, "runs")  # the progress of a run need not wait for figures of all verdicts

    def prepare(self) -> None:
        """Read and join the columns of the first ledger in the background, before the first page asks for figures.

        An error of reading is dropped here: the first request for the figures reports it.
        """
        ledger = self.served.ledger(None)
        self._heavy.submit(prepare_columns, ledger, self._columns_of(ledger))

    def rounds(self, ledger: ServedLedger) -> Rounds:
        """Return the rounds of *ledger*."""
        return self._rounds.setdefault(ledger, Rounds())

    async def answer(self, route: Route, values: Mapping[str, Any], request: Request) -> Response:
        """Return the answer of a route, or 304 if the client has the current one."""
        name = values["ledger"]
        ledger = self.served.ledger(name)
        arguments = {name: value for name, value in values.items() if name != "ledger"}
        rounds, round_name = self.rounds(ledger), request.headers.get(ROUND)
        head = await rounds.head(round_name, lambda: asyncio.to_thread(ledger.head))
        key = _key(route, values, head, name, rounds.moment(round_name))
        had = tags_of(request)
        if not route.by_clock and _tag(key) in had:
            return Response(status_code=304, headers={"etag": _tag(key)})
        body = self._cache.get(key)
        if body is None:
            task = self._making.get(key)
            if task is None:
                task = self._making[key] = asyncio.create_task(self._make(key, route, ledger, arguments, head))
            body = await asyncio.shield(task)
        else:
            self._cache.move_to_end(key)  # the least recently used answer is dropped first
        tag = _tag(body if route.by_clock else key)
        if had & {tag, ANY}:
            return Response(status_code=304, headers={"etag": tag})
        return Response(body, media_type="application/json", headers={"etag": tag})

    async def _make(
        self, key: bytes, route: Route, ledger: ServedLedger, arguments: Mapping[str, Any], head: Head | None
    ) -> bytes:
        columns = self._columns_of(ledger)
        try:
            if route.light:
                async with self._light:
                    body = await asyncio.to_thread(self._timed, route, ledger, arguments, columns, head)
            else:
                threads = self._heavy if route.is_of_all else self._of_runs
                body = await asyncio.get_running_loop().run_in_executor(
                    threads, self._timed, route, ledger, arguments, columns, head
                )
        finally:
            del self._making[key]
        self._store(key, body)
        return body

    def _columns_of(self, ledger: ServedLedger) -> Columns:
        return self._columns.setdefault(ledger, Columns())

    def _timed(
        self,
        route: Route,
        ledger: ServedLedger,
        arguments: Mapping[str, Any],
        columns: Columns | None = None,
        head: Head | None = None,
    ) -> bytes:
        began = thread_time()  # not the clock: on a busy machine an answer waits longer than it computes
        try:
            return json_answer(route, ledger, arguments, columns, head)
        finally:
            rounds = self.rounds(ledger)
            (rounds.of_all if route.is_of_all else rounds.of_runs).add_busy_time(thread_time() - began)

    def _store(self, key: bytes, body: bytes) -> None:
        self._cache[key] = body
        self._size += len(body)
        while self._size > CACHE_BYTES:
            self._size -= len(self._cache.popitem(last=False)[1])


def tags_of(request: Request) -> set[str]:
    """Return the ETags that the client has; weak tags count as strong ones (RFC 9110, 13.1.2)."""
    header = ",".join(request.headers.getlist("if-none-match"))
    return {tag.strip().removeprefix("W/") for tag in header.split(",")}


def json_answer(
    route: Route,
    ledger: ServedLedger,
    arguments: Mapping[str, Any],
    columns: Columns | None = None,
    head: Head | None = None,
) -> bytes:
    """Return the answer of a route in JSON. With *columns*, it uses the columns cached for *head*, by default for the newest head."""

    def answer(live: Ledger) -> Mapping[str, Any]:
        source = live if columns is None else cast(Ledger, CachedLedger(live, columns, head or live.head()))
        try:
            return route.answer(source, arguments)
        except ConfigError as error:
            raise type(error)(in_parameters(error, arguments)) from error

    return dumped(ledger.read(answer))


def prepare_columns(ledger: ServedLedger, columns: Columns) -> None:
    """Fill *columns* with the data that the first page needs, then with the table of the newest run, if it is small."""
    routes = {route.path: route for route in ROUTES}

    def ask(path: str, query: Sequence[tuple[str, str]] = (), parts: Mapping[str, str] = NONE) -> Any:
        values = values_of(routes[path].parameters, query, parts)
        return orjson.loads(json_answer(routes[path], ledger, values, columns))

    for path, query in first_requests(ask("/judges")["data"]):
        ask(path, query)
    for run in ask("/runs", [("without_kind", "tool"), ("limit", "1")])["data"]:
        if run["subjects"] is None or run["subjects"] > PREPARED_ROWS:
            continue
        ask("/runs/{run_id}/subjects", [("limit", "1")], {"run_id": run["run_id"]})


def _key(route: Route, values: Mapping[str, Any], head: Head | None, ledger: str | None, moment: float) -> bytes:
    """Return the cache key of an answer: route, values, head of the ledger, and the *moment* if the answer depends on the time."""
    parts: list[object] = [
        route.path,
        ledger,
        sorted((name, str(value)) for name, value in values.items()),
        head and head.digest,
    ]
    if {"from", "to"} <= values.keys() and values["to"] is None:
        parts.append(int(moment // 60))  # the window moves with the clock
    if route.by_clock:
        parts.append(int(moment))
    return orjson.dumps(parts)


def _tag(content: bytes) -> str:
    """Return the ETag of *content*."""
    return f'"{sha256(content).hexdigest()[:32]}"'
