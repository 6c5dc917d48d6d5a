"""Who may ask: the Host, the Origin and the token of each request; and the headers of each answer."""

from __future__ import annotations

import hmac
from collections.abc import Collection
from urllib.parse import parse_qs

import attrs
import orjson
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
)
OWN_SITES = ("same-origin", "none")
"""Values of the header Sec-Fetch-Site of requests from the dashboard itself, and from a person who typed the address."""

HEADERS = {
    "content-security-policy": "; ".join(_POLICY),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache, private",
}


@attrs.frozen
class Tokens:
    """What opens the API: *reading* is needed for everything, *labelling* also allows to give a verdict; None where nobody may."""

    reading: str = attrs.field(repr=False)
    labelling: str | None = attrs.field(default=None, repr=False)

    def may_read(self, given: str) -> bool:
        """Whether *given* opens the API; the time that it takes does not tell how much of it was right."""
        return _same(given, self.reading) or self.may_label(given)

    def may_label(self, given: str) -> bool:
        """Whether *given* allows to give a verdict."""
        return self.labelling is not None and _same(given, self.labelling)


@attrs.frozen
class Guard:
    """Lets through to *app* what comes from one of *hosts* (``name:port``) with a token.

    A browser gives its token once, as ``/?token=…``, and is given a cookie for it.
    """

    app: ASGIApp
    hosts: Collection[str]
    tokens: Tokens
    cookie: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        request = Request(scope)
        refused = self._refusal(request)
        await (self.app if refused is None else refused)(scope, receive, sending)

    def _refusal(self, request: Request) -> Response | None:
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return error_response(400, "the Host of the request is not one that is served here")
        origin = request.headers.get("origin")
        if origin is not None and origin.lower() != f"http://{hosts[0].lower()}":
            return error_response(403, "the request comes from the page of another origin")
        if request.headers.get("sec-fetch-site", "none") not in OWN_SITES and not _is_visit(request):
            return error_response(403, "the browser reports that the request comes from the page of another site")
        if (given := self._in_address(request)) is not None and self.tokens.may_read(given):
            welcome = RedirectResponse("/", 303)
            welcome.set_cookie(self.cookie, given, httponly=True, samesite="strict", path="/")
            return welcome
        given = token_of(request, self.cookie)
        if given is None or not self.tokens.may_read(given):
            response = _closed(request)
            response.headers["www-authenticate"] = "Bearer"
            return response
        return None

    def _in_address(self, request: Request) -> str | None:
        if request.method != "GET" or request.url.path != "/":
            return None
        given = parse_qs(request.url.query, keep_blank_values=True).get("token", [])
        return given[0] if len(given) == 1 else None


def _is_visit(request: Request) -> bool:
    """Return whether *request* opens the first page, which a link of another site may do."""
    return request.method == "GET" and request.url.path == "/"


def _closed(request: Request) -> Response:
    """That the token is missing: as a page for a browser that opens the dashboard, else as JSON."""
    if request.url.path == "/" and "text/html" in request.headers.get("accept", ""):
        from .pages import CLOSED

        return Response(CLOSED, 401, media_type="text/html")
    return error_response(401, "the request needs the header Authorization: Bearer TOKEN")


def token_of(request: Request, cookie: str) -> str | None:
    """The token that a request brings, in its header or its cookie; none where there are several headers."""
    headers = request.headers.getlist("authorization")
    if not headers:
        return request.cookies.get(cookie)
    scheme, _, given = headers[0].partition(" ")
    return given.strip() if len(headers) == 1 and scheme.lower() == "bearer" else None


def error_response(status: int, message: str, errors: Collection[object] = ()) -> Response:
    """An error as JSON."""
    body = orjson.dumps({"error": {"message": message, "errors": list(errors)}})
    return Response(body, status, media_type="application/json")


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())
