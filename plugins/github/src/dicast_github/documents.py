"""The sink that collects the documents of runs for ``dicast ci``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import orjson

from dicast import Event, RunContext
from dicast.toolkit.atomic_file import AtomicFile, output_path
from dicast.toolkit.files import MAX_DATA_BYTES, read_bytes

from .summary import ENDS


@attrs.frozen
class Documents:
    """The document of each run as a line of JSON, appended to a file.

    :param documents_path: the file to append to; a relative path starts at the pipeline's folder. All experiments of a suite append to it.
    """

    name = "documents"
    wants = ENDS
    rewrites = True

    documents_path: Path = attrs.field(converter=Path)

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[DocumentsFile]:
        """Open the file to append to.

        :raises ConfigError: if the file cannot be written.
        """
        path = output_path(run.base, self.documents_path, None)
        AtomicFile(path, run=run.run_id).discard()
        yield DocumentsFile(path, None if run.ledger_path is None else str(run.ledger_path), str(run.base))


class DocumentsFile:
    """The open file, with the document of the run if it has ended.

    *ledger* is the path of the ledger, and *base* the folder of the pipeline.
    """

    def __init__(self, path: Path, ledger: str | None, base: str) -> None:
        self._path, self._ledger, self._base = path, ledger, base
        self._done: Mapping[str, Any] | None = None

    def write(self, events: Sequence[Event]) -> int:
        """Keep the document of the last event; return the number of subjects, 0."""
        for event in events:
            self._done = event.payload
        return 0

    def close(self) -> int:
        """Append the document. The call may be repeated after an error."""
        if self._done is None:
            return 0
        old = read_bytes(self._path, MAX_DATA_BYTES) if self._path.exists() else b""
        document = {**self._done, "ledger": {"path": self._ledger, "head": None}, "base": self._base}
        with AtomicFile(self._path) as file:
            file.write(old + orjson.dumps(document) + b"\n")
            file.commit()
        self._done = None
        return 0
