"""The row sources keep the contract."""

from __future__ import annotations

from dicast.testing import SourceConformance


class TestJsonl(SourceConformance):
    source = "rows/jsonl"
    files = {"rows.jsonl": '{"id": "a", "output": "yes", "tags": [1]}\n\n{"id": "b", "output": {"answer": 4}}\n'}
    options = {"path": "rows.jsonl"}


class TestCsv(SourceConformance):
    source = "rows/csv"
    files = {"rows.csv": 'qid,answer\n1,"two\nlines"\n2,\u4f60\u597d\n'}
    options = {"path": "rows.csv", "fields": {"id": "qid", "output": "answer"}}
