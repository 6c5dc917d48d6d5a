"""Sessions of OpenHands: event logs of both generations, outputs of its evaluation, and logs of its model calls."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from dicast.toolkit.beginning import Beginning
from dicast.toolkit.detection import Detection
from dicast.toolkit.session_reading import Failed, SessionReading
from dicast.toolkit.session_source import SessionSource
from dicast.toolkit.sessions import Session

from ..values import Record, list_of, mapping_of, objects_of, text_of
from .events import Events, is_event
from .folders import folders_of_events
from .model_logs import is_log, is_prompt, read_log, read_messages


@attrs.frozen
class OpenHands(SessionSource):
    """Sessions of OpenHands: an event log, an output of its evaluation (``output.jsonl``), or the log of a model call.

    An event log is an array, a document, or one event per line, from the older application or the newer SDK. The log of a model call has all
    messages before it.

    A folder with a file for each event, as OpenHands stores a conversation, is one session: the folder ``events`` of a conversation, or a
    conversation below ``v1_conversations``. The id of the conversation is the name of its folder.

    An action is a call, and its observation is the result. A command with a non-zero exit code is a failure.
    """

    name = "openhands"
    title = "an OpenHands session"

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the detection of events, of an output, or of a log."""
        for record in beginning.objects:
            if is_event(record):
                return Detection(cls.title, "SDK" if "kind" in record else None)
            if "history" in record and any(map(_holds_event, list_of(record, "history"))):
                return Detection("an output of OpenHands")
            if any(map(is_event, objects_of(record, "events"))):
                return Detection(cls.title)
        if any(map(is_log, beginning.objects)):
            return Detection("a log of a model call")
        is_messages = beginning.layout == "array" and is_prompt(beginning.objects)
        return Detection("messages of OpenHands", specificity=1) if is_messages else None

    session_folders = classmethod(folders_of_events)

    def sessions(self, reading: SessionReading) -> Iterator[Session | Failed]:
        """Yield the sessions of one file; all its events are one session."""
        events = Events(reading, reading.stem)
        for _, line, record in reading.records():
            if is_event(record):
                events.add(record)
            elif is_log(record):
                yield read_log(record, reading)
            elif isinstance(record.get("history"), list):
                yield from _output(record, reading)
            elif isinstance(record.get("events"), list):
                inner = Events(reading, text_of(record, "id", "conversation_id") or reading.stem)
                inner.add_all(record["events"])
                yield from inner.sessions({})
            elif isinstance(record.get("messages"), list):
                yield read_messages(record, reading)
            elif not events.is_empty or "id" in record:
                events.add(record)
            else:
                reading.refuse("this is no event and no log of OpenHands", line)
        yield from events.sessions({})


def _holds_event(item: object) -> bool:
    """Return whether an item of a history is an event, or a pair of an action and an observation."""
    if isinstance(item, list):
        return any(isinstance(event, dict) and is_event(event) for event in item)
    return isinstance(item, dict) and is_event(item)


def _output(record: Record, reading: SessionReading) -> Iterator[Session]:
    """Yield the session of an output of the evaluation."""
    events = Events(reading, text_of(record, "instance_id") or reading.stem)
    if instruction := text_of(record, "instruction"):
        events.add_instruction(instruction)
    for item in list_of(record, "history"):
        events.add_all(item if isinstance(item, list) else [item])
    fields = ("metadata", "metrics", "test_result", "error", "instance_id")
    context = {key: record[key] for key in fields if record.get(key)}
    context |= {"metrics": mapping_of(record, "metrics")} if mapping_of(record, "metrics") else {}
    yield from events.sessions(context)
