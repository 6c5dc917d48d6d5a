"""Judge card as one small HTML page: no script, no external resource, every text escaped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from .text import answer, more_lines, table_rows

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #1a7f37; --bad: #b42318; --open: #9a6700; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; overflow-wrap: anywhere; }
.answer { display: inline-block; padding: 0 .6rem; border-radius: 1rem; color: #fff; font-size: .95rem; }
.good { background: var(--good); } .bad { background: var(--bad); } .open { background: var(--open); }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
ul { padding-left: 1.2rem; } footer { margin-top: 3rem; opacity: .75; font-size: .85rem; overflow-wrap: anywhere; }
"""


_TITLE = "Judge card: "
_HEAD = (
    '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
)
BEGINS = f"{_HEAD}<title>{_TITLE}".encode()
"""First bytes of a page: no other file is replaced by it."""


def page(card: Mapping[str, Any]) -> str:
    """Return the page of *card*, in HTML."""
    return "\n".join(_page(card)) + "\n"


def _page(card: Mapping[str, Any]) -> Iterator[str]:
    title = f"{_TITLE}{card['pipeline']}"
    yield f"{_HEAD}<title>{_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{_text(title)}</h1>"
    for judge in card["judges"]:
        yield from _judge(judge)
    gold = card["gold"]
    yield f"<footer>{gold['n']:,} labels from {_text(gold['source'])}. Valid for subjects drawn like these labels."
    yield f"<br>Labels {_text(gold['digest'])}<br>Card {_text(card['digest'])}</footer>\n</body>\n</html>"


def _judge(judge: Mapping[str, Any]) -> Iterator[str]:
    color = {True: "good", False: "bad"}.get(judge["can_gate"], "open")
    yield f'<h2>{_text(judge["label"])} <span class="answer {color}">{_text(answer(judge))}</span></h2>'
    yield f"<p>{_text(judge['words'])}</p>"
    yield "<table>\n<tr><th>figure</th><th>value</th><th>95 % interval</th><th>to gate</th></tr>"
    for words, value, between, bar in table_rows(judge):
        yield f'<tr><td>{_text(words)}</td><td class="n">{_text(value)}</td><td>{_text(between)}</td><td>{_text(bar)}</td></tr>'
    yield "</table>\n<ul>"
    yield from (f"<li>{_text(line)}</li>" for line in more_lines(judge))
    yield from (f"<li><strong>Warning: it {_text(warning['message'])}.</strong></li>" for warning in judge["warnings"])
    yield "</ul>"


def _text(value: object) -> str:
    """Return *value* as escaped text."""
    return escape("".join(letter if letter.isprintable() else " " for letter in str(value)))
