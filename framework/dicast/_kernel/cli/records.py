"""``dicast verdicts`` and ``dicast ledger``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Any

import attrs
import click
import orjson

from ...toolkit.printable import one_line
from ..api.runs import read_ledger
from ..contract.protocols import Ledger
from ..events import EVAL_COMPLETED, EVAL_FAILED, RECORD_FAILED
from ..resume.named_runs import named_run
from ..resume.reading import Selection, failure, verdict
from ..values import Query, Verification
from ..values.errors import ConfigError
from .options import as_json, ledger_path
from .output import MOST, print_json
from .subjects import verdict_line
from .summary import failure_line, reply_line, short_run

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
@click.option("--run", "run_id", metavar="RUN", help="Only this run's.")
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
    wanted = Selection(
        run_id, subject, kind, judge, None if as_of is None else utc(as_of, "--as-of", time.max), latest, limit
    )
    read_ledger(ledger, lambda live: _print(live, wanted, failed=failed, as_json=as_json))


def _print(ledger: Ledger, wanted: Selection, *, failed: bool, as_json: bool) -> None:
    if wanted.run_id is not None:
        wanted = attrs.evolve(wanted, run_id=named_run(ledger, wanted.run_id))
    if failed:
        failures = map(failure, wanted.events(ledger, EVAL_FAILED, RECORD_FAILED))
        items = [(_failed(told), told["run_id"]) for told in failures]
        lines = [
            line
            for told, run_id in items
            for line in (f"{short_run(run_id)}  {failure_line(told)}", reply_line(told))
            if line is not None
        ]
        _list("failures", [told for told, _ in items], lines, as_json=as_json)
    else:
        found = [verdict(event) for event in wanted.events(ledger, EVAL_COMPLETED)]
        lines = [f"{short_run(one.run_id)}  {verdict_line(one)}" for one in found] if not as_json else []
        _list("verdicts", found, lines, as_json=as_json)


def _failed(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return a failure as JSON data; a reply only where one was kept."""
    more = {key: told[key] for key in ("reply", "finish_reason", "origin", "adapted") if told.get(key)}
    return {key: told.get(key) for key in FAILURE_FIELDS} | more


def _list(name: str, items: Sequence[object], lines: Iterable[str], *, as_json: bool) -> None:
    if as_json:
        print_json({name: items})
        return
    for line in lines:
        click.echo(line)
    if not items:
        more = "; a failed subject has none: --failed lists failures" if name == "verdicts" else ""
        click.echo(f"no {name} found{more}", err=True)


def utc(moment: str, option: str, of_a_day: time) -> str:
    """The ISO 8601 time after *option* as the ledger writes it; one without an offset is UTC, and a day alone means that time of it."""
    from ..values.clock import iso

    try:
        parsed = datetime.fromisoformat(moment)
    except ValueError as error:
        raise ConfigError(f"{option} is no ISO 8601 time: {moment!r}; write it like 2026-01-31T12:00:00Z") from error
    if len(moment) == len("2026-01-31"):
        parsed = datetime.combine(parsed.date(), of_a_day)
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
@click.option("--run", "run_id", metavar="RUN", help="Only this run's events.")
@ledger_path
@as_json
def export(run_id: str | None, ledger: Path | None, as_json: bool) -> None:
    """Print the events as JSON lines, one row each; with --json as one document."""
    read_ledger(ledger, lambda live: _export(live, run_id, as_json=as_json))


def _export(ledger: Ledger, run_id: str | None, *, as_json: bool) -> None:
    entries = ledger.read(Query(run_id=None if run_id is None else named_run(ledger, run_id)))
    rows = (
        {"seq": entry.seq, **attrs.asdict(entry.event, recurse=False), "prev": entry.prev, "digest": entry.digest}
        for entry in entries
    )
    if as_json:
        print_json({"events": list(rows)})
        return
    for row in rows:
        click.echo(orjson.dumps(row))
