"""Other values for options that are not in the fingerprint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._kernel.pipeline import types as hints


def variations(component: Any) -> Iterator[tuple[str, object]]:
    """Yield the key and another value of each option with ``metadata={"counts": False}`` that has a simple type."""
    for field in hints.fields(type(component)):
        if not field.metadata.get("counts", True):
            value = getattr(component, field.name)
            key = hints.keys(field)[0]
            yield from ((key, other) for other in _different(value, field.type))


def _different(value: object, type_: object) -> Iterator[object]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value * 3 + 1, value / 3 if isinstance(value, float) else value // 3)
    else:
        yield from (text for text in hints.literals(type_) if text != value)
