"""The reader ``evidence``: what a judge that asks a model is shown of a subject, for people who label it."""

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
    """Return the evidence of *subject* as the first of *judges* that asks a model sees it, else as ``llm/judge`` does by default.

    The document has ``sections``, each ``{title, text, cut}``, and ``chars`` of ``whole``: how many characters are shown of how many. Without
    anything to show ``reason`` says why.
    """
    evidence: Evidence | Failure = Failure("missing_input", "no judge asks a model")
    for judge in _asking(judges):
        evidence = judge.shown(subject)
        break
    if isinstance(evidence, Failure):
        evidence = gather(subject, Showing())
    if isinstance(evidence, Failure):
        return {"sections": [], "chars": 0, "whole": 0, "reason": evidence.message}
    return {
        "sections": [
            _section(each.section, evidence.media) for each in evidence.shown if each.section.text is not None
        ],
        "chars": sum(each.chars for each in evidence.shown),
        "whole": sum(max(each.chars, each.whole) for each in evidence.shown),
    }


def _asking(judges: Sequence[object]) -> Iterator[LlmJudge | Pairwise]:
    """Yield the judges that ask a model as ``llm/judge`` or ``llm/pairwise`` does; a judge by a rubric asks with another one."""
    for judge in judges:
        asked = getattr(judge, "_asked", judge)
        if isinstance(asked, LlmJudge | Pairwise):
            yield asked


def _section(section: Section, media: Mapping[str, Media | str]) -> dict[str, Any]:
    text = transcript(section.text) if isinstance(section.text, tuple) else section.text
    return {"title": section.title, "text": marked(text or "", media), "cut": list(section.cut)}
