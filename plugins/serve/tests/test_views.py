"""Views of one run in Chromium: equal controls give equal results, and each figure names its label."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import attrs
import pytest

import dicast
from dicast import Judgment, Subject

from .serving import Server
from .test_dashboard import Tab, settled

pytestmark = pytest.mark.slow

ROWS = 6

SHOWN = "() => [...document.querySelectorAll('.text')].filter((box) => box.textContent.includes('Answer 2 of') && box.checkVisibility()).length"
"""The number of boxes that show an output; a folded one is not shown."""


@attrs.frozen
class Judge:
    """A judge that cannot judge the rows in *unjudged*, and passes every second of the others."""

    name: str
    unjudged: frozenset[str] = frozenset()

    def judge(self, subject, children):
        if subject.id in self.unjudged:
            raise ValueError("the endpoint refused")
        return Judgment(float(int(subject.id[1:]) % 2 == 0), 0.9, "llm")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server over two runs, whose gate is about a judge that judges all rows."""
    folder = tmp_path_factory.mktemp("views")
    for number in range(2):
        rows = [Subject("row", f"r{row}", "Which?", f"Answer {row} of {number}") for row in range(ROWS)]
        judges = [Judge("good"), Judge("kind", frozenset({"r1"}))]
        gate = {"on": "good", "min_score": 0.75}
        ledger = {"ledger/sqlite": {"path": str(folder / "ledger.db")}}
        pipeline = {"name": "nightly", "judges": judges, "gate": gate, "ledger": ledger}
        with ThreadPoolExecutor(1) as executor:  # a thread that playwright has no event loop in
            executor.submit(dicast.run, pipeline, subjects=rows).result()
    running = Server(folder)
    yield running
    running.end()


@pytest.mark.parametrize(("label", "others"), [("", {"kind"}), ("good", {"kind"}), ("kind", {"good"})])
def test_a_label_is_chosen_in_one_place_and_has_one_column(chromium, server, label, others):
    run = server.get("/runs")["data"][0]["run_id"]
    address = f"#/run/{run}" + (f"?label={label}" if label else "")
    with Tab(chromium, server, address, wait=".virtual-row") as page:
        settled(page)
        heads = page.locator(".virtual-head").inner_text().split("\n")
        assert "score" in heads
        assert {"good", "kind"} & set(heads) == others
        assert page.locator(".toolbar").get_by_label("label").input_value() == label


def test_counts_are_of_the_shown_label_and_name_the_label_that_failed(chromium, server):
    with Tab(chromium, server, "#/", wait="section[aria-labelledby=last] .big") as page:
        settled(page)
        last = page.locator("section[aria-labelledby=last]")
        assert "6 of 6 scored, 1 without a score of kind" in last.inner_text()
        last.get_by_role("link", name="1 without a score of kind").click()
        page.wait_for_selector(".virtual-row")
        settled(page)
        assert page.locator(".virtual-row .id").all_inner_texts() == ["r1"]


def test_verdicts_without_a_model_are_named_and_costs_have_no_score(chromium, server):
    with Tab(chromium, server, "#/", wait="section[aria-labelledby=quality] table") as page:
        settled(page)
        quality = page.locator("section[aria-labelledby=quality]").inner_text()
        costs = page.locator("section[aria-labelledby=cost]").inner_text()
    assert "no model" in quality
    assert "not known" not in quality
    assert "mean" not in costs


def test_the_trend_of_the_first_page_has_the_line_of_the_gate_and_rates_are_written_alike(chromium, server):
    with Tab(chromium, server, "#/", wait="section[aria-labelledby=last] .course") as page:
        settled(page)
        last = page.locator("section[aria-labelledby=last]")
        assert last.locator(".cut").count() == 1
        assert "pass rate 0.500" in last.inner_text()
        last.get_by_role("button", name="pass rate").click()
        assert last.locator(".cut").count() == 0  # the gate has a line for the mean alone
        assert "%" not in last.inner_text()


@pytest.mark.parametrize("key", ["Enter", "ArrowDown"])
def test_a_key_goes_from_the_search_to_the_first_row(chromium, server, key):
    run = server.get("/runs")["data"][0]["run_id"]
    with Tab(chromium, server, f"#/run/{run}", wait=".virtual-row") as page:
        page.locator(".search input").press(key)
        page.wait_for_selector(".virtual-row:focus")


@pytest.mark.parametrize("width", [375, 1280])
def test_a_case_against_a_baseline_shows_its_output_once(chromium, server, width):
    new, old = (run["run_id"] for run in server.get("/runs")["data"])
    with Tab(chromium, server, f"#/subject/row/r2?run={new}&baseline={old}", width=width, wait=".against ins") as page:
        page.wait_for_selector(".folded")
        assert page.evaluate(SHOWN) == (1 if width == 375 else 2)
        page.get_by_text("The output by itself").click()
        assert page.evaluate(SHOWN) == (2 if width == 375 else 3)
