"""JSON as the API writes it: money as text, other numbers with six decimals at the most, rationales in one place alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import attrs
import orjson

from dicast import Verdict

DECIMALS = 6

DIGITS = 1_000
"""An amount of more digits than that no run has written, and it is not written out: 1e999999999 would take a gigabyte."""

RATIONALE = "rationale_redacted"
"""The signal that holds why a model judged as it did, where that was captured."""


def dumped(document: object) -> bytes:
    """*document* as JSON."""
    return orjson.dumps(rounded(document), default=_plain)


def rounded(value: Any) -> Any:
    """*value* with its numbers rounded to :data:`DECIMALS`."""
    if isinstance(value, float):
        return round(value, DECIMALS)
    if isinstance(value, Mapping):
        return {str(key): rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return value


def without_rationale(value: Any) -> Any:
    """*value* without what a model said of its reasons."""
    if isinstance(value, Mapping):
        return {key: without_rationale(item) for key, item in value.items() if key != RATIONALE}
    if isinstance(value, list | tuple):
        return [without_rationale(item) for item in value]
    return value


def written(ms: int) -> str:
    """Milliseconds since 1970 as the ledger writes times."""
    moment = datetime.fromtimestamp(ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


def _plain(value: object) -> Any:
    if isinstance(value, Decimal):
        return f"{value:f}" if -DIGITS < value.adjusted() < DIGITS else str(value)
    if isinstance(value, Verdict):
        return rounded(attrs.asdict(value, recurse=False))
    raise TypeError(f"{type(value).__name__} is not JSON")
