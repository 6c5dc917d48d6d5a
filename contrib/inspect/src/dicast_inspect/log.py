"""The source ``inspect/log``: the samples of a log as sessions."""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from dicast.toolkit.beginning import Beginning
from dicast.toolkit.detection import Detection
from dicast.toolkit.session_reading import Failed, SessionReading
from dicast.toolkit.session_source import SessionSource
from dicast.toolkit.sessions import Session

from .archive import HEADER, START, archived_samples
from .document import document_samples
from .sample import Sample, sample_sessions

_START = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:')
"""The beginning of a JSON log."""

_KEYS = {"status", "eval", "plan"}


@attrs.frozen
class Log(SessionSource):
    """Samples in logs of Inspect AI, in ``.eval`` archives or ``.json`` files. The package of Inspect is not needed.

    Each sample and epoch is a session; agents that a tool started are sessions of their own. The target is the reference of the session, or
    of its last turn if ``subjects`` has no sessions, and the scores become verdicts with labels such as ``recorded/match``. A sample without a
    message of the model, as after an error, is a failed subject.
    """

    title = "a log of Inspect AI"
    name = "log"

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the detection of a log."""
        if beginning.members:
            is_log = HEADER in beginning.members or START in beginning.members
            return Detection(cls.title, "eval") if is_log else None
        first = beginning.objects[0] if len(beginning.objects) == 1 else {}
        if first.keys() >= _KEYS or _START.match(b"".join(beginning.lines[:10]) or beginning.start):
            return Detection(cls.title, "json")
        return None

    def sessions(self, reading: SessionReading) -> Iterator[Session | Failed]:
        """Yield the sessions of each sample, and the failed samples."""
        with reading.file.binary() as stream:
            is_archive = stream.read(2) == b"PK"
        for line, item in archived_samples(reading) if is_archive else document_samples(reading):
            if isinstance(item, Sample):
                yield from sample_sessions(reading, item)
            else:
                yield reading.failed(item.id, item.reason, item.scores(reading.scales))
            reading.settle(line)
