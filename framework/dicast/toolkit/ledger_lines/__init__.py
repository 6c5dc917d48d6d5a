"""Lines of a ledger of format 4, and their chain: for ledgers of plugins that store the same lines elsewhere.

A ledger encodes events with an :class:`Encoder`, chains the lines with :func:`chained`, and stores them as a :class:`Sheet`. Readers take the
lines of a body with :func:`lines_in`, and the events of a query with :func:`matches`. The page "The format of the ledger" defines the lines.
"""

from __future__ import annotations

from .blocks import Hints, Sheet, lines_in, parts_of
from .chain import START, chained, leaf_of
from .lines import Encoded, Encoder, events_in, events_of
from .makers import Maker
from .selection import matches

__all__ = [
    "START",
    "Encoded",
    "Encoder",
    "Hints",
    "Maker",
    "Sheet",
    "chained",
    "events_in",
    "events_of",
    "leaf_of",
    "lines_in",
    "matches",
    "parts_of",
]
