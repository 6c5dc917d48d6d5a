"""Retracted labels: a person took a label back. The label and its verdict stay in the ledger, and count no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._kernel.values import Query

if TYPE_CHECKING:
    from .._kernel.values import Event

LABEL_RETRACTED = "label.retracted"
"""The event of a retraction: ``{subject, subject_kind, label_run, labeller}``. *label_run* is the run that recorded the label."""

Place = tuple[str, str, str]
"""The run that recorded a label, and the kind and the id of its subject."""


def retracted_labels(ledger: Any) -> frozenset[Place]:
    """Return the places of the retracted labels in *ledger*."""
    events = (entry.event for entry in ledger.read(Query(types=(LABEL_RETRACTED,))))
    return frozenset(
        (str(event.payload["label_run"]), str(event.payload["subject_kind"]), str(event.payload["subject"]))
        for event in events
    )


def place_of_label(event: Event) -> Place:
    """Return the place of the label in an event ``label.given``."""
    payload = event.payload
    return event.run_id, str(payload.get("subject_kind") or ""), str(payload["subject"])
