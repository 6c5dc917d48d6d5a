"""Rows from files: JSON lines, CSV, JSON, YAML, Excel workbooks and Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dicast import Classes, Source, hookimpl
from dicast.toolkit.named_classes import NamedClasses

if TYPE_CHECKING:
    from .columns import Parquet
    from .document import Json
    from .jsonl import Jsonl
    from .listing import Yaml
    from .table import Csv
    from .workbook import Xlsx

__all__ = ["Csv", "Json", "Jsonl", "Parquet", "Xlsx", "Yaml"]

_SOURCES = NamedClasses(
    __name__,
    {
        "jsonl": ".jsonl:Jsonl",
        "csv": ".table:Csv",
        "json": ".document:Json",
        "yaml": ".listing:Yaml",
        "xlsx": ".workbook:Xlsx",
        "parquet": ".columns:Parquet",
    },
)
__getattr__ = _SOURCES.attribute


@hookimpl
def dicast_sources() -> Classes[Source]:
    """Offer ``rows/jsonl``, ``rows/csv``, ``rows/json``, ``rows/yaml``, ``rows/xlsx`` and ``rows/parquet``."""
    return _SOURCES
