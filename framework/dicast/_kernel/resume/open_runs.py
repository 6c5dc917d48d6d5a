"""The search for the run that a command takes up."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from .. import events
from ..classes import evolve, frozen
from ..contract.protocols import Ledger
from ..plan.secret_mask import SecretMask
from ..plan.sections import Pipeline
from ..values import Event, Query
from ..values.errors import ConfigError
from .named_runs import TOOL, by_part, run_ids, run_kind
from .resume import EarlierRun

SHOWN = 3
"""The number of runs that an error names."""

_PLAIN = re.compile(r"(?!(?:true|false|null|yes|no|on|off)$)[A-Za-z_][\w./ -]*", re.IGNORECASE)
"""Names that YAML reads as text without quotes."""


@frozen
class RunCommand:
    """The words of a ``dicast run`` command: the file, the values of ``--set``, and other options."""

    file: str
    settings: Sequence[str] = ()
    flags: Sequence[str] = ()

    def resuming(self, run_id: str | None = None, *flags: str, name: str | None = None) -> str:
        """Return the command, quoted for a shell, that takes up the run *run_id*, or the newest open run, under *name*."""
        settings = [one for one in self.settings if name is None or not one.startswith("name=")]
        settings += [] if name is None else [f"name={name if _PLAIN.fullmatch(name) else json.dumps(name)}"]
        words = [word for one in settings for word in ("--set", one)]
        ids = [] if run_id is None else [run_id]
        return shlex.join(["dicast", "run", self.file, *words, "--resume", *ids, *self.flags, *flags])

    def masked(self, *pipelines: Pipeline) -> RunCommand:
        """Return the command without the secrets of *pipelines*, for a message."""
        settings = self.settings
        for mask in map(SecretMask.of, pipelines):
            settings = [mask.text(one) for one in settings]
        return evolve(self, settings=settings)


@frozen
class Origin:
    """The pipeline whose runs are searched.

    *identity* is the member ``file`` of ``run.started``; *name* is the name that the pipeline has now; *command* runs it, and *flags* are
    the options that the user gave to it next to ``--resume``.
    """

    identity: str
    name: str
    command: RunCommand
    flags: Sequence[str] = ()

    def is_file_of(self, event: Event, *, live: bool = False) -> bool:
        """Return whether a ``run.started`` is of the same file, under any name."""
        started = event.payload
        counts = not started.get("preview") and run_kind(started) != TOOL
        return bool(started["file"] == self.identity and started.get("live", False) == live and counts)

    def is_of(self, event: Event, *, live: bool = False) -> bool:
        """Return whether a ``run.started`` is of the same file, under the same name."""
        return self.is_file_of(event, live=live) and event.payload["name"] == self.name


def find(ledger: Ledger, origin: Origin, run_id: str | None, *, finished_too: bool) -> EarlierRun:
    """Return the run *run_id*, or the newest open run of *origin*.

    :param run_id: an id, or its first or last characters; None for the newest run of the same file and name.
    :param finished_too: runs that have ended count too.
    :raises ConfigError: if there is none. It names the runs of the same file that have other names.
    """
    if run_id:
        run_id = by_part(run_id, run_ids(ledger)) or run_id
    is_meant = (lambda event: event.run_id == run_id) if run_id else origin.is_of
    run = next(_runs(ledger, is_meant, finished_too=finished_too), None)
    if run is not None:
        return run
    if not run_id and (others := [*_runs(ledger, origin.is_file_of, finished_too=finished_too)]):
        raise ConfigError(_only_others(origin, others, "run" if finished_too else "open run"))
    if not finished_too:
        ended = find(ledger, origin, run_id, finished_too=True).run_id
        raise ConfigError(f"run {ended} has ended; add --retry-failed for its failures, or begin anew without --resume")
    named = f"run {run_id}" if run_id else f"run of {origin.identity}"
    raise ConfigError(f"there is no {named} in this ledger to resume; leave --resume out to begin a new run")


def find_live(ledger: Ledger, origin: Origin) -> EarlierRun | None:
    """Return the newest open run of *origin* that watched a live source; None without one.

    :raises ConfigError: if the same file has such runs under other names alone.
    """
    others = []
    for run in _runs(ledger, lambda event: origin.is_file_of(event, live=True), finished_too=False):
        if run.payload["name"] == origin.name:
            return run
        others.append(run)
    if others:
        listed = named_runs((run.run_id, str(run.payload["name"])) for run in others)
        raise ConfigError(
            f"{origin.command.file} has no open run named {origin.name!r}, but of other names: {listed}. "
            "Use that name again to take the run up, or --new to start a new run"
        )
    return None


def _only_others(origin: Origin, others: Sequence[EarlierRun], what: str) -> str:
    commands = [
        f"{run.payload['name']!r}: {origin.command.resuming(run.run_id, *origin.flags, name=str(run.payload['name']))}"
        for run in others[:SHOWN]
    ]
    more = f"; {len(others) - SHOWN:,} more: dicast runs lists them" if len(others) > SHOWN else ""
    return f"{origin.command.file} has no {what} named {origin.name!r}. Resume a run of another name: {'; '.join(commands)}{more}"


def named_runs(runs: Iterator[tuple[str, str]]) -> str:
    """Return the ids of *runs* with their names, as a list for an error."""
    shown = [f"{run_id} ({name})" for run_id, name in islice(runs, SHOWN + 1)]
    return ", ".join(shown[:SHOWN]) + (" …" if len(shown) > SHOWN else "")


def _runs(ledger: Ledger, is_meant: Callable[[Event], bool], *, finished_too: bool) -> Iterator[EarlierRun]:
    """Yield the runs that are meant, the newest first; runs that have ended only with *finished_too*."""
    finished = set()
    for entry in ledger.read(Query(types=(events.RUN_STARTED, events.RUN_COMPLETED), newest_first=True)):
        event = entry.event
        if event.type == events.RUN_COMPLETED:
            finished.add(event.run_id)
        elif (finished_too or event.run_id not in finished) and is_meant(event):
            yield EarlierRun(entry, event.run_id in finished)
