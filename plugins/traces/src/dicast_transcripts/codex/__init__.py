"""Sessions of Codex: rollout files, JSON lines of response items and events."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from dicast.toolkit.beginning import Beginning
from dicast.toolkit.detection import Detection
from dicast.toolkit.session_reading import Failed, SessionReading
from dicast.toolkit.session_source import SessionSource
from dicast.toolkit.sessions import Session

from .. import agentv
from ..values import Record, mapping_of, word_of
from .items import ITEMS
from .rollout import RECORDS, Rollout


@attrs.frozen
class Codex(SessionSource):
    """Sessions of Codex: rollout files (``rollout-*.jsonl``), the output of ``codex exec --json``, or its sessions in AgentV's format.

    A file is one session. If a response item and an event have the same text, only the response item counts. Contexts that Codex adds in the
    user's name, such as ``<environment_context>``, go into the evidence with the role ``context``, and start no turn. A command with a non-zero exit
    code is a failure. Turns that the user rolled back are left out and counted.
    """

    title = "a Codex session"

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the detection of a rollout."""
        if agentv.is_of(beginning, "codex"):
            return Detection(f"{cls.title} (AgentV)", agentv.version_of(beginning), specificity=1)
        records = beginning.objects
        if beginning.layout == "array":  # not an array of items of the Responses API
            records = [record for record in records if "payload" in record]
        if beginning.layout == "other" or not any(map(_is_record, records)):
            return None
        metas = [mapping_of(record, "payload") for record in beginning.objects if record.get("type") == "session_meta"]
        version = next((meta["cli_version"] for meta in metas if isinstance(meta.get("cli_version"), str)), None)
        return Detection(cls.title, version)

    def sessions(self, reading: SessionReading) -> Iterator[Session | Failed]:
        """Yield the session of one file."""
        rollout, transcripts = Rollout(reading), agentv.Transcripts(reading)
        for line, record in reading.objects():
            if agentv.is_line(record):
                transcripts.add(record, line)
            else:
                rollout.add(record, line)
        yield from transcripts.sessions()
        yield from rollout.sessions()


def _is_record(record: Record) -> bool:
    type_ = word_of(record, "type")
    if "payload" in record:
        return type_ in RECORDS
    if type_ in ("thread.started", "item.completed") and ("thread_id" in record or "item" in record):
        return True
    if type_ in ITEMS and ("call_id" in record or "encrypted_content" in record):
        return True
    is_old_meta = "instructions" in record and "timestamp" in record and "id" in record
    return is_old_meta or record.get("record_type") == "state"
