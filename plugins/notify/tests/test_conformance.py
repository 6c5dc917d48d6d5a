"""The sink keeps the contract."""

from __future__ import annotations

import pytest

from dicast.testing import SinkConformance


class TestWebhook(SinkConformance):
    sink = "notify/webhook"

    @pytest.fixture(autouse=True)
    def channel(self, receiver):
        self.options = {"url": receiver.url, "when": "always"}
