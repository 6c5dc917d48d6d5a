"""The sink keeps the contract."""

from __future__ import annotations

import pytest

from dicast.testing import SinkConformance


class TestMonitor(SinkConformance):
    sink = "azure/monitor"

    @pytest.fixture(autouse=True)
    def endpoint(self, ingested):
        self.options = {"connection_string": ingested.connection_string}
