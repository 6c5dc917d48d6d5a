"""The sessions of a first pass in a temporary file, so that the next pass need not parse the input again."""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from copyreg import dispatch_table
from io import BytesIO
from typing import TYPE_CHECKING, Any

from dicast import TraceEvent

from .call_matching import CallId, CallNames, NameCall
from .conversations import Counts
from .session_reading import Totals
from .temporary import temporary_database

if TYPE_CHECKING:
    from typing_extensions import Buffer

_MOST = 4 * 2**30
"""The most bytes that are kept; of a larger input each pass parses the files."""

_MOST_RECORD = 64 * 2**20
"""The most bytes of one kept item, which is in memory while it is written."""


class _Limited(BytesIO):
    """A stream in memory that refuses more than :data:`_MOST_RECORD` bytes."""

    def write(self, data: Buffer, /) -> int:
        if self.tell() + memoryview(data).nbytes > _MOST_RECORD:
            raise OverflowError
        return super().write(data)


def _fields(event: TraceEvent) -> tuple[Any, tuple[Any, ...]]:
    """Return *event* as a call that restores it. attrs itself would set the fields one by one."""
    return TraceEvent.of, (
        event.type,
        event.payload,
        event.time,
        event.session_id,
        event.turn_id,
        event.extra,
    )


def _named(turn_id: str, file_id: str) -> str:
    """Return the id of a call in the next pass; the reader of an item has its own function of this name."""
    return f"{turn_id}/{file_id}"


def _origin(id_: CallId) -> tuple[Any, tuple[str, str]]:
    return _named, (id_.turn_id, id_.file_id)


def _nonzero(counts: Counts | Totals) -> tuple[Any, tuple[type, dict[str, Any]]]:
    """Return *counts* as a call that restores them from the counts that are not zero, in a third of the time."""
    values = {name: value for name in counts.__slots__ if name != "__weakref__" and (value := getattr(counts, name))}
    return _with_counts, (type(counts), values)


def _with_counts(kind: type, values: dict[str, Any]) -> Any:
    return kind(**values)


_REDUCERS: Mapping[type, Callable[[Any], Any]] = {
    **dispatch_table,
    TraceEvent: _fields,
    CallId: _origin,
    Counts: _nonzero,
    Totals: _nonzero,
}


class _Items(pickle.Unpickler):
    """A reader of one item, whose calls get their ids from *names*."""

    def __init__(self, data: bytes, names: CallNames) -> None:
        super().__init__(BytesIO(data))
        self._names = names

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        is_named = global_name == _named.__name__ and module_name == __name__
        return self._names.take if is_named else super().find_class(module_name, global_name)


class KeptSessions:
    """The items of a pass in their order, each with the counts of the pass at that place. An item and its objects are equal copies.

    *is_usable* turns False if the items take more than 4 GiB or an item more than 64 MiB, if the disk is full, or if an item cannot be copied: then
    read the input again.
    """

    def __init__(self) -> None:
        self.is_usable = True
        self._size = 0
        self._database = temporary_database(
            self, "PRAGMA page_size = 65536"
        )  # large items are read seven times as fast
        self._database.execute("PRAGMA cache_size = -2000")  # kB
        self._database.execute("CREATE TABLE items (number INTEGER PRIMARY KEY, data BLOB)")

    def add(self, item: object, counts: Any) -> None:
        """Keep *item* with a copy of *counts*."""
        if not self.is_usable:
            return
        stream = _Limited()
        pickler = pickle.Pickler(stream, pickle.HIGHEST_PROTOCOL)
        pickler.dispatch_table = _REDUCERS
        try:
            pickler.dump((item, counts))
            self._size += stream.tell()
            if self._size > _MOST:
                raise OverflowError
            self._database.execute("INSERT INTO items (data) VALUES (?)", (stream.getbuffer(),))
        except (OverflowError, pickle.PicklingError, TypeError, AttributeError, RecursionError, sqlite3.Error):
            self.is_usable = False
            self._database.close()  # which removes the file

    def items(self, name_call: NameCall) -> Iterator[tuple[Any, Any]]:
        """Yield the items and their counts; *name_call* names the calls with a :class:`~dicast.toolkit.call_matching.CallId` anew.

        Several iterations may be active.
        """
        number = 0
        while row := self._database.execute(
            "SELECT data FROM items WHERE number = ?", (number := number + 1,)
        ).fetchone():
            yield _Items(row[0], CallNames(name_call)).load()
