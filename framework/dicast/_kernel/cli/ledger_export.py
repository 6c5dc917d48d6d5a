"""The command ``dicast ledger export``: the events as JSON lines, or as compressed files for other programs."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import click
import orjson

from ...toolkit.atomic_file import AtomicFile
from ..api.runs import read_ledger
from ..contract.protocols import Ledger
from ..events import EVAL_COMPLETED
from ..values import Entry, Query
from .options import as_json, chosen_run, ledger_path
from .output import print_json

_EVENTS, _VERDICTS = "events.jsonl.gz", "verdicts.jsonl.gz"
_GZIP = 31
"""Argument of zlib for the form of gzip."""

_SHARED = ("run_id", "session_id", "subject_kind", "subject_id")
_FIELDS = (
    *("eval_id", "judge", "score", "raw", "confidence", "tier", "basis", "judge_kind", "judge_model", "rubric_id"),
    *("rubric_version", "fingerprint", "judge_cost_usd", "judge_latency_ms"),
)
"""Members of a verdict that have a column in the file of verdicts, as in the ledger's view ``verdicts``."""


@click.command()
@click.option("--run", "run_id", metavar="RUN", help="Only this run's events.")
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help=f"Write {_EVENTS} and {_VERDICTS} into this folder, for DuckDB and others.",
)
@ledger_path
@as_json
def export(run_id: str | None, folder: Path | None, ledger: Path | str | None, as_json: bool) -> None:
    """Print the events as JSON lines, one per row; with --json as one document."""
    if folder is not None:
        counts = read_ledger(ledger, lambda live: _write(_entries(live, run_id), folder))
        if as_json:
            print_json({"folder": str(folder), **counts})
        else:
            click.echo(f"{folder}: {counts['events']:,} events, {counts['verdicts']:,} verdicts")
        return
    read_ledger(ledger, lambda live: _print(_entries(live, run_id), as_json=as_json))


def _entries(ledger: Ledger, run_id: str | None) -> Iterator[Entry]:
    return ledger.read(Query(run_id=None if run_id is None else chosen_run(ledger, run_id)))


def _print(entries: Iterator[Entry], *, as_json: bool) -> None:
    if as_json:
        print_json({"events": list(map(_row, entries))})
        return
    for entry in entries:
        click.echo(orjson.dumps(_row(entry)))


def _row(entry: Entry) -> Mapping[str, Any]:
    """Return the document of a row. Some ledgers have no digest for single rows: then it is null."""
    event = attrs.asdict(entry.event, recurse=False)
    return {"seq": entry.seq, **event, "prev": entry.prev or None, "digest": entry.digest or None}


def _verdict(entry: Entry) -> Mapping[str, Any]:
    event = entry.event
    columns = {name: getattr(event, name) for name in _SHARED}
    return {"seq": entry.seq, "time": event.time, **columns, **{name: event.payload.get(name) for name in _FIELDS}}


def _write(entries: Iterator[Entry], folder: Path) -> dict[str, int]:
    """Write the files, and return the numbers of their lines. Both appear when they are complete.

    :raises ConfigError: if a file exists or cannot be written.
    """
    places = folder / _EVENTS, folder / _VERDICTS
    with AtomicFile(places[0], overwrite=False) as first, AtomicFile(places[1], overwrite=False) as second:
        events, verdicts = _Lines(first), _Lines(second)
        for entry in entries:
            events.write(_row(entry))
            if entry.event.type == EVAL_COMPLETED:
                verdicts.write(_verdict(entry))
        events.commit()
        verdicts.commit()
        return {"events": events.count, "verdicts": verdicts.count}


class _Lines:
    """JSON lines in a new file, compressed by gzip."""

    def __init__(self, file: AtomicFile) -> None:
        self._file, self.count = file, 0
        self._stream = zlib.compressobj(6, zlib.DEFLATED, _GZIP)

    def write(self, document: Mapping[str, Any]) -> None:
        """Append a line."""
        self._file.write(self._stream.compress(orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)))
        self.count += 1

    def commit(self) -> None:
        """Write the end, and give the file its name."""
        self._file.write(self._stream.flush())
        self._file.commit()
