"""The dashboard: one page, its script and its style. All three need the token, as every answer does."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from .answers import ANY, tags_of

_PAGE = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>dicast</title>
<link rel="stylesheet" href="/dashboard.css">
<script src="/dashboard.js" defer></script>
</head>
<body>
<noscript>This page draws its figures with a script; allow it to run.</noscript>
<div id="dashboard"></div>
</body>
</html>
"""

_CLOSED = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>dicast: {title}</title></head>
<body>
<main>
<h1>{heading}</h1>
<p>Open the address that <code>dicast serve</code> has printed. It ends in <code>?token=</code> and the token.</p>
<p>Where the token is in a file, write the address like that yourself. The token is before a <code>#</code>, if the address has one: <code>/?token=TOKEN#/runs</code>. The browser then keeps the token; the address does not.</p>
</main>
</body>
</html>
"""


def closed_page(*, has_token: bool) -> bytes:
    """Return the page for a browser without the token, or with another one."""
    if has_token:
        heading = "This dashboard has another token than your browser"
        return _CLOSED.format(title="another token", heading=heading).encode()
    return _CLOSED.format(title="the token is missing", heading="This dashboard needs its token").encode()


def pages() -> list[BaseRoute]:
    """Return the routes of the dashboard."""
    web = files("dicast_web")
    script, style = (web.joinpath(f"dashboard.{kind}").read_bytes() for kind in ("js", "css"))
    return [
        _page("/", _PAGE, "text/html"),
        _page("/dashboard.js", script, "text/javascript"),
        _page("/dashboard.css", style, "text/css"),
    ]


def _page(path: str, body: bytes, media_type: str) -> Route:
    tag = f'"{sha256(body).hexdigest()[:32]}"'

    async def answer(request: Request) -> Response:
        if tags_of(request) & {tag, ANY}:
            return Response(status_code=304, headers={"etag": tag})
        return Response(body, media_type=media_type, headers={"etag": tag})

    return Route(path, answer, methods=["GET"])
