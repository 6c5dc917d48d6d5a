"""Conformance of the sinks of all three formats."""

from __future__ import annotations

from dicast.testing import SinkConformance


class TestCsvRows(SinkConformance):
    sink = "csv/rows"
    options = {"path": "out/rows.csv"}


class TestEvents(SinkConformance):
    sink = "jsonl/events"
    options = {"path": "out/events.jsonl"}


class TestSomeEvents(SinkConformance):
    sink = "jsonl/events"
    options = {"path": "events.jsonl", "types": ["eval.completed"]}


class TestJsonRows(SinkConformance):
    sink = "jsonl/rows"
    options = {"path": "out/rows.jsonl"}


class TestParquetRows(SinkConformance):
    sink = "parquet/rows"
    options = {"path": "out/rows.parquet"}
