"""Search for secrets in the sessions and events that a watch reads, before they are recorded."""

from __future__ import annotations

from collections import Counter

import attrs

from dicast import ReadCounts, TraceEvent
from dicast.toolkit.scan import Scan, SecretScan, with_secrets
from dicast.toolkit.sessions import Session, session_subject


class Scanning:
    """Search of a watch by the option *scan*. A session that is read again after it has grown replaces its counts."""

    def __init__(self, scan: Scan) -> None:
        self._scan, self._events = scan, SecretScan(scan)
        self._sessions: dict[str, Counter[str]] = {}
        self._places: dict[str, str] = {}

    def session(self, session: Session) -> Session:
        """Return *session*, with masks in place of its secrets if the scan masks."""
        if self._scan == "off":
            return session
        search = SecretScan(self._scan)
        subject = search.subject(session_subject(session))
        self._sessions.pop(session.id, None)
        if search.counts:
            self._sessions[session.id] = search.counts
            self._places = search.places | self._places
        return (
            attrs.evolve(session, log=tuple(subject.trail), context=subject.context)
            if self._scan == "mask"
            else session
        )

    def event(self, event: TraceEvent) -> TraceEvent:
        """Return *event*, with masks in place of its secrets if the scan masks."""
        return event if self._scan == "off" else self._events.event(event)

    def add_counts(self, counts: ReadCounts) -> ReadCounts:
        """Return *counts* with the number of secrets, and with a note."""
        secrets = sum(self._sessions.values(), self._events.counts.copy())
        return with_secrets(counts, secrets, self._events.places | self._places, is_masked=self._scan == "mask")
