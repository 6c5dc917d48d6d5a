"""Reading of a small file by a source."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from dicast import Due, ReadCounts, Subject
from dicast.toolkit.sub_agents import AgentPlace, SubAgents


@attrs.frozen
class Reading:
    """The result of a source: its *subjects*, failed ones too, and its counts."""

    subjects: list[Subject | Due]
    counts: ReadCounts

    def of_kind(self, kind: str) -> list[Subject]:
        return [subject for subject in self.subjects if isinstance(subject, Subject) and subject.kind == kind]

    @property
    def turns(self) -> list[Subject]:
        return self.of_kind("turn")

    @property
    def sessions(self) -> list[Subject]:
        return self.of_kind("session")

    @property
    def cycles(self) -> list[Subject]:
        return self.of_kind("tool_cycle")

    @property
    def places(self) -> list[AgentPlace]:
        """The places of the sub-agents in the sessions that started them."""
        trails = {session.id: list(session.trail) for session in self.sessions}
        agents = SubAgents.of(event for trail in trails.values() for event in trail)
        return [place for session, trail in trails.items() for place in agents.places(session, trail)]

    @property
    def contents(self) -> Any:
        return self.counts.details["contents"]

    @property
    def model_calls(self) -> list[Any]:
        log = [event for session in self.sessions for event in session.trail]
        return [event.payload for event in log if event.type == "llm.call_completed"]

    def roles(self, number: int = 0) -> list[object]:
        return [event.payload["role"] for event in self.sessions[number].trail if event.type == "message.sent"]


def read_source(source: Any) -> Reading:
    with source.reading() as live:
        live.check()
        return Reading(list(live.subjects()), live.read_counts())


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Reading]:
    """Return a function that writes *records* as lines, or one *document*, and reads the file by a source."""

    def write_and_read(source: Any, records: list[Any] | None = None, document: Any = None, **options: Any) -> Reading:
        path = tmp_path / options.pop("name", "session.jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(document) if records is None else "".join(json.dumps(record) + "\n" for record in records)
        path.write_text(text)
        subjects = ("tool_cycle", "turn", "session")
        return read_source(source(options.pop("path", path), **{"subjects": subjects, "trailing": "keep", **options}))

    return write_and_read


@pytest.fixture(name="read_source")
def read_source_fixture() -> Callable[[Any], Reading]:
    """Return the function that reads a source."""
    return read_source
