"""Judgments that have started and not ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .._kernel.events import EVAL_COMPLETED, EVAL_FAILED, EVAL_STARTED
from .._kernel.values import Entry, Query

STARTED, ENDED = EVAL_STARTED, (EVAL_COMPLETED, EVAL_FAILED)


def read_open_judgments(ledger: Any, run_id: str | None = None) -> Sequence[Entry]:
    """Return the ``eval.started`` entries of *ledger*, or of one run, that have neither a verdict nor a failure, oldest first."""
    if not hasattr(ledger, "open_judgments"):
        return still_open((), ledger.read(Query(run_id, (STARTED, *ENDED))))
    entries: Sequence[Entry] = ledger.open_judgments(run_id)
    return entries


def still_open(started: Iterable[Entry], later: Iterable[Entry]) -> list[Entry]:
    """Return the judgments that start in *started* or *later* and do not end in *later*."""
    judgments: dict[object, list[Entry]] = {}
    for entry in started:
        judgments.setdefault(entry.event.payload.get("eval_id"), []).append(entry)
    for entry in later:
        eval_id = entry.event.payload.get("eval_id")
        if entry.event.type == STARTED:
            judgments.setdefault(eval_id, []).append(entry)
        else:
            judgments.pop(eval_id, None)
    return sorted((entry for entries in judgments.values() for entry in entries), key=lambda entry: entry.seq)
