"""The sink of rows keeps the contract."""

from __future__ import annotations

from dicast.testing import SinkConformance


class TestRows(SinkConformance):
    sink = "parquet/rows"
    options = {"path": "out/rows.parquet"}
