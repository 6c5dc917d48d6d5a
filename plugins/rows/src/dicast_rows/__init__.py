"""Rows from files: JSON lines, CSV, JSON, YAML, Excel workbooks and Parquet."""

from __future__ import annotations

from dicast import Source, hookimpl

from .columns import Parquet
from .document import Json
from .jsonl import Jsonl
from .listing import Yaml
from .table import Csv
from .workbook import Xlsx

__all__ = ["Csv", "Json", "Jsonl", "Parquet", "Xlsx", "Yaml"]


@hookimpl
def dicast_sources() -> list[type[Source]]:
    """Offer ``rows/jsonl``, ``rows/csv``, ``rows/json``, ``rows/yaml``, ``rows/xlsx`` and ``rows/parquet``."""
    return [Jsonl, Csv, Json, Yaml, Xlsx, Parquet]
