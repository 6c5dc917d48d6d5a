"""The proxy metrics that may take long: prose that ``proxy/syntax`` reads, calls and histories of tools."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from processes import HERE, Figure, run

MEGABYTES = 20
CALLS = 20_000
STEPS = 10_000


def measure(folder: Path) -> Iterator[Figure]:
    """Each in a process of its own."""
    yield from _syntax(folder)
    yield from _schema(folder)
    yield from _repeated(folder)


def _syntax(folder: Path) -> Iterator[Figure]:
    taken = _own(folder, "syntax", str(MEGABYTES))
    yield Figure("proxy.syntax.prose", taken["mb"] / taken["metric"], "MB/s CPU", ">= 10")
    yield Figure("proxy.syntax.ratio", taken["metric"] / taken["bare"], "x a bare loop over re's matches")


def _schema(folder: Path) -> Iterator[Figure]:
    taken = _own(folder, "schema", str(CALLS))
    yield Figure("proxy.tool_params_schema.valid", taken["calls"] / taken["metric"], "calls/s CPU", ">= 50000")
    yield Figure("proxy.tool_params_schema.invalid", taken["calls"] / taken["invalid"], "calls/s CPU")
    yield Figure("proxy.tool_params_schema.ratio", taken["metric"] / taken["bare"], "x jsonschema-rs alone")


def _repeated(folder: Path) -> Iterator[Figure]:
    taken = _own(folder, "repeated", str(STEPS))
    yield Figure("proxy.was_repeated.one", taken["one"] * 1000, "ms CPU", "<= 50")
    yield Figure("proxy.was_repeated.each", taken["each"] * 1000, "ms CPU", "<= 50")
    yield Figure("proxy.was_repeated.ratio", taken["each"] / taken["bare"], "x each call's JSON in a set")


def _own(folder: Path, *what: str) -> dict[str, Any]:
    return dict(json.loads(run([sys.executable, HERE / "own_proxy.py", *what], folder).output))
