"""The sinks keep the contract."""

from __future__ import annotations

import pytest

from dicast.testing import SinkConformance


class TestOtel(SinkConformance):
    sink = "telemetry/otel"

    @pytest.fixture(autouse=True)
    def endpoint(self, receiver):
        self.options = {"endpoint": receiver.url}


class TestLog(SinkConformance):
    sink = "telemetry/log"
    options = {"level": "debug"}
