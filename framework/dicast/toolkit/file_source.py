"""Members of sources that read files: ``open``, ``check`` and ``subjects``, based on one context manager. A source defines ``reading()``, which
yields the live source, and assigns the members: ``open, check, subjects = open_source, check_source, each_subject``.

For example::

    class Rows:
        open, check, subjects = open_source, check_source, each_subject

        @contextmanager
        def reading(self) -> Iterator[LiveRows]: ...

Secrets and personal data in the subjects are counted; with an option ``scan`` of the source they can be masked (:mod:`dicast.toolkit.scan`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any, Protocol

from .._kernel.values import Due, RunContext, Subject
from .scan import Scan, scanned


class FileSource(Protocol):
    """A source whose live object reads an open file."""

    def reading(self) -> AbstractContextManager[Any]:
        """Return a context manager that opens the file and yields the live source, which has ``check()`` and ``subjects()``."""
        ...


@asynccontextmanager
async def open_source(self: FileSource, run: RunContext) -> AsyncIterator[Any]:
    """Yield the live source, which can be read several times for any path."""
    with self.reading() as live:
        yield scanned(live, _scan(self))


def check_source(self: FileSource) -> str:
    """Read the whole input and return a digest of its data.

    :raises DataError: with every bad line.
    """
    with self.reading() as live:
        digest: str = live.check()
        return digest


def each_subject(self: FileSource) -> Iterator[Subject | Due]:
    """Yield the subjects in the order of the input.

    :raises DataError: at the first bad line.
    """
    with self.reading() as live:
        yield from scanned(live, _scan(self)).subjects()


def _scan(source: FileSource) -> Scan:
    """Return the option ``scan`` of a source; a source without the option warns."""
    scan: Scan = getattr(source, "scan", "warn")
    return scan
