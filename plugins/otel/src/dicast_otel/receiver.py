"""The source ``otel/receiver``: spans that programs send while ``dicast watch --otlp PORT`` runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf

import attrs

from dicast import ConfigError, DataError, Problem, Secret, Subject, Within
from dicast.toolkit.assembly import Assembly
from dicast.toolkit.conversations import Conversation, Rules
from dicast.toolkit.expressions import compiled, pattern_fault
from dicast.toolkit.listening import serving
from dicast.toolkit.message_formats import Shapes
from dicast.toolkit.reception import ReceivedSession, Reception
from dicast.toolkit.scan import Scan, SecretScan
from dicast.toolkit.session_reading import Failed
from dicast.toolkit.sessions import Kind, Session, chosen, session_subject

from .assembly import SessionAssembly
from .http import Intake, OtlpHandler
from .spool import Spool
from .threads import UNPLACED

TRACES_AT_ONCE = 20
"""The most traces that are read in one turn of the watch, so that judging continues between turns."""

KEEP_SECONDS = 86_400.0
"""Seconds for which the spans of a finished conversation are kept, in case further spans arrive."""

_MIB = 2**20


@attrs.frozen
class Receiver:
    """Spans that programs send with OTLP over HTTP, judged as conversations once their traces are complete.

    ``dicast watch FILE --otlp PORT`` receives at ``/v1/traces``, in protobuf or JSON, also with gzip. A request is answered after its spans are on the
    disk, next to the ledger; a span that is sent again counts once. The turns of a trace are judged when its root, a span without a parent, has
    come and then no span for *settle_seconds*. A session is over after *idle_seconds* without a span. Spans become conversations as in
    ``otel/spans``.

    :param kinds: the kinds of subjects to judge (``subjects`` in a pipeline): ``turn``, ``tool_cycle``, ``session``.
    :param token: a bearer token that each request must have, such as ``${OTLP_TOKEN}``. Needed for an address that other machines reach.
    :param tool_error: a regular expression in the syntax of RE2; a tool's result whose text it matches is a failure, in addition to failed spans.
    :param scan: secrets and personal data in the conversations: ``warn`` counts them, ``mask`` replaces them by markers such as ``[masked: aws-key]``
        in the ledger and for judges, ``off`` does not look for them. The spans next to the ledger are not masked; they are removed a day after
        their conversation is over.
    :param settle_seconds: seconds that a trace waits for further spans after its root has come.
    :param idle_seconds: seconds that a trace without its root, and a session, wait for further spans.
    :param max_request_bytes: the longest request in bytes, compressed or not; 16 MiB by default.
    :param max_request_spans: the most spans of a request; a request with more is refused.
    :param max_trace_spans: the most spans of a trace; the answer rejects further spans.
    :param max_spool_bytes: the most bytes of waiting spans; a request that exceeds them is refused with 503, to be sent again later. 1 GiB by default.
    """

    kinds: tuple[Kind, ...] = attrs.field(default=("turn",), alias="subjects", converter=chosen)
    token: Secret | None = None
    tool_error: str | None = None
    scan: Scan = attrs.field(default="warn", validator=attrs.validators.in_(("warn", "mask", "off")))
    settle_seconds: float = attrs.field(default=2.0, validator=Within(0, inf, "0 or more"))
    idle_seconds: float = attrs.field(default=30.0, validator=Within(0, inf, "0 or more"))
    max_request_bytes: int = attrs.field(default=16 * _MIB, validator=Within(1, inf, "1 or more"))
    max_request_spans: int = attrs.field(default=50_000, validator=Within(1, inf, "1 or more"))
    max_trace_spans: int = attrs.field(default=10_000, validator=Within(1, inf, "1 or more"))
    max_spool_bytes: int = attrs.field(default=1024 * _MIB, validator=Within(1, inf, "1 or more"))

    def __attrs_post_init__(self) -> None:
        if self.tool_error is not None and (wrong := pattern_fault(self.tool_error)):
            raise ConfigError(Problem(wrong, path="tool_error", value=self.tool_error))

    def check(self) -> str:
        """Refuse a run, because a receiver has no data to read.

        :raises DataError: always.
        """
        raise DataError("otel/receiver receives spans: dicast watch FILE --otlp 4318; otel/spans reads files")

    def subjects(self) -> AsyncIterator[Subject]:
        """Refuse a run, as :meth:`check`.

        :raises DataError: always.
        """
        raise DataError("otel/receiver receives spans: dicast watch FILE --otlp 4318; otel/spans reads files")

    @contextmanager
    def receiving(self, reception: Reception) -> Iterator[OpenReceiver]:
        """Open the spool and the server; yield the receiver.

        :raises ConfigError: if the address cannot be used, or other machines reach it and there is no token.
        """
        address = reception.address
        if address is not None and not address.is_local and self.token is None:
            message = f"other machines reach --otlp {address.host}; give otel/receiver a token, or use 127.0.0.1"
            raise ConfigError(Problem(message, path="token"))
        spool = Spool(reception.spool, self.max_spool_bytes, self.max_trace_spans)
        receiver = OpenReceiver(self, spool, reception)
        try:
            if address is None:
                yield receiver
                return
            fields: Mapping[str, object] = {
                "token": "" if self.token is None else self.token.value,
                "is_local": address.is_local,
                "max_body": self.max_request_bytes,
                "intake": Intake(spool, self.max_request_spans, reception.wake),
            }
            with serving(address, type("BoundHandler", (OtlpHandler,), dict(fields)), "--otlp") as url:
                reception.report(f"receiving spans at {url}/v1/traces")
                yield receiver
        finally:
            receiver.report()
            spool.close()


class OpenReceiver:
    """A receiver with its spool. *counts* counts the spans that belong to no conversation, by kind, and the marked shapes."""

    def __init__(self, options: Receiver, spool: Spool, reception: Reception) -> None:
        self._options, self._spool, self._reception = options, spool, reception
        error = None if options.tool_error is None else compiled(options.tool_error)
        self._rules = Rules(error, name_call=reception.name_call)
        self._traces: list[tuple[str, float]] = []
        self._over: list[str] = []
        self._is_draining = reception.address is None
        self._forgotten = 0.0
        self._opened: float | None = None
        self.counts: Counter[str] = Counter()

    @property
    def unread(self) -> int:
        """The bytes of spans whose conversations were not judged yet."""
        return self._spool.unread

    def sessions(self, now: float) -> Sequence[ReceivedSession]:
        """Return the conversations of traces that are complete or idle, and conversations that are over."""
        options = self._options
        idle, complete = self._since(now, options.idle_seconds), self._since(now, options.settle_seconds)
        self._traces = self._spool.ready(complete, idle, TRACES_AT_ONCE)
        ids, unplaced = self._spool.join(self._traces)
        self.counts.update({UNPLACED[kind]: count for kind, count in unplaced.items()})
        self._over = [] if self._traces else self._spool.over(idle, TRACES_AT_ONCE)
        if self._traces and not ids:  # traces of other work alone
            self.settle()
        if now > self._forgotten + KEEP_SECONDS / 24:
            self._forgotten = now
            self._spool.forget(now - KEEP_SECONDS)
        ended = [self._session(id_, is_over=True) for id_ in self._over]
        received = [self._session(id_, is_over=False) for id_ in ids]
        received += [
            session for session in ended if isinstance(session.session, Session)
        ]  # a failed one was given before
        if self._over and not received:
            self.settle()
        return received

    def settle(self) -> None:
        """Note that the conversations of the last call are in the ledger."""
        self._spool.settle(self._traces, self._over)
        self._traces, self._over = [], []

    def _since(self, now: float, seconds: float) -> float:
        """Return the time before which a span must have come to have waited for *seconds* while the receiver was open."""
        if self._is_draining:
            return inf
        self._opened = now if self._opened is None else self._opened
        return now - seconds if now - seconds >= self._opened else -inf

    def deadline(self) -> float | None:
        """Return the time at which the next conversation is due, None if no conversation waits."""
        if self._is_draining:
            return None
        return self._spool.deadline(self._options.settle_seconds, self._options.idle_seconds, self._opened or 0.0)

    def report(self) -> None:
        """Report the counts to the user."""
        if self.counts:
            listed = ", ".join(f"{count:,} {name}" for name, count in sorted(self.counts.items()))
            self._reception.report(f"left out or marked: {listed}")

    def _session(self, id_: str, *, is_over: bool) -> ReceivedSession:
        shapes = Shapes(is_marked=True)
        parts = self._spool.parts(id_)
        assembly = SessionAssembly(parts, shapes)
        if not is_over:
            self.counts.update(shapes.marked)
        if assembly.failure is not None:
            return ReceivedSession(Failed(id_, assembly.failure), is_over)
        conversation = Conversation(id_, self._rules, parent_id=assembly.parent_id, parent_call=assembly.parent_call)
        assembly.add_to(conversation)
        session = conversation.session(assembly.context, assembly.disposition, assembly.end_time)
        return ReceivedSession(self._scanned(session, is_counted=not is_over), is_over)

    def _scanned(self, session: Session, *, is_counted: bool) -> Session:
        """Return *session* with masks in place of its secrets if the scan masks."""
        if self._options.scan == "off":
            return session
        scan = SecretScan(self._options.scan)
        subject = scan.subject(session_subject(session))
        if is_counted:
            self.counts.update({f"{kind} in conversations": count for kind, count in scan.counts.items()})
        if self._options.scan != "mask":
            return session
        masked = Assembly(session.id, subject.trail)
        masked.context = subject.context
        return masked.session()
