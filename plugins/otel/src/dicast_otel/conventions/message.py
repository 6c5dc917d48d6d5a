"""Messages of a span, before they are put into the conversation of its session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from dicast.toolkit.conversations import Conversation
from dicast.toolkit.message_formats import Shapes, read_item
from dicast.toolkit.message_formats.blocks import ANY, read_content
from dicast.toolkit.parts import Part, TextPart

__all__ = ["Collector", "Message"]


@attrs.define
class Message:
    """A message: its *role* and its *parts*. *stop_reason* is known for answers."""

    role: str
    parts: list[Part]
    stop_reason: str | None = None


class Collector(Conversation):
    """A conversation that only collects its messages, so that the readers of dialects can read a part of a conversation."""

    def __init__(
        self, shapes: Shapes
    ) -> None:  # not that of a conversation, whose counts no reader of one message uses
        self.shapes = shapes
        self.messages: list[Message] = []

    def add(self, role: str, parts: Sequence[Part], *, time: str | None = None, turn_id: str | None = None) -> None:
        """Collect a message."""
        self.messages.append(Message(role, list(parts)))

    def add_text(self, role: str, text: str, *, time: str | None = None, turn_id: str | None = None) -> None:
        """Collect a message that is one text."""
        self.messages.append(Message(role, [TextPart(text)]))

    def model_call(self, **values: object) -> None:
        """Leave out a call of a model: the span has its figures."""

    def item(self, item: Mapping[str, Any], path: str) -> None:
        """Collect one message of any dialect of :mod:`dicast.toolkit.message_formats`.

        :raises DataError: (without a line) if it is no message.
        """
        read_item(dict(item), path, "auto", self.shapes, self)

    def content(self, value: object, path: str) -> list[Part]:
        """Return the parts of a message's content.

        :raises DataError: (without a line) if it is not a content.
        """
        return read_content(value, path, self.shapes, ANY)
