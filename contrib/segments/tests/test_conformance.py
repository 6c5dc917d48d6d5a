"""The conformance tests of the ledger, in a folder and in S3."""

from __future__ import annotations

import uuid

import pytest

from dicast.testing import LedgerConformance


class TestFolder(LedgerConformance):
    ledger = "segments/ledger"
    options = {"path": "logs"}


class TestS3(LedgerConformance):
    ledger = "segments/ledger"

    @pytest.fixture(autouse=True)
    def _place(self, bucket, monkeypatch):
        monkeypatch.setattr(type(self), "options", {"url": f"{bucket}/{uuid.uuid4().hex}"}, raising=False)
