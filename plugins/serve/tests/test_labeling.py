"""The page on which people label, by keys alone, in a real Chromium over a real server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import attrs
import pytest

import dicast
from dicast import Judgment, Query, Subject

from .serving import Server
from .test_dashboard import Tab, check_accessibility, settled

pytestmark = pytest.mark.slow

SECRET = "the judge's own reason"
ROWS = 24


@attrs.frozen
class Judge:
    """A judge that passes every second subject, with a reason that people must not see."""

    name = "even"

    def judge(self, subject, children):
        return Judgment(float(int(subject.id[1:]) % 2 == 0), 0.9, "llm", signals={"rationale_redacted": SECRET})


@pytest.fixture
def server(tmp_path, unused_port):
    """A server with guidelines over a run of 24 rows."""
    rows = [Subject("row", f"r{number}", f"Question {number}", f"Answer {number}. " * 40) for number in range(ROWS)]
    ledger = {"ledger/sqlite": {"path": str(tmp_path / "ledger.db")}}
    pipeline = {"name": "nightly", "judges": [Judge()], "gate": {"on": "even", "min_score": 0.1}, "ledger": ledger}
    with ThreadPoolExecutor(1) as executor:  # a thread that playwright has no event loop in
        executor.submit(dicast.run, pipeline, subjects=rows).result()
    (tmp_path / "guide.md").write_text("# Good answers\n\nThey are *short*.\n")
    running = Server(tmp_path, unused_port(), options=("--guidelines", "guide.md"))
    yield running
    running.end()


def labels(server):
    """The payloads of the labels in the ledger, in their order."""
    path = server.log.parent / "ledger.db"

    def read(ledger):
        return [dict(entry.event.payload) for entry in ledger.read(Query(types=("label.given", "label.retracted")))]

    with ThreadPoolExecutor(1) as executor:
        return executor.submit(dicast.read_ledger, path, read).result()


def current(page):
    page.wait_for_selector("h2.id")
    page.wait_for_selector(".material")
    return page.locator("h2.id").inner_text()


def press(page, key):
    """Press a key, and wait until another subject is shown."""
    before = current(page)
    page.keyboard.press(key)
    page.wait_for_function("(id) => document.querySelector('h2.id')?.textContent !== id", arg=before)
    return before


def recorded(page, server, count):
    """The labels, once the ledger has *count* of them and the page reports its progress."""
    for _ in range(1000):
        if len(read := labels(server)) >= count:
            return read
        page.wait_for_timeout(100)
    raise AssertionError(read)


def test_twenty_labels_take_one_key_each_and_show_no_verdict(chromium, server):
    texts, keys, clicks = [], 0, 0
    with Tab(chromium, server, wait="section[aria-labelledby=last] .head") as page:
        page.get_by_role("link", name="Label", exact=True).click()
        clicks += 1
        page.wait_for_selector(".who input:focus")
        page.on("response", lambda answer: texts.append(answer))  # noqa: PLW0108 -- playwright cannot call a method of a list
        page.keyboard.type("ada")
        page.keyboard.press("Enter")
        keys += 4
        assert "They are short." in page.locator(".guide").inner_text()
        done = []
        for number in range(20):
            done.append(press(page, "yn"[number % 2]))
            keys += 1
        read = recorded(page, server, 20)
        page.wait_for_selector("[data-path$='#own'][data-value='20']")
        assert not any(SECRET in answer.text() for answer in texts if "/events" not in answer.url)
    assert (clicks, keys) == (1, 24)  # at most two keys a label, the name included
    assert [item["subject"] for item in read] == done
    assert [item["score"] for item in read] == [1.0, 0.0] * 10
    assert {(item["labeller"], item["drawn"], item["blind"]) for item in read} == {("ada", "random", True)}


def test_undo_skip_and_a_reload_keep_the_place(chromium, server):
    with Tab(chromium, server, "#/label", labeller="ada", wait=".material") as page:
        page.get_by_role("button", name="as recorded").click()
        first, second = press(page, "y"), press(page, "s")
        assert page.get_by_role("button", name="as recorded").get_attribute("aria-pressed") == "true"
        third = current(page)
        page.evaluate("window.scrollTo(0, 400)")
        press(page, "n")
        assert page.evaluate("document.querySelector('h2.id').getBoundingClientRect().top") >= 0
        assert page.evaluate("document.activeElement !== document.body")
        recorded(page, server, 2)
        press(page, "u")
        assert current(page) == third
        assert press(page, "u") == third
        assert current(page) == second  # the skipped subject
        press(page, "t")
        recorded(page, server, 4)
        page.reload()
        assert current(page) == third
        page.wait_for_selector("[data-path$='#own'][data-value='2']")
        page.keyboard.press("u")  # the newest label, after a reload
        page.wait_for_function("(id) => document.querySelector('h2.id')?.textContent === id", arg=second)
        read = recorded(page, server, 5)
    names = [(item["subject"], item.get("score"), "label_run" in item) for item in read]
    assert names == [
        *((first, 1.0, False), (third, 0.0, False), (third, None, True)),
        *((second, 0.5, False), (second, None, True)),
    ]


def test_a_reason_and_a_score_are_typed_and_verdicts_are_shown_on_demand(chromium, server):
    with Tab(chromium, server, "#/label?queue=failed", labeller="ada", wait=".material") as page:
        first = current(page)
        page.keyboard.press("r")
        page.keyboard.type("yes and no")
        page.keyboard.press("Escape")
        page.keyboard.press("=")
        page.keyboard.type("0.25")
        page.keyboard.press("Enter")
        page.wait_for_function("(id) => document.querySelector('h2.id').textContent !== id", arg=first)
        page.keyboard.press("v")
        page.wait_for_selector(f'blockquote:has-text("{SECRET}")')
        press(page, "n")
        read = recorded(page, server, 2)
    facts = [(item["subject"], item["score"], item["drawn"], item["blind"]) for item in read]
    assert facts[0] == (first, 0.25, "failed", True)
    assert facts[1][1:] == (0.0, "failed", False)
    subject = server.get(f"/analytics/turns/{first}?subject_kind=row")["data"]
    assert subject["evaluations"][-1]["signals"] == {"reason": "yes and no"}


def test_two_tabs_of_one_person_lose_and_double_nothing(chromium, server):
    with Tab(chromium, server, "#/label", labeller="ada", wait=".material") as page:
        tab = Tab(chromium, server, "#/label", labeller="ada", wait=".material")
        other = tab.page
        subjects = [press(page, "y"), press(page, "y")]
        recorded(page, server, 2)
        assert press(other, "y") == subjects[0]  # the same label: recorded once
        assert press(other, "n") == subjects[1]
        other.wait_for_selector("[role=alert]:has-text('elsewhere')")
        assert len(labels(server)) == 2
        other.get_by_role("button", name="Replace it, as ada").click()
        read = recorded(other, server, 3)
        other.wait_for_selector("[role=alert]", state="detached")
        tab.context.close()
    assert len(tab.complaints) == 1  # Chromium's own line about the refused label
    assert [(item["subject"], item["score"]) for item in read] == list(
        zip([*subjects, subjects[1]], (1.0, 1.0, 0.0), strict=True)
    )


def test_labels_wait_for_a_server_that_is_gone(chromium, server, tmp_path):
    tab = Tab(chromium, server, "#/label", labeller="ada", wait=".material")
    page = tab.page
    press(page, "y")
    recorded(page, server, 1)
    settled(page)  # the next cases are loaded ahead
    server.end()
    second = press(page, "n")
    page.wait_for_selector("[role=alert]:has-text('1 label is not recorded')")
    again = Server(tmp_path, port=server.port)
    try:
        read = recorded(page, again, 2)
        page.wait_for_selector("[role=alert]", state="detached")
        assert page.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('dicast.unsent'))") == []
    finally:
        again.end()
        tab.context.close()
    assert (read[1]["subject"], read[1]["score"]) == (second, 0.0)


def test_people_who_differ_are_compared_and_decided_between(chromium, server):
    for person, keys in (("ada", "yyn"), ("bob", "yny")):
        with Tab(chromium, server, "#/label", labeller=person, wait=".material") as page:
            for key in keys:
                press(page, key)
            recorded(page, server, 3 if person == "ada" else 6)
    with Tab(chromium, server, wait="section[aria-labelledby=agreement] .big") as page:
        settled(page)
        tile = page.locator("section[aria-labelledby=agreement]")
        answer = server.get("/analytics/agreement?judge=even&subject_kind=row&gold=people")
        places = {
            "within": ("within",),
            "alpha": ("alpha",),
            **{f"people.{k}": ("people", k) for k in ("equal", "ties")},
        }
        for place, keys in places.items():
            value = answer
            for key in keys:
                value = value[key]
            assert tile.locator(f"[data-path$='#{place}']").get_attribute("data-value") == value
        assert (answer["people"]["labellers"], answer["people"]["ties"]) == ({"ada": "3", "bob": "3"}, "2")
        assert "the label of more than half of them" in tile.inner_text()
        tile.locator("[data-path*='/labels/agreement'][data-path$='agree_ci[0]']").wait_for()
        check_accessibility(page, 1280)
        tile.get_by_role("button", name="decide between them").click()
        page.wait_for_selector("form.who")
    with Tab(chromium, server, "#/label", labeller="eve", wait=".material") as page:
        page.get_by_text("Agreement of people").click()
        page.wait_for_selector("[data-path*='/labels/agreement'][data-path$='agree_ci[0]']")
        page.get_by_role("button", name="decide between them").click()
        page.wait_for_selector(".given")
        assert page.locator(".given").inner_text().split() in (["ada", "1", "bob", "0"], ["ada", "0", "bob", "1"])
        assert SECRET not in page.locator("main").inner_text()
        press(page, "y")
        page.keyboard.press("n")
        page.wait_for_selector("text=This queue is done.")
        read = recorded(page, server, 8)
        check_accessibility(page, 1280)
        page.get_by_label("queue").select_option("label")
        current(page)
        assert page.locator(".top select").nth(2).input_value() == "even"
    decisions = [(item["labeller"], item["score"], item["drawn"]) for item in read if item.get("adjudicated")]
    assert decisions == [("eve", 1.0, "random"), ("eve", 0.0, "random")]  # as the labels were drawn
    with Tab(chromium, server, f"#/subject/row/{read[-1]['subject']}", wait=".card") as page:
        page.wait_for_selector("h3:has-text('adjudication by eve')")


@pytest.mark.parametrize("width", [375, 1280])
def test_labeling_is_accessible_and_the_keyboard_is_enough(chromium, server, width):
    with Tab(chromium, server, "#/label", width=width) as page:
        page.wait_for_selector(".who input:focus")
        check_accessibility(page, width)
        page.keyboard.type("ada")
        page.keyboard.press("Enter")
        current(page)
        page.keyboard.press("?")
        page.keyboard.press("v")
        page.wait_for_selector("blockquote")
        settled(page)
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            check_accessibility(page, width)
        reached = set()
        for _ in range(60):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.textContent.trim().split(/\\s/)[0]"))
        assert {"Pass", "Fail", "Half", "Skip", "Agreement"} <= reached
        before = current(page)
        page.get_by_role("button", name="Pass").focus()
        page.keyboard.press("Enter")
        page.wait_for_function("(id) => document.querySelector('h2.id').textContent !== id", arg=before)
        assert page.evaluate("document.activeElement.textContent.trim()").startswith("Pass")  # the focus stays


SLOW = """() => {
    const fetched = window.fetch;
    window.fetch = async (...request) => {
        await new Promise((done) => setTimeout(done, 500));
        return fetched(...request);
    };
}"""
"""Makes each answer of the server 500 ms later."""


def type_fast(page, keys, ms=100):
    """Press keys *ms* apart, and return the subject that was on the page before each, None where none was."""
    script = """async ([keys, ms]) => {
        const seen = [];
        for (const key of keys) {
            seen.push(document.querySelector('.material') && document.querySelector('h2.id')?.textContent);
            document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
            await new Promise((done) => setTimeout(done, ms));
        }
        return seen;
    }"""
    return page.evaluate(script, [list(keys), ms])


def test_twenty_keys_typed_fast_after_a_cold_start_are_twenty_labels(chromium, server):
    with Tab(chromium, server, "#/label", labeller="ada", wait=".material") as page:
        page.add_init_script(f"({SLOW})()")
        page.reload()
        page.wait_for_selector(".material")
        keys = "yn" * 10
        seen = type_fast(page, keys)
        assert page.locator(".refused").count() == 0
        page.wait_for_selector("[data-path$='#own'][data-value='20']")
        read = recorded(page, server, 20)
    typed = [(subject, float(key == "y")) for subject, key in zip(seen, keys, strict=True)]
    assert [(item["subject"], item["score"]) for item in read] == typed
    assert len({subject for subject, _ in typed}) == 20


def test_a_key_without_a_subject_is_refused_in_words(chromium, server):
    with Tab(chromium, server, "#/label?queue=failed", labeller="ada", wait=".material") as page:
        page.evaluate(SLOW)
        page.get_by_label("queue").select_option("random")
        seen = type_fast(page, "yns", 50)
        assert page.locator(".refused").inner_text().startswith("3 keys were not taken")
        current(page)
        page.wait_for_timeout(600)  # keys count again after a pause
        first = press(page, "y")
        read = recorded(page, server, 1)
    assert seen == [None, None, None]
    assert [item["subject"] for item in read] == [first]


def test_steps_by_keys_are_counted_while_a_subject_is_read(chromium, server):
    run = server.get("/runs")["data"][0]["run_id"]
    first = server.get(f"/runs/{run}/subjects")["data"][0]["subject_id"]
    with Tab(chromium, server, f"#/subject/row/{first}?run={run}", wait=".steps [data-path$=place]") as page:
        page.evaluate(SLOW)
        type_fast(page, "jjjkj", 20)
        page.wait_for_selector(".steps [data-path$=place][data-value='4']", timeout=60_000)
        page.wait_for_timeout(1500)
        assert page.locator(".steps [data-path$=place]").get_attribute("data-value") == "4"
