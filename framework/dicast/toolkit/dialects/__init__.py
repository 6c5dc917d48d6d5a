"""Readers of the message formats of model providers, for :mod:`dicast.toolkit.conversations`.

:func:`read_record` reads a whole record of any dialect; :func:`read_item` reads one message or item of it.
"""

from __future__ import annotations

from .records import FORMATS, Format, failure_of, is_message, read_item, read_record
from .shapes import Shapes

__all__ = ["FORMATS", "Format", "Shapes", "failure_of", "is_message", "read_item", "read_record"]
