"""Types of options that name files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NewType

if TYPE_CHECKING:
    InputPath = Path  # so that a test may build a component with a Path
else:
    InputPath = NewType("InputPath", Path)
"""The path of a file that must exist when the pipeline is read, or ``-`` for stdin. In Python it is a ``pathlib.Path``. A plain ``Path`` need not exist."""

_DESCRIPTOR = re.compile(r"/dev/(stdin)|/(?:dev|proc/self)/fd/([0-9]{1,9})")


def descriptor(path: Path) -> int | None:
    """Return the number of the file descriptor that *path* names, as ``/dev/fd/3`` does; None for any other path.

    Such paths are ``/dev/stdin``, and ``/dev/fd/63``, with which a shell replaces ``<(command)``.
    """
    match = _DESCRIPTOR.fullmatch(str(path))
    return None if match is None else int(match[2] or 0)
