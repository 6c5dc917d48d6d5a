"""The command ``dicast cache``: list the stored requests, and explain a key."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import click
import orjson

from dicast import ConfigError
from dicast.commands import requires
from dicast.toolkit.printable import one_line

from .parts import Difference, nearest, parts
from .store import Entry, Store

BEGINNING = 60
SHOWN_LETTERS = 200
"""The number of letters of a text that a line shows."""


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--explain-key", metavar="KEY", help="Show the parts of this key, and the differences from the most similar key."
)
@click.option("--against", metavar="KEY", help="Compare with this key instead of the most similar one.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@requires(against="explain_key")
def cache(path: Path, explain_key: str | None, against: str | None, as_json: bool) -> None:
    """List the requests to cache/chat. PATH is its file; the first digits of a KEY suffice."""
    with closing(Store(path, create=False)) as store:
        if explain_key:
            _explain(store, explain_key, against, as_json=as_json)
        else:
            _list(store, as_json=as_json)


def _list(store: Store, *, as_json: bool) -> None:
    rows = map(_summary, store.entries())
    if as_json:
        _print_json({"entries": list(rows)})
        return
    for row in rows:
        tokens = row["tokens"]
        used = f"not kept: {row['unfit']}" if row["unfit"] else f"{sum(tokens.values())} tokens" if tokens else "kept"
        run = f"attempt {row['attempt']}  rollout {row['rollout']}"
        click.echo(one_line(f"{row['key'][:12]}  {row['time']}  {row['model'] or '-'}  {run}  {used}  {row['begins']}"))


def _summary(entry: Entry) -> dict[str, Any]:
    reply = entry.reply or {}
    usage = reply.get("usage")
    values = parts(entry.key)
    last = len(entry.key["messages"]) - 1
    return {
        "key": entry.digest,
        "time": entry.time,
        "model": reply.get("model") or values.get("model.model"),
        "attempt": entry.key["attempt"],
        "rollout": entry.key["rollout"],
        "tokens": usage and {"input": usage["input_tokens"], "output": usage["output_tokens"]},
        "unfit": entry.unfit,
        "begins": " ".join(str(values.get(f"messages[{last}].content", ""))[:BEGINNING].split()),
    }


def _explain(store: Store, key: str, against: str | None, *, as_json: bool) -> None:
    entry = _entry(store, key)
    other = _entry(store, against) if against else nearest(entry, store.entries())
    differing = None if other is None else Difference.between(parts(entry.key), parts(other.key))
    if as_json:
        neighbor = other and {"key": other.digest, "time": other.time, "differs": differing and differing.plain()}
        _print_json({**_summary(entry), "parts": parts(entry.key), "nearest": neighbor})
        return
    click.echo(f"{entry.digest}\nasked {entry.time}, {_outcome(entry)}")
    for name, value in parts(entry.key).items():
        click.echo(one_line(f"  {name}: {_short(value)}"))
    if other is None or differing is None:
        click.echo("there is no other key")
        return
    click.echo(f"{'compared with' if against else 'nearest'}: {other.digest}\nasked {other.time}, {_outcome(other)}")
    for line in differing.lines():
        click.echo(one_line(f"  {line}"))


def _outcome(entry: Entry) -> str:
    return f"not kept ({entry.unfit}): it is asked for each time" if entry.unfit else "kept"


def _entry(store: Store, key: str) -> Entry:
    """Return the entry whose key begins with *key*.

    :raises ConfigError: if no entry or several entries have such a key.
    """
    entries = list(store.entries(key.lower()))
    if not entries:
        raise ConfigError(
            f"{store.path} has no key {key!r}, so this was never asked through it; dicast cache {store.path} lists those it has"
        )
    if len(entries) > 1:
        named = ", ".join(entry.digest[: len(key) + 4] for entry in entries[:5])
        raise ConfigError(
            f"{len(entries)} keys begin with {key!r}: {named}{', …' * (len(entries) > 5)}; give more digits"
        )
    return entries[0]


def _short(value: object) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= SHOWN_LETTERS else f"{text[:SHOWN_LETTERS]}… ({len(text):,} letters)"


def _print_json(document: object) -> None:
    click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2))
