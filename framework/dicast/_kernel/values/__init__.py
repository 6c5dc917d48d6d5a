"""The value types: frozen, comparable, and the same in memory, in JSON and in the ledger."""

from __future__ import annotations

from ..events import RESERVED_AREAS
from .basis import BASES, Basis, basis_of, reaches, weakest
from .chat import COMPLETE, ChatRequest, Message, Price, Reply, Token, Usage
from .event import (
    Cap,
    Claim,
    Entry,
    Event,
    Head,
    Lease,
    Lookahead,
    Query,
    Refusal,
    RunContext,
    Sizes,
    Verdict,
    Verification,
    sensitivity,
)
from .paths import InputPath
from .raw_score import RawScore
from .record import ONLY, Answered, Record, Results
from .reply import KeptReply
from .sandbox import Execution, Limits, Program
from .score import FAILURE_KINDS, JUDGE_KINDS, Cost, Failure, Judgment, Rubric, Score, Secret, Unit, is_text
from .subject import KINDS, PARENTS, Due, Subject, TraceEvent, Trail

__all__ = [
    "BASES",
    "COMPLETE",
    "FAILURE_KINDS",
    "JUDGE_KINDS",
    "KINDS",
    "ONLY",
    "PARENTS",
    "RESERVED_AREAS",
    "Answered",
    "Basis",
    "Cap",
    "ChatRequest",
    "Claim",
    "Cost",
    "Due",
    "Entry",
    "Event",
    "Execution",
    "Failure",
    "Head",
    "InputPath",
    "Judgment",
    "KeptReply",
    "Lease",
    "Limits",
    "Lookahead",
    "Message",
    "Price",
    "Program",
    "Query",
    "RawScore",
    "Record",
    "Refusal",
    "Reply",
    "Results",
    "Rubric",
    "RunContext",
    "Score",
    "Secret",
    "Sizes",
    "Subject",
    "Token",
    "TraceEvent",
    "Trail",
    "Unit",
    "Usage",
    "Verdict",
    "Verification",
    "basis_of",
    "is_text",
    "reaches",
    "sensitivity",
    "weakest",
]
