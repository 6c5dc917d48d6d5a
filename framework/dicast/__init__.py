"""dicast judges the output of language models and agents: cheap checks first, an expensive judge only where it matters.

Everything a plugin or a program needs is here; ``dicast.testing`` has the kit for a plugin's own tests.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ._kernel.api import arun, forecast, read_ledger, results, rubric, run
from ._kernel.contract.define import judge, maybe_await, metric
from ._kernel.contract.protocols import (
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
from ._kernel.leases.leasing import Leasing
from ._kernel.resume.named_runs import known_run, named_run, newest_run, run_kind, started_runs
from ._kernel.values import (
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
    Media,
    Message,
    Query,
    ReadCounts,
    Record,
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
from .toolkit.json_values import MISSING, check_field, inexact, locate, lookup, read_json, too_deep
from .toolkit.printable import one_line

if TYPE_CHECKING:
    from ._kernel.contract.hooks import hookimpl
    from ._kernel.evaluate import evaluate
    from ._kernel.finished_run import Run
    from ._kernel.forecast import prospect
    from ._kernel.judges import PipelineJudges, Slot, pipeline_judges
    from ._kernel.pipeline.alone import component
    from ._kernel.records.record import as_json, columns, responses
    from ._kernel.reward import Reward, RewardError, reward
    from ._kernel.subjects import subjects
    from ._kernel.values.aggregation import mean
    from ._kernel.values.bounds import Within
    from ._kernel.values.raw_score import RawScore
    from ._kernel.values.reply import KeptReply
    from ._kernel.values.sandbox import Execution, Limits, Program
    from .toolkit.answers import answered
    from .toolkit.atomic_file import AtomicFile, output_path
    from .toolkit.command import CommandEnd, OutputTooLong, call_command
    from .toolkit.comparison_text import comparison_lines
    from .toolkit.dataset import dataset_records, read_dataset
    from .toolkit.flat import flat
    from .toolkit.function_task import FunctionTask
    from .toolkit.gold import GoldLabel, gold_labels
    from .toolkit.http_address import check_headers, check_url
    from .toolkit.http_reply import IDENTITY, MAX_REPLY_BYTES, ReplyReader, ReplyRefused, retry_after
    from .toolkit.input_file import MAX_LINE_BYTES, InputCheck, InputFile
    from .toolkit.installing import how_to_install
    from .toolkit.metric_lines import Measurements, MetricLines
    from .toolkit.process_tree import ProcessTree
    from .toolkit.rate_limit import RateLimiter, Reachability
    from .toolkit.run_table import RunTable
    from .toolkit.scripts import scripts
    from .toolkit.terminal import print_lines
    from .toolkit.text_table import TextTable

_ON_FIRST_USE = {
    **dict.fromkeys(("AtomicFile", "output_path"), "toolkit.atomic_file"), **dict.fromkeys(("CommandEnd", "OutputTooLong", "call_command"), "toolkit.command"),
    **dict.fromkeys(("GoldLabel", "gold_labels"), "toolkit.gold"),
    **dict.fromkeys(("dataset_records", "read_dataset"), "toolkit.dataset"), **dict.fromkeys(("MAX_LINE_BYTES", "InputCheck", "InputFile"), "toolkit.input_file"),
    **dict.fromkeys(("IDENTITY", "MAX_REPLY_BYTES", "ReplyReader", "ReplyRefused", "retry_after"), "toolkit.http_reply"),
    **dict.fromkeys(("Measurements", "MetricLines"), "toolkit.metric_lines"),
    **dict.fromkeys(("RateLimiter", "Reachability"), "toolkit.rate_limit"),
    **dict.fromkeys(("Reward", "RewardError", "reward"), "_kernel.reward"),
    **dict.fromkeys(("Execution", "Limits", "Program"), "_kernel.values.sandbox"),
    **dict.fromkeys(("as_json", "columns", "responses"), "_kernel.records.record"),
    **dict.fromkeys(("check_headers", "check_url"), "toolkit.http_address"),
    **dict.fromkeys(("PipelineJudges", "Slot", "pipeline_judges"), "_kernel.judges"),
    "FunctionTask": "toolkit.function_task", "ProcessTree": "toolkit.process_tree", "answered": "toolkit.answers",
    "component": "_kernel.pipeline.alone", "evaluate": "_kernel.evaluate", "prospect": "_kernel.forecast",
    "comparison_lines": "toolkit.comparison_text", "how_to_install": "toolkit.installing", "RunTable": "toolkit.run_table",
    "TextTable": "toolkit.text_table", "print_lines": "toolkit.terminal", "scripts": "toolkit.scripts", "subjects": "_kernel.subjects",
    "mean": "_kernel.values.aggregation", "Within": "_kernel.values.bounds", "RawScore": "_kernel.values.raw_score", "flat": "toolkit.flat",
    "KeptReply": "_kernel.values.reply", "Run": "_kernel.finished_run", "hookimpl": "_kernel.contract.hooks",
}  # fmt: skip
"""Names whose module is imported when they are first asked for: it brings asyncio, pluggy or statistics along, or few need it."""

__all__ = [
    "BASES",
    "COMPLETE",
    "IDENTITY",
    "MAX_LINE_BYTES",
    "MAX_REPLY_BYTES",
    "MISSING",
    "ONLY",
    "RESERVED_AREAS",
    "AccessRefused",
    "Aggregate",
    "Answered",
    "AtomicFile",
    "Basis",
    "BatchLog",
    "Cap",
    "ChatModel",
    "ChatRequest",
    "Claim",
    "CommandEnd",
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
    "FunctionTask",
    "GoldLabel",
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
    "Lease",
    "Leasing",
    "Ledger",
    "LedgerError",
    "LedgerRefused",
    "Limits",
    "Lookahead",
    "Measurements",
    "Media",
    "Message",
    "Metric",
    "MetricLines",
    "OutputTooLong",
    "PipelineJudges",
    "PluginError",
    "Preset",
    "Price",
    "Problem",
    "ProcessTree",
    "Program",
    "Query",
    "RateLimiter",
    "RawScore",
    "Reachability",
    "ReadCounts",
    "Record",
    "Refusal",
    "Reply",
    "ReplyReader",
    "ReplyRefused",
    "RequestError",
    "Results",
    "Reward",
    "RewardError",
    "Rubric",
    "Run",
    "RunContext",
    "RunTable",
    "Sandbox",
    "Score",
    "ScoringError",
    "Secret",
    "Sink",
    "Sizes",
    "Slot",
    "Source",
    "Subject",
    "Task",
    "TextTable",
    "Token",
    "TraceEvent",
    "Trail",
    "UnsupportedByModel",
    "Usage",
    "Verdict",
    "Verification",
    "Within",
    "answered",
    "arun",
    "as_json",
    "call_command",
    "check_field",
    "check_headers",
    "check_url",
    "columns",
    "comparison_lines",
    "component",
    "dataset_records",
    "estimate",
    "evaluate",
    "flat",
    "forecast",
    "gold_labels",
    "hookimpl",
    "how_to_install",
    "identifier",
    "inexact",
    "judge",
    "known_run",
    "locate",
    "lookup",
    "maybe_await",
    "mean",
    "metric",
    "named_run",
    "nearest",
    "newest_run",
    "normalize_stop_reason",
    "one_line",
    "output_path",
    "pipeline_judges",
    "print_lines",
    "prospect",
    "read_dataset",
    "read_json",
    "read_ledger",
    "responses",
    "results",
    "retry_after",
    "reward",
    "rubric",
    "run",
    "run_kind",
    "scripts",
    "started_runs",
    "subjects",
    "too_deep",
    "weakest",
]


def __getattr__(name: str) -> object:
    """The names of :data:`_ON_FIRST_USE`."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_ON_FIRST_USE[name]}", __name__), name)
