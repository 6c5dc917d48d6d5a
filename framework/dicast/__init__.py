"""dicast judges the output of language models and agents: cheap checks first, an expensive judge only where it matters.

This package has the API for programs and plugins. Building blocks for plugins are in ``dicast.toolkit``; ``dicast.testing`` has the test kit.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ._kernel.api.runs import arun, forecast, read_ledger, results, rubric, run
from ._kernel.contract.define import judge, maybe_await, metric
from ._kernel.contract.protocols import (
    Aggregate,
    ChatModel,
    Classes,
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
from ._kernel.leases.protocol import Leasing
from ._kernel.resume.named_runs import known_run, named_run, newest_run, run_kind, started_runs
from ._kernel.values import (
    ALL_METRICS,
    BASES,
    COMPLETE,
    ONLY,
    RESERVED_AREAS,
    Answered,
    Basis,
    BatchLog,
    Cap,
    ChatRequest,
    Claim,
    Cost,
    Due,
    Entry,
    Event,
    Failure,
    Head,
    InputPath,
    Judgment,
    Lease,
    Lookahead,
    Lost,
    Media,
    Message,
    Position,
    Query,
    ReadCounts,
    Record,
    RecordedScore,
    Refusal,
    Reply,
    Results,
    Rubric,
    RunContext,
    Score,
    Secret,
    Sizes,
    Subject,
    Token,
    TraceEvent,
    Usage,
    Verdict,
    Verification,
    normalize_stop_reason,
    weakest,
)
from ._kernel.values.chat import Price
from ._kernel.values.endpoint_errors import AccessRefused, EndpointUnreachable, UnsupportedByModel
from ._kernel.values.errors import (
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
from ._kernel.values.names import identifier, nearest
from ._kernel.values.subject import Trail

if TYPE_CHECKING:
    from ._kernel.api.build import BuiltPipeline, build
    from ._kernel.api.evaluate import evaluate
    from ._kernel.api.judges import PipelineJudges, Slot, pipeline_judges
    from ._kernel.api.reward import Reward, RewardError, reward
    from ._kernel.api.subjects import subjects
    from ._kernel.asking.record import as_json, columns, responses
    from ._kernel.contract.hooks import hookimpl
    from ._kernel.pipeline.alone import component
    from ._kernel.run.finished_run import Run
    from ._kernel.run.forecast import prospect
    from ._kernel.run.host import Host, Shards
    from ._kernel.values.aggregation import mean
    from ._kernel.values.bounds import Within
    from ._kernel.values.judged import JudgedMaker, JudgedRow
    from ._kernel.values.raw_score import RawScore
    from ._kernel.values.reply import KeptReply
    from ._kernel.values.sandbox import Execution, Limits, Program

_ON_FIRST_USE = {
    "BuiltPipeline": "api.build",
    "Execution": "values.sandbox",
    "JudgedMaker": "values.judged",
    "JudgedRow": "values.judged",
    "KeptReply": "values.reply",
    "Host": "run.host",
    "Limits": "values.sandbox",
    "PipelineJudges": "api.judges",
    "Program": "values.sandbox",
    "RawScore": "values.raw_score",
    "Reward": "api.reward",
    "RewardError": "api.reward",
    "Run": "run.finished_run",
    "Shards": "run.host",
    "Slot": "api.judges",
    "Within": "values.bounds",
    "as_json": "asking.record",
    "build": "api.build",
    "columns": "asking.record",
    "component": "pipeline.alone",
    "evaluate": "api.evaluate",
    "hookimpl": "contract.hooks",
    "mean": "values.aggregation",
    "pipeline_judges": "api.judges",
    "prospect": "run.forecast",
    "responses": "asking.record",
    "reward": "api.reward",
    "subjects": "api.subjects",
}
"""Modules of the kernel that are imported when the name is first used: few programs need them, or they import asyncio or pluggy."""

__all__ = [
    "ALL_METRICS",
    "BASES",
    "COMPLETE",
    "ONLY",
    "RESERVED_AREAS",
    "AccessRefused",
    "Aggregate",
    "Answered",
    "Basis",
    "BatchLog",
    "BuiltPipeline",
    "Cap",
    "ChatModel",
    "ChatRequest",
    "Claim",
    "Classes",
    "Comparison",
    "ConfigError",
    "Cost",
    "DataError",
    "DicastError",
    "Due",
    "EarlyStop",
    "EndpointUnreachable",
    "Entry",
    "Event",
    "Execution",
    "Executor",
    "Extractor",
    "Failure",
    "Head",
    "Host",
    "InputPath",
    "Interrupted",
    "InvalidCost",
    "InvalidScore",
    "Judge",
    "JudgedMaker",
    "JudgedRow",
    "Judgment",
    "KeptReply",
    "Lease",
    "Leasing",
    "Ledger",
    "LedgerError",
    "LedgerRefused",
    "Limits",
    "Lookahead",
    "Lost",
    "Media",
    "Message",
    "Metric",
    "PipelineJudges",
    "PluginError",
    "Position",
    "Preset",
    "Price",
    "Problem",
    "Program",
    "Query",
    "RawScore",
    "ReadCounts",
    "Record",
    "RecordedScore",
    "Refusal",
    "Reply",
    "RequestError",
    "Results",
    "Reward",
    "RewardError",
    "Rubric",
    "Run",
    "RunContext",
    "Sandbox",
    "Score",
    "ScoringError",
    "Secret",
    "Shards",
    "Sink",
    "Sizes",
    "Slot",
    "Source",
    "Subject",
    "Task",
    "Token",
    "TraceEvent",
    "Trail",
    "UnsupportedByModel",
    "Usage",
    "Verdict",
    "Verification",
    "Within",
    "arun",
    "as_json",
    "build",
    "columns",
    "component",
    "estimate",
    "evaluate",
    "forecast",
    "hookimpl",
    "identifier",
    "judge",
    "known_run",
    "maybe_await",
    "mean",
    "metric",
    "named_run",
    "nearest",
    "newest_run",
    "normalize_stop_reason",
    "pipeline_judges",
    "prospect",
    "read_ledger",
    "responses",
    "results",
    "reward",
    "rubric",
    "run",
    "run_kind",
    "started_runs",
    "subjects",
    "weakest",
]


def __getattr__(name: str) -> object:
    """Import the module of *name*, which is in :data:`_ON_FIRST_USE`."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"._kernel.{_ON_FIRST_USE[name]}", __name__), name)
