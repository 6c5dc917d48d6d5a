"""Fitting of the evidence into a number of characters: the order of the cuts, and the notices of them."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from .conversation import TranscriptMessage
from .section import Section

GAP = "\n[...]\n"
"""Replaces the removed middle of a message."""

_HEAD = 24  # characters of the line above a message without its head: the first word and the number
_NOTICE = 48  # characters of the notice of a cut message
_LEAST = 100  # least characters of a cut message; a message with less room is left out
_PART = 4  # the policy has at least a quarter of the characters, if it needs them


@attrs.frozen
class ShownSection:
    """A section as it is shown, and how many characters it has and had."""

    section: Section
    chars: int
    original_chars: int


def size(messages: Sequence[TranscriptMessage]) -> int:
    """Return the number of characters of *messages*."""
    return sum(len(message.head) + len(message.text) + _HEAD for message in messages)


def text(title: str, value: str, room: int) -> ShownSection:
    """Return a section of one text, without its middle if it has more than *room* characters."""
    if len(value) <= room:
        return ShownSection(Section(title, value), len(value), len(value))
    cut = middle_cut(value, room)
    return ShownSection(
        Section(title, cut, (f"{len(cut)} of {len(value)} characters, without the middle",)), len(cut), len(value)
    )


def middle_cut(value: str, room: int) -> str:
    """Return *value* with its middle removed, so that at most *room* characters are left."""
    if len(value) <= room:
        return value
    kept_chars = max(0, room - len(GAP))
    first = (kept_chars + 1) // 2
    return f"{value[:first]}{GAP}{value[len(value) - kept_chars // 2 :]}"[: max(room, 0)]


def fit_messages(title: str, messages: Sequence[TranscriptMessage], room: int, most: int | None) -> ShownSection:
    """Return the section of the judged messages. The middles of the longest messages are cut first, down to one common length.

    With *most*, no text has more than *most* characters.
    """
    total = size(messages)
    if total <= room and (most is None or all(len(message.text) <= most for message in messages)):
        return ShownSection(Section(title, tuple(enumerate(messages, 1))), total, total)
    numbered = [*enumerate(messages, 1)]
    number_kept = min(len(messages), max(1, room // (_HEAD + _NOTICE + _LEAST)))
    first, last = (
        number_kept // 2,
        (number_kept + 1) // 2,
    )  # the last message is the judged one, so it is never left out
    remaining = numbered[:first] + numbered[len(numbered) - last :]
    limit = level([len(message.text) for _, message in remaining], room - _fixed(remaining))
    pairs = [
        _shortened(*numbered_message, limit if most is None else min(limit, most)) for numbered_message in remaining
    ]
    notices = [notice for _, notice in pairs if notice is not None]
    if len(remaining) < len(messages):
        gone = messages[first : len(messages) - last]
        named = f"message {first + 1} is" if len(gone) == 1 else f"messages {first + 1} to {first + len(gone)} are"
        notices.append(f"{named} left out, 0 of {size(gone)} characters")
    cut_messages = [numbered_message for numbered_message, _ in pairs]
    return ShownSection(
        Section(title, tuple(cut_messages), tuple(notices)), size([message for _, message in cut_messages]), total
    )


def _shortened(number: int, message: TranscriptMessage, most: int) -> tuple[tuple[int, TranscriptMessage], str | None]:
    """Return the message with at most *most* characters of its text, and a notice if it is cut."""
    if len(message.text) <= most:
        return (number, message), None
    short = middle_cut(message.text, most)
    notice = f"message {number} has {len(short)} of {len(message.text)} characters"
    return (number, attrs.evolve(message, text=short)), notice


def _fixed(messages: Sequence[tuple[int, TranscriptMessage]]) -> int:
    return sum(len(message.head) + _HEAD + _NOTICE for _, message in messages)


def level(lengths: Sequence[int], room: int) -> int:
    """Return the greatest length to which all *lengths* can be cut so that their sum is at most *room*."""
    left = max(0, room)
    ordered = sorted(lengths)
    for place, length in enumerate(ordered):
        share = left // (len(ordered) - place)
        if length > share:
            return share
        left -= length
    return ordered[-1] if ordered else 0


def earlier(title: str, messages: Sequence[TranscriptMessage], room: int, most: int | None) -> ShownSection:
    """Return the section of the newest *messages* that fit. The oldest message that fits may be cut; older messages are left out.

    With *most*, no text has more than *most* characters.
    """
    total = size(messages)
    left = room if total <= room else room - 2 * _NOTICE
    remaining: list[tuple[int, TranscriptMessage]] = []
    notices: list[str] = []
    for number in range(len(messages), 0, -1):
        message = messages[number - 1]
        spare = left - len(message.head) - _HEAD
        if spare < min(_LEAST, len(message.text)) or spare < 0:
            break
        numbered_message, notice = _shortened(number, message, spare if most is None else min(spare, most))
        remaining.insert(0, numbered_message)
        left -= size([numbered_message[1]])
        if notice is not None:
            left -= _NOTICE
            notices.insert(0, notice)
    gone = messages[: len(messages) - len(remaining)]
    if gone:
        notices.insert(
            0, f"the oldest {len(gone)} of {len(messages)} messages are left out, 0 of {size(gone)} characters"
        )
    section = Section(title, tuple(remaining) or None, tuple(notices))
    return ShownSection(section, size([message for _, message in remaining]), total)


def shares(policy: int, around: int, room: int) -> tuple[int, int]:
    """Divide *room* between the policy and the subject's messages, whose size is *around*. The policy has at least a quarter, if it needs it."""
    for_policy = min(policy, max(room - around, room // _PART))
    return for_policy, room - for_policy
