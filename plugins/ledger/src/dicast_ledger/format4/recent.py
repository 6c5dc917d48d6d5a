"""Blocks, contents and makers that were read lately: many readers request one row after another."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeVar

import attrs
import orjson

from dicast.toolkit.ledger_lines.blocks import lines_in
from dicast.toolkit.ledger_lines.lines import events_in
from dicast.toolkit.ledger_lines.makers import Maker

_MOST_BLOCKS, _MOST_GROUPS, _MOST_MAKERS = 4, 4, 1_000

V = TypeVar("V")


@attrs.frozen(eq=False)
class Block:
    """Lines of a block after which the chain has the *digest*. *starts* has the number of the first event of each line."""

    digest: bytes
    lines: Sequence[bytes]
    starts: Sequence[int]


@attrs.frozen(eq=False)
class Recent:
    """The newest blocks, groups of contents and makers that readers have used. A changed row of the file is read again."""

    makers: dict[str, Maker] = attrs.field(factory=dict)
    _blocks: dict[int, Block] = attrs.field(factory=dict)
    _groups: dict[int, tuple[bytes, list[bytes]]] = attrs.field(factory=dict)

    def block(self, connection: sqlite3.Connection, first: int, digest: bytes, makers: Mapping[str, Maker]) -> Block:
        """Return the block from event *first*, after which the chain has the *digest*.

        :raises ValueError: if it cannot be read.
        """
        block = self._blocks.get(first)
        if block is None or block.digest != digest:
            (row,) = connection.execute("SELECT size, body FROM blocks WHERE first = ?", (first,)).fetchall()
            lines = lines_in(*row)
            counts = [events_in(orjson.loads(line), makers) for line in lines]
            block = Block(digest, lines, list(accumulate(counts[:-1], initial=first)))
            _keep(self._blocks, first, block, _MOST_BLOCKS)
        return block

    def group(self, id_: int, size: int, body: bytes) -> list[bytes]:
        """Return the contents of a row of ``texts``. An erasure changes the body of a row.

        :raises ValueError: if the body cannot be read.
        """
        known = self._groups.get(id_)
        if known is None or known[0] != body:
            known = body, lines_in(size, body)
            _keep(self._groups, id_, known, _MOST_GROUPS)
        return known[1]

    def add_maker(self, maker: Maker) -> None:
        """Keep a maker."""
        _keep(self.makers, maker.name, maker, _MOST_MAKERS)


def _keep(items: dict[Any, V], key: object, value: V, most: int) -> None:
    """Add an item in place of the oldest item if there are *most* items. Other threads may do the same."""
    if len(items) >= most:
        items.pop(next(iter(list(items)), key), None)
    items[key] = value
