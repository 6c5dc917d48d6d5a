"""Reading a record as a conversation, and the counts of a file of such records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import attrs

from dicast import DataError, Failure, ReadCounts
from dicast.toolkit.conversations import Conversation, Counts, Rules
from dicast.toolkit.message_formats import Format, Shapes, failure_of, read_record
from dicast.toolkit.sessions import Session

_REASONS = {
    "trailing": "without a reply to the last user message (trailing: keep judges it)",
    "no_turn": "without a user message",
    "no_tool_cycle": "without a tool call",
}


@attrs.define
class Totals:
    """Counts of the records of a file: all *records*, *dropped* records by reason, *failed* records, and their *formats* and *contents*."""

    records: int = 0
    failed: int = 0
    dropped: Counter[str] = attrs.field(factory=Counter)
    formats: Counter[str] = attrs.field(factory=Counter)
    contents: Counts = attrs.field(factory=Counts)
    has_trailing: bool = False

    def note_dropped(self, session: Session) -> None:
        """Count the newest record, *session*, as a record without a subject, by its reason."""
        reason = "no_tool_cycle" if session.turns else "trailing" if self.has_trailing else "no_turn"
        self.dropped[reason] += 1

    def read_counts(self) -> ReadCounts:
        """Return the counts as a run's document has them."""
        contents = self.contents.contents()
        details = {"formats": self.formats, "contents": contents}
        return ReadCounts(self.records, self.contents.marked, self.dropped, self.failed, details, tuple(self._notes()))

    def without_subjects(self) -> str:
        """Return the message for records without any subject."""
        reasons = "; ".join(f"{count:,} {_REASONS[name]}" for name, count in sorted(self.dropped.items()))
        return f"there are no subjects in {self.records:,} conversation{'s' * (self.records != 1)}: {reasons}"

    def _notes(self) -> Iterator[str]:
        if self.formats:
            yield "formats: " + ", ".join(f"{count:,} {name}" for name, count in sorted(self.formats.items()))
        if count := self.contents.unmatched_results:
            yield f"{count:,} tool result{'s' * (count != 1)} without a call"
        if count := self.contents.dropped:
            yield f"{count:,} last user message{'s' * (count != 1)} without a reply left out (trailing: drop)"


@attrs.define
class Reader:
    """Reads records of a *format* by *rules*; with *is_marked* unknown shapes become markers. *totals* has the counts."""

    rules: Rules
    format: Format = "auto"
    is_marked: bool = False
    totals: Totals = attrs.field(factory=Totals)

    def session(self, session_id: str, record: dict[str, Any]) -> Session | Failure:
        """Return the session in *record*, whose messages are removed from *record*; a Failure ``source_error`` for a failed record.

        :raises DataError: (without a place) naming every unknown shape, or the reason why *record* is not a conversation.
        """
        totals = self.totals
        if (reason := failure_of(record)) is not None:
            return self.failed(f"the record failed where it was recorded: {reason:.500}")
        shapes, conversation = Shapes(self.is_marked), Conversation(session_id, self.rules)
        try:
            format = read_record(record, self.format, shapes, conversation)
        except DataError as error:
            raise DataError([*shapes.problems, *error.problems]) from error
        shapes.finish()
        session = conversation.session(record)
        if not session.turns and record.get("error"):
            return self.failed(f"the record has no reply and an error: {record['error']!s:.500}")
        totals.records += 1
        totals.formats[format] += 1
        conversation.counts.marked = shapes.marked
        totals.contents.add(conversation.counts)
        totals.has_trailing = conversation.counts.dropped > 0
        return session

    def failed(self, reason: str) -> Failure:
        """Count a failed record and return its failure."""
        self.totals.records += 1
        self.totals.failed += 1
        return Failure("source_error", reason)
