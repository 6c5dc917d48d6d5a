"""The floor of ``heuristic``: each line of a trace parsed and written as a row of a plain SQLite file, and nothing judged.

``python trace_floor.py TRACE STORE``
"""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path

BATCH = 10_000


def main(trace: Path, store: Path) -> None:
    database = sqlite3.connect(store)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, type TEXT, session TEXT, turn TEXT, payload TEXT)")
    batch: list[tuple[str, str, str, str]] = []
    with trace.open(encoding="utf-8") as file:
        for line in file:
            event = json.loads(line)
            batch.append((event["type"], event["session_id"], event["turn_id"], json.dumps(event["payload"])))
            if len(batch) >= BATCH:
                insert(database, batch)
    insert(database, batch)
    database.close()


def insert(database: sqlite3.Connection, batch: list[tuple[str, str, str, str]]) -> None:
    with database:
        database.executemany("INSERT INTO events (type, session, turn, payload) VALUES (?, ?, ?, ?)", batch)
    batch.clear()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
