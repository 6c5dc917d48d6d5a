"""Prompts of a task about a subject, from the record of the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..classes import frozen
from ..contract.plugin_errors import error_text
from ..contract.protocols import Ledger
from ..contract.registry import Registry
from ..events import RECORD_ENDS
from ..values import Event, Failure, Query
from ..values.errors import DicastError

Texts = Mapping[str, Mapping[str, str]]


LEAST_TEXT = 12
"""Least characters of an input that a prompt has not by chance."""


@frozen
class Prompts:
    """Texts of a task's prompts by criterion and role: as sent about a subject, or as templates with the *reason* why they are not filled."""

    texts: Texts
    reason: str | None = None

    def has_text(self, value: object) -> bool:
        """Return whether a prompt as it was sent has the text *value* in it; False for a text so short that it may be there by chance."""
        if self.reason is not None or not isinstance(value, str) or len(value.strip()) < LEAST_TEXT:
            return False
        return any(value in text for texts in self.texts.values() for text in texts.values())

    def json(self) -> dict[str, Any]:
        """Return the texts, and the reason why they are templates, or null."""
        return {"texts": self.texts, "not_filled": self.reason}


def prompts_about(ledger: Ledger, start: Event, subject_id: str, subject: Mapping[str, Any]) -> Prompts | None:
    """Return the prompts of the run of the event *start* about a subject that was read as *subject*.

    None if the run recorded no prompts, or has no record of the subject. The prompts of an erased subject are templates.
    """
    texts: Texts | None = start.payload.get("prompts")  # type: ignore[assignment]  # a payload is JSON
    ends = Query(start.run_id, RECORD_ENDS, subject_id=subject_id, newest_first=True, limit=1)
    row: Any = next((entry.event.payload["row"] for entry in ledger.read(ends)), None) if texts else None
    if not texts or row is None:
        return None
    if any("digest" in prompt for prompt in texts.values()):
        return Prompts(texts, "the ledger keeps digests of texts (content: digest)")
    if "input" not in subject:
        return Prompts(texts, "the content of the subject was erased")
    return _filled(str(start.payload["task"]), texts, {"context": subject.get("context"), **row})


def _filled(task: str, texts: Texts, row: Mapping[str, object]) -> Prompts:
    """Return *texts* as the component *task* sent them about *row*, or unchanged if the component cannot fill them."""
    try:
        fill = getattr(Registry().find(task, ("task",)).cls, "fill_prompts", None)
        answer: Texts | Failure = Failure("refused", f"{task} fills no prompts") if fill is None else fill(texts, row)
    except DicastError as error:
        return Prompts(texts, str(error))  # the ledger may come from a system with other plugins
    except Exception as error:  # code of a plugin
        return Prompts(texts, f"{task} raised {type(error).__name__}: {error_text(error)}")
    return Prompts(texts, answer.message) if isinstance(answer, Failure) else Prompts(answer)
