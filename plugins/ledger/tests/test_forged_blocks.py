"""Blocks with a changed line and a recomputed chain. The check of many lines together names the line."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import orjson
import pytest

from dicast.toolkit.ledger_lines.blocks import body_of, lines_in
from dicast.toolkit.ledger_lines.chain import START, chained, leaf_of

PLACE = 60


def without_a_value(line):
    return line[:-1]


def with_a_list_as_time(line):
    return [*line[:6], ["2026"], *line[7:]]


def with_a_list_as_subject(line):
    return [*line[:2], ["row"], *line[3:]]


def with_an_unknown_maker(line):
    return [line[0], "0" * 32, *line[2:]]


def with_a_list_as_maker(line):
    return [line[0], [], *line[2:]]


def of_an_unknown_kind(line):
    return [9, *line[1:]]


def with_a_list_as_kind(line):
    return [[line[0]], *line[1:]]


def as_text(line):
    return "text"


@pytest.mark.parametrize(
    "change",
    [
        without_a_value,
        with_a_list_as_time,
        with_a_list_as_subject,
        with_an_unknown_maker,
        with_a_list_as_maker,
        of_an_unknown_kind,
        with_a_list_as_kind,
        as_text,
    ],
)
def test_a_line_with_a_right_chain_is_named(change, tmp_path, opened, make_subject):
    path = tmp_path / "ledger.db"
    with opened(path) as ledger:
        ledger.append([event for number in range(100) for event in make_subject(number)])
    with closing(sqlite3.connect(path)) as connection:
        (row,) = connection.execute("SELECT size, body FROM blocks").fetchall()
        lines = lines_in(*row)
        lines[PLACE] = orjson.dumps(change(orjson.loads(lines[PLACE])))
        digest, marks = chained(START, map(leaf_of, lines))
        connection.execute(
            "UPDATE blocks SET digest = ?, marks = ?, size = ?, body = ?", (digest, marks, *body_of(lines, packed=True))
        )
        connection.commit()
    with opened(path, create=False) as ledger:
        result = ledger.verify()
    assert (result.ok, result.bad_seq) == (False, 3 * (PLACE - 1) + 1)
    assert f"line {PLACE + 1} of the block from event 1 cannot be read" in result.reason
