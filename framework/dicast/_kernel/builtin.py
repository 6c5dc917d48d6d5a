"""The kernel's own plugin, ``dicast``: what it offers goes through the same hooks as everybody's."""

from __future__ import annotations

import attrs

from .hooks import hookimpl


@attrs.frozen
class Async:
    """Judges subjects concurrently in one event loop.

    :param concurrency: how many subjects are judged at the same time, at most; 1 or more.
    """

    concurrency: int = attrs.field(default=32)

    @concurrency.validator
    def _at_least_one(self, attribute: attrs.Attribute[int], value: int) -> None:
        if value < 1:
            raise ValueError(f"invalid value for concurrency, expected 1 or more, got {value}")


@hookimpl
def dicast_executors() -> list[type[Async]]:
    """Offer ``dicast/async``."""
    return [Async]
