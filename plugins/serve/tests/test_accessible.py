"""Every page of the dashboard under axe: wide and narrow, light and dark, read, while it loads, and without its server."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs
import pytest

import dicast
from dicast import Judgment, Subject

from .serving import LABELLING, Server
from .test_dashboard import Held

pytestmark = pytest.mark.slow

AXE_FILE = os.environ.get("DICAST_AXE")
"""Path of another ``axe.min.js`` than the installed one, such as a newer version."""

VIEWS = {
    "today": "#/",
    "runs": "#/runs",
    "run": "#/run/{new}",
    "run against a baseline": "#/run/{new}?baseline={old}&label=good",
    "no row": "#/run/{new}?q=nothing",
    "no such run": "#/run/none",
    "case": "#/subject/row/r1?run={new}",
    "case against a baseline": "#/subject/row/r1?run={new}&baseline={old}",
    "case without a score": "#/subject/row/r7?run={new}",
    "case with a long output": "#/subject/row/r8?run={new}",
    "long outputs compared": "#/subject/row/r8?run={new}&baseline={old}",
    "no such case": "#/subject/row/none",
    "compare": "#/compare?a={old}&b={new}",
    "label": "#/label?run={new}",
    "no such page": "#/nothing",
}
LONG = "\n\nIt is a long answer, which scrolls in its box." * 200
"""The rest of the output of the last row."""

THEMES = ("light", "dark")
ALL_RULES = {"rules": {"target-size": {"enabled": True}}}  # axe leaves this rule of WCAG 2.2 out by default
COLOR_RULES = {"runOnly": ["color-contrast"]}
"""Options of axe for the first theme, and for the second, which differs in colors alone."""

WIDTHS = (1280, 375)

SMALL_TARGETS = """() => [...document.querySelectorAll("a, button, input, select, summary, textarea")].filter((target) => {
  const { width, height } = target.getBoundingClientRect();
  const isInSentence = target.matches("p a") && target.closest("p").textContent !== target.textContent;
  return width > 1 && (width < 24 || height < 24) && !isInSentence;
}).map((target) => target.outerHTML.slice(0, 200))"""
"""Targets of less than 24 by 24 pixels. Hidden ones have a pixel or none; WCAG 2.5.8 leaves out links in sentences."""


@attrs.frozen
class Good:
    """A judge that prefers the outputs of the first run, and cannot judge one row."""

    name: str

    def judge(self, subject, children):
        number = int(subject.id[1:])
        if number == 7:
            raise ValueError(
                "the endpoint refused the request, since its quota of this day is used up by other callers"
            )
        score = 0.1 * number if "new" in subject.output and number % 2 == 0 else 0.9
        return Judgment(score, 0.8, "llm", signals={"reason": "The answer names **a place** and no source."})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a ledger of two runs of one name, with two labels."""
    path = tmp_path_factory.mktemp("accessible")
    for run in ("old", "new"):
        rows = [
            Subject(
                "row",
                f"r{number}",
                f"Question {number}",
                f"Answer {number}, {run}" + LONG * (number == 8),
                reference="Answer",
            )
            for number in range(9)
        ]
        ledger = {"ledger/sqlite": {"path": str(path / "ledger.db")}}
        gate = {"on": "good", "min_score": 0.8}
        pipeline = {"name": "nightly", "judges": [Good("good"), Good("kind")], "gate": gate, "ledger": ledger}
        with ThreadPoolExecutor(1) as executor:  # a thread that playwright has no event loop in
            executor.submit(dicast.run, pipeline, subjects=rows).result()
    return path


@pytest.fixture
def server(folder):
    """A server over that ledger, which a test may end."""
    running = Server(folder)
    yield running
    running.end()


@pytest.fixture
def page(chromium, server):
    """A page in a browser that has the token of a labeller."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    context.add_init_script("localStorage.setItem('dicast.labeller', 'ada')")
    page = context.new_page()
    page.goto(f"{server.address}?token={LABELLING}")
    page.wait_for_selector("main h1")
    yield page
    context.close()


def address_of(server, view):
    new, old = (run["run_id"] for run in server.get("/runs")["data"])
    return VIEWS[view].format(old=old, new=new)


def open_view(page, server, view):
    """Open a view and wait until all its answers are there."""
    page.goto("about:blank")
    page.goto(f"{server.address}{address_of(server, view)}")
    page.wait_for_selector("main > *")
    page.wait_for_function("() => document.querySelector('#dashboard[aria-busy]') === null")


def violations(page):
    """Return the violations that axe finds in each theme and width, and the cells where the page is wider than its window."""
    from axe_playwright_python.sync_playwright import Axe

    axe = Axe() if AXE_FILE is None else Axe.from_file(Path(AXE_FILE))
    faults = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("() => document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        if page.evaluate("document.documentElement.scrollWidth") != width:
            faults.append((width, "wider than the window"))
        if width == min(WIDTHS):
            faults += [(width, "small target", target) for target in page.evaluate(SMALL_TARGETS)]
        for theme in THEMES:
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            report = axe.run(page, options=ALL_RULES if theme == THEMES[0] else COLOR_RULES)
            faults += [
                (width, theme, fault["id"], node["html"][:200])
                for fault in report.response["violations"]
                for node in fault["nodes"]
            ]
    return faults


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_no_violation(page, server, view):
    open_view(page, server, view)
    assert violations(page) == []


def test_a_narrow_window_shows_the_whole_score_of_a_run_with_several_labels(page, server):
    page.set_viewport_size({"width": 375, "height": 900})
    open_view(page, server, "runs")
    page.wait_for_selector(".by-label .strong [data-path]")
    page.eval_on_selector_all(".by-label a", "(all) => all.forEach((one) => { one.textContent = 'is_correct'; })")
    ends = page.eval_on_selector_all(
        ".by-label .strong [data-path]",
        "(all) => all.map((one) => [one.getBoundingClientRect().right, one.closest('.scroll').getBoundingClientRect().right])",
    )
    assert ends
    assert all(right <= edge for right, edge in ends)


def test_a_case_names_the_labels_that_decide_its_outcome(page, server):
    def answer(route):
        document = route.fetch().json()
        assert {one["label"] for one in document["labels"] if one["decides"]} >= {"good"}
        labels = [("good", "fail", True), ("kind", "pass", True), ("other", "fail", False)]
        names = ("label", "outcome", "decides")
        document |= {
            "outcome": "fail",
            "labels": [dict(zip(names, each, strict=True)) | {"pass_at": 0.5} for each in labels],
        }
        route.fulfill(json=document)

    page.route("**/neighbors?**", answer)
    open_view(page, server, "case")
    page.wait_for_selector(".said-of h2 .mark")
    assert " ".join(page.locator(".said-of h2").inner_text().split()) == "Verdicts ✗ fail (by good)"


@pytest.mark.parametrize("query", ["", "?token=of-another-server"], ids=["no token", "another token"])
def test_the_page_of_a_browser_without_the_token_has_no_violation(chromium, server, query):
    context = chromium.new_context()
    page = context.new_page()
    try:
        page.goto(f"{server.address}{query}")
        page.wait_for_selector("h1:has-text('token')")
        assert violations(page) == []
    finally:
        context.close()


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_no_violation_while_it_loads(page, server, view):
    address = address_of(server, view)
    held = Held(page, re.compile(r"/(runs|analytics|labels|compare|judges|session)\b"))
    page.goto("about:blank")
    page.goto(f"{server.address}{address}")
    page.wait_for_selector("main > *")
    page.wait_for_selector("#dashboard[aria-busy=true]")
    held.wait()
    assert page.locator("html[aria-busy], body[aria-busy]").count() == 0
    assert violations(page) == []


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_no_violation_without_its_server(page, server, view):
    open_view(page, server, view)
    server.end()
    page.wait_for_selector(".old p")
    assert violations(page) == []


@pytest.mark.parametrize("view", ["run", "case", "compare", "label"])
def test_a_view_that_opens_without_its_server_has_no_violation(page, server, view):
    open_view(page, server, "no such page")
    address = address_of(server, view)
    server.end()
    page.evaluate("(address) => { location.hash = address; }", address)
    page.wait_for_selector(".old p")
    assert violations(page) == []
