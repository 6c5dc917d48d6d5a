"""The append-only, hash-chained ledger in SQLite."""
