"""A text with a lone surrogate fails its record alone, and the counts of the records add up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import DataError, Due, ReadCounts
from dicast_workload import Runs

LINE = '{"workload": "w", "run": "%s", "output": "%s"}'


def read(path) -> tuple[list[str], ReadCounts]:
    with Runs(path)._finished() as live:
        live.check()
        dues = [item if isinstance(item, Due) else Due(item) for item in live.subjects()]
        assert live.total == len(dues)
        return [
            due.subject.id for due in dues if due.failure is not None and due.failure.kind == "source_error"
        ], live.read_counts()


@given(st.lists(st.booleans(), min_size=1, max_size=8))
def test_what_was_read_adds_up_to_what_the_file_has(tmp_path_factory, broken):
    path = tmp_path_factory.mktemp("data") / "lines.jsonl"
    path.write_text(
        "\n\n".join(LINE % (at, r"half \ud83d" if is_broken else "whole") for at, is_broken in enumerate(broken))
    )
    assert read(path) == (
        [str(at) for at, is_broken in enumerate(broken) if is_broken],
        ReadCounts(len(broken), failed=sum(broken)),
    )


@pytest.mark.parametrize("line", ["{", "[1]", "{}", LINE % ("0", "the same id")])
def test_a_line_that_is_not_in_the_format_refuses_the_file(tmp_path, line):
    path = tmp_path / "lines.jsonl"
    path.write_text(f"{LINE % ('0', 'whole')}\n{line}\n")
    with pytest.raises(DataError):
        read(path)
