"""Which run is meant: by its id, by a part of that, or ``last``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..contract.protocols import Ledger
from ..events import RUN_STARTED
from ..values import Query
from ..values.errors import ConfigError, Problem

LEAST = 4
"""How many characters of an id have to be given to mean the whole."""


def known_run(ledger: Ledger, run_id: str) -> str:
    """The id of the run that is meant by it, or by its first or last characters, 4 at least; ``last`` is the one that began last.

    :raises ConfigError: when the ledger has no such run, or several.
    """
    if (found := find_run(ledger, run_id) or by_part(run_id, run_ids(ledger))) is None:
        raise ConfigError(f"the ledger has no run {run_id!r}; dicast runs lists those it has")
    return found


def run_ids(ledger: Ledger) -> Iterator[str]:
    """The ids of all runs, that of the one which began last first."""
    return (entry.event.run_id for entry in ledger.read(Query(types=(RUN_STARTED,), newest_first=True)))


def find_run(ledger: Ledger, run_id: str) -> str | None:
    """The run of this whole id, or that began ``last``; None when the ledger has none."""
    query = Query(None if run_id == "last" else run_id, (RUN_STARTED,), newest_first=True, limit=1)
    return next((entry.event.run_id for entry in ledger.read(query)), None)


def by_part(part: str, ids: Iterable[str]) -> str | None:
    """The one of *ids* that begins or ends with *part*, in letters of any case; None where none does, or *part* is too short.

    :raises ConfigError: when several do.
    """
    wanted = part.upper()
    found = sorted({one for one in ids if one.upper().startswith(wanted) or one.upper().endswith(wanted)})
    if len(part) < LEAST or not found:
        return None
    if len(found) > 1:
        named = ", ".join(found[:LEAST]) + (" …" if len(found) > LEAST else "")
        raise ConfigError(
            Problem(f"{part!r} may be any of {len(found)} runs: {named}; give more characters", value=part)
        )
    return found[0]
