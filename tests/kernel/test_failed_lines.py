"""Failures in the summary: equal failures of several subjects share one line."""

from __future__ import annotations

import json

from dicast import Failure, Judgment
from dicast._kernel.cli.summary import run_parts
from dicast.testing import FakeJudge, run_pipeline, sample
from dicast.toolkit.terminal import plain_lines


def failed_lines(replies):
    rows = [sample("x", id=f"r{place}") for place in range(len(replies))]
    done = run_pipeline(json.dumps({"judges": ["j"]}), subjects=rows, components={"j": FakeJudge(replies)})
    lines = plain_lines(run_parts(done.document)).splitlines()
    return done.document, [line for line in lines if "refused: " in line or "crashed: " in line]


def test_a_message_is_said_once_with_the_number_of_subjects_and_the_first_of_them():
    document, lines = failed_lines([Failure("refused", "no key")] * 5)
    assert lines == ["  5 subjects (row r0, row r1, row r2, …)  j: refused: no key"]
    assert [failure["subject_id"] for failure in document["failed_subjects"]] == ["r0", "r1", "r2", "r3", "r4"]


def test_what_differs_in_the_subject_alone_is_alike():
    _, lines = failed_lines([Failure("refused", f"'r{place}' has no reference") for place in range(3)])
    assert lines == ["  3 subjects (row r0, row r1, row r2)  j: refused: it has no reference"]


def test_other_messages_and_kinds_stand_for_themselves():
    _, lines = failed_lines(
        [Failure("refused", "'r0' is long"), Judgment(1.0), Failure("crashed", "no key"), Failure("refused", "no key")]
    )
    assert lines == [
        "  row r0  j: refused: 'r0' is long",
        "  row r2  j: crashed: no key",
        "  row r3  j: refused: no key",
    ]
