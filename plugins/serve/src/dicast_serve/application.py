"""The ASGI application: routes, cached answers, and errors as JSON."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, compile_path
from starlette.routing import Route as Path_
from starlette.types import ASGIApp

from dicast import (
    DicastError,
    LedgerError,
    LedgerRefused,
    RequestError,
    nearest,
)

from . import openapi
from .answers import Answers, Served, json_answer
from .documents import dumped
from .guard import Guard, Tokens, error_response, token_of
from .guide import Guide
from .label_bodies import MAX_BODY_BYTES, label_of, retraction_of
from .label_routes import routes_with
from .labels import record
from .live import Tails, stream
from .parameters import BadRequest, values_of
from .retractions import retract
from .routes import AFTER, BRIEF, LEDGER, Route
from .runs import NotFound

Endpoint = Callable[[Request], Awaitable[Response]]
Read = Callable[[bytes], Any]
Write = Callable[..., dict[str, Any]]
Page = tuple[str, Callable[[Request], Awaitable[Response]]]


def application(
    paths: Sequence[Path | str],
    tokens: Tokens,
    hosts: Sequence[str],
    cookie: str,
    pages: Sequence[BaseRoute] = (),
    *,
    prepare: bool = False,
    guide: Guide | None = None,
    next_run: Callable[[], str] | None = None,
) -> ASGIApp:
    """Return the application over the ledgers at *paths*. *pages* are routes in addition to the API's; *prepare* starts reading at once; *guide* is for people who label.

    *next_run* returns the command that an empty ledger's page names.
    """
    served = Served.of(paths, may_be_missing=True)
    answers = Answers(served)
    tails = Tails(answers.rounds)
    if prepare:
        answers.prepare()

    async def ledgers(request: Request) -> Response:
        values_of((), request.query_params.multi_items(), {})
        heads = [await asyncio.to_thread(ledger.head) for ledger in served.ledgers.values()]
        documents = (head and attrs.asdict(head) for head in heads)
        data = [{"name": name, "head": head} for name, head in zip(served.ledgers, documents, strict=True)]
        return Response(dumped({"data": data}), media_type="application/json")

    async def session(request: Request) -> Response:
        values_of((), request.query_params.multi_items(), {})
        token = token_of(request, cookie)
        command = None if next_run is None else await asyncio.to_thread(next_run)
        document = {"may_label": token is not None and tokens.may_label(token), "run_command": command}
        return Response(dumped(document), media_type="application/json")

    async def description(request: Request) -> Response:
        values_of((), request.query_params.multi_items(), {})
        return Response(dumped(openapi.document(list(served.ledgers))), media_type="application/json")

    async def events(request: Request) -> Response:
        values = values_of((AFTER, BRIEF, LEDGER), request.query_params.multi_items(), {})
        tail = tails.of(served.ledger(values["ledger"]), brief=values["brief"])
        return await stream(tails, tail, request, values["after"])

    label = _writing(served, tokens, cookie)
    api = [
        _Anything(_pattern(route), _endpoint(route, answers), methods=["GET"])
        for route in routes_with(guide or Guide())
    ]
    routes: list[BaseRoute] = [
        *api,
        Path_("/ledgers", ledgers, methods=["GET"]),
        Path_("/session", session, methods=["GET"]),
        Path_("/openapi.json", description, methods=["GET"]),
        Path_("/events", events, methods=["GET"]),
        Path_("/labels", label(label_of, record), methods=["POST"]),
        Path_("/labels/retractions", label(retraction_of, retract), methods=["POST"]),
        *pages,
    ]
    app = Starlette(routes=routes, exception_handlers={DicastError: _refused, HTTPException: _http, Exception: _defect})
    app.router.redirect_slashes = False
    return Guard(app, frozenset(host.lower() for host in hosts), tokens, cookie)


def _writing(served: Served, tokens: Tokens, cookie: str) -> Callable[[Read, Write], Endpoint]:
    """Return a function that makes an endpoint from a parser of its body and a function that writes the result to a ledger."""
    writing = asyncio.Lock()  # a label is compared with the labels before it, so two labels never enter at once

    def endpoint(read: Read, write: Write) -> Endpoint:
        async def answer(request: Request) -> Response:
            token = token_of(request, cookie)
            if token is None or not tokens.may_label(token):
                return error_response(403, "giving a verdict needs the labelling token (--label-token-file)")
            values = values_of((LEDGER,), request.query_params.multi_items(), {})
            item = read(await _body(request))
            async with writing:
                document = await asyncio.to_thread(write, served.ledger(values["ledger"]), item)
            return Response(dumped(document), 201, media_type="application/json")

        return answer

    return endpoint


def _endpoint(route: Route, answers: Answers) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        values = values_of((*route.parameters, LEDGER), request.query_params.multi_items(), request.path_params)
        return await answers.answer(route, values, request)

    return endpoint


def _pattern(route: Route) -> str:
    """Return the path in Starlette's notation. Ids of subjects may contain slashes."""
    return route.path.replace("{id}", "{id:path}")


def _regex(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a path. Ids of subjects may contain line ends, too."""
    return re.compile(compile_path(pattern)[0].pattern, re.DOTALL)


class _Anything(Path_):
    def __init__(self, path: str, *arguments: Any, **options: Any) -> None:
        super().__init__(path, *arguments, **options)
        self.path_regex = _regex(path)


def once(paths: Sequence[Path | str], address: str) -> bytes:
    """Return the answer to ``GET address``, for scripts.

    :raises BadRequest: when no route has this path, or its parameters are wrong.
    """
    from urllib.parse import parse_qsl, unquote, urlsplit

    parts = urlsplit(address)
    served = Served.of(paths)
    routes = routes_with(Guide())
    for route in routes:
        match = _regex(_pattern(route)).match(unquote(parts.path))
        if match is not None:
            query = parse_qsl(parts.query, keep_blank_values=True)
            values = values_of((*route.parameters, LEDGER), query, match.groupdict())
            ledger = served.ledger(values.pop("ledger"))
            return json_answer(route, ledger, values)
    addresses = [route.path for route in routes]
    near = nearest(parts.path, addresses)
    raise BadRequest(
        f"no path {parts.path!r}{f', did you mean {near!r}?' if near else ''}; there are {', '.join(addresses)}"
    )


async def _body(request: Request) -> bytes:
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                raise BadRequest(f"the body is longer than {MAX_BODY_BYTES:,} bytes")
    except ClientDisconnect as error:
        raise BadRequest("the request was cut off") from error
    return body


async def _refused(request: Request, error: Exception) -> Response:
    """Return all problems of a request: its own (400), or problems with the current ledger (404, 409, 503)."""
    if isinstance(error, RequestError):
        status = 404 if isinstance(error, NotFound) else 400 if isinstance(error, BadRequest) else 409
        return error_response(status, str(error), [_problem(problem) for problem in error.problems])
    if isinstance(error, LedgerError | LedgerRefused):
        return error_response(503, "the ledger cannot be read now: run dicast ledger verify on the server")
    return error_response(500, f"a defect of dicast: {type(error).__name__}")


def _problem(problem: Any) -> dict[str, Any]:
    return {"parameter": problem.path, "value": problem.value, "message": problem.message, "hint": problem.hint}


async def _http(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 500)
    message = {404: "there is no such path; /openapi.json lists the paths", 405: "this path is read-only"}
    response = error_response(status, message.get(status, "the request cannot be answered"))
    for name, value in (getattr(error, "headers", None) or {}).items():
        response.headers[name] = value
    return response


async def _defect(request: Request, error: Exception) -> Response:
    return error_response(500, f"a defect of dicast: {type(error).__name__}")
