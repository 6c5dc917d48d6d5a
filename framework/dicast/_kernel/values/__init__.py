"""Value types: frozen, comparable, and equal in memory, in JSON and in the ledger."""

from __future__ import annotations

from ..events import RESERVED_AREAS
from .basis import BASES, Basis, basis_of, reaches, weakest
from .chat import ChatRequest, Media, Message, Reply, Token, Usage
from .event import (
    BatchLog,
    Cap,
    Claim,
    Entry,
    Event,
    Head,
    Lease,
    Lookahead,
    Lost,
    Position,
    Query,
    Refusal,
    RunContext,
    Sizes,
    Verdict,
    Verification,
    sensitivity,
)
from .passes import METRICS as ALL_METRICS
from .paths import InputPath
from .read_counts import ReadCounts
from .record import ONLY, Answered, ContentDigests, Record, Results
from .recorded_score import RECORDED, RECORDED_PREFIX, RecordedScore
from .score import Cost, Failure, Judgment, Rubric, Score, Secret, is_text
from .stop_reasons import COMPLETE, MAX_TOKENS, REFUSAL, normalize_stop_reason
from .subject import KINDS, PARENTS, Due, Subject, TraceEvent

__all__ = [
    "ALL_METRICS",
    "BASES",
    "COMPLETE",
    "KINDS",
    "MAX_TOKENS",
    "ONLY",
    "PARENTS",
    "RECORDED",
    "RECORDED_PREFIX",
    "REFUSAL",
    "RESERVED_AREAS",
    "Answered",
    "Basis",
    "BatchLog",
    "Cap",
    "ChatRequest",
    "Claim",
    "ContentDigests",
    "Cost",
    "Due",
    "Entry",
    "Event",
    "Failure",
    "Head",
    "InputPath",
    "Judgment",
    "Lease",
    "Lookahead",
    "Lost",
    "Media",
    "Message",
    "Position",
    "Query",
    "ReadCounts",
    "Record",
    "RecordedScore",
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
    "Usage",
    "Verdict",
    "Verification",
    "basis_of",
    "is_text",
    "normalize_stop_reason",
    "reaches",
    "sensitivity",
    "weakest",
]
