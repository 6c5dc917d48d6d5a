"""Payments for failed rows count in the summary of costs."""

from __future__ import annotations

import json

import pytest

from dicast import Cost, Failure, Reply, Usage
from dicast.testing import FakeChatModel, run_pipeline

PIPELINE = """\
source: {{rows/jsonl: {{path: {path}}}}}
task:
  prompt/chat:
    model: fake
    retries: 0
    criteria: {{one: {{user: "one {{{{ input }}}}"}}, two: {{user: "two {{{{ input }}}}"}}}}
aggregates: [stats/cost_summary]
ledger: {{ledger/sqlite: {{path: {ledger}}}}}
budget: {{run: 10 usd}}
"""


def bought(text, cents):
    return Reply(text, usage=Usage(10, 4), cost=Cost(f"0.0{cents}"))


def answers(request):
    text = request.messages[-1].content
    if text == "two b":
        return Failure("judge_call_failed", "cut off", cost=Cost("0.05"))
    if text == "two c":
        return bought("", 6)
    return bought("fine", 1)


@pytest.fixture
def run(tmp_path):
    def go(rows="abc"):
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"id": row, "input": row}) + "\n" for row in rows))
        text = PIPELINE.format(path=tmp_path / "rows.jsonl", ledger=tmp_path / "l.db")
        return run_pipeline(text, components={"fake": FakeChatModel(answers, cost=Cost("0.06"))})

    return go


def test_the_requests_of_failed_rows_count(run):
    done = run().document
    result = done["aggregates"]["stats/cost_summary"]
    assert done["failures"] == {"judge_call_failed": 1, "judge_output_invalid": 1}
    assert (result["total_requests"], result["requests_with_cost"]) == (6, 6)
    assert result["cost"]["total"] == pytest.approx(0.01 + 0.01 + 0.01 + 0.05 + 0.01 + 0.06)
    assert result["cost"]["total"] == pytest.approx(float(done["cost"]["usd"]))
    assert result["prompt_tokens"]["total"] == 50  # the request that was cut off reports none


def test_a_failed_row_without_requests_counts_for_none(run):
    done = run("a").document
    assert done["aggregates"]["stats/cost_summary"]["total_requests"] == 2
