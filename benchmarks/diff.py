"""``diff/json`` on two documents of a megabyte, compared with parsing both of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from processes import HERE, Figure, run


def measure(folder: Path) -> Iterator[Figure]:
    """In order, and with lists in any order; in a process of its own."""
    found = json.loads(run([sys.executable, HERE / "own_diff.py"], folder).output)
    yield Figure("diff.json.bytes", found["bytes"], "bytes each")
    yield Figure("diff.json.values", found["values"], "values each")
    for name in ("ordered", "unordered"):
        yield Figure(f"diff.json.{name}", found[name], "s CPU", "<= 0.5")
        yield Figure(f"diff.json.{name}_ratio", found[name] / found["read"], "x json.loads of both")
