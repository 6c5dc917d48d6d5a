"""The readers ``label_case`` and ``label_agreement``, with which the dashboard shows people the subjects to label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from dicast import Ledger, Query, Subject
from dicast.reading import JudgedOutputs

from .agreement import LabelerAgreement
from .choosing import Evidence, Judged, evidence
from .gold import given_labels


def read_case(
    ledger: Ledger, *, run_id: str, subject_kind: str, subject_id: str, judges: Sequence[object] = ()
) -> dict[str, Any]:
    """Return the evidence that ``dicast label`` shows of a subject in a run, as the first of *judges* that asks a model sees it.

    ``sections`` are ``{title, text, cut}``, ``agents`` the sub-agents ``{session_id, level, sections}``. ``chars`` of ``total_chars`` characters are shown;
    ``thoughts`` counts the reasoning texts that are not. ``is_pair`` is true if two outputs are shown. Without sections ``reason`` has the reason. No
    verdict is in it.
    """
    judged = _judged(ledger, run_id, subject_kind, subject_id)
    if judged is None:
        reason = "the ledger does not have the content of this subject (content: digest, or the run did not read it)"
        return _document(Evidence(Judged(Subject(subject_kind, subject_id), run_id), [], reason=reason))
    return _document(evidence(ledger, judged, judges))


def _document(shown: Evidence) -> dict[str, Any]:
    names = ("sections", "chars", "total_chars", "reason", "thoughts", "is_pair")
    agents = [attrs.asdict(agent, recurse=False) for agent in shown.agents]
    return {**{name: getattr(shown, name) for name in names}, "agents": agents}


def _judged(ledger: Ledger, run_id: str, kind: str, id: str) -> Judged | None:
    """Return the subject with the output that the run judged; None if the ledger does not have its content."""
    output = JudgedOutputs(ledger, {id}, run_id).of(run_id, kind, id)
    query = Query(run_id, ("subject.read",), subject_id=id, newest_first=True)
    read = next((entry.event for entry in ledger.read(query) if entry.event.subject_kind == kind), None)
    content = None if read is None else read.payload.get("content")
    if read is None or output is None or not isinstance(content, Mapping):
        return None
    parts = content.get("input"), output.value, content.get("reference")
    return Judged(Subject(kind, id, *parts, context=content.get("context") or {}, session_id=read.session_id), run_id)


def read_label_agreement(ledger: Ledger) -> dict[str, Any]:
    """Return the document of ``dicast labels agreement --json``."""
    return LabelerAgreement.of([label for _, label in given_labels(ledger)]).document()
