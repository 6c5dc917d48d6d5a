"""Answers about one subject for a person who labels it, without a verdict until the label is given, and about agreement of people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dicast import Ledger, PluginError
from dicast.reading import decides, given_labels
from dicast.toolkit.gold import GoldLabel

from .guide import Guide
from .reading import reader
from .run_labels import NOBODY, GivenLabel
from .runs import Document
from .subjects import subject, with_digests

Values = Mapping[str, Any]
VERDICTS = ("evaluations", "failures", "runs")


def case(ledger: Ledger, values: Values, guide: Guide) -> Document:
    """Return a subject of a run as its judge saw it (``judged``), as it was recorded, and the label of the labeller in ``own``.

    ``evaluations`` and ``failures`` are null, unless ``blind`` is false or the labeller has labeled the output. ``is_pair`` is true if the judge compares
    two outputs. With ``people`` the labels of people are in ``given``. ``is_same_judge`` is false if the judges of ``--judges`` are not the run's.
    """
    kind, id = values["kind"], values["subject"]
    wanted = {"id": id, "subject_kind": kind, "run": values["run"]}
    document: Any = subject(ledger, wanted, chained=False)["data"]
    entries = labels_of(ledger, kind, id, document["output_digest"])
    own_labels = [
        entry for entry in entries if entry[1].labeller == values["labeller"] and decides(entry[1]) == values["people"]
    ]
    is_shown = not values["blind"] or bool(own_labels)
    if is_shown:
        document |= {name: with_digests(ledger, document[name]) for name in ("evaluations", "failures")}
    judged = _judged(ledger, document["run_id"], kind, id, guide.components(kind, values["label"]))
    signals = [verdict["signals"] for verdict in document["evaluations"] if verdict["run_id"] == document["run_id"]]
    is_pair = any("flipped" in (item or {}) for item in signals) or bool(judged and judged["is_pair"])
    return {
        **{name: value for name, value in document.items() if name not in VERDICTS},
        "subject_id": id,
        "judged": judged,
        "is_pair": is_pair,
        "is_same_judge": guide.is_of(ledger, document["run_id"]),
        "own": _given_document(own_labels[-1]) if own_labels and values["labeller"] is not None else None,
        "given": [_given_document(entry) for entry in entries if not decides(entry[1])] if values["people"] else None,
        **{name: document[name] if is_shown else None for name in VERDICTS},
    }


def labels_of(ledger: Ledger, kind: str, id: str, digest: str | None) -> list[GivenLabel]:
    """Return the labels of people on an output of a subject, the oldest first."""
    return [(event, label) for event, label in given_labels(ledger) if is_about(label, kind, id, digest)]


def is_about(label: GoldLabel, kind: str, id: str, digest: str | None) -> bool:
    """Return whether *label* is about the output with *digest* of a subject; None is unknown and matches every output."""
    is_subject = label.subject_id == id and label.kind in ("", kind)
    return is_subject and (None in (label.output_digest, digest) or label.output_digest == digest)


def agreement(ledger: Ledger, values: Values) -> Document:
    """Return the document of ``dicast labels agreement``."""
    return {**reader("label_agreement")(ledger)}


def _judged(ledger: Ledger, run_id: str, kind: str, id: str, judges: list[object]) -> Mapping[str, Any] | None:
    """Return the evidence of a judge; None if the plugin that reads it is not installed."""
    try:
        read_case = reader("label_case")
    except PluginError:
        return None
    return read_case(ledger, run_id=run_id, subject_kind=kind, subject_id=id, judges=judges)


def _given_document(entry: GivenLabel) -> Document:
    event, label = entry
    names = {"labeller": label.labeller or NOBODY, "score": label.score, "run_id": event.run_id}
    return {**names, "created_at": event.time, "drawn": event.payload.get("drawn"), "adjudicated": decides(label)}
