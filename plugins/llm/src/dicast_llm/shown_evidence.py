"""The reader ``evidence``: the evidence that a judge would show a model, for people who label the subject."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dicast import Failure, Ledger, Media, Subject
from dicast.toolkit.gallery import marked

from .conversation import transcript
from .evidence import Evidence, Showing, gather
from .judge import LlmJudge
from .pairwise import Pairwise
from .section import Section


def read_evidence(ledger: Ledger, *, subject: Subject, judges: Sequence[object] = ()) -> dict[str, Any]:
    """Return the evidence of *subject* for the first of *judges* that asks a model, else the default evidence of ``llm/judge``.

    The document has ``sections``, each ``{title, text, cut}``, and the numbers ``chars`` of shown and ``whole`` of all characters. ``is_pair`` is true
    if the judge compares two outputs. Without evidence ``reason`` has the reason.
    """
    evidence: Evidence | Failure = Failure("missing_input", "no judge asks a model")
    is_pair = False
    for judge in _model_judges(judges):
        evidence = judge.show(subject)
        is_pair = isinstance(judge, Pairwise) and not isinstance(evidence, Failure)
        break
    if isinstance(evidence, Failure):
        evidence = gather(subject, Showing())
    if isinstance(evidence, Failure):
        return {"sections": [], "chars": 0, "whole": 0, "is_pair": False, "reason": evidence.message}
    return {
        "sections": [
            _section(part.section, evidence.media) for part in evidence.parts if part.section.text is not None
        ],
        "chars": sum(part.chars for part in evidence.parts),
        "whole": sum(max(part.chars, part.original_chars) for part in evidence.parts),
        "is_pair": is_pair,
    }


def _model_judges(judges: Sequence[object]) -> Iterator[LlmJudge | Pairwise]:
    """Yield each ``llm/judge`` or ``llm/pairwise`` among *judges*; for a judge that delegates to another judge (``_asked``), the other judge."""
    for judge in judges:
        model_judge = getattr(judge, "_asked", judge)
        if isinstance(model_judge, LlmJudge | Pairwise):
            yield model_judge


def _section(section: Section, media: Mapping[str, Media | str]) -> dict[str, Any]:
    text = transcript(section.text) if isinstance(section.text, tuple) else section.text
    return {"title": section.title, "text": marked(text or "", media), "cut": list(section.cut)}
