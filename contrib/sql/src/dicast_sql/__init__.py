"""SQL over a ledger: the command ``dicast sql``, by DuckDB."""

from __future__ import annotations
