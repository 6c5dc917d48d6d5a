"""A query as SQL."""

from __future__ import annotations

import sqlite3

from dicast import Query

from .chain import ROW
from .columns import ABOUT, JUDGED, covered
from .file import EACH_ROW, NOT_EACH_ROW
from .lines import rows_about

Statement = tuple[str, list[object]]

Bounds = tuple[int, int]

_MANY_ROWS = 10_000
"""Number of rows about a subject above which they are not looked up one by one."""

_RARE = ("feedback.explicit", "feedback.implicit", "calibration.revoked")
"""Types with few rows: they are found by the index, and only their numbers are sorted."""


def bounds_of(connection: sqlite3.Connection, run_id: str | None) -> Bounds | None:
    """Return the first and the last row that a run, or any run, may have; None for a run without rows."""
    if run_id is None:
        return 0, 2**62
    bounds: Bounds | None = connection.execute(
        "SELECT first_seq, last_seq FROM runs WHERE run_id = ?", (run_id,)
    ).fetchone()
    return bounds


def select(connection: sqlite3.Connection, query: Query) -> Statement | None:
    """Return the statement that reads the rows of *query*, with its values; None if no row can match."""
    conditions, values = _conditions(query)
    bounds = bounds_of(connection, query.run_id)
    if bounds is None:
        return None
    if (about := _about(connection, query)) is not None:
        conditions.append(f"(seq IN ({', '.join(map(str, about[0]))}) OR seq > {about[1]:d})")
    if query.run_id is not None:
        conditions.append("seq BETWEEN ? AND ?")
        values.extend(bounds)
    index = ""
    if query.types and all(type.startswith("run.") for type in query.types):
        # A partial index is used only where its own conditions are repeated.
        index = "INDEXED BY run_events"
        conditions.append(f"{_types('type', query, values)} AND type >= 'run.' AND type < 'run/'")
    elif query.types:
        conditions.append(_of_types(query, values))
    order, limit = "DESC" if query.newest_first else "ASC", -1 if query.limit is None else query.limit
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {ROW} FROM events {index} {where} ORDER BY seq {order} LIMIT {limit:d}", values


def _about(connection: sqlite3.Connection, query: Query) -> tuple[list[int], int] | None:
    """Return the rows about the subject of *query* that the columns cover, and the last covered row; None if the columns cannot answer."""
    if query.subject_id is None or not query.types or not {*query.types} <= {*ABOUT, *JUDGED.types}:
        return None
    upto, odd = covered(connection)
    rows = [] if odd or not upto else sorted(rows_about(connection, query.subject_id))
    return None if odd or not upto or len(rows) > _MANY_ROWS else (rows, upto)


def _of_types(query: Query, values: list[object]) -> str:
    """Return the condition on the types. The index on (type, time) finds rows up to a time, and only their numbers are sorted.

    Without a time, rows are read in their order: the plus keeps SQLite from sorting all rows of a type, also for the first row.
    """
    narrow = query.run_id is not None or query.session_id is not None
    if not narrow and query.until is None and {*query.types} <= {*_RARE}:
        return f"seq IN (SELECT seq FROM events WHERE {_types('type', query, values)} AND {NOT_EACH_ROW})"
    if query.until is None or narrow or not set(EACH_ROW).isdisjoint(query.types):
        return _types("+type", query, values)
    inner = _types("type", query, values)
    values.append(query.until)
    return f"seq IN (SELECT seq FROM events WHERE {inner} AND time <= ? AND {NOT_EACH_ROW})"


def _types(column: str, query: Query, values: list[object]) -> str:
    values.extend(query.types)
    return f"{column} IN ({', '.join('?' * len(query.types))})"


def _conditions(query: Query) -> tuple[list[str], list[object]]:
    conditions = {
        "run_id = ?": query.run_id,
        "subject_kind = ?": query.subject_kind,
        "subject_id = ?": query.subject_id,
        "session_id = ?": query.session_id,
        "time <= ?": query.until,
        "seq > ?": query.after or None,
    }
    chosen = {condition: value for condition, value in conditions.items() if value is not None}
    return list(chosen), list[object](chosen.values())
