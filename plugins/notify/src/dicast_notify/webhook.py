"""The sink that sends messages about a run to a webhook."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Literal

import attrs

from dicast import ConfigError, Event, Query, RunContext, Secret, Within
from dicast.reading import reader
from dicast.reporting import ledger_option
from dicast.toolkit.endpoint import options

from .channel import Channel, WebhookError
from .decline import Decline, DeclineReader
from .earlier import Standing, standing_of
from .message import Form, Message

When = Literal["worse", "failed", "undecided", "always"]

ENDS = ("run.completed", "run.stopped")
VERDICTS = ("eval.completed", "eval.failed")

REST_SECONDS = 30.0
"""Seconds between two tries to send a message during a watch, so that a dead channel does not hold the judging up."""


@attrs.frozen
class Webhook:
    """A message to a chat channel, or to another webhook, about a run that turned worse, failed or is undecided.

    The message has figures, labels and reasons of the gate, and no judged text. It is sent to *url* and nowhere else: redirects are
    not followed, and no proxy of the environment is used. A message that the receiver does not accept in three tries is one lost event:
    the summary shows the reason, the exit code is 4, and every verdict is kept.

    :param url: the address of the webhook, such as ``${CHANNEL_URL}``. All of it stays secret, as its path is the password of the channel.
    :param when: when to send: ``worse`` than before, ``failed`` gate, ``undecided`` run, or ``always``; also a list of these.
    :param form: ``json``, the document of the message; or ``text``, an object with ``text`` alone, which chat tools accept.
    :param headers: sent with the message, such as ``{Authorization: "Bearer ${TOKEN}"}``.
    :param timeout: the most seconds for one try.
    """

    name = "webhook"
    wants = ("run.started", *ENDS)

    url: Secret = attrs.field(validator=options.check_secret)
    when: When | Sequence[When] = "worse"
    form: Form = "json"
    headers: Mapping[str, str | Secret] = options.headers()
    timeout: float = attrs.field(default=10.0, validator=Within(0, 15, "more than 0 and at most 15 seconds", open=True))

    def __attrs_post_init__(self) -> None:
        if not self.url.value:
            raise ConfigError(
                "url is empty; give it the address of the webhook, or leave out the sinks with --set sinks=[]"
            )
        if not options.is_address(self.url.value):
            raise ConfigError("url is no http:// or https:// address; its value is secret, so it is not shown")
        if options.has_password(self.url.value):
            raise ConfigError("url holds a user name or a password; give them in headers, as Authorization")
        if not self.reasons:
            raise ConfigError("when is empty; name worse, failed, undecided or always")

    @property
    def reasons(self) -> frozenset[str]:
        """The members of *when*."""
        return frozenset([self.when] if isinstance(self.when, str) else self.when)

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Messenger]:
        """Yield the live sink. A resumed watch continues with the verdicts of its ledger.

        :raises PluginError: under ``worse``, if the plugin that compares runs is not installed.
        """
        if "worse" in self.reasons:
            reader("compare")
        async with Channel.connected(self.url, self.headers, self.timeout) as channel:
            reads_verdicts = run.live and bool(self.reasons & {"worse", "always"})
            messenger = Messenger(self, run, channel, DeclineReader() if reads_verdicts else None)
            messenger.catch_up()
            yield messenger


class Messenger:
    """The live sink: it decides which messages are due, and sends them in their order."""

    def __init__(self, options_: Webhook, run: RunContext, channel: Channel, verdicts: DeclineReader | None) -> None:
        self._options, self._run, self._channel, self._verdicts = options_, run, channel, verdicts
        self.wants = (*Webhook.wants, *(() if verdicts is None else VERDICTS))
        self._started: Event | None = None
        self._batch: tuple[str, str] | None = None
        self._position = 0
        self._due: list[Message] = []
        self._rest_until = 0.0
        self._is_reported = False

    def catch_up(self) -> None:
        """Read the events of earlier processes of the run, which caused their messages then."""
        if self._run.resumed:
            types = ("run.started",) if self._verdicts is None else ("run.started", *VERDICTS)
            for entry in self._run.read(Query(self._run.run_id, types)):
                self._read(entry.event)

    async def write(self, events: Sequence[Event]) -> int:
        """Send the messages that *events* cause, and return their number. A repeated call sends the messages that remain.

        During a watch a message that cannot be sent waits for the next call or the end.

        :raises WebhookError: if the receiver does not accept the message about the end of the run.
        """
        batch = events[0].id, events[-1].id
        if batch != self._batch:
            self._batch, self._position = batch, 0
        for event in events[self._position :]:  # a call that was ended in between goes on with its event
            self._due += [*self._messages(event)]
            self._position += 1
        if any(event.type in ENDS for event in events):
            self._is_reported = True
            return await self._send()
        if not self._due or time.monotonic() < self._rest_until:
            return 0
        before = len(self._due)
        try:
            return await self._send()
        except WebhookError:  # the message waits, and the end of the run reports the error if there is still one
            self._rest_until = time.monotonic() + REST_SECONDS
            return before - len(self._due)

    async def close(self) -> int:
        """Send the messages that wait after a run without an end; the end has sent or reported the others.

        :raises WebhookError: if the receiver does not accept them.
        """
        return 0 if self._is_reported else await self._send()

    async def _send(self) -> int:
        count = 0
        while self._due:
            await self._channel.send(self._due[0].body(self._options.form), self._due[0].id)
            del self._due[0]
            count += 1
        return count

    def _messages(self, event: Event) -> Iterator[Message]:
        decline = self._read(event)
        if decline is not None:
            yield Message.of_decline(event, self._started, self._run.name, decline, _ledger_option(self._run))
        if event.type in ENDS:
            standing = standing_of(event, self._started, self._run)
            if (trigger := self._trigger(standing)) is not None:
                yield Message.of_end(event, standing, trigger, _ledger_option(self._run))

    def _read(self, event: Event) -> Decline | None:
        if event.type == "run.started":
            self._started = event
        return None if self._verdicts is None else self._verdicts.take(event)

    def _trigger(self, standing: Standing) -> str | None:
        """Return the first reason for a message about the end of the run; None if no message is due."""
        reasons, answer = self._options.reasons, standing.answer
        if "worse" in reasons and standing.worse:
            return "worse"
        if "failed" in reasons and answer == "failed":
            return "failed"
        if "undecided" in reasons and answer.startswith(("undecided", "not judged")):
            return "undecided"
        return "end" if "always" in reasons else None


def _ledger_option(run: RunContext) -> str:
    """Return the option that names the ledger of *run* in a command; empty for the default ledger, and for a ledger without a file."""
    return "" if run.ledger_path is None else ledger_option({"path": str(run.ledger_path)})
