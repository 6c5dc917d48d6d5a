"""The optional member ``open``, which makes the live object of a component; :mod:`dicast.optional` exports its protocol."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from ..values import RunContext

LiveT_co = TypeVar("LiveT_co", covariant=True)


class HasOpen(Protocol[LiveT_co]):
    """Any kind."""

    def open(self, run: RunContext) -> AbstractAsyncContextManager[LiveT_co]:
        """Return a context manager that yields the live object, which has the methods of the kind; a run enters and leaves it once. Without it, the component is its own live object."""
        ...
