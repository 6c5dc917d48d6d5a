"""``dicast verdicts`` and ``dicast ledger``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Any

import attrs
import click

from ...toolkit.terminal import Line, print_lines
from ..api.runs import read_ledger
from ..contract.protocols import Ledger
from ..events import EVAL_COMPLETED, EVAL_FAILED, RECORD_FAILED
from ..resume.queries import Selection, failure, verdict
from ..resume.retractions import retracted_among, verdict_documents
from ..values.errors import ConfigError
from .ledger_export import export
from .options import as_json, chosen_run, ledger_path
from .output import MOST, print_json
from .subjects import verdict_line
from .summary import failure_line, reply_line, short_run
from .verification import verify

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
@click.option("--run", "run_id", metavar="RUN", help="Only verdicts of this run.")
@click.option("--subject", metavar="ID", help="Only verdicts of this subject.")
@click.option("--kind", help="Only subjects of this kind.")
@click.option("--judge", metavar="LABEL", help="Only verdicts of this judge.")
@click.option("--latest", is_flag=True, help="Only the newest verdict of each subject and judge.")
@click.option("--as-of", metavar="TIME", help="Only verdicts recorded up to this ISO 8601 time.")
@click.option("--limit", type=click.IntRange(0, MOST), metavar="N", help="List at most N.")
@click.option("--failed", is_flag=True, help="List failures instead of verdicts.")
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
    ledger: Path | str | None,
    as_json: bool,
) -> None:
    """List verdicts from the ledger, oldest first."""
    selection = Selection(
        run_id, subject, kind, judge, None if as_of is None else utc(as_of, "--as-of", time.max), latest, limit
    )
    read_ledger(ledger, lambda open_ledger: _print(open_ledger, selection, failed=failed, as_json=as_json))


def _print(ledger: Ledger, selection: Selection, *, failed: bool, as_json: bool) -> None:
    if selection.run_id is not None:
        selection = attrs.evolve(selection, run_id=chosen_run(ledger, selection.run_id))
    if failed:
        failures = map(failure, selection.events(ledger, EVAL_FAILED, RECORD_FAILED))
        items = [(_failed(document), document["run_id"]) for document in failures]
        lines = [
            line
            for document, run_id in _without_copies(items)
            for line in (f"{short_run(run_id)}  {failure_line(document)}", reply_line(document))
            if line is not None
        ]
        _list("failures", [document for document, _ in items], lines, as_json=as_json)
    else:
        judgments = [verdict(event) for event in selection.events(ledger, EVAL_COMPLETED)]
        retracted = retracted_among(ledger, judgments)
        texts = (f"{short_run(item.run_id)}  {verdict_line(item, retracted)}" for item in judgments)
        _list("verdicts", verdict_documents(judgments, retracted), texts, as_json=as_json)


def _without_copies(items: Iterable[tuple[dict[str, Any], str]]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield *items* with the failure of a task once for each subject and run: all labels of the subject fail with it."""
    known = set[tuple[object, ...]]()
    for document, run_id in items:
        key = (run_id, *(document.get(name) for name in ("subject_kind", "subject_id", "origin", "error_message")))
        if "origin" not in document or key not in known:
            yield document, run_id
        known.add(key)


def _failed(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a failure as JSON data, with the reply if it was kept."""
    optional = {key: document[key] for key in ("reply", "finish_reason", "origin", "adapted") if document.get(key)}
    return {key: document.get(key) for key in FAILURE_FIELDS} | optional


def _list(name: str, items: Sequence[object], lines: Iterable[str], *, as_json: bool) -> None:
    if as_json:
        print_json({name: items})
        return
    if items:
        print_lines(map(Line, lines))
    else:
        advice = "; failed subjects have none (see --failed)" if name == "verdicts" else ""
        click.echo(f"no {name} found{advice}", err=True)


def utc(moment: str, option: str, time_of_day: time) -> str:
    """Return the ISO 8601 time *moment* of the option as the ledger writes it.

    A time without an offset is UTC; a day without a time means *time_of_day* on that day.

    :raises ConfigError: when *moment* is no ISO 8601 time.
    """
    from ..values.clock import iso

    try:
        parsed = datetime.fromisoformat(moment)
    except ValueError as error:
        raise ConfigError(
            f"{option} must be an ISO 8601 time, not {moment!r}; write it like 2026-01-31T12:00:00Z"
        ) from error
    if len(moment) == len("2026-01-31"):
        parsed = datetime.combine(parsed.date(), time_of_day)
    return iso(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC))


class LedgerCommands(click.Group):
    """Commands of the kernel, and of entry points ``ledger.NAME`` in the group ``dicast.commands``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the name of every command."""
        return sorted([*super().list_commands(ctx), *_offers()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; import it if a plugin has it."""
        command = super().get_command(ctx, cmd_name)
        if command is not None or (offer := _offers().get(cmd_name)) is None:
            return command
        from ..contract.registry import load_offer

        plugin_command: click.Command = load_offer("dicast.commands", offer)
        return plugin_command


def _offers() -> dict[str, Any]:
    """Return the commands of plugins below ``dicast ledger``, by name."""
    from ..contract.registry import commands  # imported late: reading metadata takes time

    start = "ledger."
    return {name.removeprefix(start): offer for name, offer in commands().items() if name.startswith(start)}


@click.group(cls=LedgerCommands)
def ledger() -> None:
    """Verify, export or convert the ledger, and prove single verdicts."""


ledger.add_command(export)
ledger.add_command(verify)
