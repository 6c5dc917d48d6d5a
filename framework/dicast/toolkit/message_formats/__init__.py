"""Readers of the message formats of model providers, for :mod:`dicast.toolkit.conversations`.

:func:`read_record` reads a whole record of any dialect; :func:`read_item` reads one message or item of it.
:func:`message_text` is the text of a message to show.
"""

from __future__ import annotations

from .records import FORMATS, Format, failure_of, is_message, read_item, read_record
from .shapes import Shapes
from .texts import message_text

__all__ = ["FORMATS", "Format", "Shapes", "failure_of", "is_message", "message_text", "read_item", "read_record"]
