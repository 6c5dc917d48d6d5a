"""The first page and the page for labels after a gate and labels of people, in a real Chromium."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import attrs
import pytest

import dicast
from dicast import Judgment, Subject

from .serving import Server
from .test_dashboard import NUMBERS, Held, Tab, settled, wrong_numbers
from .test_label_queues import label, open_client

pytestmark = pytest.mark.slow


@attrs.frozen
class Judge:
    """A judge that passes the first *passing* of ten subjects."""

    name: str
    passing: int

    def judge(self, subject, children):
        number = int(subject.id.removeprefix("r"))
        return Judgment(0.6 if number < self.passing else 0.4, 1.0)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server over runs of two pipelines; people have labeled four subjects of the newer run."""
    folder = tmp_path_factory.mktemp("first_page")
    rows = [Subject("row", f"r{number}", "q", f"a{number}") for number in range(10)]

    def write():
        for name in ("other", "nightly"):
            judges = [Judge("first", 5), Judge("second", 2)]
            ledger = {"ledger/sqlite": {"path": str(folder / "ledger.db")}}
            gate = {"on": "second", "min_score": 0.1}
            dicast.run({"name": name, "judges": judges, "gate": gate, "ledger": ledger}, subjects=rows)
        with open_client(folder / "ledger.db") as client:
            for number, score in ((0, 1), (1, 1), (2, 1), (9, 0)):
                label(client, number, score)

    with ThreadPoolExecutor(1) as executor:  # a thread that playwright has no event loop in
        executor.submit(write).result()
    running = Server(folder)
    yield running
    running.end()


def test_agreement_starts_with_the_gates_judge_and_counts_passes(chromium, server):
    with Tab(chromium, server, wait="[aria-labelledby=agreement] .big") as page:
        agreement = page.locator("[aria-labelledby=agreement]")
        assert agreement.locator("select").first.input_value() == "second"
        assert " ".join(agreement.locator(".head").inner_text().split()).startswith(
            "3 of 4 subjects pass or fail alike"
        )
        agreement.get_by_text("Furthest apart").click()
        assert agreement.locator(".line").first.inner_text().startswith("r2")  # not r9, whose scores differ as much
        assert page.get_by_role("list", name="Newest run of other pipelines").inner_text().startswith("other")


def test_labels_that_wait_are_counted_and_the_title_names_the_subject(chromium, server):
    with Tab(chromium, server, "#/label", labeller="eve", wait=".labeling .material") as page:
        subject = page.locator(".labeling h2.id").inner_text()
        run_id = server.get("/runs?limit=1&without_kind=tool")["data"][0]["run_id"]
        assert page.title() == f"Label {subject} · nightly {run_id[-6:]} · dicast"
        assert page.locator("select option", has_text=run_id[-6:]).count() == 1
        held = Held(page, "**/labels")
        page.keyboard.press("y")
        page.wait_for_selector(".unsaved:has-text('1 being saved')")
        held.wait()
        held.release()
        page.wait_for_selector(".unsaved", state="detached")


FAILED_LIST = "Failed, and not passed since"
ONLY_FAILED = "only failed runs that no newer run of their pipeline has passed"


def write_gates(path, gates):
    """Write a run of each ``(name, line)`` of *gates* to the ledger at *path*, the oldest first. Every run has a mean of .5."""
    rows = [Subject("row", f"r{number}", "q", "yes" * number) for number in range(2)]
    ledger = {"ledger/sqlite": {"path": str(path)}}
    for name, line in gates:
        metrics = [{"check/contains": {"as": "match", "value": "yes"}}]
        gate = {"on": "match", "min_score": line}
        dicast.run({"name": name, "metrics": metrics, "gate": gate, "ledger": ledger}, subjects=rows)


@pytest.fixture
def gated_server(tmp_path):
    """A server over a pipeline that failed, a pipeline that failed and passed later, and six newer pipelines that passed."""
    older = [("broken", 0.9), ("fixed", 0.9), ("fixed", 0.1)]
    with ThreadPoolExecutor(1) as executor:  # a thread that playwright has no event loop in
        executor.submit(
            write_gates, tmp_path / "ledger.db", [*older, *((f"newer-{n}", 0.1) for n in range(6))]
        ).result()
    running = Server(tmp_path)
    yield running
    running.end()


def test_a_failed_pipeline_remains_on_today_until_a_newer_run_passes(chromium, gated_server):
    with Tab(chromium, gated_server) as page:
        failed = page.get_by_role("list", name=FAILED_LIST)
        failed.wait_for()
        names = page.get_by_role("list", name="Newest run of other pipelines").get_by_role("link").all_inner_texts()
        assert names == [f"newer-{number}" for number in (4, 3, 2, 1, 0)]
        assert failed.get_by_role("link").all_inner_texts() == ["broken"]
        with ThreadPoolExecutor(1) as executor:
            executor.submit(write_gates, gated_server.log.with_name("ledger.db"), [("broken", 0.1)]).result()
        failed.wait_for(state="detached")
        page.locator("[aria-labelledby=last] > .answer > p").get_by_role("link", name="broken").wait_for()


def test_the_filter_of_runs_leaves_the_failed_pipelines_and_is_in_the_address(chromium, gated_server):
    with Tab(chromium, gated_server, "#/runs", wait=".list tbody tr") as page:
        filter_ = page.get_by_role("checkbox", name=ONLY_FAILED)
        assert page.locator(".list tbody tr").count() == 9
        filter_.press("Space")
        page.wait_for_function("() => document.querySelectorAll('.list tbody tr').length === 1")
        assert page.locator(".list tbody th").inner_text() == "broken"
        assert page.evaluate("location.hash") == "#/runs?failing=1"
        settled(page)
        assert wrong_numbers(gated_server, page.evaluate(NUMBERS)) == []
        page.reload()
        page.locator(".list tbody tr").wait_for()
        assert filter_.is_checked()
        filter_.press("Space")
        page.wait_for_function("() => document.querySelectorAll('.list tbody tr').length === 9")


def test_the_filter_of_runs_without_a_failed_pipeline_has_a_sentence(chromium, server):
    with Tab(chromium, server, "#/runs?failing=1") as page:
        page.get_by_text("The newest gate of every pipeline has passed.").wait_for()


def test_a_cost_that_is_not_settled_leaves_the_other_words_of_a_run_whole(chromium, server):
    def open_reservations(route):
        answer = route.fetch()
        text = answer.text().replace('"unsettled":{"usd":"0"', '"unsettled":{"usd":"0.00168660"')
        route.fulfill(response=answer, body=text.replace('"name":"', '"name":"prompts of a longer name / '))

    with Tab(chromium, server, wait="section[aria-labelledby=last] .head") as page:
        page.route("**/runs?*", open_reservations)
        page.get_by_role("navigation").get_by_role("link", name="Runs").click()
        page.locator(".list td.num", has_text="at most $0.001687 not settled").first.wait_for()
        boxes = "(cell) => { const text = document.createRange(); text.selectNodeContents(cell); return text.getClientRects().length; }"
        for width in (1280, 1024):
            page.set_viewport_size({"width": width, "height": 900})
            cells = page.locator(".list tbody td:last-child").all()
            assert [(cell.inner_text(), cell.evaluate(boxes)) for cell in cells] == [("completed", 1)] * 2
        page.unroute_all(behavior="wait")
