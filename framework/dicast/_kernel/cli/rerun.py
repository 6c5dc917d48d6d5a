"""``dicast run --watch``: judge again whenever a file of the pipeline, a prompt or the data changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import click

from ...toolkit.files import file_sha256
from ...toolkit.printable import one_line
from ...toolkit.terminal import folded
from ..classes import evolve
from ..pipeline.ledger_path import ledger_option
from ..plan.sections import Pipeline
from ..run.request import Request
from ..run.reuse import ReusedReplies
from ..values.errors import RequestError
from ..values.names import path_from_here
from .output import print_error
from .screen import gate_line
from .summary import short_run

POLL_SECONDS = 0.3
"""Seconds between two checks of the files."""

SETTLED_SECONDS = 0.2
"""Seconds without a further change before the files are read: an editor may write a file in steps."""

MOST_FILES = 10_000
"""Most files of one folder that are checked."""

LOST = "warning: the ledger keeps no texts: each run pays for the replies of the task"
"""Warning after a run whose ledger has ``content: digest``."""

_NAMED = 4
_INTERRUPTED = 130

Document = Mapping[str, Any]
Signature = dict[Path, tuple[int, int, int] | None]
Digests = dict[Path, bytes | None]
RunOnce = Callable[[Callable[[Pipeline], Request], Callable[[Document], str | None]], int]
"""Function that reads and runs the pipeline, prints its summary and returns the exit code.

The first argument makes the request for the built pipeline. The second returns the next command for the document of the run, or None.
"""


def run_again(file: Path, request: Request, run_once: RunOnce) -> int:
    """Run the pipeline, wait for a change of one of its files, and run it again, until Ctrl-C; return the last exit code.

    A later run judges all subjects, and pays only for replies that no earlier run of the watch has bought.
    """
    replies, code, gate = ReusedReplies(), 2, ""
    files: tuple[Path, ...] = (file.absolute(),)

    def ask(pipeline: Pipeline) -> Request:
        nonlocal files
        files = tuple(dict.fromkeys(path.absolute() for path in (file, *pipeline.files)))
        replies.begin(pipeline)
        return evolve(request, reuse=replies)

    def find_next(done: Document) -> str | None:
        nonlocal gate
        gate = gate_line(done)
        return _compare_command(replies, done)

    try:
        while True:
            before, digests = signature(files), contents(files)
            try:
                code = run_once(ask, find_next)
            except RequestError as error:  # the user corrects the file, and the watch goes on
                code, gate = 2, ""
                print_error(error, code, as_json=False)
            else:
                if replies.used or replies.calls:
                    click.echo(_replies_text(replies), err=True)
                if replies.faults:
                    run, faults = short_run(replies.scored_runs[-2]), ", ".join(replies.faults)
                    click.echo(
                        one_line(f"not comparable with run {run} before it, which differs in {faults}"), err=True
                    )
                if replies.loses_replies:
                    click.echo(LOST, err=True)
            if code == _INTERRUPTED:
                return code
            before = {path: before.get(path, state) for path, state in signature(files).items()}
            digests = contents(before.keys() - digests.keys()) | digests
            _announce(files)
            if gate:  # its line above may have left the screen
                click.echo(folded(gate), err=True)
            changed = wait_for_change(before, digests)
            click.echo("\n" + one_line(f"changed: {', '.join(map(path_from_here, changed))}"), err=True)
    except KeyboardInterrupt:
        return code


def _replies_text(replies: ReusedReplies) -> str:
    """Return the numbers of the calls, of their failures and requests, and of the reused replies of the newest run."""
    calls, used, unpaid = replies.calls, replies.used, replies.unpaid
    parts = [f"{unpaid.failed:,} failed"] * (unpaid.failed > 0)
    parts += [f"{calls + unpaid.repeated:,} requests with all tries"] * (unpaid.repeated > 0)
    details = f" ({', '.join(parts)})" if parts else ""
    return f"{calls:,} call{'s' * (calls != 1)} made{details}, {used:,} repl{'y' if used == 1 else 'ies'} of earlier runs reused"


def _compare_command(replies: ReusedReplies, done: Document) -> str | None:
    """Return the command that compares the run of the document *done* with the newest run before it that scored a subject.

    None without either, or if ``dicast compare`` refuses the two runs.
    """
    if len(replies.scored_runs) < 2 or replies.faults or done.get("run_id") != replies.scored_runs[-1]:
        return None
    before, newest = map(short_run, replies.scored_runs[-2:])
    return f"dicast compare {before} {newest}{ledger_option(done['ledger'])}"


def wait_for_change(before: Signature, digests: Digests) -> list[Path]:
    """Wait until the content of a file differs from *digests*, and then until the files have settled; return the changed files.

    A file is read only if its signature differs from *before*.
    """
    while True:
        while (now := signature(before)) == before:
            time.sleep(POLL_SECONDS)
        settled = None
        while now != settled:
            time.sleep(SETTLED_SECONDS)
            settled, now = now, signature(before)
        rewrites = [path for path, state in now.items() if state != before[path]]
        if changed := [path for path, digest in contents(rewrites).items() if digest != digests[path]]:
            return changed
        before = now  # the files have the same bytes as before


def signature(files: Iterable[Path]) -> Signature:
    """Return the time, the size and the number of each file, None for a missing file; a folder counts by the files in it."""
    return {path: _state(path) for path in files}


def contents(files: Iterable[Path]) -> Digests:
    """Return a digest of the names and bytes of each file, None for a missing file; a folder counts by the files in it."""
    return {path: _digest(path) for path in files}


def _digest(path: Path) -> bytes | None:
    digest = sha256()
    try:
        for item in sorted(_inside(path)) if path.is_dir() else [path]:
            digest.update(f"{item}\0{file_sha256(item)}\0".encode(errors="surrogateescape"))
    except OSError:  # it is missing, or being replaced
        return None
    return digest.digest()


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        states = [item.stat() for item in _inside(path)] if path.is_dir() else [path.stat()]
    except OSError:  # it is missing, or being replaced
        return None
    newest = max((state.st_mtime_ns for state in states), default=0)
    return newest, sum(state.st_size for state in states), sum(state.st_ino for state in states)


def _inside(folder: Path) -> Iterator[Path]:
    """Yield the files in *folder*, without hidden ones: a ledger and unfinished outputs are hidden."""
    names = (
        item for item in folder.rglob("*") if not any(part.startswith(".") for part in item.relative_to(folder).parts)
    )
    return islice((item for item in names if item.is_file()), MOST_FILES)


def _announce(files: Iterable[Path]) -> None:
    names = [path_from_here(path) for path in files]
    rest = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    click.echo(one_line(f"watching {', '.join(names[:_NAMED])}{rest}; Ctrl-C ends"), err=True)
