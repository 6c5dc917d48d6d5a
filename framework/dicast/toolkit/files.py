"""Opens a file that a user names: checks its kind, bounds its size, and never waits for ever.

Use these functions for every path that comes from a command line, a pipeline file or other data. They raise ``OSError`` as ``open`` does;
:class:`UnreadableFile`, a subclass, says why a path that could be opened is not read. :class:`~dicast.InputFile` opens files of lines.
"""

from __future__ import annotations

from .._toolkit.user_files import (
    MAX_DATA_BYTES,
    MAX_DOCUMENT_BYTES,
    UnreadableFile,
    check_regular,
    file_sha256,
    open_file,
    open_pieces,
    read_bytes,
    read_text,
)

__all__ = [
    "MAX_DATA_BYTES",
    "MAX_DOCUMENT_BYTES",
    "UnreadableFile",
    "check_regular",
    "file_sha256",
    "open_file",
    "open_pieces",
    "read_bytes",
    "read_text",
]
