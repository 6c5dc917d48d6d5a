"""Paths into a row: values that are absent, and values that are taken out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dicast import DataError, Problem, nearest


def drop(row: dict[str, Any], path: str) -> None:
    """Remove the value at *path* from *row*, and the objects that become empty. Objects inside *row* are copied, not changed."""
    if path in row:
        del row[path]
        return
    head, _, rest = path.partition(".")
    inner = row.get(head)
    if rest and isinstance(inner, dict):
        inner = dict(inner)
        drop(inner, rest)
        row[head] = inner
        if not inner:
            del row[head]


def absent(path: str, row: Mapping[str, Any]) -> DataError:
    """Return the error that *row* has nothing at *path*, with the nearest name."""
    names = ", ".join(list(row)[:10]) or "nothing"
    return DataError(Problem(f"the row has no {path!r}; it has {names}", path=path, hint=nearest(path, row)))
