"""Faults of values, with their paths in the data."""

from __future__ import annotations

from collections.abc import Iterable

from ..classes import field, frozen

Path = tuple[str | int, ...]
"""Keys and indices from the top of the pipeline to a value."""


class Part(str):
    """A step of a path that is a component's name: it has a place in the file, and is left out in messages."""

    __slots__ = ()


def visible_steps(path: Path) -> Path:
    """Return the steps of *path* that messages show."""
    return tuple(step for step in path if not isinstance(step, Part))


@frozen
class Fault:
    """A fault of the value at *path*.

    *key* is set if the fault concerns a key in the value, not the value; *plugin* is True if a plugin is at fault; *mismatch* is True if
    the value has another type than expected, so that another member of a union may still fit. *cause* is the exception behind it.
    """

    path: Path
    message: str
    value: object = None
    hint: str | None = None
    key: str | None = None
    plugin: bool = False
    mismatch: bool = False
    cause: BaseException | None = field(default=None, eq=False)


class Invalid(Exception):
    """Data that cannot be built, with every fault in it; without faults if they were reported elsewhere."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(fault.message for fault in self.faults))
