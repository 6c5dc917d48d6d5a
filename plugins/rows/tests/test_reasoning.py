"""The option ``strip_reasoning`` of the sources of rows."""

from __future__ import annotations

import json

import pytest

from dicast.testing import run_pipeline
from dicast_rows import Csv, Json, Jsonl, Yaml

ROWS = [
    {"id": "1", "output": "<think>hm</think>\n\nyes"},
    {"id": "2", "output": "plain"},
    {"id": "3", "output": "<think>cut"},
    {"id": "4", "output": {"text": "<think>hm</think>yes"}},
]


@pytest.mark.parametrize("kind", [Jsonl, Json, Yaml, Csv])
def test_reasoning_is_left_out_of_outputs_that_are_texts(tmp_path, kind):
    path = tmp_path / "rows"
    rows = ROWS[:3] if kind is Csv else ROWS
    match kind:
        case _ if kind is Jsonl:
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        case _ if kind is Csv:
            path.write_text("id,output\n" + "".join(f'{row["id"]},"{row["output"]}"\n' for row in rows))
        case _:
            path.write_text(json.dumps(rows))
    for strip, first in ((False, ROWS[0]["output"]), (True, "yes")):
        with kind(path, strip_reasoning=strip).reading() as live:
            subjects = list(live.subjects())
            details = live.read_counts().details
        assert [subject.output for subject in subjects] == [first, *(row["output"] for row in rows[1:])]
        assert details == ({"contents": {"stripped_reasoning": 1}} if strip else {})


def test_column_keeps_the_reasoning_under_its_own_name(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"id": "1", "answer": "<think>hm</think>yes"}) + "\n")
    pipeline = f"source: {{rows/jsonl: {{path: {path}, fields: {{output: answer}}, strip_reasoning: true}}}}\nmetrics: [check/equals: {{value: 'yes'}}]"
    assert run_pipeline(pipeline).document["score"]["mean"] == 1.0
    (subject,) = Jsonl(path, fields={"output": "answer"}, strip_reasoning=True).subjects()
    assert (subject.output, subject.columns["answer"]) == ("yes", "<think>hm</think>yes")
