"""Sessions of Claude Code: JSON lines of user and assistant messages, tool results and bookkeeping."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from dicast.toolkit.beginning import Beginning
from dicast.toolkit.detection import Detection
from dicast.toolkit.session_reading import Failed, SessionReading
from dicast.toolkit.session_source import SessionSource
from dicast.toolkit.sessions import Session

from ..values import Record
from .kinds import BOOKKEEPING
from .sessions import SessionFile

_STREAM_TYPES = ("system", "assistant", "user", "result", "stream_event")


@attrs.frozen
class ClaudeCode(SessionSource):
    """Sessions of Claude Code: its session files (``*.jsonl``), or the JSON output of ``claude -p``.

    The output is in the format ``stream-json``, or in the format ``json`` with ``--verbose``.
    Sub-agents in a folder become separate sessions with the id of their parent. The lines of one streamed answer are one message.
    Summaries, snapshots and other bookkeeping are counted, but are not messages. Commands of the terminal such as ``/clear``, their output, and
    the summary of a compaction go into the evidence with the role ``context``, and start no turn. Turns that the user took back by a rewind are
    left out and counted.
    """

    title = "a Claude Code session"

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the detection of a file with records of Claude Code."""
        records = [record for record in beginning.objects if _is_record(record)]
        if not records or beginning.layout == "other":
            return None
        version = next((record["version"] for record in records if isinstance(record.get("version"), str)), None)
        return Detection(cls.title, version)

    def sessions(self, reading: SessionReading) -> Iterator[Session | Failed]:
        """Yield the main sessions and the sub-agents in one file."""
        file = SessionFile(reading)
        for line, record in reading.objects():
            file.add(record, line)
        yield from file.sessions()


def _is_record(record: Record) -> bool:
    type_ = record.get("type")
    if type_ == "summary":
        return "leafUuid" in record
    if type_ == "file-history-snapshot":
        return "snapshot" in record
    message = record.get("message")
    if type_ in ("user", "assistant") and isinstance(message, dict) and "content" in message:
        return True
    if "session_id" in record and type_ in _STREAM_TYPES:
        return "subtype" in record or "event" in record
    return "sessionId" in record and isinstance(type_, str) and (type_ in BOOKKEEPING or "uuid" in record)
