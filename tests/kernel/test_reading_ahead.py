"""Rows of a source with a check are read ahead: the rows before an error are judged, and a limit is a limit of the reading too."""

from __future__ import annotations

import attrs
import pytest

from dicast import DataError, Score, Subject
from dicast._kernel.source import source as source_module
from dicast._kernel.timing.immediate import run_immediately
from dicast.testing import run_pipeline

PIPELINE = "name: case\nmetrics: [m]\n"


@attrs.frozen
class Metric:
    """A metric that notes the number of rows that the source has yielded."""

    source: object
    name = "m"
    tier = "truth"

    def score(self, subject):
        self.source.judged_at.append(len(self.source.read))
        return Score(1.0)


@attrs.frozen
class Rows:
    """A source of *count* rows with a check; row *broken* cannot be read."""

    count: int
    broken: int | None = None
    read: list = attrs.field(factory=list, eq=False)
    judged_at: list = attrs.field(factory=list, eq=False)

    def check(self):
        return "digest"

    def subjects(self):
        for number in range(self.count):
            if number == self.broken:
                raise DataError("the file has changed")
            self.read.append(number)
            yield Subject("row", f"r{number}", output="text")


async def listed(dues):
    return [due async for due in dues]


def run(rows):
    return run_pipeline(PIPELINE, source=rows, components={"m": Metric(rows)})


def test_rows_are_read_before_the_first_is_judged(monkeypatch):
    monkeypatch.setattr(source_module, "AHEAD_SECONDS", 60)
    rows = Rows(9)
    run(rows)
    assert rows.judged_at == [9] * 9


def test_no_more_rows_are_read_than_the_limit():
    rows = Rows(9)
    dues = source_module.read(rows, "own", most=4, ahead=256)
    assert [due.subject.id for due in run_immediately(listed(dues))] == ["r0", "r1", "r2", "r3"]
    assert rows.read == [0, 1, 2, 3]


def test_slow_rows_are_judged_one_by_one(monkeypatch):
    monkeypatch.setattr(source_module, "AHEAD_SECONDS", 0)
    rows = Rows(3)
    run(rows)
    assert rows.judged_at == [1, 2, 3]


def test_the_rows_before_an_error_are_judged():
    rows = Rows(9, broken=5)
    with pytest.raises(DataError, match="the file has changed"):
        run(rows)
    assert len(rows.judged_at) == 5
