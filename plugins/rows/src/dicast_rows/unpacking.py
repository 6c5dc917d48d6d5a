"""Files for a library that reads them by path; gzip is unpacked into a temporary file."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from dicast.toolkit.files import open_file
from dicast.toolkit.input_file import InputCheck, InputFile

from .rows import chunks

_GZIP = b"\x1f\x8b"


def unpacked(file: InputFile, fault: Callable[[str], None], stack: ExitStack, check: InputCheck | None) -> Path:
    """Return the path of *file*, or of an unpacked copy that lives as long as *stack*; *check* digests the bytes."""
    pieces = chunks(file, fault, check)
    first = next(pieces, b"")
    with open_file(file.path) as raw:
        is_packed = raw.read(len(_GZIP)) == _GZIP
    if not is_packed:
        deque(pieces, maxlen=0)
        return file.path
    copy = Path(stack.enter_context(TemporaryDirectory(prefix="dicast-")), "rows")
    with copy.open("wb") as target:
        target.writelines(chain((first,), pieces))
    return copy
