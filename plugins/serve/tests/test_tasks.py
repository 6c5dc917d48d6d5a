"""Questions of a reader, answered in a real Chromium with three clicks at the most, from the first page.

The task to label twenty subjects is in ``test_labeling.py``, with its keys.
"""

from __future__ import annotations

import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import attrs
import pytest

import dicast
from dicast import Judgment, Subject

from .serving import LABELLING, READING, Server
from .test_dashboard import Tab

pytestmark = pytest.mark.slow

MOST = 3
"""Most clicks until the answer is in sight; a choice in a list is two."""


@attrs.frozen
class Good:
    """A judge that likes the outputs of the second run less, and cannot judge one row."""

    name = "good"

    def estimate(self, subject):
        return dicast.Cost("0.001")

    def judge(self, subject, children):
        number = int(subject.id)
        if number == 7:
            raise ValueError("the endpoint refused")
        score = 0.1 * number if "of run 1" in subject.output and number % 2 == 0 else 0.9
        return Judgment(score, 1.0, "llm", cost=dicast.Cost("0.001"), signals={"reason": "so"})


@attrs.frozen
class Polite:
    """A judge that likes everything."""

    name = "polite"

    def judge(self, subject, children):
        return Judgment(0.9, 1.0, "llm")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server over two runs of each of two names, with a person's label on the later name."""
    folder = tmp_path_factory.mktemp("tasks")
    for name, run in product(("weekly", "nightly"), range(2)):
        note = "" if name == "nightly" else " of the week"
        rows = [
            Subject("row", str(number), f"Question {number}", f"Answer {number} of run {run}{note}")
            for number in range(9)
        ]
        ledger = {"ledger/sqlite": {"path": str(folder / "ledger.db")}}
        pipeline = {
            "name": name,
            "judges": [Good(), Polite()],
            "gate": {"on": "good", "min_score": 0.8},
            "ledger": ledger,
        }
        with ThreadPoolExecutor(1) as executor:  # a thread that playwright has no event loop in
            executor.submit(dicast.run, pipeline, subjects=rows).result()
    running = Server(folder)
    label = json.dumps({"subject_id": "1", "subject_kind": "row", "score": 1}).encode()
    headers = {"authorization": f"Bearer {LABELLING}", "content-type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(f"{running.address}labels", label, headers), timeout=100).close()
    yield running
    running.end()


class Reader:
    """A reader of a page who counts clicks."""

    def __init__(self, page):
        self.page, self.clicks = page, 0

    def click(self, locator):
        self.clicks += 1
        locator.click()

    def choose(self, locator, **choice):
        self.clicks += 2  # one opens the list, one chooses
        locator.select_option(**choice)


def link(page, name):
    return page.get_by_role("link", name=name, exact=True).first


def why_is_the_last_run_worse(reader):
    page = reader.page
    reader.click(link(page, "Compare"))
    page.wait_for_selector(".virtual-row:has-text('Answer 0 of run 1')")
    assert "-0.9" in page.locator(".virtual-row").first.inner_text()


def which_five_are_the_worst(reader):
    reader.click(link(reader.page, "nightly"))
    reader.page.wait_for_selector(".virtual-row")
    ids = [text.split("\n")[1] for text in reader.page.locator(".virtual-row").all_inner_texts()]
    assert ids[:5] == ["7", "0", "2", "4", "6"]


def two_runs_row_by_row(reader):
    page = reader.page
    reader.click(link(page, "Compare"))
    reader.click(page.locator(".virtual-row").first)
    page.wait_for_selector(".against del")


def the_judge_against_people(reader):
    reader.page.wait_for_selector("section[aria-labelledby=agreement] [data-path$='#within']")


def failures_of_the_judge(reader):
    page = reader.page
    reader.click(link(page, "nightly"))
    reader.click(page.get_by_role("button", name="no score 1"))
    page.wait_for_selector("[role=status]:has-text('1 of 9 shown')")
    assert "the endpoint refused" in page.locator(".virtual-row").inner_text()


def where_is_a_text(reader):
    page = reader.page
    reader.click(link(page, "nightly"))
    page.wait_for_selector(".virtual-row")
    page.keyboard.press("/")
    page.keyboard.type("answer 5")
    page.wait_for_selector("[role=status]:has-text('1 of 9 shown')")


def the_trend_of_a_label(reader):
    page = reader.page
    page.wait_for_selector("section[aria-labelledby=last] .course a >> nth=1")
    reader.click(page.get_by_role("button", name="pass rate"))
    page.wait_for_selector("[data-path$='pass_rate']")


def the_trend_of_another_label_of_the_last_run(reader):
    page = reader.page
    reader.choose(page.locator("section[aria-labelledby=last] select"), label="polite")
    page.wait_for_selector("[aria-label='mean of polite in the last runs of nightly']")


def the_trend_of_a_label_in_a_run(reader):
    page = reader.page
    reader.click(link(page, "weekly"))
    reader.click(page.locator(".means").get_by_role("link", name="polite"))
    page.wait_for_selector("[aria-label='mean of polite in the last runs of weekly']")
    assert page.get_by_text("mean of polite", exact=True).count() == 1


def the_trend_of_passes_under_a_label_of_another_pipeline(reader):
    page = reader.page
    reader.click(link(page, "Runs"))
    reader.click(page.locator("tr:has(a:text-is('weekly'))").last.get_by_role("link", name="polite"))
    reader.click(page.get_by_role("button", name="pass rate"))
    page.wait_for_selector("[aria-label='pass rate of polite in the last runs of weekly']")


def what_was_spent(reader):
    reader.page.wait_for_selector("section[aria-labelledby=days] td:has-text('$')")


def an_address_of_a_case(reader):
    page = reader.page
    reader.click(link(page, "nightly"))
    reader.click(page.locator(".virtual-row").nth(1))
    page.wait_for_selector("h1:has-text('0')")
    assert "run=" in page.url


TASKS = (
    *(why_is_the_last_run_worse, which_five_are_the_worst, two_runs_row_by_row, the_judge_against_people),
    *(failures_of_the_judge, where_is_a_text, what_was_spent, an_address_of_a_case),
    *(the_trend_of_a_label, the_trend_of_another_label_of_the_last_run, the_trend_of_a_label_in_a_run),
    the_trend_of_passes_under_a_label_of_another_pipeline,
)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.__name__)
def test_an_answer_is_three_clicks_away(chromium, server, task):
    with Tab(chromium, server, token=READING, wait="section[aria-labelledby=last] .head") as page:
        reader = Reader(page)
        task(reader)
    assert reader.clicks <= MOST
