"""Files in memory, without a name on the host, for passing content into a sandbox and back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ..environment import REPORT_BYTES


class MemoryFiles:
    """File descriptors of files in memory, closed together."""

    def __init__(self) -> None:
        self.descriptors: list[int] = []

    def file(self, content: bytes) -> int:
        """Return the descriptor of a new file with *content*, positioned at its start."""
        descriptor = self._new()
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor

    def box(self) -> int:
        """Return the descriptor of a new file of a fixed size; a writer cannot make it grow."""
        import fcntl  # Windows lacks it, and only Linux has seals; other systems use the other backends

        descriptor = self._new()
        os.ftruncate(descriptor, REPORT_BYTES)
        seals = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        return descriptor

    def _new(self) -> int:
        self.descriptors.append(os.memfd_create("dicast", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
        return self.descriptors[-1]


def read_box(box: int) -> bytes | None:
    """Return the text that was written into *box*; None if there is none."""
    return os.pread(box, REPORT_BYTES, 0).rstrip(b"\0") or None


@contextmanager
def open_memory_files() -> Iterator[MemoryFiles]:
    """Provide files in memory for the length of the block."""
    files = MemoryFiles()
    try:
        yield files
    finally:
        for descriptor in files.descriptors:
            os.close(descriptor)
