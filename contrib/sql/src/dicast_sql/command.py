"""The command ``dicast sql``: a query over a ledger."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

from dicast import ConfigError, read_ledger
from dicast.commands import as_json, ledger_path, print_json
from dicast.toolkit.atomic_file import AtomicFile
from dicast.toolkit.printable import one_line
from dicast.toolkit.terminal import print_lines
from dicast.toolkit.text_table import TextTable

if TYPE_CHECKING:
    from .database import Database, Result

MOST = 1_000
"""The most rows that are printed for a reader."""

_BLOCK = 1 << 20
"""Bytes that are copied together."""


@click.command()
@click.argument("query")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Write a new .parquet, .csv or .jsonl file."
)
@ledger_path
@as_json
def sql(query: str, out: Path | None, ledger: Path | str | None, as_json: bool) -> None:
    """Print the result of a query in SQL.

    QUERY reads the tables verdicts, events, labels and spend of a ledger.

    The dialect is DuckDB's. The query works on a copy: it changes no ledger, and reads and writes no other file.
    """
    from .database import SUFFIXES, open_database  # imported late: DuckDB takes a while

    if out is not None and out.suffix not in SUFFIXES:
        raise ConfigError(f"{out}: --out writes {', '.join(SUFFIXES)}; name such a file")
    if out is not None and out.exists():
        raise ConfigError(f"{out}: it exists; name a new file for the result")
    atexit.unregister(gc.freeze)  # of the command line: DuckDB prints a warning if its objects are not freed at the end
    with open_database(query) as database:
        read_ledger(ledger, database.fill)
        if out is not None:
            _write(database, out)
        if as_json:
            result = database.result()
            print_json({"columns": _columns(result), "rows": _rows(result)})
        elif out is None:
            _print(database.result(MOST + 1))
        else:
            click.echo(one_line(f"{out}: written"))


def _write(database: Database, out: Path) -> None:
    with AtomicFile(out, overwrite=False) as file, database.write(out.suffix).open("rb") as result:
        for block in iter(lambda: result.read(_BLOCK), b""):
            file.write(block)
        file.commit()


def _print(result: Result) -> None:
    rows = [[_cell(value) for value in row] for row in _rows(result)]
    print_lines([TextTable([name for name, _ in result.columns], rows[:MOST])])
    if len(rows) > MOST:
        print_lines([f"only the first {MOST:,} rows; add LIMIT, or write all with --out FILE"])


def _columns(result: Result) -> list[dict[str, str]]:
    return [{"name": name, "type": kind} for name, kind in result.columns]


def _rows(result: Result) -> list[list[object]]:
    """Return the rows as values of JSON. Decimal amounts are texts, as in events."""
    kinds = [kind for _, kind in result.columns]
    return [[_value(value, kind) for value, kind in zip(row, kinds, strict=True)] for row in result.rows]


def _value(value: Any, kind: str = "") -> object:
    """Return *value* of the SQL type *kind* as a value of JSON."""
    if kind == "JSON" and isinstance(value, str):
        return orjson.loads(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, int):
        return value if abs(value) < 1 << 63 else str(value)
    if isinstance(value, list | tuple):
        return [_value(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _value(item) for key, item in value.items()}
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, str) else str(value)


def _cell(value: object) -> object:
    """Return a value of JSON as a cell: a list or a mapping as its text."""
    return orjson.dumps(value).decode() if isinstance(value, list | dict | bool) else value
