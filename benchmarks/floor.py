"""The floor: the same file, the same four checks, four JSON rows a row in a plain SQLite file, and nothing else.

``python floor.py ROWS STORE``
"""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path

from workload import CHECKS, check

BATCH = 1000
"""Database rows in a transaction."""


def main(rows: Path, store: Path) -> None:
    database = sqlite3.connect(store)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute("CREATE TABLE results (id INTEGER PRIMARY KEY, row TEXT, name TEXT, body TEXT)")
    batch: list[tuple[str, str, str]] = []
    with rows.open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            for name, value in zip(CHECKS, check(row["output"], row["reference"]), strict=True):
                # What was judged is kept once a row, as dicast keeps it.
                output = row["output"] if name == "format" else None
                body = {"row": row["id"], "name": name, "value": float(value), "output": output}
                batch.append((row["id"], name, json.dumps(body)))
            if len(batch) >= BATCH:
                insert(database, batch)
    insert(database, batch)
    database.close()


def insert(database: sqlite3.Connection, batch: list[tuple[str, str, str]]) -> None:
    with database:
        database.executemany("INSERT INTO results (row, name, body) VALUES (?, ?, ?)", batch)
    batch.clear()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
