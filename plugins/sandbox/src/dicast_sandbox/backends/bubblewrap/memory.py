"""Files that are handed to a sandbox, and back: in memory, without a name on the host."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ..environment import REPORT_BYTES


class MemoryFiles:
    """File descriptors of files in memory, closed together."""

    def __init__(self) -> None:
        self.descriptors: list[int] = []

    def file(self, read_box: bytes) -> int:
        """A file with *content*, to be read from its beginning."""
        descriptor = self._new()
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(read_box)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor

    def box(self) -> int:
        """A file of a fixed size to be written into: whoever does cannot make it grow."""
        import fcntl  # Windows lacks it, and only Linux has seals; the plugin's other backends are used there

        descriptor = self._new()
        os.ftruncate(descriptor, REPORT_BYTES)
        seals = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        return descriptor

    def _new(self) -> int:
        self.descriptors.append(os.memfd_create("dicast", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
        return self.descriptors[-1]


def read_box(box: int) -> bytes | None:
    """What was written into *box*, a text; None when nothing was."""
    return os.pread(box, REPORT_BYTES, 0).rstrip(b"\0") or None


@contextmanager
def open_memory_files() -> Iterator[MemoryFiles]:
    """Files in memory for the length of the block."""
    files = MemoryFiles()
    try:
        yield files
    finally:
        for descriptor in files.descriptors:
            os.close(descriptor)
