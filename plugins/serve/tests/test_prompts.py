"""The prompts of two runs next to each other, in the API, the comparison of the dashboard, and the report."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

import dicast
from dicast.testing import FakeChatModel, run_pipeline

from .serving import DICAST, READING, Server
from .test_dashboard import Tab, check_accessibility, settled

PROMPTS = {"before": "Answer: {{ input }}", "after": "Answer briefly:\u200b {{ input }}"}


def run(path, name, content="store"):
    (path / "rows.jsonl").write_text('{"id": "a", "input": "Bern?"}\n{"id": "b", "input": "Oslo?"}\n')
    pipeline = {
        "name": name,
        "source": {"rows/jsonl": {"path": str(path / "rows.jsonl")}},
        "task": {"prompt/chat": {"model": "answerer", "system": "Be kind.", "user": PROMPTS[name]}},
        "metrics": ["proxy/format"],
        "ledger": {"ledger/sqlite": {"path": str(path / "ledger.db"), "content": content}},
    }
    components = {"answerer": FakeChatModel(f"{name}, the city", cost=dicast.Cost("0"))}
    with ThreadPoolExecutor(1) as executor:  # a thread that playwright has no event loop in
        executor.submit(run_pipeline, json.dumps(pipeline), components=components).result()


@pytest.fixture
def server(tmp_path):
    """A server over two runs with two prompts."""
    for name in PROMPTS:
        run(tmp_path, name)
    running = Server(tmp_path)
    yield running
    running.end()


@pytest.mark.slow
def test_both_prompts_and_their_differences_are_in_the_comparison(chromium, tmp_path, server):
    after, before = (run_document["run_id"] for run_document in server.get("/runs")["data"])
    assert server.get(f"/runs/{before}")["prompts"] == {"default": {"system": "Be kind.", "user": PROMPTS["before"]}}
    with Tab(chromium, server, f"#/compare?a={before}&b={after}&any=1", token=READING, wait=".prompts ins") as page:
        prompts = page.locator(".prompts")
        assert "system, the same in both runs" in prompts.inner_text()
        assert "".join(prompts.locator("ins").all_inner_texts()[:2]).strip().startswith("briefly")
        assert prompts.locator(".invisible").inner_text() == "U+200B"
        page.wait_for_selector(".virtual-row:has-text('Bern?')")
        assert "before, the city" in page.locator(".virtual-row").first.inner_text()
        settled(page)
        for width in (1280, 375):
            page.set_viewport_size({"width": width, "height": 900})
            check_accessibility(page, width)
        assert page.title() == f"Compare before {before[-6:]} with after {after[-6:]} · dicast"


@pytest.mark.slow
def test_both_prompts_are_in_the_report(chromium, tmp_path, server):
    command = ["report", "after", "--baseline", "before", "--ledger", "ledger.db"]
    subprocess.run([DICAST, *command, "--out", "page.html"], cwd=tmp_path, check=True, capture_output=True)
    page = chromium.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_selector(".prompts ins")
    assert "system, the same in both runs" in page.locator(".prompts").inner_text()
    page.close()
    subprocess.run(
        [DICAST, *command, "--no-content", "--out", "bare.html"], cwd=tmp_path, check=True, capture_output=True
    )
    assert "Answer briefly" not in (tmp_path / "bare.html").read_text()


def test_a_ledger_of_digests_has_digests_of_prompts(tmp_path):
    from dicast_serve.application import once

    run(tmp_path, "before", content="digest")
    with ThreadPoolExecutor(1) as executor:
        prompts = json.loads(executor.submit(once, [tmp_path / "ledger.db"], "/runs/last").result())["prompts"]
    assert list(prompts) == ["default"]
    assert list(prompts["default"]) == ["digest"]
