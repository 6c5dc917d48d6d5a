"""The dashboard as a reader has it: in a real Chromium over a real server, in both themes, wide and narrow."""

from __future__ import annotations

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import attrs
import pytest

import dicast
from dicast import Judgment, Subject

from . import random_ledgers
from .serving import DICAST, LABELLING, READING, Server

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
EVERYTHING = "() => document.querySelectorAll('details').forEach((each) => { each.open = true; })"
NUMBERS = "() => [...document.querySelectorAll('[data-path]')].map((each) => [each.dataset.path, each.dataset.value])"
STEP = re.compile(r'\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|\.?([^.\[\]"]+)')


def turns(model, sessions):
    """The trace of an agent that fails with its tools when it is the small model."""
    for session in sessions:
        for turn in (1, 2):
            place = {
                "session_id": session,
                "turn_id": f"{session}/{turn}",
                "time": f"2026-03-01T12:0{turn}:00.000Z",
            }
            texts = {"user_prompt_text": f"Where is order {turn}? {HOSTILE}", "final_response_text": f"Gone. {HOSTILE}"}
            call = {"tool_use_id": f"call-{session}-{turn}", "tool_name": "find", "input": {"order": HOSTILE}}
            failed = model == "small"
            stop = "max_tokens" if failed else "end_turn"
            yield {"type": "route.decided", **place, "payload": {"chosen_model": model}}
            yield {"type": "tool.called", **place, "payload": call}
            end_payload = {
                "tool_use_id": call["tool_use_id"],
                "error": "timeout",
                "output": "found",
                "success": not failed,
            }
            yield {"type": "tool.failed" if failed else "tool.completed", **place, "payload": end_payload}
            yield {"type": "llm.call_completed", **place, "payload": {"model": model, "cost_usd": "0.0012"}}
            if failed:
                yield {"type": "feedback.explicit", **place, "payload": {"rating": "thumbs_down"}}
            yield {"type": "turn.completed", **place, "payload": {"stop_reason": stop, "signals_extra": texts}}


class Workplace:
    """A folder with a ledger, and runs that this process writes to it while a server reads it."""

    def __init__(self, folder):
        self.folder, self.ledger = folder, folder / "ledger.db"

    def run(self, name, trace):
        lines = [json.dumps(line) + "\n" for line in trace]
        (self.folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
        pipeline = {
            "name": name,
            "source": {"traces/events": {"path": str(self.folder / f"{name}.jsonl"), "subjects": ["turn"]}},
            "judges": [{"heuristic/turn": {"as": judge}} for judge in ("first", "second")],
            "gate": {"on": "first", "min_score": 0.7},
            "ledger": {"ledger/sqlite": {"path": str(self.ledger)}},
        }
        with ThreadPoolExecutor(1) as executor:  # a thread that playwright has no event loop in
            assert executor.submit(dicast.run, pipeline).result().exit_code in (0, 1)


class Tab:
    """A page in a browser that records forbidden actions: requests to other servers, dialogs, console errors."""

    def __init__(
        self, browser, server, hash="", *, token=LABELLING, width=1280, theme="light", wait="main h1", labeller=None
    ):
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        if labeller is not None:
            self.context.add_init_script(f"localStorage.setItem('dicast.labeller', '{labeller}')")
        self.page = self.context.new_page()
        self.requests, self.dialogs, self.complaints = [], [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", self._dismiss)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.server = server
        self.page.goto(f"{server.address}?token={token}{hash}")
        self.page.wait_for_selector(wait)

    def _dismiss(self, dialog):
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def __enter__(self):
        return self.page

    def __exit__(self, *error):
        self.context.close()
        if error[0] is None:
            assert self.dialogs == []
            assert self.complaints == []
            assert [
                address for address in self.requests if not address.startswith((self.server.address, "data:"))
            ] == []


class Held:
    """Requests of a *page* to the addresses of *pattern*, which wait until the test lets them go on."""

    def __init__(self, page, pattern):
        self._page, self._routes, self._is_released = page, [], False
        page.route(pattern, lambda route: self._take(route))  # noqa: PLW0108 -- playwright wraps functions alone

    def _take(self, route):
        if self._is_released:
            route.continue_()
        else:
            self._routes.append(route)

    def wait(self):
        """Wait for the first request: a page may say that it loads before the browser tells of the request."""
        while not self._routes:
            self._page.wait_for_timeout(10)

    def release(self):
        """Let all held requests and all later requests continue."""
        self._is_released = True
        for route in self._routes:
            route.continue_()


@pytest.fixture(scope="module")
def support(tmp_path_factory):
    """A ledger with two runs of the same name over an agent's trace."""
    place = Workplace(tmp_path_factory.mktemp("support"))
    sessions = ["chat", f"hostile {HOSTILE}"]
    place.run("nightly", [*turns("small", sessions[:1]), *turns("large", sessions[1:])])
    place.run("nightly", [*turns("small", sessions[:1]), *turns("large", sessions[1:])])
    return place


@pytest.fixture(scope="module")
def server(support):
    """A server over that ledger."""
    running = Server(support.folder)
    yield running
    running.end()


@pytest.fixture
def fresh(tmp_path, unused_port):
    """A ledger of its own with one run, and a server over it."""
    place = Workplace(tmp_path)
    place.run("nightly", turns("large", ["chat"]))
    running = Server(place.folder, unused_port())
    yield place, running
    running.end()


def found_at(document, path):
    for number, quoted, name in STEP.findall(path):
        document = document[int(number)] if number else document[json.loads(f'"{quoted}"') if quoted else name]
    return document


def wrong_numbers(server, numbers):
    """Return the *numbers* of a page that differ from the API, each with the number of the API. Each address is requested once."""
    answer = cache(server.get)
    expected = [(path, found_at(answer(path.partition("#")[0]), path.partition("#")[2])) for path, _ in numbers]
    return [(path, value, right) for (path, value), (_, right) in zip(numbers, expected, strict=True) if value != right]


def settled(page):
    page.wait_for_function("() => document.querySelector('#dashboard[aria-busy]') === null")
    page.evaluate(EVERYTHING)


def check_accessibility(page, width):
    """Check that axe finds nothing on the page, and that the page is as wide as the window."""
    from axe_playwright_python.sync_playwright import Axe

    assert page.evaluate("document.documentElement.scrollWidth") == width
    report = Axe().run(page)
    assert report.violations_count == 0, report.generate_report()


def places(server):
    first, second = (run["run_id"] for run in server.get("/runs")["data"][:2])
    return {
        "today": "#/",
        "runs": "#/runs",
        "run": f"#/run/{second}",
        "subject": "#/subject/turn/chat%2F1",
        "compare": f"#/compare?a={second}&b={first}",
        "label": "#/label",
    }


@pytest.mark.parametrize("view", ["today", "runs", "run", "subject", "compare", "label"])
def test_every_number_is_the_token_that_the_api_wrote(chromium, server, view):
    with Tab(chromium, server, places(server)[view], labeller="ada") as page:
        settled(page)
        numbers = page.evaluate(NUMBERS)
    assert len(numbers) >= (1 if view == "label" else 8)
    assert wrong_numbers(server, numbers) == []


def test_the_first_page_has_each_tile_and_the_floor(chromium, server):
    with Tab(chromium, server, wait=".floor") as page:
        settled(page)
        assert page.locator(".tile h2").all_inner_texts() == [
            *("Last run", "Quality by model", "Pending", "New verdicts", "Agreement", "By day", "Cost of judging")
        ]
        assert page.locator(".floor p").count() == 1
        assert page.locator(".floor").inner_text().startswith("Under the floor: turns written by small have a mean of")
        assert page.locator(".floor").inner_text().endswith("Consider a stronger model.")
        costs = page.locator("section[aria-labelledby=cost]").inner_text()
        paths = " ".join(path for path, _ in page.evaluate(NUMBERS))
    assert "no call in the chosen time" in costs
    assert "the own calls of a model are of the whole ledger" in costs
    for prefix in ("/analytics/quality", "/analytics/agreement?", "/analytics/agreement/days", "/analytics/backlog"):
        assert prefix in paths
    for prefix in ("/analytics/savings", "/runs?"):  # the trace is older than the days whose cost is shown
        assert prefix in paths


@attrs.frozen
class Strict:
    """A judge that a model answers for, and that likes nothing."""

    name = "strict"
    judge_kind = "llm"

    def judge(self, subject, children):
        return Judgment(0.2, 0.9, "llm", judge_model="gpt-big")


def test_the_pair_of_an_agreement_is_in_the_address_with_the_cautions_of_the_terminal(chromium, server):
    with Tab(chromium, server, "#/", wait="[aria-labelledby=agreement] .warnings") as page:
        assert (
            "subjects are too few for a conclusion"
            in page.locator("[aria-labelledby=agreement] .warnings").inner_text()
        )
        names = page.eval_on_selector_all(
            "[aria-labelledby=agreement] .picks select", "(all) => all.map((one) => one.value)"
        )
        assert page.evaluate("location.hash") == f"#/?one={names[0]}&two={names[1]}"


def test_figures_of_an_earlier_choice_are_marked_until_the_new_ones_are_there(chromium, server):
    with Tab(chromium, server, "#/", wait="[aria-labelledby=agreement] .big") as page:
        settled(page)
        held = Held(page, re.compile(r"/analytics/agreement\?"))
        assert page.locator("[aria-labelledby=agreement] .earlier").count() == 0
        page.locator("[aria-labelledby=agreement] .slider input").fill("0.3")
        page.wait_for_selector("[aria-labelledby=agreement] .earlier[aria-busy=true] .big")
        held.wait()
        held.release()
        page.wait_for_selector("[aria-labelledby=agreement] .earlier", state="detached")
        assert "within 0.3" in page.locator("[aria-labelledby=agreement] .head").inner_text()


def test_the_proposed_baseline_of_an_experiment_is_its_sibling(chromium, tmp_path):
    ids = []
    for name in ("two/chatty", "two/brief", "two/chatty", "two/brief"):
        ledger = {"ledger/sqlite": {"path": str(tmp_path / "ledger.db")}}
        pipeline = {"name": name, "judges": [Passing()], "ledger": ledger}
        with ThreadPoolExecutor(1) as executor:
            result = executor.submit(dicast.run, pipeline, subjects=[Subject("row", "a", "?", "!")]).result()
        ids.append(result.run_id)
    server = Server(tmp_path)
    try:
        with Tab(chromium, server, f"#/compare?b={ids[3]}", wait=".picks select") as page:
            page.wait_for_function("(id) => document.querySelector('.picks select').value === id", arg=ids[2])
    finally:
        server.end()


def test_the_banner_does_not_blame_the_judges_model_for_rows_that_another_wrote(chromium, tmp_path):
    ledger = {"ledger/sqlite": {"path": str(tmp_path / "ledger.db")}}
    rows = [Subject("row", str(number), "q", "a", context={"model": "qwen3-8b"}) for number in range(3)]
    dicast.run({"name": "rows", "judges": [Strict()], "ledger": ledger}, subjects=rows)
    server = Server(tmp_path)
    try:
        with Tab(chromium, server, wait=".floor") as page:
            settled(page)
            banner = page.locator(".floor").inner_text()
            tile = (
                page.locator("#quality").inner_text() if page.locator("#quality").count() else page.inner_text("main")
            )
    finally:
        server.end()
    assert banner.startswith("Under the floor: rows judged by gpt-big have a mean of 0.200,")
    assert "stronger model" not in banner
    assert "judge's model" in tile.lower()


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("view", ["today", "runs", "run", "subject", "compare", "label"])
def test_nothing_stands_in_the_way_of_anybody(chromium, server, view, width):
    with Tab(chromium, server, places(server)[view], width=width, labeller="ada") as page:
        settled(page)
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            check_accessibility(page, width)
            assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == (
                "rgb(250, 249, 246)" if theme == "light" else "rgb(22, 24, 27)"
            )


def test_a_hostile_row_does_nothing(chromium, server):
    from urllib.parse import quote

    id = f"hostile {HOSTILE}/1"
    with Tab(chromium, server, f"#/subject/turn/{quote(id, safe='')}") as page:
        settled(page)
        assert page.locator("h1").inner_text() == id
        assert page.get_by_text(f"Gone. {HOSTILE}").first.is_visible()
        assert page.locator("main img, main script").count() == 0


def test_the_token_does_not_stay_in_the_address_nor_where_a_script_reads_it(chromium, server):
    with Tab(chromium, server, "#/runs") as page:
        assert page.url == f"{server.address}#/runs"
        assert page.evaluate("document.cookie") == ""
        assert page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])") == "[{},{}]"


def test_without_the_token_a_browser_is_told_where_it_is(chromium, server):
    context = chromium.new_context()
    page = context.new_page()
    assert page.goto(server.address).status == 401
    assert "dicast serve" in page.locator("body").inner_text()
    context.close()


def test_who_may_only_read_is_not_asked_for_a_verdict(chromium, server):
    with Tab(chromium, server, "#/subject/turn/chat%2F1", token=READING) as page:
        settled(page)
        assert page.get_by_role("button", name="Give the verdict").count() == 0
        page.get_by_role("link", name="Label").click()
        page.wait_for_selector("text=This token may read and not label")


def test_a_verdict_tells_its_whole_story(chromium, server):
    document = server.get("/analytics/turns/chat%2F1")["data"]
    newest = document["evaluations"][-1]
    with Tab(chromium, server, f"#/subject/turn/chat%2F1?eval={newest['chain']['seq']}") as page:
        settled(page)
        card = page.locator(".card.chosen")
        card_text = card.inner_text()
        assert page.get_by_role("list", name="Conversation").count() == 1
    for text in (newest["rubric_id"], newest["fingerprint"], newest["eval_id"], newest["run_id"]):
        assert text in card_text
    chain = newest["chain"]
    assert f"dicast ledger verify --head {chain['digest']}" in card_text


def test_the_keyboard_is_enough(chromium, server):
    with Tab(chromium, server, wait="table a, .tile a") as page:
        settled(page)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        page.wait_for_selector("#main:focus")
        reached = set()
        for _ in range(40):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.tagName + ':' + (document.activeElement.type ?? '')"))
        assert {"A:", "SELECT:select-one", "INPUT:range"} <= reached
        page.get_by_role("link", name="Runs", exact=True).focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("h1:has-text('Runs')")
        page.wait_for_selector("#main:focus")
        page.locator("tbody a").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("h1:has-text('nightly')")
        page.go_back()
        page.wait_for_selector("h1:has-text('Runs')")


def test_a_verdict_appears_without_a_reload(chromium, fresh):
    place, server = fresh
    with Tab(chromium, server, wait=".state.pass") as page:
        settled(page)
        before = page.locator("[data-path*='verdict_count']").first.get_attribute("data-value")
        place.run("later", turns("large", ["new"]))
        page.wait_for_selector(".line-id:has-text('new/2')")
        page.wait_for_function(
            "(before) => document.querySelector(\"[data-path*='verdict_count']\")?.dataset.value !== before", arg=before
        )
        first_count = page.locator("[data-path*='verdict_count']").first.get_attribute("data-value")
    assert (before, first_count) == ("4", "8")


def test_it_says_when_it_is_not_connected(chromium, fresh):
    _, server = fresh
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{server.address}?token={READING}")
    page.wait_for_selector(".state.pass")
    server.end()
    page.wait_for_selector(".state:has-text('not connected')")
    context.close()


def test_until_its_first_connection_it_says_connecting(chromium, fresh):
    _, server = fresh
    context = chromium.new_context()
    page = context.new_page()
    page.add_init_script("window.EventSource = class extends EventTarget { close() {} }")  # never connects
    page.goto(f"{server.address}?token={READING}")
    page.wait_for_selector(".state")
    assert page.locator(".state").inner_text() == "connecting"
    context.close()


def test_the_end_of_a_run_appears_without_a_reload(chromium, fresh):
    place, server = fresh
    with Tab(chromium, server, wait=".state.pass") as page:
        settled(page)
        place.run("later", turns("small", ["new"]))
        tile = page.locator("section[aria-labelledby=last]")
        tile.get_by_role("link", name="later").wait_for()
        tile.locator(".mark.fail").wait_for()


def test_a_live_verdict_is_opened_from_the_keyboard_and_is_the_apis(chromium, fresh):
    place, server = fresh
    with Tab(chromium, server, wait=".state.pass") as page:
        place.run("later", turns("large", ["new"]))
        line = page.locator(".lines a:has-text('new/1')").first
        line.wait_for()
        numbers = [number for number in page.evaluate(NUMBERS) if "seq=" in number[0]]
        line.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("h1.id:has-text('new/1')")
        page.wait_for_selector(".card.chosen")
    assert len(numbers) == 4
    assert wrong_numbers(server, numbers) == []


def test_nothing_is_lost_or_shown_twice_when_the_server_is_started_again(chromium, fresh):
    place, server = fresh
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{server.address}?token={READING}")
    page.wait_for_selector(".state.pass")
    settled(page)
    before = page.locator("[data-path*='verdict_count']").first.get_attribute("data-value")
    place.run("before", turns("large", ["before"]))
    page.wait_for_selector(".line-id:has-text('before/2')")
    server.end()
    page.wait_for_selector(".state:has-text('not connected')")
    place.run("meanwhile", turns("large", ["meanwhile"]))
    again = Server(place.folder, server.port)
    try:
        page.wait_for_selector(".state.pass")
        place.run("after", turns("large", ["after"]))
        page.wait_for_selector(".line-id:has-text('after/2')")
        page.wait_for_function("() => document.querySelectorAll('.lines li').length >= 12")
        ids = page.locator(".line-id").all_inner_texts()
        page.wait_for_function("() => document.querySelector(\"[data-path*='verdict_count']\")?.dataset.value === '16'")
    finally:
        context.close()
        again.end()
    assert before == "4"
    assert sorted(ids) == sorted(
        f"{run}/{turn}" for run in ("before", "meanwhile", "after") for turn in (1, 2) for _ in ("first", "second")
    )


def test_it_is_live_again_after_the_server_has_refused_for_a_while(chromium, fresh):
    place, server = fresh
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{server.address}?token={READING}")
    page.wait_for_selector(".state.pass")
    moved = place.ledger.with_name("moved.db")
    place.ledger.rename(moved)
    page.wait_for_selector(".state:has-text('not connected')")
    page.wait_for_timeout(2500)  # by now it was answered that there is no ledger
    moved.rename(place.ledger)
    page.wait_for_selector(".state.pass")
    place.run("later", turns("large", ["new"]))
    page.wait_for_selector(".line-id:has-text('new/2')")
    context.close()


def test_verdicts_of_a_watch_appear_while_it_goes_on(chromium, tmp_path):
    place = Workplace(tmp_path)
    place.run("nightly", turns("large", ["chat"]))
    watch = {
        "name": "shop",
        "source": {"traces/events": {"path": "trace.jsonl", "subjects": ["turn"]}},
        "judges": [{"heuristic/turn": {"as": "lifecycle"}}],
        "ledger": {"ledger/sqlite": {"path": "ledger.db"}},
    }
    (tmp_path / "watch.yaml").write_text(json.dumps(watch))
    (tmp_path / "trace.jsonl").touch()
    server = Server(tmp_path)
    with (tmp_path / "watch.log").open("w") as log:
        process = subprocess.Popen([DICAST, "watch", "watch.yaml"], cwd=tmp_path, stdout=log, stderr=log)
    try:
        with Tab(chromium, server, wait=".state.pass") as page:
            for session in ("first", "second"):
                lines = [json.dumps(event) + "\n" for event in turns("large", [session])]
                place_ = {"session_id": session, "time": "2026-03-01T12:09:00.000Z"}
                end_event = {"type": "session.ended", **place_, "payload": {"disposition": "completed"}}
                with (tmp_path / "trace.jsonl").open("a") as file:
                    file.write("".join(lines) + json.dumps(end_event) + "\n")
                page.wait_for_selector(f".line-id:has-text('{session}/2')")
            ids = page.locator(".line-id").all_inner_texts()
    finally:
        process.terminate()
        process.wait(200)
        server.end()
    assert sorted(ids) == ["first/1", "first/2", "second/1", "second/2"]


@pytest.mark.parametrize("seed", [3, 8, 12])
def test_every_number_of_a_random_ledger_is_the_token_that_the_api_wrote(chromium, tmp_path, seed):
    with ThreadPoolExecutor(1) as executor:  # a thread that playwright has no event loop in
        executor.submit(random_ledgers.make, tmp_path, seed).result()
    server = Server(tmp_path)
    try:
        runs = server.get("/runs?without=labels")["data"]
        nightly = [run["run_id"] for run in runs if run["name"].startswith("nightly")]
        subject = server.get(f"/runs/{nightly[0]}/rows")["data"][0]["subject_id"].replace("/", "%2F")
        views = ["#/", "#/?days=365&kind=session", "#/?days=365&window=0.3", "#/runs?labels=1", f"#/run/{nightly[0]}"]
        views += [f"#/subject/turn/{subject}", *(f"#/run/{run['run_id']}" for run in runs if run["name"] == "written")]
        seen = 0
        for view in views:
            with Tab(chromium, server, view) as page:
                settled(page)
                numbers = page.evaluate(NUMBERS)
            assert (view, wrong_numbers(server, numbers)) == (view, [])
            seen += len(numbers)
        assert seen > 100
    finally:
        server.end()


def test_a_persons_verdict_is_recorded_and_agreement_moves(chromium, fresh):
    _, server = fresh
    with Tab(chromium, server, "#/subject/turn/chat%2F1") as page:
        settled(page)
        page.get_by_label("blind").check()
        assert page.locator(".card .big").count() == 0
        page.get_by_role("button", name="Fail").click()
        page.get_by_label("Why").fill("It did not answer.")
        page.get_by_role("button", name="Give the verdict").click()
        page.wait_for_selector("blockquote:has-text('It did not answer.')")
        page.get_by_role("link", name="Today").click()
        page.wait_for_selector("[data-path*='/analytics/agreement?'][data-path$='#within']")
        asked_number = page.locator("[data-path$='#within']").first
        assert "gold=people" in asked_number.get_attribute("data-path")
        page.wait_for_function("() => document.querySelector(\"[data-path$='#within']\").dataset.value === '0.0'")
    verdict = server.get("/analytics/turns/chat%2F1")["data"]["evaluations"][-1]
    assert (verdict["judge_kind"], verdict["score"], verdict["signals"]["reason"]) == (
        *("human", "0.0"),
        "It did not answer.",
    )


def test_an_empty_ledger_says_what_to_do(chromium, tmp_path):
    ledger = {"ledger/sqlite": {"path": str(tmp_path / "ledger.db")}}
    with pytest.raises(dicast.DataError), ThreadPoolExecutor(1) as executor:
        executor.submit(dicast.run, {"judges": ["heuristic/turn"], "ledger": ledger}, subjects=[]).result()
    running = Server(tmp_path)
    texts = {
        "Today": "Nothing has been judged yet",
        "Runs": "No run yet",
        "Compare": "A comparison needs two runs",
        "Label": "There is no run with subjects to label",
    }
    try:
        for width, theme in ((400, "dark"), (1280, "light")):
            with Tab(chromium, running, width=width, theme=theme) as page:
                for view, text in texts.items():
                    page.get_by_role("link", name=view, exact=True).click()
                    page.wait_for_selector(f"text={text}")
                    settled(page)
                    assert view != "Today" or "dicast run" in page.locator("main").inner_text()
                    check_accessibility(page, width)
    finally:
        running.end()


@attrs.frozen
class Refusing:
    """A judge that refuses the first subject, and fails the second."""

    name = "helpful"
    judge_kind = "llm"

    def judge(self, subject, children):
        if subject.id == "r0":
            raise ValueError("no verdict in the reply")
        return Judgment(
            0.2 if subject.id == "r1" else 0.9, 0.9, "llm", signals={"rationale_redacted": "names a source"}
        )


@attrs.frozen
class Passing:
    """A judge that passes all subjects."""

    name = "even"

    def judge(self, subject, children):
        return Judgment(1.0, 1.0)


def test_the_failures_of_a_judge_are_one_click_away_and_a_chosen_label_fills_the_page(chromium, tmp_path):
    pipeline = {
        "name": "two",
        "judges": [Passing(), Refusing()],
        "gate": {"on": "even", "min_score": 0.5},
        "ledger": {"ledger/sqlite": {"path": str(tmp_path / "ledger.db")}},
    }
    rows = [Subject("row", f"r{number}", "?", "!") for number in range(4)]
    with ThreadPoolExecutor(1) as executor:
        executor.submit(dicast.run, pipeline, subjects=rows).result()
    server = Server(tmp_path)
    try:
        run = server.get("/runs")["data"][0]["run_id"]
        with Tab(chromium, server, f"#/run/{run}", wait=".rows .count") as page:
            tiles, table = page.locator("dl.figures"), page.locator(".rows")
            assert "mean of even" in tiles.inner_text()
            page.locator(".rows .pick select").select_option("helpful")
            page.wait_for_function("() => document.querySelector('dl.figures').innerText.includes('mean of helpful')")
            page.wait_for_function("() => document.querySelector('.rows .chips').innerText.includes('no score')")
            counts = " ".join(table.get_by_role("group", name="Outcome").inner_text().split())
            assert counts.startswith("all 4 ✓ pass 2 ✗ fail 1 ! no score 1")
            page.reload()
            page.wait_for_selector(".rows .count")
            assert "mean of helpful" in tiles.inner_text()
            page.goto(f"{server.address}#/run/{run}")
            page.wait_for_selector("dl.figures")
            page.get_by_role("link", name="1 without a score of helpful: show them").first.click()
            page.wait_for_function("() => document.querySelector('.rows .count').innerText.startsWith('1 of 4 shown')")
            assert "no verdict in the reply" in table.inner_text()
    finally:
        server.end()
