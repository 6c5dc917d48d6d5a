"""Judgments that were begun and have not ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from .._kernel.values import Entry, Query

STARTED, ENDED = "eval.started", ("eval.completed", "eval.failed")


class _Keeps(Protocol):
    def begun(self, run_id: str | None) -> Sequence[Entry]: ...


def begun(ledger: Any, run_id: str | None = None) -> Sequence[Entry]:
    """The ``eval.started`` entries in *ledger*, or of one run, of verdicts that have neither come nor failed, oldest first."""
    own: _Keeps | None = ledger if hasattr(ledger, "begun") else None
    if own is None:
        return still_begun((), ledger.read(Query(run_id, (STARTED, *ENDED))))
    return own.begun(run_id)


def still_begun(before: Iterable[Entry], later: Iterable[Entry]) -> list[Entry]:
    """What of *before*, and of what *later* begins, does not end in *later*."""
    found: dict[object, list[Entry]] = {}
    for entry in before:
        found.setdefault(entry.event.payload.get("eval_id"), []).append(entry)
    for entry in later:
        eval_id = entry.event.payload.get("eval_id")
        if entry.event.type == STARTED:
            found.setdefault(eval_id, []).append(entry)
        else:
            found.pop(eval_id, None)
    return sorted((entry for entries in found.values() for entry in entries), key=lambda entry: entry.seq)
