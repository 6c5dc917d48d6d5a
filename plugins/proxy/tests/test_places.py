"""The problem of an option has the place of its value."""

from __future__ import annotations

import pytest

import dicast
from dicast import Failure, Subject
from dicast_proxy import WasRepeated

PIPELINE = """\
source: {{rows/jsonl: {{path: rows.jsonl}}}}
metrics:
  - proxy/{metric}:
      field: answer
      {option}: {value}
"""


@pytest.mark.parametrize(
    ("metric", "option", "value", "message"),
    [
        ("length", "min", "-1", "never negative), got -1"),
        ("length", "max", "-2", "never negative), got -2"),
        ("was_repeated", "similarity", "2.0", "similarity is 2.0"),
        ("keywords", "regex: true, required", "['(']", "required[0]: '(' is wrong"),
        ("keywords", "regex: true, forbidden", "['*']", "forbidden[0]: '*' is wrong"),
        ("tool_params_schema", "tools", "{book: {type: strin}}", '"strin" is no type'),
        ("tool_params_schema", "tools", "{book: {$ref: 'http://127.0.0.1:9/x'}}", "never fetched"),
    ],
)
def test_a_wrong_value_is_placed_at_the_value(tmp_path, metric, option, value, message):
    lines = PIPELINE.format(metric=metric, option=option.replace(", ", "\n      "), value=value)
    (tmp_path / "p.yaml").write_text(lines)
    (tmp_path / "rows.jsonl").write_text('{"output": {"answer": "x"}}\n')
    with pytest.raises(dicast.ConfigError) as caught:
        dicast.run(tmp_path / "p.yaml")
    (problem,) = caught.value.problems
    name = option.rpartition(" ")[2]
    assert message in problem.message
    assert problem.path == f"metrics[0].{name}"
    assert lines.splitlines()[problem.line - 1][problem.column - 1 :] == value


def test_a_cycle_without_a_history_is_told_where_one_comes_from():
    cycle = Subject("tool_cycle", "t1", {"tool_name": "book", "input": {}})
    failure = WasRepeated().score(cycle)
    assert isinstance(failure, Failure)
    assert failure.message == "tool_cycle 't1' has no execution_history: its source gives it with history: true"
