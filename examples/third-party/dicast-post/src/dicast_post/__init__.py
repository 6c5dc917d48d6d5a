"""A sink for dicast: verdicts as JSON to a URL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import attrs
from dicast import ConfigError, Event, Problem, Secret, hookimpl

__all__ = ["Verdicts"]


@attrs.frozen
class Verdicts:
    """Sends the verdicts of a run as JSON to a URL.

    :param url: the URL, which begins with ``http://`` or ``https://``.
    :param token: the token in the header ``Authorization: Bearer …``; no header by default.
    :param seconds: how long it waits for an answer; 10 by default.
    """

    name = "verdicts"
    wants = ("eval.completed",)

    url: str
    token: Secret | None = None
    seconds: float = attrs.field(default=10.0, metadata={"counts": False})

    def __attrs_post_init__(self) -> None:
        if urlsplit(self.url).scheme not in ("http", "https"):
            raise ConfigError(Problem("a URL begins with http:// or https://", path="url", value=self.url))

    def write(self, events: Sequence[Event]) -> int:
        """Send a request with *events*; return their number.

        :raises OSError: when the server does not accept it; dicast tries again.
        """
        verdicts = [
            {"subject": event.subject_id, "label": event.payload["judge"], "score": event.payload["score"]}
            for event in events
        ]
        body = json.dumps({"run": events[0].run_id, "verdicts": verdicts}).encode()
        headers = {"Content-Type": "application/json"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token.value}"
        try:
            with urlopen(Request(self.url, body, headers), timeout=self.seconds):
                return len(events)
        except HTTPError as error:
            error.close()  # it holds the connection of the refused request
            raise

    def close(self) -> None:
        """Do nothing: each request is complete."""


@hookimpl
def dicast_sinks() -> list[type[Verdicts]]:
    """Offer ``post/verdicts``."""
    return [Verdicts]
