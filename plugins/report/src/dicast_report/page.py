"""The page as bytes: one file that loads nothing and runs only its own script."""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import orjson

from dicast.toolkit.printable import one_line

from .run_page import RunPage

BEGINS = (
    b'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy"'
)
"""First bytes of a page."""

_LEVEL = 4
"""Compression level of rows. Higher levels take much longer and save little."""


BLOCKS = ("table", "texts", "said")
"""Blocks of rows, in the order of need. The script precedes the blocks and does not wait for them."""


def page(title: str, runs: Sequence[RunPage]) -> Iterator[bytes]:
    """Yield the parts of the page in order.

    Judged content is data in the page, never markup: JSON in blocks that no browser runs, with ``<`` and JavaScript's extra line ends
    escaped. The policy in the head allows the page's script and style by their digests and, if there are any, pictures in the page itself.
    """
    web = files("dicast_web")
    script, style = (web.joinpath(name).read_bytes().strip() for name in ("report.js", "report.css"))
    origin = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "by": f"dicast-report {version('dicast-report')}"}
    report = {"version": 1, "title": title, "made": origin, "runs": [run.report for run in runs]}
    has_pictures = any(run.rows["texts"].get("pictures") for run in runs)
    yield _head(title, script, style, has_pictures=has_pictures).encode()
    yield b'<script type="application/json" id="dicast-report">' + inert(report) + b"</script>\n"
    yield b"<script>" + script + b"</script>\n"
    for block in BLOCKS:
        rows = packed([run.rows[block] for run in runs])
        yield f'<script type="text/plain" id="dicast-{block}">'.encode() + rows + b"</script>\n"
    yield b"<!--\nThe script above contains these libraries.\n\n" + _licences(web.joinpath("LICENSES.txt").read_bytes())
    yield b"\n-->\n</body>\n</html>\n"


def _head(title: str, script: bytes, style: bytes, *, has_pictures: bool) -> str:
    pictures = "img-src data:; " if has_pictures else ""
    policy = f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; {pictures}base-uri 'none'; form-action 'none'"
    return (
        f'{BEGINS.decode()} content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(one_line(title))} · dicast report</title>\n<style>{style.decode()}</style>\n</head>\n<body>\n"
        '<noscript>This page draws its figures with its own script; allow it to run.</noscript>\n<div id="report"></div>\n'
    )


def _digest(content: bytes) -> str:
    return f"'sha256-{b64encode(sha256(content).digest()).decode()}'"


def _licences(text: bytes) -> bytes:
    """Return *text* for a comment, which ``--`` and ``>`` could end."""
    return text.replace(b"--", b"- -").strip()


def inert(value: Mapping[str, Any]) -> bytes:
    """Return *value* as JSON that cannot end its block."""
    text = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    for unsafe, safe in ((b"<", b"\\u003c"), ("\u2028".encode(), b"\\u2028"), ("\u2029".encode(), b"\\u2029")):
        text = text.replace(unsafe, safe)
    return text


def packed(value: object) -> bytes:
    """Return *value* as JSON, gzip and base64. Equal values give equal bytes."""
    return b64encode(gzip.compress(orjson.dumps(value), _LEVEL, mtime=0))
