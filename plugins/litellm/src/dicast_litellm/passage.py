"""The traffic of one call through litellm."""

from __future__ import annotations

import attrs

from dicast.toolkit.endpoint import Answer
from dicast.toolkit.endpoint.faults import causes

_UNCONNECTED = ("ConnectError", "ConnectTimeout", "ClientConnectorError", "ConnectionTimeoutError")
"""The names of the HTTP libraries for a connection that was never made."""


@attrs.define
class Passage:
    """The last *answer* of the provider to the requests of one call, or the *error* in place of it."""

    answer: Answer | None = None
    error: Exception | None = None

    @property
    def is_connected(self) -> bool:
        """True if the last request got a connection."""
        return self.answer is not None or (self.error is not None and not self.is_unconnected)

    @property
    def is_unconnected(self) -> bool:
        """True if the last request got no connection."""
        return self.error is not None and any(type(cause).__name__ in _UNCONNECTED for cause in causes(self.error))
