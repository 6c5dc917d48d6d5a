"""Fitting what is judged into so many characters: what is cut first, and what is said of each cut."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from .conversation import Said
from .section import Section

GAP = "\n[...]\n"
"""What stands where the middle of a message was."""

_HEAD = 24  # what the line above a message takes besides its head: the fence's word, a number
_NOTICE = 48  # what is said of a message that is cut
_LEAST = 100  # characters of a message below which it is left out
_PART = 4  # the policy is cut to no less than this part of the room


@attrs.frozen
class Shown:
    """A section as it is shown, and how many characters it has and had."""

    section: Section
    chars: int
    whole: int


def size(messages: Sequence[Said]) -> int:
    """How many characters *messages* take."""
    return sum(len(message.head) + len(message.text) + _HEAD for message in messages)


def text(title: str, value: str, room: int) -> Shown:
    """A section of one text, of which the middle is cut where it has more than *room* characters."""
    if len(value) <= room:
        return Shown(Section(title, value), len(value), len(value))
    cut = middle_cut(value, room)
    return Shown(
        Section(title, cut, (f"{len(cut)} of {len(value)} characters, without the middle",)), len(cut), len(value)
    )


def middle_cut(value: str, room: int) -> str:
    """*value* without so much of its middle that *room* characters are left."""
    if len(value) <= room:
        return value
    kept = max(0, room - len(GAP))
    first = (kept + 1) // 2
    return f"{value[:first]}{GAP}{value[len(value) - kept // 2 :]}"[: max(room, 0)]


def own(title: str, messages: Sequence[Said], room: int, most: int | None) -> Shown:
    """The messages of what is judged: the longest are cut first, to the same length, in their middle.

    No text of them has more than *most* characters, where that is said.
    """
    whole = size(messages)
    if whole <= room and (most is None or all(len(message.text) <= most for message in messages)):
        return Shown(Section(title, tuple(enumerate(messages, 1))), whole, whole)
    numbered = [*enumerate(messages, 1)]
    number_kept = min(len(messages), max(1, room // (_HEAD + _NOTICE + _LEAST)))
    first, last = number_kept // 2, (number_kept + 1) // 2  # the last one is what is judged
    kept = numbered[:first] + numbered[len(numbered) - last :]
    limit = level([len(message.text) for _, message in kept], room - _fixed(kept))
    pairs = [_shortened(*each, limit if most is None else min(limit, most)) for each in kept]
    notices = [notice for _, notice in pairs if notice is not None]
    if len(kept) < len(messages):
        gone = messages[first : len(messages) - last]
        named = f"message {first + 1} is" if len(gone) == 1 else f"messages {first + 1} to {first + len(gone)} are"
        notices.append(f"{named} left out, 0 of {size(gone)} characters")
    shown = [each for each, _ in pairs]
    return Shown(Section(title, tuple(shown), tuple(notices)), size([message for _, message in shown]), whole)


def _shortened(number: int, message: Said, most: int) -> tuple[tuple[int, Said], str | None]:
    """The message with at most so many characters of its text, and what is said of it where it is cut."""
    if len(message.text) <= most:
        return (number, message), None
    short = middle_cut(message.text, most)
    notice = f"message {number} has {len(short)} of {len(message.text)} characters"
    return (number, attrs.evolve(message, text=short)), notice


def _fixed(kept: Sequence[tuple[int, Said]]) -> int:
    return sum(len(message.head) + _HEAD + _NOTICE for _, message in kept)


def level(lengths: Sequence[int], room: int) -> int:
    """The greatest length to which all *lengths* can be cut, so that they come to no more than *room*."""
    left = max(0, room)
    ordered = sorted(lengths)
    for place, length in enumerate(ordered):
        share = left // (len(ordered) - place)
        if length > share:
            return share
        left -= length
    return ordered[-1] if ordered else 0


def earlier(title: str, messages: Sequence[Said], room: int, most: int | None) -> Shown:
    """The newest of *messages* that have room; the oldest of these may be cut, and those before it are left out.

    No text of them has more than *most* characters, where that is said.
    """
    whole = size(messages)
    left = room if whole <= room else room - 2 * _NOTICE
    kept: list[tuple[int, Said]] = []
    notices: list[str] = []
    for number in range(len(messages), 0, -1):
        message = messages[number - 1]
        spare = left - len(message.head) - _HEAD
        if spare < min(_LEAST, len(message.text)) or spare < 0:
            break
        each, notice = _shortened(number, message, spare if most is None else min(spare, most))
        kept.insert(0, each)
        left -= size([each[1]])
        if notice is not None:
            left -= _NOTICE
            notices.insert(0, notice)
    gone = messages[: len(messages) - len(kept)]
    if gone:
        notices.insert(
            0, f"the oldest {len(gone)} of {len(messages)} messages are left out, 0 of {size(gone)} characters"
        )
    section = Section(title, tuple(kept) or None, tuple(notices))
    return Shown(section, size([message for _, message in kept]), whole)


def shares(policy: int, around: int, room: int) -> tuple[int, int]:
    """How much of *room* the policy and the subject's own messages (*around*) have: a quarter is the policy's, if it needs it."""
    for_policy = min(policy, max(room - around, room // _PART))
    return for_policy, room - for_policy
