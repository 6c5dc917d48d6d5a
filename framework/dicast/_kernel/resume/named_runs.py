"""Resolution of run names: an id, a part of an id, a saved baseline, a pipeline's name, or ``last``."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..contract.protocols import Ledger
from ..events import RUN_STARTED
from ..values import Entry, Query
from ..values.errors import ConfigError, Problem
from ..values.names import nearest
from .saved import saved_baselines

LEAST = 4
"""The fewest characters of an id that name the run."""

_SHOWN_EXPERIMENTS = 8
"""Largest number of experiments of a suite that a message names."""

LAST = "last"
"""The name of the newest run over all subjects, of any pipeline."""

TOOL = "tool"
"""The kind of runs that a command such as ``dicast label`` or ``dicast doctor`` starts for its own purpose."""

RUN_KINDS = ("pipeline", "suite", "watch", "evaluate", "shard", TOOL)
"""The kinds of runs that ``run.started`` records."""

Read = Callable[[Query], Iterator[Entry]]


def run_kind(started: Mapping[str, object]) -> str:
    """Return the kind of a run, one of :data:`RUN_KINDS`, from the payload of its ``run.started``.

    Older versions did not record the kind. Their runs count as ``tool`` if people labeled in them or ``dicast doctor`` started them.
    """
    kind = started.get("kind")
    if isinstance(kind, str):
        return kind
    labels = [*_listed(started, "metrics"), *_listed(started, "judges")]
    is_of_dashboard = (started.get("name"), started.get("file"), started.get("metrics")) == ("labels", "<mapping>", [])
    is_of_people = labels == ["human"] or is_of_dashboard
    if is_of_people or (started.get("preview") and started.get("limit") is None):
        return TOOL
    kinds = {"suite": "suite", "live": "watch", "shard": "shard"}
    return next((kind for member, kind in kinds.items() if started.get(member)), "pipeline")


def _listed(started: Mapping[str, object], key: str) -> list[object]:
    labels = started.get(key)
    return labels if isinstance(labels, list) else []


def limits_text(started: Mapping[str, object]) -> str:
    """Return the options that limited a run to some of its subjects or labels, from the payload of its ``run.started``; empty for a whole run."""
    limit, shard = started.get("limit"), started.get("shard")
    options = [f"--filter {shlex.quote(str(text))}" for text in _listed(started, "filter")]
    options += [f"--only {shlex.quote(str(text))}" for text in _listed(started, "only")]
    if started.get("preview"):
        options.append("--head" if limit is None else f"--head {limit}")
    elif limit is not None:
        options.append(f"--limit {limit}")
    if isinstance(shard, Mapping):
        options.append(f"--shard {shard.get('number')}/{shard.get('of')}")
    return " ".join(options)


def started_runs(read: Read, *, tools: bool = False, limited: bool = True) -> Iterator[Entry]:
    """Yield the ``run.started`` entries of a ledger, the newest first.

    The newest run is the run whose ``run.started`` has the highest number, whichever run ended last. Runs of tools are left out unless *tools*.

    :param read: the ledger's ``read``.
    :param limited: False leaves out runs over a part of the file: ``--filter``, ``--only``, ``--limit``, ``--head`` and shards.
    """
    for entry in read(Query(types=(RUN_STARTED,), newest_first=True)):
        if (tools or run_kind(entry.event.payload) != TOOL) and (limited or not limits_text(entry.event.payload)):
            yield entry


def newest_run(read: Read, *, before: str | None = None) -> str | None:
    """Return the id of the newest run, or of the newest run that started before the run *before*.

    Runs of tools do not count. A run over a part of the subjects or labels counts only if there is no whole run.

    :param read: the ledger's ``read``.
    :return: None if there is no such run.
    """
    start = next((entry.seq for entry in read(Query(before, (RUN_STARTED,), limit=1))), None) if before else None
    newest = _whole_first(entry for entry in started_runs(read) if start is None or entry.seq < start)
    return None if newest is None else newest.event.run_id


def _whole_first(runs: Iterable[Entry]) -> Entry | None:
    """Return the first of *runs* over all subjects and labels, else the first that no tool started, else the first; None without runs."""
    limited_run = tool_run = None
    for entry in runs:
        started = entry.event.payload
        if run_kind(started) == TOOL:
            tool_run = tool_run or entry
        elif not limits_text(started):
            return entry
        else:
            limited_run = limited_run or entry
    return limited_run or tool_run


def known_run(ledger: Ledger, run_id: str) -> str:
    """Return the id of the run that *run_id* names: a whole id, its first or last characters (at least 4), or ``last``.

    :raises ConfigError: if the ledger has no such run, or several.
    """
    if (match := find_run(ledger, run_id) or by_part(run_id, run_ids(ledger))) is None:
        if run_id == LAST and any(run_ids(ledger)):
            raise ConfigError(
                "every run of this ledger is a tool's (dicast label, dicast doctor): 'last' finds no run. "
                "Name a run by its id; dicast runs lists them"
            )
        raise ConfigError(f"the ledger has no run {run_id!r}; dicast runs lists the runs")
    return match


def named_run(ledger: Ledger, name: str) -> str:
    """Return the id of the run with the whole id *name*, else of the saved baseline or the newest run of the pipeline *name*, else of the run that :func:`known_run` finds.

    Every command resolves the name of a run with this function. Runs over a part (``--filter``, ``--only``, ``--limit``, ``--head``, shards)
    count only if the pipeline has no whole run, and runs of tools only if it has no others.

    :raises ConfigError: if the ledger has no such run, or several.
    """
    if (run_id := find_run(ledger, name)) is not None:
        return run_id
    if (saved := saved_baselines(ledger).get(name)) is not None:
        return saved.run_id
    if (newest := _whole_first(_of_pipeline(ledger, name))) is not None:
        return newest.event.run_id
    try:
        return known_run(ledger, name)
    except ConfigError as error:
        if (text := suite_text(ledger, name)) is not None:
            raise ConfigError(Problem(text, value=name)) from error
        names = {str(entry.event.payload.get("name")) for entry in started_runs(ledger.read, tools=True)}
        if (near := nearest(name, {*names, *saved_baselines(ledger)})) is None:
            raise
        raise ConfigError(Problem(f"the ledger has no run {name!r}", value=name, hint=near)) from error


def suite_text(ledger: Ledger, name: str) -> str | None:
    """Return the message that *name* is a suite in a place that takes one run, with the runs of its newest start; None if there is no such suite."""
    names: dict[str, None] = {}
    newest = None
    for entry in started_runs(ledger.read):
        started: Mapping[str, Any] = entry.event.payload
        run_name, suite = str(started.get("name")), started.get("suite")
        if suite and run_name.rpartition("/")[0] == name and newest in (None, suite["id"]):
            newest, names[run_name] = suite["id"], None
    if not names:
        return None
    runs = ", ".join([*names][::-1][:_SHOWN_EXPERIMENTS]) + " …" * (len(names) > _SHOWN_EXPERIMENTS)
    fix = f"name one of its runs: {runs}; dicast report {shlex.quote(name)} writes a page with all of them"
    return f"{name!r} is a suite, and one run is needed here; {fix}"


def limited_run_text(ledger: Ledger, name: str, run_id: str) -> str | None:
    """Return the note that *name* selected a run over a part of the subjects or labels, or passed over a newer run of this kind; None if there was only one candidate.

    :param run_id: the run that :func:`named_run` returned for *name*.
    """
    if name in saved_baselines(ledger):
        return None
    runs = started_runs(ledger.read) if name == LAST else _of_pipeline(ledger, name)
    for entry in runs:
        limits = limits_text(entry.event.payload)
        if entry.event.run_id == run_id:
            return f"{name} is run {run_id}, which judged only a part ({limits})" if limits else None
        if limits and run_kind(entry.event.payload) != TOOL:
            newer = f"the newer run {entry.event.run_id} judged only a part ({limits})"
            return f"{name} is run {run_id}; {newer}: name it by its id"
    return None


def _of_pipeline(ledger: Ledger, name: str) -> Iterator[Entry]:
    """Yield the ``run.started`` entries of the pipeline *name*, the newest first; nothing for ``last``."""
    runs = started_runs(ledger.read, tools=True)
    return (entry for entry in runs if name != LAST and entry.event.payload.get("name") == name)


def run_ids(ledger: Ledger) -> Iterator[str]:
    """Yield the ids of all runs, the newest first."""
    return (entry.event.run_id for entry in started_runs(ledger.read, tools=True))


def find_run(ledger: Ledger, run_id: str) -> str | None:
    """Return the run with this whole id, or for ``last`` the run of :func:`newest_run`; None if the ledger has none."""
    if run_id == LAST:
        return newest_run(ledger.read)
    return next((entry.event.run_id for entry in ledger.read(Query(run_id, (RUN_STARTED,), limit=1))), None)


def by_part(part: str, ids: Iterable[str]) -> str | None:
    """Return the single id of *ids* that begins or ends with *part*, in letters of any case.

    :return: None if no id does, or *part* is shorter than :data:`LEAST`.
    :raises ConfigError: if several do.
    """
    upper = part.upper()
    matches = sorted({id_ for id_ in ids if id_.upper().startswith(upper) or id_.upper().endswith(upper)})
    if len(part) < LEAST or not matches:
        return None
    if len(matches) > 1:
        examples = ", ".join(matches[:LEAST]) + (" …" if len(matches) > LEAST else "")
        raise ConfigError(
            Problem(f"{part!r} may be any of {len(matches)} runs: {examples}; give more characters", value=part)
        )
    return matches[0]
