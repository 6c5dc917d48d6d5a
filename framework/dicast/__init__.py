"""dicast judges the output of language models and agents: cheap checks first, an expensive judge only where it matters.

Everything a plugin or a program needs is here; ``dicast.testing`` has the kit for a plugin's own tests.
"""

from __future__ import annotations

from ._kernel.api import Run, arun, run
from ._kernel.define import judge, maybe_await, metric
from ._kernel.errors import (
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
from ._kernel.files import AtomicFile
from ._kernel.hooks import hookimpl
from ._kernel.lines import MAX_LINE_BYTES, InputCheck, InputFile, identifier, nearest
from ._kernel.model import (
    Cap,
    Cost,
    Entry,
    Event,
    Failure,
    Head,
    InputPath,
    Judgment,
    Query,
    Refusal,
    Rubric,
    RunContext,
    Score,
    Secret,
    Subject,
    TraceEvent,
    Verdict,
    Verification,
)
from ._kernel.protocols import Executor, Judge, Ledger, Metric, Sink, Source

__all__ = [
    "MAX_LINE_BYTES",
    "MISSING",
    "AtomicFile",
    "Cap",
    "ConfigError",
    "Cost",
    "DataError",
    "DicastError",
    "Entry",
    "Event",
    "Executor",
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
    "Ledger",
    "LedgerError",
    "LedgerRefused",
    "Metric",
    "PluginError",
    "Problem",
    "Query",
    "Refusal",
    "RequestError",
    "Rubric",
    "Run",
    "RunContext",
    "Score",
    "ScoringError",
    "Secret",
    "Sink",
    "Source",
    "Subject",
    "TraceEvent",
    "Verdict",
    "Verification",
    "arun",
    "check_field",
    "hookimpl",
    "identifier",
    "judge",
    "locate",
    "lookup",
    "maybe_await",
    "metric",
    "nearest",
    "run",
    "too_deep",
]
