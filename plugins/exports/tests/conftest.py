"""Files of results that the tests write, and the rows that a source reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from dicast import Due, ReadCounts


@attrs.frozen
class Rows:
    """The rows of a file, and the counts of its source."""

    dues: list[Due]
    counts: ReadCounts

    def __getitem__(self, id_: str) -> Due:
        return next(due for due in self.dues if due.subject.id == id_)

    @property
    def ids(self) -> list[str]:
        """The ids of the rows."""
        return [due.subject.id for due in self.dues]

    @property
    def failures(self) -> dict[str, str]:
        """The messages of the failed rows, by id."""
        return {due.subject.id: due.failure.message for due in self.dues if due.failure is not None}

    def scores(self, id_: str) -> dict[str, Any]:
        """Return for each recorded score of a row its value, raw number or category, and its basis."""
        scores = self[id_].recorded
        return {
            score.name: (
                score.value if score.value is not None else score.raw if score.raw is not None else score.text,
                score.basis,
            )
            for score in scores
        }


@pytest.fixture
def read():
    """Return a function that reads a file, or a folder, with a source."""

    def run(cls: Any, path: Path, **options: Any) -> Rows:
        with cls(path=path, **options).reading() as live:
            live.check()
            return Rows(list(live.subjects()), live.read_counts())

    return run


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a document, or records as JSON lines, into a file."""

    def run(name: str, content: Mapping[str, Any] | list[Any] | str, *, lines: bool = False) -> Path:
        path: Path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            text = content
        elif lines:
            text = "".join(json.dumps(record) + "\n" for record in content)
        else:
            text = json.dumps(content, indent=2)
        path.write_text(text)
        return path

    return run
