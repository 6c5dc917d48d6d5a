"""Tools for judges that ask a chat model: prompts that mark the judged text as data, and verdicts that the judged text cannot forge.

A :class:`Question` fences the judged text and has a seal. :func:`ask` sends it, and sends it again if the reply has no verdict.
:func:`find_verdict` reads the one object in a reply that has the seal.
"""

from __future__ import annotations

from .asking import MISSING, Accepted, Fenced, Question, Section, ask, is_free, total, unread_media
from .dimensions import CONSTRAINTS, Dimension, collapse, of_option, of_rubric
from .fence import MESSAGES, RULES, Marks
from .form import REASON_FIRST, REASONING, Form, body, closing, has_dimensions, system_message
from .invisible import escape_invisible
from .objects import BadReply, ReplyObject
from .rationale import Capture, rationale_signals, with_reply
from .reply import WINNERS, find_verdict
from .rubric_judge import RubricOptions, rubric_judge

__all__ = [
    "CONSTRAINTS",
    "MESSAGES",
    "MISSING",
    "REASONING",
    "REASON_FIRST",
    "RULES",
    "WINNERS",
    "Accepted",
    "BadReply",
    "Capture",
    "Dimension",
    "Fenced",
    "Form",
    "Marks",
    "Question",
    "ReplyObject",
    "RubricOptions",
    "Section",
    "ask",
    "body",
    "closing",
    "collapse",
    "escape_invisible",
    "find_verdict",
    "has_dimensions",
    "is_free",
    "of_option",
    "of_rubric",
    "rationale_signals",
    "rubric_judge",
    "system_message",
    "total",
    "unread_media",
    "with_reply",
]
