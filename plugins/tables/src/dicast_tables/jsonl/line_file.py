"""Code shared by both sinks of JSON lines: a file that grows line by line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

import orjson

from dicast.toolkit.atomic_file import AtomicFile


class LineFile:
    """JSON lines of one run. The file gets its name with :meth:`commit`."""

    def __init__(self, file: AtomicFile) -> None:
        self._file = file
        self._has_events = False

    def append(self, documents: Iterable[Mapping[str, object]]) -> None:
        """Append a line for each of *documents*, or raise and append no line. Amounts of money become decimal texts."""
        self._file.write(b"".join(orjson.dumps(document, _plain, orjson.OPT_APPEND_NEWLINE) for document in documents))
        self._has_events = True

    def commit(self) -> None:
        """Give the file its name. A run that recorded no event leaves no file."""
        if self._has_events:
            self._file.commit()


def _plain(value: object) -> str:
    if isinstance(value, Decimal):
        return format(value, "f")
    raise TypeError(f"{type(value).__name__} is not a JSON value")
