"""Search for the run to resume."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from .. import events
from ..classes import evolve, frozen
from ..contract.protocols import Ledger
from ..pipeline.ledger_path import ledger_option
from ..plan.secret_mask import SecretMask
from ..plan.sections import Pipeline
from ..values import Event, Query
from ..values.errors import ConfigError
from ..values.names import path_from_here
from .named_runs import TOOL, by_part, run_ids, run_kind
from .resume import EarlierRun, refuse_changes

MAX_NAMED = 3
"""The number of runs that an error names."""

_OF_FILES = ("pipeline", "suite", "shard")
"""Kinds of runs that ``dicast run`` starts."""

_PLAIN = re.compile(r"(?!(?:true|false|null|yes|no|on|off)$)[A-Za-z_][\w./ -]*", re.IGNORECASE)
"""Names that YAML reads as text without quotes."""


@frozen
class RunCommand:
    """Words of a ``dicast run`` command, or of another *program*: the file, the values of ``--set`` and ``--only``, and other options.

    *is_resumable* is False for a run that no command resumes, such as a run with ``--head``. *hidden* are the paths of settings whose values
    a command does not print, such as secrets: a comment after the command names them. *experiment* is the experiment of a suite whose run the
    command may judge again alone.
    """

    file: str
    settings: Sequence[str] = ()
    flags: Sequence[str] = ()
    program: Sequence[str] = ("dicast", "run")
    is_resumable: bool = True
    only: Sequence[str] = ()
    hidden: Sequence[str] = ()
    experiment: str = ""

    def retrying(self, run_id: str) -> str:
        """Return the command, quoted for a shell, that judges the failed subjects of the run *run_id* again; of a suite its experiment alone."""
        alone = ("--experiment", self.experiment) if self.experiment else ()
        return self.resuming(run_id, *alone, "--retry-failed")

    def resuming(self, run_id: str | None = None, *flags: str, name: str | None = None) -> str:
        """Return the command, quoted for a shell, that resumes the run *run_id*, or the newest open run, under *name*."""
        settings = [setting for setting in self.settings if name is None or not setting.startswith("name=")]
        settings += [] if name is None else [f"name={name if _PLAIN.fullmatch(name) else json.dumps(name)}"]
        ids = [] if run_id is None else [run_id]
        return self._text(settings, "--resume", *ids, *self.flags, *flags)

    def raising(self, options: Collection[str]) -> RunCommand:
        """Return the command without the settings of *options*, such as ``budget.run``: with the same cap it would change nothing."""
        settings = [text for text in self.settings if text.partition("=")[0].strip() not in options]
        return evolve(self, settings=settings, hidden=[path for path in self.hidden if path not in options])

    def starting(self) -> str:
        """Return the command, quoted for a shell, that starts a new run."""
        return self._text(self.settings, *self.flags)

    def _text(self, settings: Sequence[str], *flags: str) -> str:
        options = {"--set": settings, "--only": self.only}
        words = [word for option, values in options.items() for value in values for word in (option, value)]
        comment = "".join(f" --set {path}" for path in self.hidden)
        command = shlex.join([*self.program, self.file, *words, *flags])
        return f"{command}  # with the same{comment}" if comment else command

    def masked(self, *pipelines: Pipeline) -> RunCommand:
        """Return the command without the settings that have secrets of *pipelines*, which are *hidden*, for a message."""
        masks = [SecretMask.of(pipeline) for pipeline in pipelines]
        return self.without(lambda setting: any(mask.text(setting) != setting for mask in masks))

    def without(self, is_hidden: Callable[[str], bool]) -> RunCommand:
        """Return the command in which the settings are *hidden* for which *is_hidden* returns True."""
        plain = [setting for setting in self.settings if not is_hidden(setting)]
        hidden = [setting.partition("=")[0] for setting in self.settings if is_hidden(setting)]
        return evolve(self, settings=plain, hidden=[*self.hidden, *hidden])

    def record(self) -> dict[str, list[str]]:
        """Return the members ``set`` and ``only`` of ``run.started``; a hidden setting is its path alone."""
        members = {"set": [*self.settings, *self.hidden], "only": [*self.only]}
        return {name: values for name, values in members.items() if values}


def command_of(
    started: Mapping[str, Any], *flags: str, program: Sequence[str] = ("dicast", "run")
) -> RunCommand | None:
    """Return the command of a run with the payload *started* of its ``run.started``, with *flags*; None if ``dicast run`` did not start it.

    :param program: the words of another command that runs pipelines, such as ``dicast ci``.
    """
    file, _, experiment = str(started.get("file")).partition("#")
    if file.startswith("<") or run_kind(started) not in _OF_FILES:
        return None
    path = Path(file)
    suite, shard, filters = started.get("suite"), started.get("shard"), started.get("filter") or ()
    words = [word for text in filters for word in ("--filter", text)]
    words += ["--shard", f"{shard['number']}/{shard['of']}"] if shard else []
    words += ["--experiment", experiment] if experiment and not suite else []
    is_resumable = not (started.get("preview") or (suite and filters))
    options = shard or started  # missing in runs of older versions
    settings, only = options.get("set") or (), options.get("only") or ()
    command = RunCommand(
        path_from_here(path), settings, (*words, *flags), program, is_resumable=is_resumable, only=only
    )
    command = evolve(command, experiment=experiment) if suite else command
    return command.without(lambda setting: "=" not in setting)


def resume_command(started: Mapping[str, Any], run_id: str, ledger: Ledger | None = None) -> str | None:
    """Return the command that resumes the run *run_id*, with the options in the payload *started* of its event ``run.started``.

    None if ``dicast run`` did not start the run, or no command resumes it. A merge of shards that its process did not end is continued
    by ``dicast merge``.

    :param ledger: the ledger of the run, which the command names unless it is the default ledger.
    """
    if ledger is not None and is_open_merge(ledger, started, run_id):
        return _merge_command(started, ledger)
    command = command_of(started, *_ledger_words(ledger))
    return None if command is None or not command.is_resumable else command.resuming(run_id)


@frozen
class Origin:
    """The pipeline whose runs are searched.

    *identity* is the member ``file`` of ``run.started``; *name* is the pipeline's current name; *command* runs the pipeline, and *flags*
    are the options that the user gave with ``--resume``. *shard* is the number of a shard and the number of shards.
    """

    identity: str
    name: str
    command: RunCommand
    flags: Sequence[str] = ()
    shard: tuple[int, int] | None = None

    def is_file_of(self, event: Event, *, live: bool = False) -> bool:
        """Return True if the ``run.started`` *event* is of the same file, under any name."""
        started = event.payload
        counts = not started.get("preview") and run_kind(started) != TOOL and shard_of(started) == self.shard
        return bool(started["file"] == self.identity and started.get("live", False) == live and counts)

    def is_of(self, event: Event, *, live: bool = False) -> bool:
        """Return True if the ``run.started`` *event* is of the same file, under the same name."""
        return self.is_file_of(event, live=live) and event.payload["name"] == self.name


def shard_of(started: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the number of the shard of a run and the number of shards, from the payload of its ``run.started``; None for a whole run."""
    shard = started.get("shard")
    return None if shard is None else (shard["number"], shard["of"])


@frozen
class Retry:
    """Search for the run whose failures are judged again: *limit* and *filters* are the selection of subjects of the new command."""

    limit: int | None = None
    filters: Sequence[str] = ()

    def pick(self, runs: Iterator[EarlierRun]) -> EarlierRun | None:
        """Return the newest of *runs*, newest first, that is open or has failures: of the same selection if possible, else any such run.

        Without such a run, return the newest; None without any run.
        """
        newest = failed = None
        for run in runs:
            newest = newest or run
            if run.finished and not run.has_failures:
                continue
            failed = failed or run
            if run.payload["limit"] == self.limit and [*run.payload.get("filter", ())] == [*self.filters]:
                return run
        return failed or newest


def find(
    ledger: Ledger, origin: Origin, run_id: str | None, *, finished_too: bool, retry: Retry | None = None
) -> EarlierRun:
    """Return the run *run_id*, or the newest open run of *origin*.

    :param run_id: an id, or its first or last characters; None for the newest run of the same file and name.
    :param finished_too: include runs that have ended.
    :param retry: picks the run among the runs of the same file and name; None for the newest.
    :raises ConfigError: if there is none. It names the runs of the same file that have other names.
    """
    if run_id:
        run_id = by_part(run_id, run_ids(ledger)) or run_id
    is_meant = (lambda event: event.run_id == run_id) if run_id else origin.is_of
    runs = _runs(ledger, is_meant, finished_too=finished_too)
    run = next(runs, None) if retry is None else retry.pick(runs)
    if run is not None:
        return run
    if not run_id and (same_file := [*_runs(ledger, origin.is_file_of, finished_too=finished_too)]):
        raise ConfigError(_only_others(origin, same_file, "run" if finished_too else "open run"))
    if not finished_too:
        ended_id = find(ledger, origin, run_id, finished_too=True).run_id
        raise ConfigError(
            f"run {ended_id} has ended; add --retry-failed to judge its failures again, or remove --resume to start a new run"
        )
    description = f"run {run_id}" if run_id else f"run of {origin.identity}"
    raise ConfigError(f"the ledger has no {description} to resume; remove --resume to start a new run")


def find_live(ledger: Ledger, origin: Origin, setup: Mapping[str, str]) -> EarlierRun | None:
    """Return the newest open run of *origin* that watched a live source; None without one.

    :raises ConfigError: if the same file has such runs only under other names, or if *setup* differs from the run's.
    """
    same_file = []
    for run in _runs(ledger, lambda event: origin.is_file_of(event, live=True), finished_too=False):
        if run.payload["name"] == origin.name:
            refuse_changes(run, setup)  # before the source is opened, which may listen
            return run
        same_file.append(run)
    if same_file:
        listed = named_runs((run.run_id, str(run.payload["name"])) for run in same_file)
        raise ConfigError(
            f"{origin.command.file} has no open run named {origin.name!r}, but runs of other names: {listed}. "
            "Use that name to resume the run, or --new to start a new run"
        )
    return None


def is_open_merge(ledger: Ledger, started: Mapping[str, Any], run_id: str) -> bool:
    """Return True if the run *run_id* with the payload *started* of its ``run.started`` is a merge of shards that its process did not end."""
    ends = Query(run_id, (events.RUN_STOPPED, events.RUN_COMPLETED), limit=1)
    return bool(started.get("shards")) and not any(True for _ in ledger.read(ends))


def _merge_command(started: Mapping[str, Any], ledger: Ledger) -> str:
    places = dict.fromkeys(shard["ledger"] for shard in started["shards"])
    return shlex.join(["dicast", "merge", *places, *_ledger_words(ledger)])


def _ledger_words(ledger: Ledger | None) -> list[str]:
    return shlex.split(ledger_option({"path": getattr(ledger, "path", None)}))


def refuse_open_merge(ledger: Ledger, run: EarlierRun) -> None:
    """Refuse to judge the other subjects of a merge that its process did not end: the shards have their verdicts.

    :raises ConfigError: with the command that continues the merge.
    """
    if is_open_merge(ledger, run.payload, run.run_id):
        command = _merge_command(run.payload, ledger)
        raise ConfigError(f"run {run.run_id} is a merge of shards that did not end; continue it: {command}")


def _only_others(origin: Origin, runs: Sequence[EarlierRun], noun: str) -> str:
    commands = [
        f"{run.payload['name']!r}: {origin.command.resuming(run.run_id, *origin.flags, name=str(run.payload['name']))}"
        for run in runs[:MAX_NAMED]
    ]
    suffix = f"; {len(runs) - MAX_NAMED:,} more: dicast runs lists them" if len(runs) > MAX_NAMED else ""
    return f"{origin.command.file} has no {noun} named {origin.name!r}. Resume a run of another name: {'; '.join(commands)}{suffix}"


def named_runs(runs: Iterator[tuple[str, str]]) -> str:
    """Return the ids of *runs* with their names, as a list for an error."""
    names = [f"{run_id} ({name})" for run_id, name in islice(runs, MAX_NAMED + 1)]
    return ", ".join(names[:MAX_NAMED]) + (" …" if len(names) > MAX_NAMED else "")


def _runs(ledger: Ledger, is_meant: Callable[[Event], bool], *, finished_too: bool) -> Iterator[EarlierRun]:
    """Yield the matching runs, newest first; runs that have ended only with *finished_too*."""
    finished = dict[str, bool]()
    for entry in ledger.read(Query(types=(events.RUN_STARTED, events.RUN_COMPLETED), newest_first=True)):
        event = entry.event
        if event.type == events.RUN_COMPLETED:
            finished.setdefault(event.run_id, bool(event.payload.get("failures")))
        elif (finished_too or event.run_id not in finished) and is_meant(event):
            yield EarlierRun(entry, event.run_id in finished, has_failures=finished.get(event.run_id, False))
