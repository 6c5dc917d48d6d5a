"""dicast judges the output of language models and agents: cheap checks first, an expensive judge only where it matters.

Everything a plugin or a program needs is here; ``dicast.testing`` has the kit for a plugin's own tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._kernel.api import Run, arun, forecast, known_run, read_ledger, results, rubric, run
from ._kernel.define import judge, maybe_await, metric
from ._kernel.errors import (
    AccessRefused,
    ConfigError,
    DataError,
    DicastError,
    Interrupted,
    InvalidCost,
    InvalidScore,
    LedgerError,
    LedgerRefused,
    PluginError,
    Problem,
    RequestError,
    ScoringError,
)
from ._kernel.fields import MISSING, check_field, locate, lookup, too_deep
from ._kernel.files import AtomicFile, output_path
from ._kernel.hooks import hookimpl
from ._kernel.lines import MAX_LINE_BYTES, InputCheck, InputFile, identifier, nearest
from ._kernel.model import (
    COMPLETE,
    ONLY,
    Answered,
    Cap,
    ChatRequest,
    Claim,
    Cost,
    Due,
    Entry,
    Event,
    Execution,
    Failure,
    Head,
    InputPath,
    Judgment,
    KeptReply,
    Limits,
    Lookahead,
    Message,
    Price,
    Program,
    Query,
    Record,
    Refusal,
    Reply,
    Results,
    Rubric,
    RunContext,
    Score,
    Secret,
    Subject,
    Token,
    TraceEvent,
    Usage,
    Verdict,
    Verification,
)
from ._kernel.protocols import (
    Aggregate,
    ChatModel,
    Comparison,
    EarlyStop,
    Executor,
    Extractor,
    Judge,
    Ledger,
    Metric,
    Preset,
    Sandbox,
    Sink,
    Source,
    Task,
    estimate,
)
from ._kernel.report import RunTable, flat
from ._kernel.runner.records import as_json, columns, responses
from ._kernel.sections import Within

if TYPE_CHECKING:
    from ._kernel.limits import RateLimiter

__all__ = [
    "COMPLETE",
    "MAX_LINE_BYTES",
    "MISSING",
    "ONLY",
    "AccessRefused",
    "Aggregate",
    "Answered",
    "AtomicFile",
    "Cap",
    "ChatModel",
    "ChatRequest",
    "Claim",
    "Comparison",
    "ConfigError",
    "Cost",
    "DataError",
    "DicastError",
    "Due",
    "EarlyStop",
    "Entry",
    "Event",
    "Execution",
    "Executor",
    "Extractor",
    "Failure",
    "Head",
    "InputCheck",
    "InputFile",
    "InputPath",
    "Interrupted",
    "InvalidCost",
    "InvalidScore",
    "Judge",
    "Judgment",
    "KeptReply",
    "Ledger",
    "LedgerError",
    "LedgerRefused",
    "Limits",
    "Lookahead",
    "Message",
    "Metric",
    "PluginError",
    "Preset",
    "Price",
    "Problem",
    "Program",
    "Query",
    "RateLimiter",
    "Record",
    "Refusal",
    "Reply",
    "RequestError",
    "Results",
    "Rubric",
    "Run",
    "RunContext",
    "RunTable",
    "Sandbox",
    "Score",
    "ScoringError",
    "Secret",
    "Sink",
    "Source",
    "Subject",
    "Task",
    "Token",
    "TraceEvent",
    "Usage",
    "Verdict",
    "Verification",
    "Within",
    "arun",
    "as_json",
    "check_field",
    "columns",
    "estimate",
    "flat",
    "forecast",
    "hookimpl",
    "identifier",
    "judge",
    "known_run",
    "locate",
    "lookup",
    "maybe_await",
    "metric",
    "nearest",
    "output_path",
    "read_ledger",
    "responses",
    "results",
    "rubric",
    "run",
    "too_deep",
]


def __getattr__(name: str) -> object:
    """``RateLimiter``, on first use: it needs asyncio, which importing dicast does without, as starting takes long enough."""
    if name != "RateLimiter":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._kernel.limits import RateLimiter

    return RateLimiter
