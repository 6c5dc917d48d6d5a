"""The page as bytes: one file that loads nothing, and lets nothing run but its own script."""

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

BEGINS = b"<!doctype html>"
"""How a page begins."""

_LEVEL = 4
"""How hard the rows are compressed: beyond that takes much longer, and saves little."""


BLOCKS = ("table", "texts", "said")
"""The blocks of rows, in the order in which a reader needs them; the script comes before them and does not wait for them."""


def page(title: str, runs: Sequence[RunPage]) -> Iterator[bytes]:
    """The parts of the page, in their order.

    What was judged is data in it, never markup: JSON in blocks that no browser runs, with ``<`` and the line ends that only JavaScript
    knows escaped. The policy in its head allows its one script and its one style by their digests and, if it has any, pictures in the page itself.
    """
    web = files("dicast_web")
    script, style = (web.joinpath(name).read_bytes().strip() for name in ("report.js", "report.css"))
    made = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "by": f"dicast-report {version('dicast-report')}"}
    report = {"version": 1, "title": title, "made": made, "runs": [run.report for run in runs]}
    has_pictures = any(run.rows["texts"].get("pictures") for run in runs)
    yield _head(title, script, style, has_pictures=has_pictures).encode()
    yield b'<script type="application/json" id="dicast-report">' + inert(report) + b"</script>\n"
    yield b"<script>" + script + b"</script>\n"
    for block in BLOCKS:
        rows = packed([run.rows[block] for run in runs])
        yield f'<script type="text/plain" id="dicast-{block}">'.encode() + rows + b"</script>\n"
    yield b"<!--\nThe script above holds these libraries.\n\n" + _licences(web.joinpath("LICENSES.txt").read_bytes())
    yield b"\n-->\n</body>\n</html>\n"


def _head(title: str, script: bytes, style: bytes, *, has_pictures: bool) -> str:
    pictures = "img-src data:; " if has_pictures else ""
    policy = f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; {pictures}base-uri 'none'; form-action 'none'"
    return (
        f'{BEGINS.decode()}\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(one_line(title))} · dicast report</title>\n<style>{style.decode()}</style>\n</head>\n<body>\n"
        '<noscript>This page draws its figures with the script that it holds; allow it to run.</noscript>\n<div id="report"></div>\n'
    )


def _digest(content: bytes) -> str:
    return f"'sha256-{b64encode(sha256(content).digest()).decode()}'"


def _licences(text: bytes) -> bytes:
    """*text* in a comment, which two hyphens and an angle bracket would end."""
    return text.replace(b"--", b"- -").strip()


def inert(value: Mapping[str, Any]) -> bytes:
    """*value* as JSON that cannot end the block it stands in."""
    text = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    for unsafe, safe in ((b"<", b"\\u003c"), ("\u2028".encode(), b"\\u2028"), ("\u2029".encode(), b"\\u2029")):
        text = text.replace(unsafe, safe)
    return text


def packed(value: object) -> bytes:
    """*value* as JSON, gzip and base64: letters, digits and three signs. Equal values give equal bytes."""
    return b64encode(gzip.compress(orjson.dumps(value), _LEVEL, mtime=0))
