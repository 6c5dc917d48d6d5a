"""What is wrong with a value, addressed by where it stands in the data."""

from __future__ import annotations

from collections.abc import Iterable

from ..classes import frozen

Path = tuple[str | int, ...]
"""The keys and indices that lead from the top of the pipeline to a value."""


class Part(str):
    """A step of a path that is a component's name: it has a place in the file, and is left out in messages."""

    __slots__ = ()


def shown(path: Path) -> Path:
    """The steps of *path* that messages show."""
    return tuple(step for step in path if not isinstance(step, Part))


@frozen
class Fault:
    """One thing that is wrong with the value at *path*.

    *key* is set when a key in that value is meant, not the value; *plugin* when a plugin is at fault; *mismatch* when the
    value is of another type than expected, so that another member of a union may still fit.
    """

    path: Path
    message: str
    value: object = None
    hint: str | None = None
    key: str | None = None
    plugin: bool = False
    mismatch: bool = False


class Invalid(Exception):
    """Data that cannot be built, with every fault that was found in it; none when they were reported elsewhere."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(fault.message for fault in self.faults))
