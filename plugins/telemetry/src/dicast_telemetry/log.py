"""Sink of log lines."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

import attrs

from dicast import Event, RunContext

from .attributes import as_text

WANTS = (
    "run.started",
    "record.completed",
    "record.failed",
    "eval.completed",
    "eval.failed",
    "budget.throttled",
    "spend.lost",
    "aggregate.completed",
    "comparison.completed",
    "run.completed",
    "run.stopped",
)
_WARNINGS = ("record.failed", "eval.failed", "budget.throttled", "spend.lost", "run.stopped")
_LOGGED_KEYS = {
    "run.started": ("name", "task", "metrics", "judges", "limit", "security_level", "determinism_level"),
    "record.completed": ("metrics", "retry", "security_level"),
    "record.failed": ("failure_mode", "timestamp", "retry"),
    "eval.completed": ("eval_id", "judge", "score", "confidence", "tier", "judge_kind", "judge_model", "judge_latency_ms",
                       "judge_cost_usd", "judge_cost_msat", "rubric_id", "rubric_version", "fingerprint"),
    "eval.failed": ("eval_id", "judge", "failure_mode", "judge_latency_ms", "judge_cost_usd", "judge_cost_msat"),
    "run.completed": ("subjects", "scored", "failed", "skipped", "failures", "score", "cost", "spend_lost", "gate"),
    "run.stopped": ("reason", "subjects", "scored", "failed", "skipped", "failures", "score", "cost", "spend_lost", "gate"),
}  # fmt: skip
"""Logged keys of payloads by type; other types are logged in full. No text of a subject, a reply or a failure is logged."""


@attrs.frozen
class Log:
    """One line per event of a run, through Python's ``logging``, to the logger ``dicast``.

    A line is the event's type and a JSON object: ``eval.completed {"run_id": …, "subject_id": …, "judge": …, "score": …}``. The record's
    attribute ``dicast`` is the same object, for handlers that write fields. Failures, throttled budgets, lost money and stopped runs have
    at least the level ``warning``. Texts of subjects, replies and failures are not logged. Without
    a handler for ``dicast`` or for all loggers, as on the command line, the lines go to stderr.

    :param level: the level of the lines: ``debug``, ``info``, ``warning`` or ``error``.
    """

    name = "log"
    wants = WANTS

    level: Literal["debug", "info", "warning", "error"] = "info"

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Log]:
        """Add a handler for stderr if there is none."""
        logger = _logger()
        if logger.hasHandlers():
            yield self
            return
        handler, before = logging.StreamHandler(), logger.level
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(self.level.upper())
        try:
            yield self
        finally:
            logger.removeHandler(handler)
            logger.setLevel(before)

    def write(self, events: Sequence[Event]) -> int:
        """Log *events*, and return their number."""
        logger, configured = _logger(), logging.getLevelNamesMapping()[self.level.upper()]
        for event in events:
            level = max(configured, logging.WARNING) if event.type in _WARNINGS else configured
            if logger.isEnabledFor(level):
                fields = _fields(event)
                logger.log(level, "%s %s", event.type, as_text(fields), extra={"dicast": fields})
        return len(events)

    def close(self) -> None:
        """Do nothing, as nothing is open."""


def _logger() -> logging.Logger:
    return logging.getLogger("dicast")


def _fields(event: Event) -> dict[str, object]:
    subject = {name: value for name in ("session_id", "subject_kind", "subject_id") if (value := getattr(event, name))}
    payload: Mapping[str, Any] = event.payload
    names = payload.keys() if event.type not in _LOGGED_KEYS else _LOGGED_KEYS[event.type]
    return {
        "time": event.time,
        "run_id": event.run_id,
        **subject,
        **{key: payload[key] for key in names if key in payload},
    }
