"""Groups of rows of a segment, which the check compares with their digests without an object for each row: Arrow makes the lines from the columns."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import groupby, pairwise
from typing import Any

import attrs

from dicast.toolkit.ledger_lines.chain import MARK_BYTES, chain_of

from .lines import Row

_MONEY = "spend."
"""Beginning of the types of events with amounts."""

RUN, TYPE = 3, 1
"""Places of the run and of the type among the columns of a row."""


@attrs.frozen
class Group:
    """Checked rows that follow one another.

    *digests* has the digest of each row, *runs* the runs in their order with the number of rows of each, *amounts* the rows about amounts by their place,
    *absent* the number of rows without their content.
    """

    digests: Sequence[bytes]
    runs: Sequence[tuple[str, int]]
    amounts: Sequence[tuple[int, Row]]
    absent: int

    @classmethod
    def of(cls, rows: Sequence[Row], digests: Sequence[bytes]) -> Group:
        """Return the group of *rows*."""
        runs = [(run_id, len([*equal])) for run_id, equal in groupby(row.columns[RUN] for row in rows)]
        amounts = [(place, row) for place, row in enumerate(rows) if row.columns[TYPE].startswith(_MONEY)]
        absent = sum(row.content_digest is not None and row.content is None for row in rows)
        return cls(digests, runs, amounts, absent)


def checked_table(
    table: Any, names: Sequence[str], first: int, prev: bytes, *, packed: str | None = None
) -> Group | None:
    """Return the group of all rows of a table. None if a row does not fit its mark or its content, or needs a closer look: its values are escaped in JSON, or absent.

    :param names: the columns before the payload.
    :param first: the number of the first event.
    :param prev: the digest before it.
    :param packed: the column with the columns of the group, which must follow from the rows.
    """
    from pyarrow import compute  # type: ignore[import-untyped]

    lines = _lines_of(table, names)
    if lines is None or lines.null_count or table.column("mark").null_count:
        return None
    texts = list(_texts_of(lines))
    digests = chain_of(prev, texts)
    marks = struct.pack(f">{len(digests)}i", *table.column("mark").to_pylist())
    seqs = table.column("seq").to_pylist()
    if marks != b"".join([link[:MARK_BYTES] for link in digests]) or seqs != [*range(first, first + len(seqs))]:
        return None
    if packed is not None and not _are_columns(table.column(packed), texts):
        return None
    stored = table.filter(compute.is_valid(table.column("content")))
    expected = stored.column("content_digest").to_pylist()
    if [sha256(text).hexdigest() for text in _texts_of(stored.column("content"))] != expected:
        return None
    runs = [(run_id, len([*equal])) for run_id, equal in groupby(table.column("run_id").to_pylist())]
    is_amount = compute.starts_with(table.column("type"), _MONEY)
    places = compute.indices_nonzero(is_amount).to_pylist()
    amounts = [(place, row) for place, (_, row) in zip(places, rows_of(table.filter(is_amount), names), strict=True)]
    absent = table.num_rows - table.column("content_digest").null_count - stored.num_rows
    return Group(digests, runs, amounts, absent)


def _are_columns(column: Any, lines: Sequence[Any]) -> bool:
    """Return True if *column* has the columns of *lines*."""
    from dicast.reading.blocks.stored_columns import UNREADABLE  # no run needs it

    from .columns import columns_of_texts, refuse_changed

    try:
        refuse_changed(column, columns_of_texts(lines))
    except UNREADABLE:
        return False
    return True


def rows_of(table: Any, names: Sequence[str]) -> list[tuple[int, Row]]:
    """Return the rows of a table with their numbers. *names* are the columns before the payload."""
    columns = list(zip(*(table.column(name).to_pylist() for name in names), strict=True))
    rests = (table.column(name).to_pylist() for name in ("payload", "content_digest", "content_at", "content"))
    rows = (Row(values, *rest) for values, *rest in zip(columns, *rests, strict=True))
    return list(zip(table.column("seq").to_pylist(), rows, strict=True))


def _lines_of(table: Any, names: Sequence[str]) -> Any | None:
    """Return the lines of the rows as an array of texts; None if a value may be escaped in JSON.

    Only a backslash needs a look: a value with another character that JSON escapes makes another line, whose digest differs.
    """
    from pyarrow import compute

    def join(*parts: Any) -> Any:
        return compute.binary_join_element_wise(*parts, "")

    parts, text = list[Any](), "[0,"
    for name in names:
        column = table.column(name)
        if column.null_count == len(column):
            text += "null,"
            continue
        if compute.any(compute.match_substring(column, "\\")).as_py():
            return None
        if column.null_count:
            parts += [text, compute.coalesce(join('"', column, '"'), "null")]
            text = ","
        else:
            parts += [text + '"', column]
            text = '",'
    parts += [text, table.column("payload")]
    content = table.column("content_digest")
    if content.null_count < len(content):
        texts = join(',"', content, '",', table.column("content_at"))
        parts.append(compute.coalesce(texts, ""))
    return join(*parts, "]")


def _texts_of(column: Any) -> Iterator[Any]:
    """Yield the bytes of each text of a column without nulls, without a copy."""
    for chunk in column.chunks:
        _, offsets, data = chunk.buffers()
        ends = array("i")
        ends.frombytes(memoryview(offsets)[4 * chunk.offset : 4 * (chunk.offset + len(chunk) + 1)])
        body = memoryview(b"" if data is None else data)
        for start, end in pairwise(ends):
            yield body[start:end]
