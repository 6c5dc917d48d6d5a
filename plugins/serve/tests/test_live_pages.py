"""The dashboard of runs that are not over, of a server that is gone, and of a ledger without a run, in a real Chromium."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import attrs
import pytest

import dicast
from dicast import Judgment, Subject

from .serving import LABELLING, READING, Server
from .test_dashboard import Tab, check_accessibility, settled
from .test_growing import immediately

pytestmark = pytest.mark.slow


@attrs.frozen
class Waiting:
    """A judge that judges until a row that it waits at."""

    name = "good"
    gate: threading.Event
    last: int

    async def judge(self, subject, children):
        if int(subject.id) >= self.last:
            await asyncio.to_thread(self.gate.wait, 600)
        return Judgment(0.25 if int(subject.id) % 2 else 0.75, 1.0)


class Slow:
    """A run in a thread that waits after some rows."""

    def __init__(self, folder, *, rows=40, last=20):
        self.gate, self._executor = threading.Event(), ThreadPoolExecutor(1)
        lines = "".join(f'{{"id": "{number}", "input": "q", "output": "a"}}\n' for number in range(rows))
        (folder / "rows.jsonl").write_text(lines)
        pipeline = {
            "name": "slow",
            "source": {"rows/jsonl": {"path": str(folder / "rows.jsonl")}},
            "judges": [Waiting(self.gate, last)],
            "executor": {"dicast/async": {"concurrency": 1}},
            "ledger": {"ledger/sqlite": {"path": str(folder / "ledger.db")}},
        }
        self.result = self._executor.submit(dicast.run, pipeline)

    def end(self):
        self.gate.set()
        self.result.result(600)
        self._executor.shutdown()


def run(folder, name, rows=3):
    subjects = [Subject("row", str(number), f"q{number}", f"a{number}") for number in range(rows)]
    ledger = {"ledger/sqlite": {"path": str(folder / "ledger.db")}}
    open_gate = threading.Event()
    open_gate.set()
    with ThreadPoolExecutor(1) as executor:  # a thread that playwright has no event loop in
        pipeline = {"name": name, "judges": [Waiting(open_gate, 0)], "ledger": ledger}
        executor.submit(dicast.run, pipeline, subjects=subjects).result()


@pytest.fixture
def dead_run():
    """Return a function that writes a run whose process ended after half of its rows, and returns its id."""

    def write(path):
        run(path.parent, "whole", rows=4)
        events = dicast.read_ledger(path, lambda live: [entry.event for entry in live.read(dicast.Query())])
        path.unlink()
        opening = dicast.component("ledger", {"ledger/sqlite": {"path": str(path)}}).open(None, create=True)
        live = immediately(opening.__aenter__())
        live.append([event for event in events if event.type not in ("run.completed", "aggregate.completed")][:8])
        immediately(opening.__aexit__(None, None, None))
        return events[0].run_id

    return write


@pytest.fixture
def server(tmp_path, unused_port):
    """A server that starts before the first run."""
    running = Server(tmp_path, unused_port())
    yield running
    running.end()


def test_the_first_run_and_its_progress_appear_without_a_reload(chromium, tmp_path, server):
    note = "ledger.db does not exist yet; the dashboard is empty until a run writes it."
    assert server.process.stdout.readline().strip().endswith(note)
    with Tab(chromium, server, wait="h2:has-text('Nothing has been judged yet')") as page:
        slow = Slow(tmp_path)
        try:
            page.wait_for_selector("section:has-text('of 40 subjects judged')")
            page.get_by_role("link", name="slow").first.click()
            page.wait_for_selector(".progress")
            page.wait_for_function("() => document.querySelector('.progress [data-path$=judged]')?.dataset.value > 0")
            judged = int(page.locator(".progress [data-path$='#judged']").get_attribute("data-value"))
            assert 0 < judged <= 21
            assert page.title() == f"slow · run {page.url[-6:]} · dicast"
            assert page.locator(".mark:has-text('running')").count() == 1
            assert "mean of good so far" in page.locator(".progress").inner_text()
            settled(page)
            for width in (1280, 375):
                page.set_viewport_size({"width": width, "height": 900})
                check_accessibility(page, width)
        finally:
            slow.end()
        page.wait_for_selector(".gate")
        page.wait_for_selector("[role=status]:has-text('40 of 40 shown')")
        assert page.locator(".progress").count() == 0


def test_figures_remain_and_are_marked_as_old_while_the_server_is_gone(chromium, tmp_path, server):
    run(tmp_path, "nightly")
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{server.address}?token={READING}#/runs")
    page.wait_for_selector(".state.pass")
    page.get_by_role("link", name="nightly").wait_for()
    server.end()
    page.wait_for_selector(".old:has-text('has not answered since')")
    assert page.locator(".old strong").inner_text().endswith(" UTC")
    assert page.get_by_role("link", name="nightly").is_visible()
    again = Server(tmp_path, server.port)
    try:
        page.wait_for_selector(".state.pass")
        page.wait_for_function("() => document.querySelector('.old').textContent === ''")
    finally:
        again.end()
        context.close()


@pytest.mark.parametrize("earlier", ["#/runs", "#/label?queue=odds"])
def test_the_queue_of_labels_is_read_once_the_server_answers_again(chromium, tmp_path, server, earlier):
    run(tmp_path, "nightly")
    context = chromium.new_context()
    context.add_init_script("localStorage.setItem('dicast.labeller', 'ada')")
    page = context.new_page()
    page.goto(f"{server.address}?token={LABELLING}")
    page.wait_for_selector(".state.pass")
    page.evaluate("(address) => { location.hash = address; }", earlier)
    settled(page)
    server.end()
    page.evaluate("() => { location.hash = '#/label?queue=unlabeled'; }")
    page.wait_for_selector("main .warnings:has-text('does not answer')")
    again = Server(tmp_path, server.port)
    try:
        page.wait_for_selector("main:has-text('q0'), main:has-text('q1'), main:has-text('q2')", timeout=25000)
        assert page.locator("main .warnings").count() == 0
    finally:
        again.end()
        context.close()


def test_another_token_is_named_with_the_address_to_open(chromium, tmp_path, server):
    run(tmp_path, "nightly")
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{server.address}?token={LABELLING}#/runs")
    page.get_by_role("link", name="nightly").wait_for()
    server.end()
    again = Server(tmp_path, server.port, labelling="another-token-0123456789")
    try:
        page.wait_for_selector(".old:has-text('does not accept the token')")
        assert "/?token=" in page.locator(".old").inner_text()
        assert page.get_by_role("link", name="nightly").is_visible()
        page.reload()
        assert page.locator("h1").inner_text() == "This dashboard has another token than your browser"
    finally:
        again.end()
        context.close()


def test_back_returns_to_the_place_and_the_row(chromium, tmp_path, server):
    run(tmp_path, "nightly", rows=200)
    with Tab(chromium, server, "#/runs") as page:
        page.get_by_role("link", name="nightly").click()
        page.wait_for_selector(".virtual-row")
        page.evaluate("document.querySelector('.virtual').scrollTop = 44 * 60; window.scrollTo(0, 220)")
        page.wait_for_selector(".virtual-row[data-place='62']")
        page.wait_for_function(
            "() => !document.querySelector('.virtual-row[data-place=\"62\"]').textContent.includes('…')"
        )
        scrolled = page.evaluate("window.scrollY")
        page.evaluate("document.querySelector('.virtual-row[data-place=\"62\"]').click()")
        page.wait_for_selector("h1.id")
        assert page.evaluate("window.scrollY") == 0
        id = page.locator("h1.id").inner_text()
        page.wait_for_function(f"() => document.title === '{id} · row in nightly · dicast'")
        page.go_back()
        page.wait_for_selector(".virtual-row:focus")
        page.wait_for_function(f"() => window.scrollY === {scrolled}")
        assert page.locator(".virtual-row:focus").get_attribute("data-place") == "62"
        page.go_forward()
        page.wait_for_selector(f"h1.id:has-text('{id}')")


def test_a_table_keeps_its_place_while_rows_are_added(chromium, tmp_path, server):
    slow = Slow(tmp_path, rows=300, last=250)
    try:
        with Tab(chromium, server, wait=".progress") as page:
            page.wait_for_function(
                "() => Number(document.querySelector('.progress [data-path$=judged]')?.dataset.value) > 240"
            )
            page.get_by_role("link", name="slow").first.click()
            page.wait_for_selector(".virtual-row")
            page.evaluate("document.querySelector('.virtual').scrollTop = 44 * 100")
            page.wait_for_selector(".virtual-row[data-place='101']")
            top = page.evaluate("document.querySelector('.virtual').scrollTop")
            slow.end()
            page.wait_for_selector("[role=status]:has-text('300 of 300 shown')")
            assert page.evaluate("document.querySelector('.virtual').scrollTop") == top
    finally:
        slow.end()


def test_a_comparison_with_a_running_run_is_read_again_as_it_grows(chromium, tmp_path, server):
    run(tmp_path, "slow", rows=40)
    slow = Slow(tmp_path, rows=40, last=20)
    try:
        with Tab(chromium, server, "#/compare?any=1", wait=".virtual-row") as page:
            page.wait_for_selector("[role=status]:has-text('has not ended')")
            pair = page.url.partition("#/compare?")[2]
            run(tmp_path, "later")
            page.wait_for_selector("option:has-text('later')", state="attached")
            assert page.url.partition("#/compare?")[2] == pair
            slow.end()
            page.wait_for_selector("[role=status]:has-text('40 of 40 shown')")
            page.wait_for_selector("[data-path$='].n'][data-value='40']")
    finally:
        slow.end()


def test_a_run_whose_process_died_is_dead_and_not_running(chromium, tmp_path, server, dead_run):
    run_id = dead_run(tmp_path / "ledger.db")
    with Tab(chromium, server, f"#/run/{run_id}", wait=".progress .note") as page:
        assert f"dicast run FILE --resume {run_id}" in page.locator(".progress .note").inner_text()
        assert page.locator(".mark:has-text('dead')").count() == 1
        page.get_by_role("link", name="Today").click()
        page.wait_for_selector("main h1")
        settled(page)
        assert page.locator("h2:has-text('Running')").count() == 0
        page.get_by_role("link", name="Runs", exact=True).click()
        page.wait_for_selector(f"[data-path*='{run_id}/progress'][data-path$='#judged']")
        figures = {
            path: page.locator(f"[data-path$='progress#{path}']").get_attribute("data-value")
            for path in ("judged", "cost.usd")
        }
        progress = server.get(f"/runs/{run_id}/progress")
    assert figures == {"judged": progress["judged"], "cost.usd": progress["cost"]["usd"]}
