"""Runs whose subjects have weights, because a sample drew them."""

from __future__ import annotations

from collections.abc import Collection

from .. import ConfigError, Ledger, Query
from .._kernel.events import RUN_COMPLETED, RUN_STOPPED


def weighted_runs(ledger: Ledger, run_ids: Collection[str] = (), *, since: str = "") -> list[str]:
    """Return the ids of ended runs whose subjects have weights, the oldest first.

    :param run_ids: only these runs; all runs if empty.
    :param since: only runs that ended at this time or later.
    """
    ends = (entry.event for entry in ledger.read(Query(types=(RUN_COMPLETED, RUN_STOPPED))))
    weighted = (
        event.run_id
        for event in ends
        if (not run_ids or event.run_id in run_ids)
        and event.time >= since
        and any(warning.get("kind") == "weights" for warning in event.payload.get("warnings", ()))  # type: ignore[attr-defined]
    )
    return list(dict.fromkeys(weighted))


def refuse_weights(ledger: Ledger, run_ids: Collection[str], figures: str) -> None:
    """Refuse runs whose subjects have weights, for *figures* that count each subject once.

    :raises ConfigError: naming the runs.
    """
    if weighted := weighted_runs(ledger, run_ids):
        message = f"the subjects of run {' and '.join(weighted)} have weights, because a sample drew them, and {figures} counts each subject once"
        raise ConfigError(f"{message}; use a run over all subjects, or over a sample with equal weights")


def weights_note(weighted: Collection[str]) -> str:
    """Return the note that figures count subjects of the runs *weighted* once."""
    return f"each subject counts once, although subjects of run {' and '.join(weighted)} have weights: the figures are about the sample"
