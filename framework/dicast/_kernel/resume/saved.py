"""Baselines saved under a name, as events of the ledger; the newest event of a name counts."""

from __future__ import annotations

import re

from ..classes import frozen
from ..contract.protocols import Ledger
from ..events import BASELINE_REMOVED, BASELINE_SAVED
from ..values import Event, Head, Query
from ..values.clock import Clock
from ..values.errors import ConfigError, Problem
from ..values.names import nearest

_NAME = re.compile(r"[^\W_][\w.-]{0,63}")
_RUN_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}", re.IGNORECASE)


@frozen
class SavedBaseline:
    """The run *run_id* under its *name*, since *saved_at*."""

    name: str
    run_id: str
    saved_at: str


def saved_baselines(ledger: Ledger) -> dict[str, SavedBaseline]:
    """Return the saved baselines of *ledger* by name, in the order in which they were first saved."""
    baselines: dict[str, SavedBaseline] = {}
    for entry in ledger.read(Query(types=(BASELINE_SAVED, BASELINE_REMOVED))):
        event, name = entry.event, str(entry.event.payload["name"])
        if event.type == BASELINE_SAVED:
            baselines[name] = SavedBaseline(name, event.run_id, event.time)
        else:
            baselines.pop(name, None)
    return baselines


def check_name(name: str) -> None:
    """Refuse a name with another meaning in place of a run's name.

    :raises ConfigError: when *name* is ``last``, looks like a run's id, or has invalid characters.
    """
    if name == "last" or _RUN_ID.fullmatch(name) or not _NAME.fullmatch(name):
        rule = "letters, digits, '_', '-' and '.', a letter or digit first, at most 64 characters; neither 'last' nor a run's id"
        raise ConfigError(Problem(f"{name!r} is no valid name for a baseline: {rule}", path="NAME", value=name))


def save_baseline(ledger: Ledger, name: str, run_id: str) -> Head:
    """Record that *name* is the run *run_id* from now on; return the ledger's new head."""
    return _record(ledger, BASELINE_SAVED, name, run_id)


def remove_baseline(ledger: Ledger, name: str) -> SavedBaseline:
    """Record that *name* is no longer a baseline, and return the removed baseline.

    :raises ConfigError: when there is none.
    """
    baselines = saved_baselines(ledger)
    if name not in baselines:
        names = (
            f"; choose from {', '.join(baselines)}" if baselines else "; dicast baseline save NAME saves the last run"
        )
        raise ConfigError(
            Problem(
                f"this ledger has no baseline {name!r}{names}", path="NAME", value=name, hint=nearest(name, baselines)
            )
        )
    _record(ledger, BASELINE_REMOVED, name, baselines[name].run_id)
    return baselines[name]


def _record(ledger: Ledger, type_: str, name: str, run_id: str) -> Head:
    id_, time = Clock().stamp()
    return ledger.append([Event(id_, type_, time, run_id, {"name": name})])
