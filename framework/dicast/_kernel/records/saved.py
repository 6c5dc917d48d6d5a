"""Baselines that were saved under a name: events of the ledger, of which the newest counts."""

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
    """The baselines that *ledger* has under a name, in the order in which they were first saved."""
    found: dict[str, SavedBaseline] = {}
    for entry in ledger.read(Query(types=(BASELINE_SAVED, BASELINE_REMOVED))):
        event, name = entry.event, str(entry.event.payload["name"])
        if event.type == BASELINE_SAVED:
            found[name] = SavedBaseline(name, event.run_id, event.time)
        else:
            found.pop(name, None)
    return found


def check_name(name: str) -> None:
    """Refuse a name that would mean something else where a run is named.

    :raises ConfigError: when *name* is ``last``, is written like a run's id, or has other characters than a name has.
    """
    if name == "last" or _RUN_ID.fullmatch(name) or not _NAME.fullmatch(name):
        rule = "letters, digits, '_', '-' and '.', a letter or digit first, 64 at most; neither 'last' nor a run's id"
        raise ConfigError(Problem(f"{name!r} is no name for a baseline: {rule}", path="NAME", value=name))


def save_baseline(ledger: Ledger, name: str, run_id: str) -> Head:
    """Record that *name* is the run *run_id* from now on; return the ledger's head behind it."""
    return _record(ledger, BASELINE_SAVED, name, run_id)


def remove_baseline(ledger: Ledger, name: str) -> SavedBaseline:
    """Record that *name* is no baseline any more, and return what it was.

    :raises ConfigError: when it is none.
    """
    found = saved_baselines(ledger)
    if name not in found:
        there = f"; there are {', '.join(found)}" if found else "; there is none"
        raise ConfigError(
            Problem(f"this ledger has no baseline {name!r}{there}", path="NAME", value=name, hint=nearest(name, found))
        )
    _record(ledger, BASELINE_REMOVED, name, found[name].run_id)
    return found[name]


def _record(ledger: Ledger, type_: str, name: str, run_id: str) -> Head:
    id_, time = Clock().stamp()
    return ledger.append([Event(id_, type_, time, run_id, {"name": name})])
