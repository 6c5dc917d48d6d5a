"""JSON of the API: money as text, other numbers with at most six decimals, rationales in one place only."""

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
"""Largest exponent of an amount that is written in full. No run writes larger amounts, and 1e999999999 would take a gigabyte."""

RATIONALE = "rationale_redacted"
"""Signal with the model's reasons, if they were captured."""


def dumped(document: object) -> bytes:
    """Return *document* as JSON."""
    return orjson.dumps(rounded(document), default=_plain)


def rounded(value: Any) -> Any:
    """Return *value* with its numbers rounded to :data:`DECIMALS`."""
    if isinstance(value, float):
        return round(value, DECIMALS)
    if isinstance(value, Mapping):
        return {str(key): rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return value


def without_rationale(value: Any) -> Any:
    """Return *value* without the reasons that a model gave."""
    if isinstance(value, Mapping):
        return {key: without_rationale(item) for key, item in value.items() if key != RATIONALE}
    if isinstance(value, list | tuple):
        return [without_rationale(item) for item in value]
    return value


def written(ms: int) -> str:
    """Return milliseconds since 1970 in the ledger's notation of times."""
    moment = datetime.fromtimestamp(ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


def _plain(value: object) -> Any:
    if isinstance(value, Decimal):
        return f"{value:f}" if -DIGITS < value.adjusted() < DIGITS else str(value)
    if isinstance(value, Verdict):
        return rounded(attrs.asdict(value, recurse=False))
    raise TypeError(f"{type(value).__name__} is not JSON")
