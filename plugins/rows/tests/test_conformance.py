"""The row sources keep the contract."""

from __future__ import annotations

import pytest

from dicast.testing import SourceConformance


class TestJsonl(SourceConformance):
    source = "rows/jsonl"
    files = {"rows.jsonl": '{"id": "a", "output": "yes", "tags": [1]}\n\n{"id": "b", "output": {"answer": 4}}\n'}
    options = {"path": "rows.jsonl"}


class TestCsv(SourceConformance):
    source = "rows/csv"
    files = {"rows.csv": 'qid,answer\n1,"two\nlines"\n2,\u4f60\u597d\n'}
    options = {"path": "rows.csv", "fields": {"id": "qid", "output": "answer"}}


class TestTsv(SourceConformance):
    source = "rows/csv"
    files = {"rows.tsv": "1\tyes\n2\tno\n"}
    options = {"path": "rows.tsv", "header": ["id", "output"]}


class TestJson(SourceConformance):
    source = "rows/json"
    files = {"rows.json": '{"data": [{"id": "a", "output": "yes"}, {"id": "b", "output": {"answer": 4}}]}'}
    options = {"path": "rows.json", "at": "data"}


class TestYaml(SourceConformance):
    source = "rows/yaml"
    files = {"rows.yaml": "- {id: a, output: yes}\n- {id: b, output: {answer: 4}}\n"}
    options = {"path": "rows.yaml"}


class TestParquet(SourceConformance):
    source = "rows/parquet"
    options = {"path": "rows.parquet"}

    @pytest.fixture(autouse=True)
    def rows(self, bench):
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.table({"output": ["yes", "no"]}), bench.folder / "rows.parquet")
