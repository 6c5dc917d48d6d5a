"""The places of the parts of the main pages, at the width of a phone and of a desk, against ``layouts.json``.

``python -m plugins.serve.tests.test_layouts`` writes the file again. Boxes are compared, not pixels: fonts differ between machines.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

import dicast
from dicast import Judgment, Subject

from .serving import DICAST, READING, Server
from .test_dashboard import Tab

pytestmark = pytest.mark.slow

LAYOUTS = Path(__file__).with_name("layouts.json")
WIDTHS = (375, 1280)
PARTS = {
    "today": (
        ".bar nav",
        ".bar-end",
        "main h1",
        *(f"section[aria-labelledby={name}]" for name in ("last", "quality", "backlog", "news", "days")),
    ),
    "run": (".bar nav", "main h1", ".gate", ".figures", ".trend-of", ".toolbar", ".virtual"),
    "subject": (".bar nav", "main h1", ".steps", ".what", ".said-of"),
    "compare": (".bar nav", "main h1", ".figures-of", ".toolbar", ".virtual"),
    "report": ("h1", ".page-head button", ".gate", ".tiles", "#rows .toolbar", "#rows .virtual"),
    "report-compared": (
        "h1",
        ".gate",
        ".tiles",
        "section[aria-labelledby^=baseline]",
        "#rows .toolbar",
        "#rows .virtual",
    ),
    "report-case": (".drawer-head h2", ".drawer-head .actions", ".side .side:first-child", ".side .side:last-child"),
}
"""The parts of each page, as selectors. Pages of a report start with ``report``."""

PIXELS = 16
"""Largest difference of a left edge or a width, in pixels: a scroll bar, or the digits of another font."""

SHARE = 0.4
"""Largest difference of a height, as a share: another font breaks lines elsewhere."""

BOXES = """(parts) => Object.fromEntries(parts.map((part) => {
  const box = document.querySelector(part).getBoundingClientRect();
  return [part, [box.left, box.top + window.scrollY, box.width, box.height].map(Math.round)];
}))"""

CLIPPED = """() => [...document.querySelectorAll('main *, header *, dialog *')].filter((element) => {
  const style = getComputedStyle(element);
  const isCut = element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0 && style.display !== 'inline';
  return isCut && ['hidden', 'clip'].includes(style.overflowX) && style.textOverflow !== 'ellipsis' && style.clipPath === 'none' && !element.closest('.hidden, svg');
}).map((element) => element.className || element.tagName)"""
"""The elements whose text is cut without a sign."""


@attrs.frozen
class Good:
    """A judge that likes the outputs of the second run less, and cannot judge a row."""

    name = "good"

    def judge(self, subject, children):
        number = int(subject.id.rsplit("-", 1)[1])
        if number == 7:
            raise ValueError("the endpoint refused")
        score = 0.1 * number if "of run 1" in subject.output and number % 2 == 0 else 0.9
        return Judgment(score, 1.0, "llm", signals={"reason": "so"})


def write_runs(folder):
    """Write two runs of one name, with long ids and long texts."""
    for run in range(2):
        rows = [
            Subject(
                "row",
                f"customer-4417-conversation-{number}",
                f"Question {number} " * 20,
                f"Answer {number} of run {run} " * 9,
            )
            for number in range(9)
        ]
        ledger = {"ledger/sqlite": {"path": str(folder / "ledger.db")}}
        pipeline = {"name": "nightly", "judges": [Good()], "gate": {"on": "good", "min_score": 0.8}, "ledger": ledger}
        with ThreadPoolExecutor(1) as executor:  # a thread that playwright has no event loop in
            executor.submit(dicast.run, pipeline, subjects=rows).result()


def write_reports(folder, server):
    """Write a report of the last run, and a report that compares it with the first run."""
    last, first = run_ids(server)
    for name, options in (("report", ()), ("compared", ("--baseline", first))):
        command = [DICAST, "report", last, *options, "--ledger", "ledger.db", "--out", f"{name}.html"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)


def run_ids(server):
    return [run["run_id"] for run in server.get("/runs")["data"]]


@contextmanager
def opened(browser, server, page_name, width):
    """Open a page of the dashboard, or of a report in the folder of the server."""
    if not page_name.startswith("report"):
        wait = ".virtual-row" if ".virtual" in PARTS[page_name] else PARTS[page_name][-1]
        with Tab(browser, server, hashes(server)[page_name], token=READING, width=width, wait=wait) as page:
            yield page
        return
    name = "report" if page_name == "report" else "compared"
    hash = "#row=row%2Fcustomer-4417-conversation-2" if page_name == "report-case" else ""
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = context.new_page()
    page.goto(f"{(server.log.parent / f'{name}.html').as_uri()}{hash}")
    yield page
    context.close()


def hashes(server):
    last, first = run_ids(server)
    return {
        "today": "#/",
        "run": f"#/run/{last}",
        "subject": f"#/subject/row/customer-4417-conversation-2?run={last}",
        "compare": f"#/compare?a={first}&b={last}",
    }


def measured(browser, server, page_name, width):
    """Return the boxes of a page, after checks that need no earlier boxes: its width, and cut texts in both themes."""
    with opened(browser, server, page_name, width) as page:
        for part in PARTS[page_name]:
            page.wait_for_selector(part)
        page.wait_for_function("() => document.querySelector('#dashboard[aria-busy]') === null")
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            assert page.evaluate("document.documentElement.scrollWidth") == width
            assert page.evaluate(CLIPPED) == []
            assert page.evaluate("document.getAnimations().length") == 0
        return page.evaluate(BOXES, list(PARTS[page_name]))


def overlapping(boxes):
    """Return the pairs of *boxes* that cover a common area; the bar at the top is over the page."""
    names = [name for name in boxes if not name.startswith(".bar")]
    pairs = [(first, second) for number, first in enumerate(names) for second in names[number + 1 :]]
    return [pair for pair in pairs if _common(*(boxes[name] for name in pair))]


def _common(first, second):
    return all(
        first[axis] + 1 < second[axis] + second[axis + 2] and second[axis] + 1 < first[axis] + first[axis + 2]
        for axis in (0, 1)
    )


def differences(boxes, earlier):
    """Return the parts that are elsewhere, of another size, or in another order than in *kept*."""
    moved = [
        name
        for name, (left, _, width, height) in boxes.items()
        if abs(left - earlier[name][0]) > PIXELS
        or abs(width - earlier[name][2]) > max(PIXELS, 0.15 * earlier[name][2])
        or abs(height - earlier[name][3]) > max(2 * PIXELS, SHARE * earlier[name][3])
    ]
    orders = [sorted(placed, key=lambda name: (placed[name][0] // 300, placed[name][1])) for placed in (boxes, earlier)]
    return moved or [] if orders[0] == orders[1] else [*moved, "the order"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("layouts")
    write_runs(folder)
    running = Server(folder)
    write_reports(folder, running)
    yield running
    running.end()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page_name", PARTS)
def test_the_parts_of_a_page_keep_their_places(chromium, server, page_name, width):
    boxes = measured(chromium, server, page_name, width)
    earlier = json.loads(LAYOUTS.read_text())[f"{page_name}-{width}"]
    assert overlapping(boxes) == []
    assert differences(boxes, earlier) == [], {"now": boxes, "earlier": earlier}


def test_a_run_is_opened_searched_and_read_by_keys_alone(chromium, server):
    with Tab(chromium, server, "#/runs", token=READING, wait="td") as page:
        page.get_by_role("link", name="nightly").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector(".virtual-row")
        page.keyboard.press("/")
        page.keyboard.type("conversation-4")
        page.wait_for_selector("[role=status]:has-text('1 of 9 shown')")
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.getAttribute('role')") == "row":
                break
        page.keyboard.press("Enter")
        page.wait_for_selector("h1.id:has-text('customer-4417-conversation-4')")
        page.go_back()
        page.wait_for_selector(".virtual-row:focus")


def test_a_part_that_moved_is_a_difference():
    earlier = {"a": [0, 0, 300, 100], "b": [0, 120, 300, 100]}
    assert differences(earlier, earlier) == []
    assert differences({**earlier, "b": [40, 120, 300, 100]}, earlier) == ["b"]
    assert differences({"a": earlier["b"], "b": earlier["a"]}, earlier) == ["the order"]
    assert overlapping({**earlier, "b": [0, 90, 300, 100]}) == [("a", "b")]


if __name__ == "__main__":
    import shutil
    import tempfile

    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        write_runs(Path(name))
        serving = Server(Path(name))
        write_reports(Path(name), serving)
        executable = shutil.which("chromium-headless-shell") or shutil.which("chromium")
        chrome = driver.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        boxes_by_page = {
            f"{page}-{width}": measured(chrome, serving, page, width) for page in PARTS for width in WIDTHS
        }
        chrome.close()
        serving.end()
    LAYOUTS.write_text(
        "{\n" + ",\n".join(f' "{name}": {json.dumps(boxes)}' for name, boxes in boxes_by_page.items()) + "\n}\n"
    )
    sys.stdout.write(f"{LAYOUTS.name}\n")
