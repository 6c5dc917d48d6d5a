"""Sessions of OpenCode: its database, an exported session, or the output of ``opencode run --format json``."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from dicast.toolkit.beginning import Beginning
from dicast.toolkit.databases import SQLITE
from dicast.toolkit.detection import Detection
from dicast.toolkit.session_reading import Failed, SessionReading
from dicast.toolkit.session_source import SessionSource
from dicast.toolkit.sessions import Session

from ..values import Record, mapping_of, objects_of
from . import database
from .parts import read_session
from .stream import Stream, is_line


@attrs.frozen
class OpenCode(SessionSource):
    """Sessions of OpenCode: its database (``opencode.db``), a session from ``opencode export``, or the output of ``opencode run --format json``.

    The database is opened read-only. A child session, such as a sub-agent's, has the id of its parent. A tool with the state ``error``, or a
    command with a non-zero exit code, is a failure.
    """

    name = "opencode"
    title = "an OpenCode session"

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the detection of a database with OpenCode's tables, or of an exported session."""
        if beginning.start.startswith(SQLITE):
            return Detection("a database of OpenCode") if beginning.tables >= database.TABLES else None
        for record in beginning.objects:
            if _is_export(record):
                version = mapping_of(record, "info").get("version")
                return Detection(cls.title, version if isinstance(version, str) else None)
            if is_line(record):
                return Detection(cls.title)
        return None

    def sessions(self, reading: SessionReading) -> Iterator[Session | Failed]:
        """Yield the sessions of one file."""
        with reading.file.binary() as data:
            is_database = data.read(len(SQLITE)) == SQLITE
        if is_database:
            yield from database.read_sessions(reading)
            return
        stream = Stream(reading)
        for _, line, record in reading.records(joins_messages=False):
            if _is_export(record):
                yield read_session(mapping_of(record, "info"), objects_of(record, "messages"), reading)
            elif is_line(record):
                stream.add(record)
            else:
                reading.refuse("an exported session has 'info' and 'messages'", line)
        yield from stream.sessions()


def _is_export(record: Record) -> bool:
    messages = record.get("messages")
    if not isinstance(record.get("info"), dict) or not isinstance(messages, list):
        return False
    return "id" in record["info"] and all("info" in m and "parts" in m for m in messages if isinstance(m, dict))
