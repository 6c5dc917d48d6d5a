"""The components for task sets keep the contract."""

from __future__ import annotations

from dicast.testing import GOLDEN, MetricConformance, SourceConformance, sample

SET = """
name: support
tasks:
  - {id: a, goal: one, gold_files: [{path: p, content: c}], metadata: {tags: [x], difficulty: 0.5}}
  - {id: b, goal: two, expected: {fields: {n: {min: 1}}, pass_commands: [pytest]}}
"""


class TestFiles(SourceConformance):
    source = "tasksets/files"
    files = {
        "tasks.yaml": SET,
        "outputs.jsonl": '{"id": "a", "output": [1], "tokens": 3}\n{"id": "b", "output": {"n": 1}}\n',
    }
    options = {"path": "tasks.yaml", "outputs": "outputs.jsonl", "ids": ["a", "b"]}


class TestFolder(SourceConformance):
    source = "tasksets/files"
    files = {"tasks/1.json": '{"id": "a", "goal": "g"}', "tasks/deeper/2.jsonl": '{"id": "b", "goal": "g"}\n'}
    options = {"path": "tasks", "kind": "row"}


class TestExpected(MetricConformance):
    metric = "tasksets/expected"
    options = {"field": "answer"}
    subjects = (*GOLDEN, sample({"answer": {"n": 2}}, id="task", context={"expected": {"fields": {"n": {"min": 1}}}}))
