"""References of lines to contents: the digests that an erasure looks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from .lines import CONTENT, EVENT
from .makers import FIRST_EVENT, SUBJECT, Maker
from .traced import SUBJECTS, traces_of

_NAMES_OF_EVENT = 8, 6, 5
"""The places of the subject, the turn and the session in the line of an event."""


def ids_of(line: Sequence[Any]) -> set[str | None]:
    """Return the ids of the subject, the turns and the session of a line."""
    if line[0] == EVENT:
        return {line[place] for place in _NAMES_OF_EVENT}
    return {*line[SUBJECT:FIRST_EVENT], *(item[3] for item in traces_of(line))} if line[0] in SUBJECTS else set()


@attrs.frozen
class Reference:
    """Reference of a line to a content: the digest, the time of the event, and the ids of its subject, its turn and its session."""

    digest: str
    time: str
    names: Sequence[str]


def references_of(line: Sequence[Any], makers: Mapping[str, Maker]) -> Iterator[Reference]:
    """Yield the references of a line to contents, in the order of its events.

    :raises LookupError: if *makers* does not have its maker.
    """
    if line[0] == EVENT and len(line) > CONTENT:
        names = [line[place] for place in _NAMES_OF_EVENT if line[place] is not None]
        yield Reference(line[CONTENT], line[3], names)
    elif line[0] in SUBJECTS:
        subject, session, turn = line[SUBJECT:FIRST_EVENT]
        if (place := makers[line[1]].content) is not None:
            yield Reference(
                line[place], line[FIRST_EVENT + 1], [name for name in (subject, turn, session) if name is not None]
            )
        for _, _, time, turn_of_item, _, *texts in traces_of(line):
            if texts:
                names = [name for name in (turn if turn_of_item == 0 else turn_of_item, session) if name is not None]
                yield Reference(texts[0], time, names)
