"""The sink of verdicts keeps the contract."""

from __future__ import annotations

from dicast.testing import SinkConformance


class TestRows(SinkConformance):
    sink = "csv/rows"
    options = {"path": "out/rows.csv"}
