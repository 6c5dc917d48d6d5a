"""Access checks (Host, Origin and token of each request) and the security headers of each answer."""

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
"""Values of the header Sec-Fetch-Site for requests from the dashboard itself, and from a person who typed the address."""

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
    """Tokens of the API. *reading* is needed for every request, *labelling* for giving verdicts; None forbids verdicts."""

    reading: str = attrs.field(repr=False)
    labelling: str | None = attrs.field(default=None, repr=False)

    def may_read(self, token: str) -> bool:
        """Return whether *token* opens the API. The comparison takes constant time."""
        return _is_equal(token, self.reading) or self.may_label(token)

    def may_label(self, token: str) -> bool:
        """Return whether *token* allows giving a verdict."""
        return self.labelling is not None and _is_equal(token, self.labelling)


@attrs.frozen
class Guard:
    """Middleware that passes requests to *app* if they have a token and come from one of *hosts* (``name:port``).

    A browser sends its token once, as ``/?token=…``, and gets a cookie for it.
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
            return error_response(400, "the Host of the request is not served here; see --allow-host")
        origin = request.headers.get("origin")
        if origin is not None and origin.lower() != f"http://{hosts[0].lower()}":
            return error_response(403, "the request comes from the page of another origin")
        if request.headers.get("sec-fetch-site", "none") not in OWN_SITES and not _is_visit(request):
            return error_response(403, "the browser reports that the request comes from the page of another site")
        if (token := self._address_token(request)) is not None and self.tokens.may_read(token):
            welcome = RedirectResponse("/", 303)
            welcome.set_cookie(self.cookie, token, httponly=True, samesite="strict", path="/")
            return welcome
        has_address_token = token is not None
        token = token_of(request, self.cookie)
        if has_address_token and token is not None and self.tokens.may_read(token):
            return RedirectResponse("/", 303)  # the browser has the right token: the wrong one leaves the address
        if token is None or not self.tokens.may_read(token):
            has_token = token is not None or "token" in request.query_params
            response = _refused_token_response(request, has_token=has_token)
            response.headers["www-authenticate"] = "Bearer"
            return response
        return None

    def _address_token(self, request: Request) -> str | None:
        if request.method != "GET" or request.url.path != "/":
            return None
        tokens = parse_qs(request.url.query, keep_blank_values=True).get("token", [])
        return tokens[0] if len(tokens) == 1 else None


def _is_visit(request: Request) -> bool:
    """Return whether *request* opens the first page, which a link of another site may do."""
    return request.method == "GET" and request.url.path == "/"


def _refused_token_response(request: Request, *, has_token: bool) -> Response:
    """Return the answer to a missing or wrong token: a page for a browser that opens the dashboard, else JSON."""
    if request.url.path == "/" and "text/html" in request.headers.get("accept", ""):
        from .pages import closed_page

        return Response(closed_page(has_token=has_token), 401, media_type="text/html")
    message = "the token is not this server's" if has_token else "the request has no token"
    return error_response(401, f"{message}; send the header Authorization: Bearer TOKEN")


def token_of(request: Request, cookie: str) -> str | None:
    """Return the token in the header or the cookie of a request; None if there are several headers."""
    headers = request.headers.getlist("authorization")
    if not headers:
        return request.cookies.get(cookie)
    scheme, _, token = headers[0].partition(" ")
    return token.strip() if len(headers) == 1 and scheme.lower() == "bearer" else None


def error_response(status: int, message: str, errors: Collection[object] = ()) -> Response:
    """Return an error as JSON."""
    body = orjson.dumps({"error": {"message": message, "errors": list(errors)}})
    return Response(body, status, media_type="application/json")


def _is_equal(token: str, expected: str) -> bool:
    return hmac.compare_digest(token.encode("utf-8", "surrogateescape"), expected.encode())
