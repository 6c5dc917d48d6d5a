"""Retracted labels: a person took a label back. The label and its verdict stay in the ledger, and count no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..values import Event, Query, Verdict
from ..values.json_form import unstructure

LABEL_RETRACTED = "label.retracted"
"""The event of a retraction: ``{subject, subject_kind, label_run, labeller}``. *label_run* is the run that recorded the label."""

Place = tuple[str, str, str]
"""The run that recorded a label, and the kind and the id of its subject; the kind is empty if the label has none."""


def retracted_labels(ledger: Any) -> frozenset[Place]:
    """Return the places of the retracted labels in *ledger*. A retraction is also of a label without a kind, of the same run and id."""
    payloads = [entry.event.payload for entry in ledger.read(Query(types=(LABEL_RETRACTED,)))]
    return frozenset(
        (str(payload["label_run"]), kind, str(payload["subject"]))
        for payload in payloads
        for kind in (str(payload["subject_kind"]), "")
    )


def place_of_label(event: Event) -> Place:
    """Return the place of the label in an event ``label.given``."""
    payload = event.payload
    return event.run_id, str(payload.get("subject_kind") or ""), str(payload["subject"])


def retracted_among(ledger: Any, verdicts: Sequence[Verdict]) -> frozenset[str]:
    """Return the ids of the people's verdicts among *verdicts* whose labels were retracted."""
    people = [verdict for verdict in verdicts if verdict.basis == "human"]
    places = retracted_labels(ledger) if people else frozenset()
    return frozenset(
        verdict.eval_id for verdict in people if (verdict.run_id, verdict.subject_kind, verdict.subject_id) in places
    )


def verdict_documents(verdicts: Sequence[Verdict], retracted: frozenset[str]) -> list[object]:
    """Return *verdicts* for a JSON document, with ``retracted: true`` in the verdicts of these ids."""
    return [
        {**unstructure(verdict), "retracted": True} if verdict.eval_id in retracted else verdict for verdict in verdicts
    ]
