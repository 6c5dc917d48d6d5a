"""Logs that the tests write, and the subjects that the source reads."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from dicast import Due, ReadCounts, Subject
from dicast_inspect import Log


@attrs.frozen
class Read:
    """The subjects of a log, and the counts of its source."""

    items: list[Subject | Due]
    counts: ReadCounts

    @property
    def subjects(self) -> list[Subject]:
        """The subjects alone."""
        return [item.subject if isinstance(item, Due) else item for item in self.items]

    @property
    def failures(self) -> dict[str, str]:
        """The messages of the failed subjects, by id."""
        failed = [item for item in self.items if isinstance(item, Due) and item.failure is not None]
        return {due.subject.id: due.failure.message for due in failed if due.failure is not None}

    def scores(self, id_: str) -> dict[str, tuple[object, ...]]:
        """Return value, raw, text, basis and author of the recorded scores of the subject *id_*."""
        due = next(item for item in self.items if isinstance(item, Due) and item.subject.id == id_)
        return {score.name: (score.value, score.raw, score.text, score.basis, score.by) for score in due.recorded}


@pytest.fixture
def read():
    """Return a function that reads a log."""

    def run(path: Path, *kinds: str, **options: Any) -> Read:
        source = Log(path=path, subjects=kinds or ("session",), **options)
        with source.reading() as live:
            live.check()
            return Read(list(live.subjects()), live.read_counts())

    return run


@pytest.fixture
def write(tmp_path):
    """Return a function that writes samples as a log in JSON, or its members as an archive."""

    def run(*samples: Mapping[str, Any], name: str = "log.json", members: Mapping[str, Any] | None = None) -> Path:
        path: Path = tmp_path / name
        header = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}, "plan": {}}
        if members is None:
            path.write_text(json.dumps({**header, "samples": samples}))
            return path
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, value in members.items():
                archive.writestr(member, value if isinstance(value, str | bytes) else json.dumps(value))
        return path

    return run


def sample(id_: object = 1, *messages: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a sample with a question and an answer, or with *messages*."""
    content = messages or ({"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"})
    return {"id": id_, "epoch": 1, "input": "Q", "target": "A", "messages": [*content], **fields}
