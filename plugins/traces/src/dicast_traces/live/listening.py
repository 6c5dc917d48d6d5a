"""Events that arrive over HTTP, from this machine only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Self

import attrs

from dicast import DataError
from dicast.toolkit.listening import Handler, ListenAddress, serving

from .lines import Line, body_lines

ANSWER_SECONDS = 60.0
"""Seconds that a request waits for its events to be recorded."""

Status = Mapping[str, object]


@attrs.frozen(eq=False)
class Post:
    """The lines of one request; *answer* is set when they are in the ledger."""

    lines: Sequence[Line]
    answer: Future[Status] = attrs.field(factory=Future)


class Listener:
    """A server in its own thread.

    :param take: receives each request, in the server's threads.
    :param status: returns the document of ``GET /status``, in the server's threads.
    """

    def __init__(
        self,
        address: ListenAddress,
        token: str,
        max_line_bytes: int,
        take: Callable[[Post], None],
        status: Callable[[], Status],
    ) -> None:
        fields = {"token": token, "most": max_line_bytes, "take": take, "status": status}
        self._serving = serving(address, type("EventsHandler", (_EventsHandler,), fields))
        self.url = self._serving.__enter__()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._serving.__exit__(None, None, None)


class _EventsHandler(Handler):
    paths = "POST /events and GET /status"
    most: int
    take: Callable[[Post], None]
    status: Callable[[], Status]

    def get(self) -> None:
        """Answer ``GET /status``."""
        if not self.is_allowed("/status"):
            return
        self.server.request_has_come(self.connection)
        self.answer(200, type(self).status())

    def post(self) -> None:
        """Take the events of ``POST /events``, and answer once they are in the ledger."""
        if not self.is_allowed("/events"):
            return
        body = self.body()
        self.server.request_has_come(self.connection)
        if body is None:
            return
        try:
            request = Post(body_lines("<http>", body, self.most))
        except DataError as error:
            self.refuse(400, str(error))
            return
        type(self).take(request)
        try:
            answer = request.answer.result(ANSWER_SECONDS)
        except Exception as error:  # the watch has ended, or its ledger has failed: the events may not be recorded
            self.refuse(503, f"the events were not recorded: {str(error) or type(error).__name__}; send them again")
            return
        is_accepted = answer["accepted"] or answer["duplicates"] or not answer["errors"]
        self.answer(200 if is_accepted else 400, answer)
