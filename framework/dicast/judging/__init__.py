"""For judges that ask a chat model: prompts in which what is judged is data, and verdicts that nobody else can have written.

A :class:`Question` fences what is judged and has a seal; :func:`ask` puts it, again where the reply is no verdict, and
:func:`find_verdict` reads the one object in a reply that bears the seal.
"""

from __future__ import annotations

from .asking import MISSING, Accepted, Fenced, Question, Section, ask, is_free, total, unread_media
from .dimensions import CONSTRAINTS, Dimension, collapse, of_option, of_rubric
from .fence import MESSAGES, RULES, Marks
from .form import REASON_FIRST, REASONING, Form, body, closing, has_dimensions, system_message
from .invisible import escape_invisible
from .objects import BadReply, Found
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
    "Found",
    "Marks",
    "Question",
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
