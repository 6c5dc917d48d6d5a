"""Errors of a model's endpoint after which no further call can succeed."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from types import MappingProxyType
from typing import Self

from .errors import DicastError
from .score import Cost

UNSUPPORTED = "unsupported_by_model"
"""Reason for the stop of a run that :class:`UnsupportedByModel` ended."""


class AccessRefused(DicastError):
    """Error of a model's endpoint that refuses access or does not know the model (401, 403, 404): no further call can succeed.

    *cost* is the cost of the earlier tries of the same call; None for nothing.
    """

    def __init__(self, message: str, cost: Cost | None = None) -> None:
        super().__init__(message)
        self.cost = cost

    def unpaid(self) -> Self:
        """Return the same error, without costs, for another call that waited for this one."""
        error = copy(self)
        error.cost = None
        return error


class UnsupportedByModel(AccessRefused):
    """A model lacks an ability that an option of the pipeline needs, as its first reply shows. The message names the option.

    The run ends with exit code 2 if no subject was judged, even if the reply was paid for: the pipeline is wrong.
    """


class EndpointUnreachable(AccessRefused):
    """Too many calls in a row got no connection to a model's endpoint: see :class:`~dicast.toolkit.rate_limit.Reachability`.

    *details* is in the run's document under ``stopped``: ``{model, url, calls}``, with the number of calls.
    """

    def __init__(
        self, message: str, cost: Cost | None = None, details: Mapping[str, object] = MappingProxyType({})
    ) -> None:
        super().__init__(message, cost)
        self.details = dict(details)
