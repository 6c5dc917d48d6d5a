"""Deflate by zlib-ng if it is installed, else by zlib. Both write and read the same format; zlib-ng takes half of the time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _library() -> Any:
    try:
        from zlib_ng import zlib_ng as library
    except ModuleNotFoundError:
        import zlib as library  # type: ignore[no-redef]
    return library


_LIBRARY = _library()

compress: Callable[[bytes, int], bytes] = _LIBRARY.compress
decompressobj: Callable[[], Any] = _LIBRARY.decompressobj
error: type[Exception] = _LIBRARY.error
