"""A query as SQL."""

from __future__ import annotations

import sqlite3

from dicast import Query

from .chain import ROW

Statement = tuple[str, list[object]]


def select(connection: sqlite3.Connection, query: Query) -> Statement | None:
    """The statement that reads the rows of *query*, with its values; None where no row can match."""
    conditions, values = _conditions(query)
    if query.run_id is not None:
        bounds = connection.execute("SELECT first_seq, last_seq FROM runs WHERE run_id = ?", (query.run_id,)).fetchone()
        if bounds is None:
            return None
        conditions.append("seq BETWEEN ? AND ?")
        values.extend(bounds)
    index = ""
    if query.types and all(type.startswith("run.") for type in query.types):
        # A partial index is used only where its own conditions are repeated.
        index = "INDEXED BY run_events"
        conditions.append("type >= 'run.' AND type < 'run/'")
    order, limit = "DESC" if query.newest_first else "ASC", -1 if query.limit is None else query.limit
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {ROW} FROM events {index} {where} ORDER BY seq {order} LIMIT {limit:d}", values


def _conditions(query: Query) -> tuple[list[str], list[object]]:
    given = {
        "run_id = ?": query.run_id,
        "subject_kind = ?": query.subject_kind,
        "subject_id = ?": query.subject_id,
        "session_id = ?": query.session_id,
        "time <= ?": query.until,
        "seq > ?": query.after or None,
    }
    chosen = {condition: value for condition, value in given.items() if value is not None}
    conditions, values = list(chosen), list[object](chosen.values())
    if query.types:
        conditions.append(f"type IN ({', '.join('?' * len(query.types))})")
        values.extend(query.types)
    return conditions, values
