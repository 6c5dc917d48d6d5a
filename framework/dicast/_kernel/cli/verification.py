"""The command ``dicast ledger verify``."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import click
import orjson

from ...toolkit.printable import one_line
from ..api.runs import read_ledger
from ..classes import frozen
from ..contract.protocols import Ledger
from ..resume.shard_roots import ShardRoot, read_roots
from ..values import Verification
from ..values.errors import ConfigError, LedgerError
from .options import as_json, ledger_path
from .output import print_json


@frozen
class ShardCheck:
    """Result of the check of the ledger of a shard. *reason* is its fault; None if it has the recorded head."""

    run_id: str
    number: int
    place: str
    reason: str | None


@click.command()
@click.option(
    "--head",
    metavar="DIGEST",
    help="A digest that must be in the chain, or the root of a run in shards; detects a missing end.",
)
@click.option(
    "--shards", is_flag=True, help="Also check the ledgers of the shards, at the places that the runs recorded."
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Check segments and shards in N processes; by default one for each core.",
)
@ledger_path
@as_json
def verify(head: str | None, shards: bool, jobs: int | None, ledger: Path | str | None, as_json: bool) -> int:
    """Check every row's digest and its link to the previous row, and the roots of runs in shards. Exit code 1 if a row does not match."""
    if head is not None and not re.fullmatch("[0-9a-f]{64}", head := head.lower()):
        raise ConfigError(
            f"--head must be a digest of 64 hexadecimal digits, as in ledger.head of each run, not {head!r}"
        )
    if jobs is None:
        from ..._processes.component import cores  # with the executor that has the same default

        jobs = cores()
    result, roots = read_ledger(ledger, lambda open_ledger: _verified(open_ledger, head, jobs))
    checks = _check_shards(roots, jobs) if shards else []
    if as_json:
        print_json(_verification(result, roots) | ({"shards": list(map(attrs.asdict, checks))} if shards else {}))
    else:
        for line in _lines(result, roots, checks):
            click.echo(one_line(line))
    return 0 if result.ok and all(check.reason is None for check in checks) else 1


def _verified(ledger: Ledger, head: str | None, jobs: int) -> tuple[Verification, Sequence[ShardRoot]]:
    """Return the result of the check of a ledger, and the roots in it. *head* is a digest of the chain, or one of the roots.

    A root that does not follow from its shards is a fault of its row.
    """
    in_processes = getattr(ledger, "verify_in", None)
    result: Verification = ledger.verify(head) if in_processes is None else in_processes(jobs, head)
    if not result.ok:
        return (result, ()) if head is None or not _has_root(ledger, head) else _verified(ledger, None, jobs)
    roots = [*read_roots(ledger)]
    for root in roots:
        if not root.follows():
            reason = f"the root of run {root.run_id}, {root.root}, does not follow from its shards"
            return attrs.evolve(result, bad_seq=root.seq, reason=reason), ()
    return result, roots


def _has_root(ledger: Ledger, digest: str) -> bool:
    try:
        return any(root.root == digest for root in read_roots(ledger))
    except LedgerError:  # the check names the damaged row
        return False


def _check_shards(roots: Sequence[ShardRoot], jobs: int) -> list[ShardCheck]:
    """Check the ledgers of all shards, each in a process of its own, at most *jobs* at a time, and return the results in their order."""
    checks, running = list[ShardCheck](), deque[tuple[str, Mapping[str, Any], subprocess.Popen[str]]]()
    try:
        for run_id, shard in [(root.run_id, shard) for root in roots for shard in root.shards]:
            if len(running) == jobs:
                checks.append(_result(*running.popleft()))
            running.append((run_id, shard, _started(shard)))
        while running:
            checks.append(_result(*running.popleft()))
        return checks
    finally:
        for _, _, process in running:  # after Ctrl-C
            process.kill()
            process.communicate()


def _started(shard: Mapping[str, Any]) -> subprocess.Popen[str]:
    options = ["--ledger", shard["place"], "--head", shard["head"]["digest"], "--jobs", "1", "--json"]
    command, pipe = [sys.executable, "-m", "dicast", "ledger", "verify", *options], subprocess.PIPE
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)  # noqa: S603  # ourselves


def _result(run_id: str, shard: Mapping[str, Any], process: subprocess.Popen[str]) -> ShardCheck:
    out, err = process.communicate()
    reason = None
    if process.returncode:
        try:
            document = orjson.loads(out)
        except orjson.JSONDecodeError:
            document = {"error": {"message": err.strip() or f"the check ended with {process.returncode}"}}
        fault = document.get("first_bad")
        reason = f"broken at row {fault['seq']}: {fault['reason']}" if fault else document["error"]["message"]
    return ShardCheck(run_id, shard["number"], shard["place"], reason)


def _lines(result: Verification, roots: Sequence[ShardRoot], checks: Sequence[ShardCheck]) -> Iterator[str]:
    if not result.ok:
        yield f"broken at row {result.bad_seq}: {result.reason}"
        return
    newest = f", head {result.head.seq} {result.head.digest}" if result.head else ""
    absent = f"; {result.absent:,} contents are not in the ledger" if result.absent else ""
    yield f"ok: {result.events:,} events{newest}{absent}"
    for root in roots:
        yield f"run {root.run_id}: {len(root.shards):,} shards, root {root.root}"
        for check in checks:
            if check.run_id == root.run_id:
                yield f"  shard {check.number} at {check.place}: {check.reason or 'ok'}"


def _verification(result: Verification, roots: Sequence[ShardRoot]) -> dict[str, object]:
    return {
        "ok": result.ok,
        "events": result.events,
        "head": None if result.head is None else attrs.asdict(result.head),
        "absent_contents": result.absent,
        "roots": [{"run_id": root.run_id, "root": root.root, "shards": len(root.shards)} for root in roots],
        "first_bad": None if result.ok else {"seq": result.bad_seq, "reason": result.reason},
    }
