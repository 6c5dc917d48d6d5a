"""The proxy metrics that may take long: how much prose ``proxy/syntax`` reads in a second."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from processes import HERE, Figure, run

MEGABYTES = 20


def measure(folder: Path) -> Iterator[Figure]:
    """Each in a process of its own."""
    yield from _syntax(folder)


def _syntax(folder: Path) -> Iterator[Figure]:
    taken = _own(folder, "syntax", str(MEGABYTES))
    yield Figure("proxy.syntax.prose", taken["mb"] / taken["metric"], "MB/s CPU", ">= 10")
    yield Figure("proxy.syntax.ratio", taken["metric"] / taken["bare"], "x a bare loop over re's matches")


def _own(folder: Path, *what: str) -> dict[str, Any]:
    return dict(json.loads(run([sys.executable, HERE / "own_proxy.py", *what], folder).output))
