"""Subjects of a run in a real Chromium: found in the table, opened, gone through, compared, and saved."""

from __future__ import annotations

import csv
import json
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs

import attrs
import pytest

import dicast
from dicast import Judgment, Subject

from .serving import READING, Server
from .test_dashboard import Held, Tab

pytestmark = pytest.mark.slow

OUTPUTS = {
    "old": [
        "It is **Bern**.\n\n- a\n- b",
        '{"city": "Bern", "size": 12345678901234567890}',
        "Zürich <b>bold</b>",
        "plain " * 4000,
    ],
    "new": [
        "It is **Basel**.\n\n- a\n- b",
        '{"city": "Bern", "size": 12345678901234567891}',
        "Genf <b>bold</b>",
        "plain " * 4000,
    ],
}
SIGNS = {"pass": "✓", "fail": "✗"}
SCORES = {"old": [0.9, 0.8, 0.2, 0.6], "new": [0.1, 0.8, 0.9, 0.6]}


@attrs.frozen
class Good:
    """A judge with the scores of one run."""

    run: str
    name = "good"

    def judge(self, subject, children):
        score = SCORES[self.run][int(subject.id[-1])]
        return Judgment(score, 1.0, "llm", signals={"rationale_redacted": f"Reason {score}"})


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server over two ledgers; the first has the runs old and new."""
    folder = tmp_path_factory.mktemp("cases")
    for run, outputs in OUTPUTS.items():
        rows = [
            Subject("row", f"a/{number}", "Which?", output, reference="It is Bern.")
            for number, output in enumerate(outputs)
        ]
        ledger = {"ledger/sqlite": {"path": str(folder / "ledger.db")}}
        pipeline = {"name": run, "judges": [Good(run)], "gate": {"on": "good", "min_score": 0.7}, "ledger": ledger}
        with ThreadPoolExecutor(1) as executor:  # a thread that playwright has no event loop in
            executor.submit(dicast.run, pipeline, subjects=rows).result()
    running = Server(folder)
    yield running
    running.end()


def ids(page):
    return [text.split("\n")[1] for text in page.locator(".virtual-row").all_inner_texts()]


def test_a_case_is_found_opened_and_gone_through_and_back_keeps_the_list(chromium, server):
    with Tab(chromium, server, "#/run/new", token=READING, wait=".virtual-row") as page:
        assert ids(page) == ["a/0", "a/3", "a/1", "a/2"]
        page.get_by_placeholder("Search texts and reasons").fill("reason 0.[698]")
        page.get_by_role("button", name="Regular expression").click()
        page.wait_for_selector("[role=status]:has-text('3 of 4 shown')")
        page.locator(".virtual-row").nth(1).click()
        page.wait_for_selector("h1:has-text('a/1')")
        address = page.url
        page.wait_for_selector(".steps:has-text('2 of 3')")
        page.keyboard.press("j")
        page.wait_for_selector("h1:has-text('a/2')")
        page.go_back()  # j and k add no entry to the history
        page.wait_for_selector("[role=status]:has-text('3 of 4 shown')")
        page.locator(".virtual-row").nth(1).click()
        page.wait_for_selector(".steps:has-text('2 of 3')")
        page.keyboard.press("Escape")
        page.wait_for_selector("[role=status]:has-text('3 of 4 shown')")
    with Tab(
        chromium, server, address.removeprefix(server.address), token=READING, wait=".steps:has-text('2 of 3')"
    ) as page:
        assert page.title() == "a/1 · row in new · dicast"
        assert page.locator(".json-number").inner_text() == "12345678901234567891"
        page.locator(".picks select").first.select_option(index=1)
        page.wait_for_selector(".json-number:has-text('12345678901234567890')")


PRESSED_AT_ONCE = """() => new MutationObserver(() => {
  if (window.pressed || !document.querySelector(".steps")?.textContent.includes("2 of 3")) return;
  window.pressed = true;
  const { port1, port2 } = new MessageChannel(); // the next event of the page, before its next frame
  port1.onmessage = () => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
  port2.postMessage(null);
}).observe(document.body, { subtree: true, childList: true, characterData: true })"""


def test_a_key_counts_as_soon_as_its_subject_is_drawn_and_escape_while_it_is_read(chromium, server):
    with Tab(chromium, server, "#/run/new?outcome=pass", token=READING, wait=".virtual-row") as page:
        page.evaluate(PRESSED_AT_ONCE)
        page.locator(".virtual-row").nth(1).click()
        page.wait_for_selector(".steps:has-text('3 of 3')")
        page.go_back()
        page.wait_for_selector("[role=status]:has-text('3 of 4 shown')")
        held = Held(page, "**/analytics/turns/**")
        page.locator(".virtual-row").nth(1).click()
        page.wait_for_selector("h1.id")
        held.wait()
        page.keyboard.press("Escape")
        page.wait_for_selector("[role=status]:has-text('3 of 4 shown')")


def test_an_unfinished_expression_is_named_and_leaves_the_list(chromium, server):
    tab = Tab(chromium, server, "#/run/new?outcome=pass&regex=1", token=READING, wait=".virtual-row")
    with tab as page:
        search = page.get_by_placeholder("Search texts and reasons")
        search.fill("reason (0.8")
        page.wait_for_selector(".toolbar .warnings")
        assert page.locator(".virtual-row").count() == 3
        page.wait_for_selector("[role=status]:has-text('The search was not carried out: 3 of 4 shown')")
        search.fill("(?=0.8)")  # JavaScript has it, the server's expressions do not
        page.wait_for_selector("[role=alert]:has-text('not a regular expression')")
        page.wait_for_selector("[role=status]:has-text('The list was not read')")
        page.wait_for_timeout(500)
        assert len(tab.complaints) == 1  # the refused request, once
        assert "400" in tab.complaints.pop()
        search.fill("reason (0.8)")
        page.wait_for_selector("[role=status]:has-text('1 of 4 shown')")


def test_the_filtered_rows_are_saved(chromium, server):
    with Tab(chromium, server, "#/run/new?outcome=pass&sort=subject", token=READING, wait=".virtual-row") as page:
        saved = {}
        for word in ("CSV", "JSON lines"):
            with page.expect_download() as download:
                page.get_by_role("button", name=word).click()
            saved[word] = download.value.path().read_text(encoding="utf-8")
        page.wait_for_selector(".export [role=status]:has-text('saved 3 rows')")
        page.get_by_role("button", name="fail 1").click()
        page.wait_for_selector("[role=status]:has-text('1 of 4 shown')")
        assert page.locator(".export [role=status]").inner_text() == ""
    lines = [json.loads(line) for line in saved["JSON lines"].splitlines()]
    rows = list(csv.DictReader(saved["CSV"].splitlines(keepends=True)))
    assert [row["subject_id"] for row in rows] == [line["subject_id"] for line in lines] == ["a/1", "a/2", "a/3"]
    assert [line["output"] for line in lines] == OUTPUTS["new"][1:]
    assert [row["output"] for row in rows] == OUTPUTS["new"][1:]
    assert [line["score"] for line in lines] == SCORES["new"][1:]


def test_two_runs_are_compared_subject_by_subject(chromium, server):
    runs = {run["name"]: run["run_id"] for run in server.get("/runs")["data"]}
    with Tab(
        chromium, server, f"#/compare?a={runs['old']}&b={runs['new']}&any=1", token=READING, wait=".virtual-row"
    ) as page:
        assert ids(page)[0] == "a/0"
        page.wait_for_selector(".figures-of")
        headings = page.locator(".figures-of h2").all_inner_texts()
        assert headings[0] == "By label"
        assert not {"paired", "significance", "Difference of the means"} & set(headings)  # a label has one answer
        page.get_by_role("button", name="regressed 1").click()
        page.wait_for_selector("[role=status]:has-text('1 of 4 shown')")
        page.locator(".virtual-row").first.click()
        page.wait_for_selector("#against")
        sides = page.locator(".against .side")
        assert sides.nth(1).locator("del").first.inner_text() == "Bern"
        assert sides.nth(1).locator("ins").first.inner_text() == "Basel"


@pytest.mark.parametrize("steps", [0, 1])
def test_escape_returns_to_compare_from_a_case_that_was_opened_there(chromium, server, steps):
    runs = {run["name"]: run["run_id"] for run in server.get("/runs")["data"]}
    address = f"#/compare?a={runs['old']}&b={runs['new']}&any=1&outcome=pass"
    with Tab(chromium, server, address, token=READING, wait=".virtual-row") as page:
        page.locator(".virtual-row").first.click()
        page.wait_for_selector(".steps:has-text('1 of 3')")
        for step in range(steps):
            page.keyboard.press("j")
            page.wait_for_selector(f".steps:has-text('{step + 2} of 3')")
        back = page.get_by_role("link", name="back to Compare").get_attribute("href")
        page.keyboard.press("Escape")
        page.wait_for_selector("h1:has-text('Compare')")
        page.wait_for_selector("[role=status]:has-text('3 of 4 shown')")
        assert back == f"#{page.url.partition('#')[2]}"
        query = parse_qs(back.partition("?")[2])
        assert query == {"a": [runs["old"]], "b": [runs["new"]], "any": ["1"], "outcome": ["pass"], "sort": ["change"]}


def test_texts_are_drawn_folded_and_compared_with_the_reference(chromium, server):
    with Tab(chromium, server, "#/subject/row/a%2F0", token=READING, wait=".markdown strong") as page:
        output = page.locator(".material").nth(1)
        assert output.locator("li").count() == 2
        output.get_by_role("button", name="text", exact=True).click()
        assert "**Basel**" in output.inner_text()
        output.get_by_role("button", name="vs reference").click()
        assert output.locator("ins").count() > 0
    with Tab(chromium, server, "#/subject/row/a%2F2", token=READING, wait=".material") as page:
        assert page.get_by_text("Genf <b>bold</b>").count() == 1
    with Tab(chromium, server, "#/subject/row/a%2F3", token=READING, wait=".material") as page:
        page.get_by_role("button", name="Show the other 4,000 characters").click()
        assert len(page.locator(".material").nth(1).locator(".text").inner_text()) >= 23_999


@pytest.mark.parametrize(("width", "theme"), [(375, "dark"), (1280, "light")])
def test_nothing_is_in_the_way_of_a_reader(chromium, server, width, theme):
    from axe_playwright_python.sync_playwright import Axe

    old, new = (run["run_id"] for run in reversed(server.get("/runs")["data"]))
    views = {
        f"#/run/{new}?baseline={old}&change=any": ".virtual-row",
        f"#/subject/row/a%2F0?run={new}&baseline={old}": ".against ins",
        f"#/subject/row/a%2F1?run={new}": ".json-number",
    }
    for view, wait in views.items():
        with Tab(chromium, server, view, token=READING, width=width, theme=theme, wait=wait) as page:
            page.evaluate("() => document.querySelectorAll('details').forEach((each) => { each.open = true; })")
            assert page.evaluate("document.documentElement.scrollWidth") == width
            report = Axe().run(page)
            assert report.violations_count == 0, (view, report.generate_report())


def test_a_comparison_names_both_runs_and_has_the_figures_of_its_sentences(chromium, server):
    runs = {run["name"]: run["run_id"] for run in server.get("/runs")["data"]}
    query = f"a={runs['old']}&b={runs['new']}"
    answers = server.get(f"/compare?{query}&allow_incomparable=true")["answers"]
    with Tab(chromium, server, f"#/compare?{query}&any=1", token=READING, wait=".virtual-row") as page:
        text = " ".join(page.locator("main").inner_text().split())
        assert f"A is the baseline, old {runs['old'][-6:]}; B is new {runs['new'][-6:]}." in text
        for label, answer in answers.items():
            row = page.locator(f"[aria-label='Differences by label'] tr:has(th:text-is('{label}'))")
            cells = [cell.inner_text() for cell in row.locator("td").all()]
            assert cells[0] == answer["answer"]
            assert cells[4:] == [str(answer["n"])]  # all subjects are in both runs


def test_a_case_states_its_outcome_and_the_line_of_each_score(chromium, server):
    for id, word in (("a/0", "fail"), ("a/1", "pass")):
        tab = Tab(
            chromium, server, f"#/subject/row/{id.replace('/', '%2F')}?run=new", token=READING, wait=".card .mark"
        )
        with tab as page:
            assert page.locator(".said-of h2").inner_text().split() == ["Verdicts", SIGNS[word], word, "good"]
            assert f"{SIGNS[word]} {word} line 0.5" in " ".join(page.locator(".card .head").inner_text().split())


def test_a_narrow_window_shows_every_figure_of_a_comparison_and_the_cost_of_a_run(chromium, server):
    old, new = (run["run_id"] for run in reversed(server.get("/runs")["data"]))
    query = f"a={old}&b={new}&any=1"
    with Tab(chromium, server, f"#/compare?{query}", token=READING, width=375, wait=".stacked td") as page:
        page.evaluate("() => document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        cut = page.eval_on_selector_all(".scroll", "(all) => all.map((one) => one.scrollWidth - one.clientWidth)")
        assert len(cut) >= 2
        assert max(cut) == 0
        right = page.eval_on_selector_all(".stacked td", "(all) => all.map((one) => one.getBoundingClientRect().right)")
        assert max(right) <= 375
    with Tab(chromium, server, "#/runs", token=READING, width=375, wait="tbody tr") as page:
        assert "cost $" in page.locator("tbody tr").first.inner_text()
