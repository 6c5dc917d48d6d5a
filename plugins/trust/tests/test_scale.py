"""``dicast plan --scale``: estimates of large runs from trials on this machine."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import dicast
from dicast_trust.plan.command import make_plan, plan
from dicast_trust.plan.request import PlanRequest

MILLION, HUNDRED_MILLION, BILLION = 10**6, 10**8, 10**9

FREE = """
name: free
source: {rows/jsonl: {path: rows.jsonl}}
metrics: [check/contains: {value: x}]
sinks: [jsonl/rows: {path: out.jsonl}]
"""

PAID = """
name: paid
source: {rows/jsonl: {path: rows.jsonl}}
judges:
  - llm/judge:
      model: {openai/chat: {base_url: "URL", model: m, price: {input_per_mtok: 1, output_per_mtok: 2}}}
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = (json.dumps({"id": str(number), "input": "?", "output": f"x {number}"}) for number in range(400))
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    (tmp_path / "free.yaml").write_text(FREE)
    return tmp_path


def scaled(file, **options):
    return make_plan(PlanRequest(file, scale=True, **options))["scale"]


@pytest.mark.slow
def test_judges_without_cost_are_measured_and_nothing_is_written_beside_the_plan(project):
    scale = scaled(project / "free.yaml")
    slopes, (small, middle, large) = scale["slopes"], scale["verdicts"]
    assert slopes["verdicts_per_subject"] == 1
    assert 0 < slopes["cpu"]["low"] <= slopes["cpu"]["mid"] <= slopes["cpu"]["high"]
    assert small["core_hours"] == pytest.approx(slopes["cpu"]["mid"] * MILLION / 3600)
    assert [estimate["verdicts"] for estimate in scale["verdicts"]] == [MILLION, HUNDRED_MILLION, BILLION]
    for name in ("hours", "core_hours", "bytes"):
        assert middle[name] == pytest.approx(100 * small[name], rel=1e-6)
        assert large[name] == pytest.approx(1000 * small[name], rel=1e-6)
    assert large["cores"] >= large["core_hours"] / 24 > large["cores"] - 1 or large["cores"] == 1
    assert small["cost"]["usd"]["high"] == "0"
    types = [entry.event.type for entry in dicast.read_ledger(None, lambda ledger: list(ledger.read(dicast.Query())))]
    assert types == ["plan.made"]
    assert not (project / "out.jsonl").exists()


@pytest.mark.slow
def test_a_trial_has_the_options_of_the_ledger(project):
    lines = (json.dumps({"id": str(number), "output": f"x {number} {number * 7**40}"}) for number in range(400))
    (project / "rows.jsonl").write_text("\n".join(lines))
    sizes = []
    for content in ("store", "digest"):
        (project / "p.yaml").write_text(f"{FREE}ledger: {{ledger/sqlite: {{path: p.db, content: {content}}}}}\n")
        sizes.append(scaled(project / "p.yaml")["slopes"]["bytes"]["mid"])
    assert sizes[1] < sizes[0]


def test_a_judge_that_costs_money_is_not_called(project, chat_server):
    (project / "paid.yaml").write_text(PAID.replace("URL", chat_server.url))
    scale = scaled(project / "paid.yaml")
    assert not chat_server.requests
    assert scale["slopes"] is None
    assert set(scale["reasons"]) == {"core_hours", "bytes"}
    estimate = scale["verdicts"][0]
    assert (estimate["hours"], estimate["core_hours"], estimate["cores"], estimate["bytes"]) == (None,) * 4
    assert estimate["cost"]["usd"]["mid"] is None
    assert float(estimate["cost"]["usd"]["high"]) > 0


@pytest.mark.slow
def test_an_earlier_run_has_the_cost_the_time_and_the_bytes_of_paid_verdicts(project, chat_server):
    (project / "paid.yaml").write_text(PAID.replace("URL", chat_server.url))
    run = dicast.run(project / "paid.yaml", overrides=["budget.session=100 usd", "budget.day=100 usd"])
    asked = len(chat_server.requests)
    scale = scaled(project / "paid.yaml", overrides=("budget.session=100 usd", "budget.day=100 usd"))
    assert len(chat_server.requests) == asked
    estimate = scale["verdicts"][0]
    total = float(run.cost["usd"])
    assert float(estimate["cost"]["usd"]["mid"]) == pytest.approx(total / 400 * MILLION, rel=1e-6)
    assert estimate["hours"] > 0
    assert 50 < estimate["bytes"] / MILLION < 10_000
    assert set(scale["reasons"]) == {"core_hours"}


def test_too_few_subjects_for_a_slope_are_refused(project):
    (project / "rows.jsonl").write_text('{"id": "1", "output": "x"}\n')
    with pytest.raises(dicast.ConfigError, match=r"the source has 1 subjects, but --scale needs 8 or more"):
        scaled(project / "free.yaml")


def test_the_table_fits_a_terminal(project, chat_server):
    (project / "paid.yaml").write_text(PAID.replace("URL", chat_server.url))
    result = CliRunner().invoke(plan, ["paid.yaml", "--scale"], catch_exceptions=False)
    table = result.output.splitlines()[-6:-2]
    assert table[0].split("  ")[-1].strip() == "cost"
    assert [line.split()[0] for line in table[1:]] == ["1,000,000", "100,000,000", "1,000,000,000"]
    assert max(map(len, table)) <= 80
