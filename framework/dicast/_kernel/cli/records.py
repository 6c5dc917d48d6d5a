"""``dicast verdicts`` and ``dicast ledger``."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import attrs
import click
import orjson

from ..._toolkit.printable import one_line
from ..api import known_run, read_ledger
from ..contract.protocols import Ledger
from ..events import EVAL_COMPLETED, EVAL_FAILED, RECORD_FAILED
from ..resume.reading import Selection, failure, verdict
from ..values import Query, Verification
from ..values.errors import ConfigError
from .output import MOST, print_json
from .runs import as_json, ledger_path
from .summary import failure_line, verdict_line

T = TypeVar("T")

FAILURE_FIELDS = (
    "eval_id",
    "subject_kind",
    "subject_id",
    "judge",
    "failure_mode",
    "error_message",
    "judge_latency_ms",
)


@click.command()
@click.option("--run", "run_id", metavar="ID|last", help="Only this run's.")
@click.option("--subject", metavar="ID", help="Only this subject's.")
@click.option("--kind", help="Only subjects of this kind.")
@click.option("--judge", metavar="LABEL", help="Only this judge's.")
@click.option("--latest", is_flag=True, help="Only the newest of each subject and judge.")
@click.option("--as-of", metavar="TIME", help="As the ledger stood at this ISO 8601 time.")
@click.option("--limit", type=click.IntRange(0, MOST), metavar="N", help="At most N.")
@click.option("--failed", is_flag=True, help="List failures instead: a failed subject has no verdict.")
@ledger_path
@as_json
def verdicts(
    run_id: str | None,
    subject: str | None,
    kind: str | None,
    judge: str | None,
    latest: bool,
    as_of: str | None,
    limit: int | None,
    failed: bool,
    ledger: Path | None,
    as_json: bool,
) -> None:
    """List verdicts from the ledger, oldest first."""
    wanted = Selection(run_id, subject, kind, judge, _utc(as_of), latest, limit)
    read_ledger(ledger, lambda live: _print(live, wanted, failed=failed, as_json=as_json))


def _print(ledger: Ledger, wanted: Selection, *, failed: bool, as_json: bool) -> None:
    if wanted.run_id is not None:
        wanted = attrs.evolve(wanted, run_id=known_run(ledger, wanted.run_id))
    if failed:
        failures = [
            {key: told.get(key) for key in FAILURE_FIELDS}
            for told in map(failure, wanted.events(ledger, EVAL_FAILED, RECORD_FAILED))
        ]
        _list("failures", failures, failure_line, as_json=as_json)
    else:
        found = [verdict(event) for event in wanted.events(ledger, EVAL_COMPLETED)]
        _list("verdicts", found, verdict_line, as_json=as_json)


def _list(name: str, items: list[T], line: Callable[[T], str], *, as_json: bool) -> None:
    if as_json:
        print_json({name: items})
        return
    for item in items:
        click.echo(line(item))
    if not items:
        more = "; a failed subject has none: --failed lists failures" if name == "verdicts" else ""
        click.echo(f"no {name} found{more}", err=True)


def _utc(moment: str | None) -> str | None:
    """An ISO 8601 time as the ledger writes it; one without an offset is UTC."""
    if moment is None:
        return None
    from datetime import UTC, datetime, time

    from ..values.clock import iso

    try:
        parsed = datetime.fromisoformat(moment)
    except ValueError as error:
        raise ConfigError(f"--as-of is no ISO 8601 time: {moment!r}; write it like 2026-01-31T12:00:00Z") from error
    if len(moment) == len("2026-01-31"):
        parsed = datetime.combine(parsed.date(), time.max)
    return iso(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC))


@click.group()
def ledger() -> None:
    """Verify or export the ledger."""


@ledger.command()
@click.option("--head", metavar="DIGEST", help="A digest that must be in the chain: finds a tail that was cut off.")
@ledger_path
@as_json
def verify(head: str | None, ledger: Path | None, as_json: bool) -> int:
    """Check every row's digest and its link to the row before. Exit code 1 when one does not hold."""
    if head is not None and not re.fullmatch("[0-9a-f]{64}", head := head.lower()):
        raise ConfigError(f"--head is a digest, 64 hexadecimal digits as each run says in ledger.head, not {head!r}")
    found = read_ledger(ledger, lambda live: live.verify(head))
    if as_json:
        print_json(_verification(found))
    elif found.ok:
        newest = f", head {found.head.seq} {found.head.digest}" if found.head else ""
        click.echo(f"ok: {found.events:,} events{newest}")
    else:
        click.echo(one_line(f"broken at row {found.bad_seq}: {found.reason}"))
    return 0 if found.ok else 1


def _verification(found: Verification) -> dict[str, object]:
    return {
        "ok": found.ok,
        "events": found.events,
        "head": None if found.head is None else attrs.asdict(found.head),
        "first_bad": None if found.ok else {"seq": found.bad_seq, "reason": found.reason},
    }


@ledger.command()
@click.option("--run", "run_id", metavar="ID|last", help="Only this run's events.")
@ledger_path
@as_json
def export(run_id: str | None, ledger: Path | None, as_json: bool) -> None:
    """Print the events as JSON lines, one row each; with --json as one document."""
    read_ledger(ledger, lambda live: _export(live, run_id, as_json=as_json))


def _export(ledger: Ledger, run_id: str | None, *, as_json: bool) -> None:
    entries = ledger.read(Query(run_id=None if run_id is None else known_run(ledger, run_id)))
    rows = (
        {"seq": entry.seq, **attrs.asdict(entry.event, recurse=False), "prev": entry.prev, "digest": entry.digest}
        for entry in entries
    )
    if as_json:
        print_json({"events": list(rows)})
        return
    for row in rows:
        click.echo(orjson.dumps(row))
