"""Selection of the contents that an erasure removes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import attrs
import orjson

from .lines import Content, events_of
from .makers import Maker
from .references import ids_of, references_of
from .separation import separate


@attrs.frozen
class Erasable:
    """Digests of the contents to erase, and the number of other subjects that have one of them. *left* has the number of events by type
    whose lines have texts, which no erasure removes.
    """

    digests: tuple[str, ...]
    others: int
    left: Mapping[str, int]


def erasable(
    lines: Iterable[tuple[Sequence[Any], Mapping[str, Maker]]],
    content: Content,
    subject_id: str | None,
    before: str | None,
) -> Erasable:
    """Return the contents of the subject, turn or session *subject_id*, or the contents from before the time *before* that no later event has.

    :param lines: all lines as parsed JSON, each with the makers.
    :param content: a function that returns the JSON text of the content with a digest, or None.
    :raises LookupError: if a maker is missing.
    """

    def is_chosen(time: str, names: Collection[str | None]) -> bool:
        return subject_id in names if before is None else time < before

    chosen, later, others, left = set[str](), set[str](), dict[str, set[str]](), Counter[str]()
    for line, makers in lines:
        for reference in references_of(line, makers):
            digest = reference.digest
            if is_chosen(reference.time, reference.names):
                chosen.add(digest)
            else:
                later.add(digest)
                if subject_id is not None:
                    others.setdefault(digest, set()).update(reference.names[:1])
        if before is not None or subject_id in ids_of(line):
            for _, event in events_of(line, makers, lambda _: None):
                if (
                    is_chosen(event.time, (event.subject_id, event.turn_id, event.session_id))
                    and separate(event).places
                ):
                    left[event.type] += 1
    digests = chosen if subject_id is not None else chosen - later
    stored = tuple(digest for digest in sorted(digests) if _has_values(orjson.loads(content(digest) or b"null")))
    number = len(set[str]().union(*(others.get(digest, ()) for digest in stored)))
    return Erasable(stored, number, dict(sorted(left.items())))


def _has_values(content: Any) -> bool:
    """Return True if a content has a text or a number. Contents without them are shared by many subjects."""
    if isinstance(content, dict | list):
        return any(map(_has_values, content.values() if isinstance(content, dict) else content))
    return content not in (None, "")
