"""The sink of pages keeps the contract."""

from __future__ import annotations

from dicast.testing import SinkConformance


class TestHtml(SinkConformance):
    sink = "report/html"
    options = {"path": "out/report.html"}
