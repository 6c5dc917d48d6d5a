"""Erasure of contents: the texts go, the lines with their digests stay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs
import orjson

from dicast import LedgerError

from .lines import Row
from .log import Log

ERASED = "content.erased"
_ROUNDS = 100


@attrs.frozen
class Erasable:
    """Digests of the contents to erase, and the number of other subjects that have one of them. *left* has the events by type whose texts stay: none."""

    digests: tuple[str, ...]
    others: int
    left: Mapping[str, int] = attrs.field(factory=dict)


def erasable(rows: Iterable[Row], subject_id: str | None, before: str | None) -> Erasable:
    """Return the contents of the subject, turn or session *subject_id*, or the contents from before the time *before* that no later event has, in *rows*."""
    chosen, later, readers, stored = set[str](), set[str](), dict[str, set[str]](), set[str]()
    for row in rows:
        digest = row.content_digest
        if digest is None:
            continue
        if row.content is not None and _has_values(orjson.loads(row.content)):
            stored.add(digest)
        _, _, time, _, session, turn, _, subject, _ = row.columns
        names = [name for name in (subject, turn, session) if name is not None]
        if subject_id in names if before is None else time < before:
            chosen.add(digest)
        else:
            later.add(digest)
            readers.setdefault(digest, set()).update(names[:1])
    digests = stored & (chosen if subject_id is not None else chosen - later)
    shared = set[str]().union(*(readers.get(digest, ()) for digest in digests))
    return Erasable(tuple(sorted(digests)), len(shared) if subject_id is not None else 0)


def _has_values(content: Any) -> bool:
    """Return True if a content has a text or a number. Contents without them are shared by many subjects, and are no text of one of them."""
    if isinstance(content, dict | list):
        return any(map(_has_values, content.values() if isinstance(content, dict) else content))
    return content not in (None, "")


def erase(log: Log, erasures_of: Callable[[], Mapping[str, int]], seq: int) -> None:
    """Remove the contents of all recorded erasures from the segments up to the event *seq*.

    *erasures_of* returns the digests of erased contents, each with the number of the event of its newest erasure. Two erasures may replace a segment at the same
    time, and the later file has the contents of the older. So each looks for newer erasures after its work.

    :raises LedgerError: if not all contents were removed.
    """
    erasures: Mapping[str, int] = {}
    for _ in range(_ROUNDS):
        log.refresh()
        while log.sealed_event < seq:
            log.seal()
        newest = erasures_of()
        if newest == erasures:
            return
        erasures = newest
        for place in log.places:
            data = log.segment(place).without(erasures)
            if data is not None:
                log.store.replace(place.name, data)
    raise LedgerError(f"{log.store.place}: other erasures go on. Repeat the command when they have ended")
