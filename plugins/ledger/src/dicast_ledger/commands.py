"""The commands ``dicast ledger convert``, ``prove``, ``check-proof`` and ``erase``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import orjson

from dicast import ConfigError, Event, Ledger, read_ledger
from dicast.commands import as_json, ledger_path, print_json
from dicast.toolkit.files import read_bytes
from dicast.toolkit.ids import stamp
from dicast.toolkit.printable import one_line

from .cost import moment


@click.command()
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@as_json
def convert(old: Path, new: Path, as_json: bool) -> None:
    """Write the ledger OLD, of format 2 or 3, as the new file NEW of format 4. OLD is not changed."""
    from .format4.convert import convert as converted

    result = converted(old, new)
    if as_json:
        heads = {"old_head": result.old_head, "head": result.head}
        print_json({"events": result.events, **{name: _head(head) for name, head in heads.items()}})
        return
    newest = "" if result.head is None else f", head {result.head.seq} {result.head.digest}"
    click.echo(one_line(f"{new}: {result.events:,} events{newest}"))


def _head(head: Any) -> dict[str, object] | None:
    return None if head is None else {"seq": head.seq, "digest": head.digest}


@click.command()
@click.argument("eval_id")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The file to write; it must not exist.")
@ledger_path
def prove(eval_id: str, out: Path, ledger: Path | str | None) -> None:
    """Write a proof that the verdict EVAL_ID is in the ledger. The proof is checked without the ledger.

    A verdict of a run in shards is proven by the ledger of its shard, if it is at its recorded place: up to the root of all shards.
    """
    from .proving import prove as proven

    document, note = proven(ledger, eval_id)
    try:
        with out.open("xb") as file:
            file.write(orjson.dumps(document))
    except FileExistsError as error:
        raise ConfigError(f"{out} exists: name a new file for the proof") from error
    except OSError as error:
        raise ConfigError(f"{out} cannot be written: {error.strerror}") from error
    if note:
        click.echo(one_line(note))
    click.echo(one_line(f"{out}: proof up to {_end_of(document['head'], document.get('shard'))}"))


def _end_of(head: Mapping[str, Any], shard: Mapping[str, Any] | None) -> str:
    """Return the words about the end of a proof."""
    if shard is None:
        return f"head {head['seq']} {head['digest']}"
    return f"shard {shard['number']} of the run with the root {shard['root']}"


@click.command()
@click.argument("subject", required=False)
@click.option("--before", metavar="TIME", callback=moment, help="Erase texts that no event has at this time or later.")
@click.option("--reason", required=True, help="The reason, which is recorded.")
@ledger_path
@as_json
def erase(subject: str | None, before: datetime | None, reason: str, ledger: Path | str | None, as_json: bool) -> None:
    """Remove the texts of SUBJECT, a subject, turn or session, or all texts from before a time. Verdicts, amounts and the chain stay.

    Explanations of subjects that were judged at once without a cost, and texts that older versions recorded, are in the chain and
    stay. The command counts these events.
    """
    if (subject is None) == (before is None):
        raise ConfigError("name one subject, or give --before TIME: dicast ledger erase SUBJECT --reason TEXT")
    until = None if before is None else before.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
    result = read_ledger(ledger, lambda live: _erased(live, subject, until, reason))
    if as_json:
        print_json({"digests": list(result.digests), "other_subjects": result.others, "events_with_texts": result.left})
        return
    shared = f"; {result.others} other subjects had one of them too" if result.others else ""
    click.echo(one_line(f"{len(result.digests)} contents erased{shared}"))
    if result.left:
        click.echo(one_line(_left_line(result.left)))


def _erased(live: Ledger, subject: str | None, before: str | None, reason: str) -> Any:
    """Erase the contents, and return the result."""
    function = getattr(live, "erase", None)
    if function is None:
        raise ConfigError("only a ledger of format 4 erases contents: convert it with dicast ledger convert OLD NEW")

    def event(digests: Sequence[str]) -> Event:
        id_, time = stamp()
        return Event(id_, "content.erased", time, "", {"digests": list(digests), "reason": reason})

    return function(subject, before, event)


def _left_line(counts: Mapping[str, int]) -> str:
    """Return the sentence about the events by type whose texts are in the chain."""
    total = sum(counts.values())
    noun = "event still has" if total == 1 else "events still have"
    return (
        f"{total:,} {noun} texts of it: {', '.join(counts)}; the chain keeps them. "
        "Record runs with content: digest to keep no explanations"
    )


@click.command(name="check-proof")
@click.argument("file", type=click.Path(path_type=Path))
@as_json
def check_proof(file: Path, as_json: bool) -> int:
    """Check the proof FILE, and print its verdict. Exit code 1 if the proof does not hold.

    Compare the head or the root with the value that you noted: a proof shows only that the verdict belongs to it.
    """
    from dicast.toolkit.ledger_lines.proofs import ProofError, read_proof

    try:
        data = read_bytes(file)
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
    try:
        proven = read_proof(data)
    except ProofError as error:
        if as_json:
            print_json({"ok": False, "reason": str(error), "head": None, "shard": None, "events": []})
        else:
            click.echo(one_line(f"{file} does not hold: {error}"))
        return 1
    events = [
        {"id": event.id, "type": event.type, "time": event.time, "payload": event.payload} for event in proven.events
    ]
    if as_json:
        print_json({"ok": True, "reason": None, "head": proven.head, "shard": proven.shard, "events": events})
        return 0
    verdict = events[-1]["payload"]
    score = verdict.get("score") if isinstance(verdict, dict) else None
    click.echo(
        one_line(f"ok: {proven.events[-1].subject_id} has the score {score}, {_end_of(proven.head, proven.shard)}")
    )
    return 0
