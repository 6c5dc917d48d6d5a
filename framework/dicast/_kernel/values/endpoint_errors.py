"""What is raised where a model's endpoint lets no further call go well."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from types import MappingProxyType
from typing import Self

from .errors import DicastError
from .score import Cost

UNSUPPORTED = "unsupported_by_model"
"""The reason why a run stopped that :class:`UnsupportedByModel` ended."""


class AccessRefused(DicastError):
    """A model's endpoint does not let us in, or does not know the model (401, 403, 404): no further call can go better.

    *cost* is what the tries of the same call before that came to; None for nothing.
    """

    def __init__(self, message: str, cost: Cost | None = None) -> None:
        super().__init__(message)
        self.cost = cost

    def unpaid(self) -> Self:
        """The same error for another call that waited for this one, and paid nothing."""
        same = copy(self)
        same.cost = None
        return same


class UnsupportedByModel(AccessRefused):
    """A model lacks an ability that an option of the pipeline needs, by its first reply. The message names the option.

    The run ends with exit code 2 if nothing was judged, also where that reply was paid for: the pipeline is wrong.
    """


class EndpointUnreachable(AccessRefused):
    """So many calls in a row got no connection to a model's endpoint that no further one is made: see :class:`~dicast.toolkit.rate_limit.Reachability`.

    *details* stands in the run's document under ``stopped``: ``{model, url, calls}``, the last being how many calls there were.
    """

    def __init__(
        self, message: str, cost: Cost | None = None, details: Mapping[str, object] = MappingProxyType({})
    ) -> None:
        super().__init__(message, cost)
        self.details = dict(details)
