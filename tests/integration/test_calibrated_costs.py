"""The calibrated cost of a cascade next to the cost of its last stage alone, if calls have a price."""

from __future__ import annotations

import json

import pytest

import dicast
from dicast._kernel.cli import main

MODEL = "{{openai/chat: {{base_url: {url}, model: {name}, price: {{input_per_mtok: {price}, output_per_mtok: 0}}}}}}"
CASCADE = """
name: priced
source: {{rows/jsonl: {{path: rows.jsonl}}}}
judges: [hybrid/cascade: {{ask_all: true, stages: [llm/judge: {{model: {small}}}, llm/judge: {{model: {large}}}]}}]
ledger: {{ledger/sqlite: {{path: ledger.db}}}}
budget: {{day: {day} usd}}
"""


def said(asked):
    """Both models are right; the small one is sure of even rows."""
    sure = asked.body["model"] == "large" or "is even" in asked.prompt
    return json.dumps({"seal": asked.seal, "rationale": "r", "score": 1.0, "confidence": 0.9 if sure else 0.2})


@pytest.fixture
def cascade(tmp_path, monkeypatch, chat_server, capsys):
    """Calibrates the cascade of forty rows, judged for so much money a day, by labels of the even ones and one odd one."""
    monkeypatch.chdir(tmp_path)
    chat_server.answer = said
    kinds = ["even" if number % 2 == 0 else "odd" for number in range(40)]
    rows = [{"id": f"r{number}", "input": "?", "output": f"it is {kind}"} for number, kind in enumerate(kinds)]
    gold = [{"subject_id": f"r{number}", "score": int(kind == "even")} for number, kind in enumerate(kinds)]
    for name, lines in (("rows.jsonl", rows), ("gold.jsonl", gold)):
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))

    def cascade(day):
        models = {
            name: MODEL.format(url=chat_server.url, name=name, price=price)
            for name, price in (("small", 10), ("large", 1000))
        }
        (tmp_path / "file.yaml").write_text(CASCADE.format(**models, day=day))
        dicast.run(tmp_path / "file.yaml")
        capsys.readouterr()
        asked = ["--gold", "gold.jsonl", "--target", "0.8", "--alpha", "0.2", "--signals", "confidence", "--json"]
        assert main(["calibrate", "file.yaml", *asked]) == 0
        return json.loads(capsys.readouterr().out)["cascade"]

    return cascade


@pytest.mark.slow
def test_the_cascade_costs_its_first_stage_and_a_share_of_the_last(cascade):
    """A call takes 100 tokens: .001 usd of the small model, .1 of the large one, which is asked about the odd half."""
    found = cascade(day=50)
    assert found["escalation_rate"] == 0.5
    assert found["cost"] == {"cascade": "2.04", "last_stage_alone": "4"}


@pytest.mark.slow
def test_calls_that_a_cap_kept_from_being_made_make_no_stage_cheaper(cascade):
    assert cascade(day=2)["cost"] == {"cascade": "2.04", "last_stage_alone": "4"}
