"""The page as a reader has it: in a real Chromium, in both themes, wide and narrow."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from urllib.parse import quote

import attrs
import pytest

import dicast as kernel
from dicast import Judgment, Subject

pytestmark = pytest.mark.slow

EVERYTHING = "() => document.querySelectorAll('details').forEach((each) => { each.open = true; })"
NUMBERS = "() => [...document.querySelectorAll('[data-path]')].map((each) => [each.dataset.path, each.dataset.value, each.textContent])"
STEP = re.compile(r'\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|\.?([^.\[\]"]+)')


def exactly(text):
    """JSON with every number as its token."""
    return json.loads(text, parse_float=str, parse_int=str)


def found_at(document, path):
    for number, quoted, name in STEP.findall(path):
        document = document[int(number)] if number else document[json.loads(f'"{quoted}"') if quoted else name]
    return document


def steps_of(page):
    page.evaluate(EVERYTHING)
    return page.evaluate(NUMBERS)


def test_every_number_is_the_token_that_the_document_has(open_page, capitals):
    document = exactly((capitals / "document.json").read_text())
    with open_page(capitals / "out/report.html") as page:
        numbers = [number for number in steps_of(page) if not number[0].startswith("rows[")]
    wrong = [number for number in numbers if found_at(document, number[0]) != number[1]]
    assert wrong == []
    paths = {path for path, *_ in numbers}
    assert paths >= {
        *("score.mean", "score.ci_low", "score.ci_high", "score.aggregate", "score.pass_rate", "score.passes.n"),
        *("coverage", "scored", "failed", "subjects", "failures.missing_input", "score.by_basis.truth", "cost.usd"),
        *("metrics.right.mean", "metrics.right.pass_rate", 'metrics["like.ness"].mean', "metrics.proxy/length.scored"),
        *("gate.clauses[0].value", "gate.clauses[1].low", "aggregates.stats/distribution.criteria.right.n"),
        "comparison.stats/paired.criteria.right.mean_difference",
    }


def test_a_rows_numbers_are_those_of_its_verdict(open_page, capitals, dicast):
    document = exactly(dicast(capitals, "show", "peru", "--json", "--ledger", "ledger.db"))
    verdict = next(item for item in document["verdicts"] if item["judge"] == "metrics")
    with open_page(capitals / "out/report.html", hash="#row=row%2Fperu") as page:
        page.wait_for_selector("dialog[open]")
        numbers = {path: value for path, value, _ in steps_of(page) if path.startswith("rows[peru]")}
    assert numbers["rows[peru].score"] == verdict["score"]
    values = {score["metric"]: score["value"] for score in verdict["scores"]}
    assert numbers["rows[peru].values.right"] == values["right"]
    assert numbers['rows[peru].values["like.ness"]'] == values["like.ness"]
    assert numbers["rows[peru].verdicts.metrics.scores[0].value"] == values["proxy/length"]
    assert numbers["rows[peru].verdicts.metrics.confidence"] == verdict["confidence"]


@pytest.mark.parametrize(
    "gate",
    [
        "",
        "gate: {min_pass_rate: 0.1}",
        "gate: {min_pass_rate: 0.9}",
        "gate: [{min_pass_rate: 0.9}, {min_score: 0.9}]",
        "gate: {min_coverage: 0.9}",
    ],
)
def test_the_headline_is_the_first_line_of_the_terminal(tmp_path, open_page, dicast, write_rows, gate):
    write_rows(tmp_path / "rows.jsonl", [{"id": "a", "output": "yes"}, {"id": "b", "output": "no"}, {"id": "c"}])
    text = "name: head\nsource: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [check/contains: {value: yes}]\nledger: {ledger/sqlite: {path: l.db}}\n"
    (tmp_path / "p.yaml").write_text(text + "sinks: [report/html: {path: out.html}]\n" + gate)
    json.loads(dicast(tmp_path, "run", "p.yaml", "--json", code=kernel.run(tmp_path / "p.yaml").exit_code))
    (line, *_) = dicast(tmp_path, "show", "last", "--ledger", "l.db").split("\nhead  run ")
    with open_page(tmp_path / "out.html") as page:
        shown = page.locator(".headline .verdict").inner_text()
    headline = shown[2:]  # behind the sign
    assert headline.startswith("gate: ")
    assert " ".join(line.split()).startswith(headline)


@pytest.mark.parametrize("hash", ["#row=%E0%A4%A", "#row=row%2Fnobody", "#row="])
def test_a_broken_address_of_a_row_shows_the_page_without_it(open_page, capitals, hash):
    with open_page(capitals / "out/report.html", hash=hash) as page:
        page.wait_for_selector(".virtual-row")
        assert page.query_selector("dialog[open]") is None


def test_the_card_of_what_counts_has_the_documents_number_and_its_place(open_page, capitals):
    document = exactly((capitals / "document.json").read_text())
    with open_page(capitals / "out/report.html") as page:
        card = page.locator(".card", has=page.get_by_role("heading", name="metrics all metrics, in the gate"))
        mean, *other_means = card.locator("data").evaluate_all(
            "all => all.map(one => [one.dataset.path, one.dataset.value])"
        )
    assert mean == ["labels.metrics.mean", document["labels"]["metrics"]["mean"]]
    assert ["labels.metrics.passes.n", document["labels"]["metrics"]["passes"]["n"]] in other_means


def test_the_gates_answers_are_in_sight_on_a_phone(open_page, capitals):
    with open_page(capitals / "out/report.html", width=400) as page:
        table = page.locator(".clauses")
        assert table.evaluate("one => one.parentElement.scrollWidth <= one.parentElement.clientWidth")
        assert table.locator("tbody tr").first.locator("td").first.inner_text() in (
            "✓ passed",
            "! undecided",
            "✗ failed",
        )


def check_accessibility(page, width):
    """Check that axe finds nothing on the page, and that the page is as wide as the window."""
    from axe_playwright_python.sync_playwright import Axe

    assert page.evaluate("document.documentElement.scrollWidth") == width
    axe_report = Axe().run(page)
    assert axe_report.violations_count == 0, axe_report.generate_report()


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("hash", ["", "#row=row%2Fperu"])
def test_nothing_stands_in_the_way_of_anybody(open_page, capitals, width, hash):
    with open_page(capitals / "out/report.html", width=width, hash=hash) as page:
        if hash:
            page.wait_for_selector("dialog[open]")
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            check_accessibility(page, width)
            assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == (
                "rgb(250, 249, 246)" if theme == "light" else "rgb(22, 24, 27)"
            )


def test_the_theme_can_be_chosen(open_page, capitals):
    with open_page(capitals / "out/report.html") as page:
        page.get_by_role("button", name="Use the dark theme").click()
        page.wait_for_selector("html[data-theme=dark]")
        assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(22, 24, 27)"
        page.get_by_role("button", name="Use the light theme").click()
        page.wait_for_selector("html[data-theme=light]")
        assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(250, 249, 246)"


def test_the_button_of_the_theme_follows_the_system(open_page, capitals):
    with open_page(capitals / "out/report.html") as page:
        page.emulate_media(color_scheme="dark")
        page.get_by_role("button", name="Use the light theme").wait_for()
        page.emulate_media(color_scheme="light")
        page.get_by_role("button", name="Use the dark theme").wait_for()


def test_the_keyboard_is_enough(open_page, capitals):
    with open_page(capitals / "out/report.html") as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the rows"
        page.keyboard.press("/")
        page.keyboard.type("capital lima")
        page.wait_for_selector(".count:has-text('1 of 6')")
        page.keyboard.press("Control+A")
        page.keyboard.press("Delete")
        page.wait_for_selector(".count:has-text('6 of 6')")
        for _ in range(20):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.getAttribute('role')") == "row":
                break
        rows = page.locator(".virtual-row")
        assert rows.first.inner_text().split("\n")[1] == "norway"  # without a score: the worst comes first
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_selector("dialog[open] h2:has-text('ghana')")
        assert page.evaluate("decodeURIComponent(location.hash)") == "#row=row/ghana"
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog", state="detached")
        page.wait_for_function("() => document.activeElement.dataset.place === '1'")
        page.keyboard.press("End")
        page.wait_for_function("() => document.activeElement.dataset.place === '5'")


def test_rows_are_filtered_and_sorted(open_page, capitals, dicast):
    def ids():
        return [text.split("\n")[1] for text in page.locator(".virtual-row").all_inner_texts()]

    printed = dicast(capitals, "verdicts", "--run", "last", "--json", "--ledger", "ledger.db")
    values = {verdict["subject_id"]: verdict["signals"]["metrics"] for verdict in json.loads(printed)["verdicts"]}
    low = {id for id, metric_scores in values.items() if metric_scores.get("like.ness", 1) <= 0.5}
    assert 0 < len(low) < 5
    with open_page(capitals / "out/report.html") as page:
        page.get_by_role("button", name="no score").click()
        assert ids() == ["norway"]
        page.locator(".chips").get_by_role("button", name="pass").click()
        assert ids() == ["turkey", "kenya"]
        page.locator(".chips").get_by_role("button", name="all").click()
        page.get_by_role("button", name="subject").click()
        assert ids() == ["chile", "ghana", "kenya", "norway", "peru", "turkey"]
        page.get_by_role("button", name="subject").click()
        assert ids()[0] == "turkey"
        page.get_by_text("More filters").click()
        page.get_by_label("value of").select_option("like.ness")
        page.get_by_label("to", exact=True).fill("0.5")
        assert set(ids()) == low
        page.get_by_role("button", name="clear").click()
        page.get_by_role("button", name="regressed").click()
        assert ids() == ["peru"]
        page.get_by_role("button", name="fixed").click()
        assert ids() == ["turkey"]


HOSTILE = [
    "<script>window.taken = 1; alert(1)</script>",
    "</script><script>window.taken = 1; alert(1)</script>",
    "<!--<script>window.taken = 1</script>",
    "<img src=x onerror='window.taken=1;alert(1)'><svg onload=alert(1)>",
    "<a href='javascript:window.taken=1'>here</a> javascript:alert(1) [here](javascript:alert(1))",
    "<style>* { display: none !important }</style><link rel=stylesheet href=https://example.invalid/x.css>",
    "<iframe src=https://example.invalid/></iframe><base href=https://example.invalid/>",
    "<meta http-equiv=refresh content='0;url=https://example.invalid/'>",
    "\u202eright to left\u202c שלום مرحبا \U0001f468\u200d\U0001f469\u200d\U0001f467 \u2028\u2029\u0000 e\u0301"
    + "\u0336" * 500,
    "${window.taken=1} {{constructor.constructor('window.taken=1')()}} `${alert(1)}`",
    "x" * 300_000,
    "W " * 40_000,
    "&lt;b&gt; &amp; --> ]]> '\" \\u003cscript\\u003e",
    '{"__proto__": {"taken": 1}, "constructor": 1}',
]


def test_what_was_judged_does_nothing(open_page, tmp_path, dicast, write_rows):
    rows = [
        {
            "id": f"{number} {text[:60]}".replace("\0", ""),
            "input": text,
            "output": text,
            "reference": text[::-1],
            "more": {text[:40]: text},
        }
        for number, text in enumerate(HOSTILE)
    ]
    write_rows(tmp_path / "rows.jsonl", rows)
    name = json.dumps("</title><script>window.taken=1;alert(1)</script>")
    label = json.dumps("<img src=x onerror=alert(1)>")
    (tmp_path / "pipeline.yaml").write_text(
        f"name: {name}\nsource: {{rows/jsonl: {{path: rows.jsonl}}}}\nmetrics: [{{diff/match: {{as: {label}}}}}, {{proxy/keywords: {{forbidden: [script]}}}}]\n"
        "aggregates: [stats/distribution]\nsinks: [{report/html: {path: report.html}}]\nledger: {ledger/sqlite: {path: ledger.db}}\n"
    )
    dicast(tmp_path, "run", "pipeline.yaml", "--json")
    assert (tmp_path / "report.html").stat().st_size < 2_000_000  # what is huge is cut
    with open_page(tmp_path / "report.html") as page:
        before = page.evaluate(
            "document.querySelectorAll('script, style, img, iframe, link, base, a[href^=javascript]').length"
        )
        assert before == 6  # the report, its script, three blocks of rows, the style
        page.locator(".virtual-row").first.click()
        for _ in HOSTILE:
            page.wait_for_selector("dialog[open]")
            page.evaluate(EVERYTHING)
            assert (
                page.evaluate(
                    "document.querySelectorAll('img, iframe, link, base, dialog script, dialog style').length"
                )
                == 0
            )
            assert page.evaluate(
                "document.documentElement.scrollWidth <= innerWidth && document.querySelector('.drawer-body').scrollWidth <= innerWidth"
            )
            page.get_by_role("button", name="Next").click()
        page.keyboard.press("Escape")
        page.locator("input[type=search]").fill("<script>")
        page.wait_for_selector(".count:has-text('of 14')")
        assert page.evaluate("window.taken") is None
        assert page.evaluate("({}).taken") is None


def test_a_changed_page_runs_nothing(chromium, capitals, tmp_path):
    """A script added to the file does not run: the policy is in the file."""
    text = (capitals / "out/report.html").read_text(encoding="utf-8")
    (tmp_path / "changed.html").write_text(
        text.replace(
            '<div id="report">',
            '<script>window.taken = 1</script><img src="https://example.invalid/x.png"><div id="report">',
        )
    )
    page = chromium.new_page()
    refused, answered = [], []
    page.on("requestfailed", lambda request: refused.append((request.url, request.failure)))
    page.on("response", lambda response: answered.append(response.url))
    page.goto((tmp_path / "changed.html").as_uri())
    page.wait_for_selector(".virtual-row")
    assert page.evaluate("window.taken") is None
    assert refused == [("https://example.invalid/x.png", "csp")]
    assert len(answered) == 1
    page.close()


def test_a_long_table_has_few_rows_in_the_page_and_scrolls_to_its_end(open_page, tmp_path, dicast, write_rows):
    write_rows(
        tmp_path / "rows.jsonl",
        [{"id": f"r{n:04}", "input": "q", "output": str(n % 7), "reference": "3"} for n in range(3000)],
    )
    (tmp_path / "p.yaml").write_text(
        "source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [diff/match]\nsinks: [{report/html: {path: r.html, rows: 2000}}]\nledger: {ledger/sqlite: {path: l.db}}\n"
    )
    dicast(tmp_path, "run", "p.yaml", "--json")
    with open_page(tmp_path / "r.html") as page:
        assert page.locator(".note").first.inner_text().startswith("2,000 of 3,000 rows are in this page")
        assert page.locator(".virtual-row").count() < 60
        page.evaluate("() => { const box = document.querySelector('.virtual'); box.scrollTop = box.scrollHeight; }")
        page.wait_for_selector(".virtual-row[aria-rowindex='2001']")
        page.wait_for_timeout(300)  # the empty search, which is looked at a moment later, changes nothing
        assert page.locator(".virtual-row[aria-rowindex='2001']").count() == 1
        assert page.locator(".virtual-row").count() < 60
        assert page.evaluate("document.querySelector('[data-path=\"score.mean\"]').dataset.value").startswith("0.14")


def test_hundreds_of_metrics_do_not_hold_up_the_page(open_page, tmp_path, dicast, write_rows):
    metrics = "".join(f"  - check/contains: {{as: m{n}, value: '{n}'}}\n" for n in range(300))
    write_rows(tmp_path / "rows.jsonl", [{"id": str(n), "output": f"299 or {n}"} for n in range(5)])
    (tmp_path / "pipeline.yaml").write_text(
        f"source: {{rows/jsonl: {{path: rows.jsonl}}}}\nmetrics:\n{metrics}aggregates: [stats/pass_rate]\n"
        "ledger: {ledger/sqlite: {path: ledger.db}}\nsinks: [{report/html: {path: report.html}}]\n"
    )
    dicast(tmp_path, "run", "pipeline.yaml")
    with open_page(tmp_path / "report.html") as page:
        cards = page.locator(".cards .card")
        assert cards.count() == 60
        assert page.evaluate("document.querySelectorAll('*').length") < 8000
        page.get_by_role("button", name="Show all 301 metrics and judges").click()
        page.wait_for_function("() => document.querySelectorAll('.cards .card').length === 301")
        page.locator(".virtual-row").first.click()
        verdicts = page.get_by_role("group", name="Verdicts").locator("tbody tr")
        assert verdicts.count() == 60
        assert {text.split("\t")[1] for text in verdicts.all_inner_texts()} == {"0.000"}  # the lowest come first
        page.get_by_role("button", name="Show all 300 verdicts").click()
        page.wait_for_function("() => document.querySelectorAll('dialog .verdicts tbody tr').length === 300")


def test_paper_has_the_rows(chromium, capitals):
    page = chromium.new_page()
    page.goto((capitals / "out/report.html").as_uri())
    page.wait_for_selector(".virtual-row")
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.wait_for_selector(".printed tbody tr")
    assert page.locator(".printed tbody tr").count() == 6
    assert not page.locator(".virtual").is_visible()
    page.close()


def test_prompts_stand_side_by_side(open_page, tmp_path, dicast, write_rows):
    (tmp_path / "toy.py").write_text(
        "def chatty(input):\n    return f'It is {input}'\n\n\ndef brief(input):\n    return input\n"
    )
    write_rows(tmp_path / "rows.jsonl", [{"id": name, "input": name, "reference": name} for name in ("Lima", "Oslo")])
    (tmp_path / "suite.yaml").write_text(
        'name: prompts\nsource: {rows/jsonl: {path: rows.jsonl}}\ntask: {task/python: {target: "toy:chatty"}}\nmetrics: [diff/match]\n'
        "ledger: {ledger/sqlite: {path: ledger.db}}\nbaseline: {run: chatty, compare: [stats/paired]}\n"
        'experiments: {chatty: {}, brief: {set: {task.target: "toy:brief"}}}\n'
    )
    document = exactly(dicast(tmp_path, "run", "suite.yaml", "--json"))
    dicast(tmp_path, "report", "--ledger", "ledger.db", "--out", "report.html")
    with open_page(tmp_path / "report.html") as page:
        assert page.locator(".sides tbody tr").count() == 2
        assert page.locator("h1").inner_text() == "prompts: chatty · brief"
        times = page.get_by_role("group", name="Cost and time by label").locator("tbody tr")
        assert [text.split("\t")[0] for text in times.all_inner_texts()] == ["task/python task", "metrics"]
        assert "\t< 1 ms\t" in times.nth(1).inner_text()
        numbers = [number for number in steps_of(page) if "rows[" not in number[0]]
        page.get_by_role("group", name="Run that is shown below").get_by_role("button", name="brief").click()
        numbers += [number for number in steps_of(page) if "rows[" not in number[0]]
        assert [number for number in numbers if found_at(document, number[0]) != number[1]] == []
        assert {path.split(".")[1] for path, *_ in numbers} == {"chatty", "brief"}
        page.locator(".virtual-row").first.click()
        texts = page.locator("dialog .side").all_inner_texts()
        assert "It is Lima" in texts[0]
        assert "It is" not in texts[1]


RATE = """
import json, sys
row, more = json.load(sys.stdin), float(sys.argv[1])
print(json.dumps({"responses": {name: {"content": json.dumps({"score": row[name] + more})} for name in ("kind", "clear")}}))
"""


def test_criteria_stand_side_by_side_with_one_mean_everywhere(open_page, tmp_path, dicast, write_rows):
    (tmp_path / "rate.py").write_text(RATE)
    write_rows(tmp_path / "rows.jsonl", [{"id": str(n), "kind": n / 70, "clear": 0.1} for n in range(1, 21)])
    command = json.dumps([sys.executable, "rate.py", "${MORE:-0}"])
    (tmp_path / "suite.yaml").write_text(
        f"name: tones\nsource: {{rows/jsonl: {{path: rows.jsonl}}}}\ntask: {{task/command: {{command: {command}}}}}\n"
        "extractors: [score_extractor/scores: {threshold: 0.3}]\naggregates: [stats/score_stats, stats/power]\n"
        "gate: {on: kind, min_score: 0.9}\nledger: {ledger/sqlite: {path: ledger.db}}\n"
        "experiments: {plain: {variables: {MORE: '0'}}, warm: {variables: {MORE: '0.3'}}}\n"
    )
    document = exactly(dicast(tmp_path, "run", "suite.yaml", "--json", code=1))
    dicast(tmp_path, "report", "--ledger", "ledger.db", "--out", "report.html")
    plain = document["experiments"]["plain"]
    means = {name: number["mean"] for name, number in plain["aggregates"]["stats/score_stats"]["criteria"].items()}
    assert means["kind"] == plain["gate"]["clauses"][1]["value"]
    with open_page(tmp_path / "report.html") as page:
        cards = page.locator(".card .figure data").evaluate_all(
            "all => all.map(one => [one.dataset.path, one.dataset.value])"
        )
        assert sorted(value for _, value in cards) == sorted(means.values())
        assert [found_at(document, path) == value for path, value in cards] == [True, True]
        numbers = [number for number in steps_of(page) if "rows[" not in number[0]]
        assert [number for number in numbers if found_at(document, number[0]) != number[1]] == []
        heads = page.locator(".rows-section [role=columnheader]").all_inner_texts()
        assert {"kind, plain", "kind, warm", "clear, plain", "clear, warm"} <= {head.strip(" ▲▼") for head in heads}
        assert "–" not in page.locator(".virtual-row").first.inner_text()


def test_scores_at_a_line_at_the_end_of_the_scale_pass_in_the_chart(open_page, tmp_path, dicast, write_rows):
    write_rows(
        tmp_path / "rows.jsonl",
        [{"id": "a", "output": "x", "reference": "x"}, {"id": "b", "output": "x", "reference": "y"}],
    )
    (tmp_path / "ends.yaml").write_text(
        "name: ends\nsource: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [diff/match]\nscoring: {pass_at: 1.0}\n"
        "ledger: {ledger/sqlite: {path: ledger.db}}\nsinks: [{report/html: {path: report.html}}]\n"
    )
    dicast(tmp_path, "run", "ends.yaml", "--json")
    with open_page(tmp_path / "report.html") as page:
        bars = page.locator("section[aria-labelledby^=scores-] .bar[data-value='1']")
        assert [bar.get_attribute("class") for bar in bars.all()] == ["bar fail", "bar"]


@pytest.mark.outside_data
def test_a_failed_conversation_of_the_airline_is_read_in_two_clicks(open_page, tmp_path, outside_data, dicast):
    path = json.dumps(str(Path(outside_data) / "tau_bench_airline.jsonl.gz"))
    (tmp_path / "airline.yaml").write_text(
        f'name: airline\nsource: {{traces/messages: {{path: {path}, id: "{{{{ task_id }}}}-{{{{ trial }}}}", tool_error: "^Error", subjects: [turn, session]}}}}\n'
        "judges: [heuristic/turn, {heuristic/session: {pass_at: 0.85}}]\ngate: {on: heuristic/session, min_pass_rate: 0.9}\n"
        "ledger: {ledger/sqlite: {path: ledger.db}}\nsinks: [{report/html: {path: report.html}}]\n"
    )
    dicast(tmp_path, "run", "airline.yaml", "--json", code=1)
    with open_page(tmp_path / "report.html") as page:
        page.locator(".chips").get_by_role("button", name="fail").click()
        page.locator(".virtual-row").first.click()
        conversation = page.locator("dialog .conversation")
        assert conversation.locator(".said.user").count() > 1
        assert conversation.locator(".said.assistant").count() > 1
        call = conversation.locator(".call").first
        assert call.locator(".readable").count() == 0
        call.locator("summary").first.click()
        call.locator(".readable").first.wait_for()
        assert page.locator("dialog .policy").count() == 1
    with open_page(tmp_path / "report.html", hash="#row=turn%2F18-1%2F3") as page:
        page.wait_for_selector("dialog .turn.own")
        page.wait_for_function("() => document.querySelector('.drawer-body').scrollTop > 200")
        assert page.locator("dialog .turn.own").evaluate("(turn) => turn.getBoundingClientRect().top") < 200


@pytest.mark.parametrize("width", [375, 1280])
def test_reasoning_is_folded_until_it_is_opened(open_page, tmp_path, dicast, width):
    parts = [{"type": "thinking", "thinking": "It is in Italy."}, {"type": "text", "text": "Rome is in Italy."}]
    messages = [{"role": "user", "content": "Where is Rome?"}, {"role": "assistant", "content": parts}]
    (tmp_path / "in.jsonl").write_text(json.dumps({"id": "rome", "messages": messages}) + "\n")
    pipeline = "name: p\nsource: {traces/messages: {path: in.jsonl, id: '{{ id }}'}}\njudges: [heuristic/turn]\n"
    (tmp_path / "p.yaml").write_text(pipeline)
    dicast(tmp_path, "run", "p.yaml")
    dicast(tmp_path, "report")
    with open_page(tmp_path / "report.html", width=width, hash="#row=turn%2Frome%2F1") as page:
        page.wait_for_selector("dialog[open] .reasoning")
        assert not page.get_by_text("It is in Italy.", exact=True).is_visible()
        page.locator(".reasoning > summary").click()
        assert page.get_by_text("It is in Italy.", exact=True).is_visible()
        check_accessibility(page, width)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_a_long_id_keeps_its_end_in_the_table(open_page, tmp_path, dicast, write_rows, width):
    session = "9f1c0000-0000-4000-8000-0000000000aa"
    ids = [f"{session}/1", f"{session}/agent-a1b2c3d/{session}/2", "short/3"]
    write_rows(tmp_path / "rows.jsonl", [{"id": id, "output": "text"} for id in ids])
    (tmp_path / "pipeline.yaml").write_text("source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [proxy/length]\n")
    dicast(tmp_path, "run", "pipeline.yaml")
    dicast(tmp_path, "report", "last", "--out", "page.html")
    with open_page(tmp_path / "page.html", width=width) as page:
        names = page.locator(".virtual-row .id")
        assert sorted(names.all_text_contents()) == sorted(ids)
        assert names.evaluate_all("all => all.every((one) => one.scrollWidth <= one.clientWidth)")  # no end is cut
        starts = page.locator(".id-start")
        assert starts.evaluate_all("all => all.map((one) => one.scrollWidth > one.clientWidth)").count(True) == 2


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.mark.slow
def test_a_marker_and_the_reason_of_a_limit_are_shown_once(open_page, tmp_path, dicast, write_rows):
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    sound = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    call = {"id": "c", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Look."}, image, sound]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "done"},
        {"role": "assistant", "content": "Seen."},
    ]
    write_rows(tmp_path / "s.jsonl", [{"messages": messages}])
    (tmp_path / "pipeline.yaml").write_text(
        "source: {traces/messages: {path: s.jsonl}}\nmetrics: [trajectory/limits: {max_calls: 0, forbidden: [Bash]}]\n"
    )
    dicast(tmp_path, "run", "pipeline.yaml")
    dicast(tmp_path, "report", "last", "--out", "page.html")
    with open_page(tmp_path / "page.html", hash="#row=turn%2F1%2F1") as page:
        page.wait_for_selector("dialog[open] .picture img")
        said = page.locator(".conversation").inner_text()
        assert (said.count("[image/png"), said.count("[audio/")) == (1, 1)
        reason = page.locator(".verdicts .reason").inner_text()
        assert reason.count("is forbidden, and was called") == 1
        assert reason.lower().count("calls") == 1


@pytest.mark.slow
def test_a_sub_agent_names_its_parent_and_links_to_it(open_page, tmp_path, dicast):
    pytest.importorskip("dicast_transcripts")

    def record(number, role, content, **fields):
        message = {"role": role, "content": content} | ({} if role == "user" else {"id": number, "model": "c"})
        time = {"timestamp": f"2026-01-01T00:00:0{number}Z", "version": "2.0.1", "sessionId": "S", "type": role}
        return json.dumps({**time, "uuid": f"u{number}", "parentUuid": None, "message": message, **fields}) + "\n"

    agent = {"isSidechain": True, "agentId": "a1"}
    folder = tmp_path / "s" / "S" / "subagents"
    folder.mkdir(parents=True)
    texts = "Look around", [{"type": "text", "text": "Seen"}]
    (tmp_path / "s" / "S.jsonl").write_text(record(1, "user", "Go") + record(2, "assistant", texts[1]))
    (folder / "agent-a1.jsonl").write_text(
        record(3, "user", texts[0], **agent) + record(4, "assistant", texts[1], **agent)
    )
    (tmp_path / "pipeline.yaml").write_text(
        "source: {transcripts/claude_code: {path: s, subjects: [turn, session]}}\njudges: [heuristic/turn, heuristic/session]\n"
    )
    dicast(tmp_path, "run", "pipeline.yaml")
    shown = dicast(tmp_path, "show", "S/agent-a1")
    assert "  part of: S\n" in shown
    assert json.loads(dicast(tmp_path, "show", "S/agent-a1", "--json"))["subject"]["parent_id"] == "S"
    assert "parent_id" not in json.loads(dicast(tmp_path, "show", "S", "--json"))["subject"]
    again = "source: {traces/recorded: {subject: session}}\njudges: [heuristic/session]\n"
    (tmp_path / "again.yaml").write_text(again)
    dicast(tmp_path, "run", "again.yaml")
    assert json.loads(dicast(tmp_path, "show", "S/agent-a1", "--json"))["subject"]["parent_id"] == "S"
    dicast(tmp_path, "report", "pipeline", "--out", "page.html")
    with open_page(tmp_path / "page.html", hash="#row=turn%2FS%2Fagent-a1%2F1") as page:
        page.locator(".parent a").click()
        page.wait_for_url("**#row=session%2FS")
        page.wait_for_selector("dialog[open] h2:has-text('session S')")
        assert page.locator(".parent").count() == 0


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_a_sub_agent_is_folded_at_the_call_that_started_it(open_page, tmp_path, dicast, write_rows, width):
    def event(type_, session, turn, minute, **payload):
        time = f"2026-01-01T00:{minute:02d}:00Z"
        return {"type": type_, "session_id": session, "turn_id": turn, "time": time, "payload": payload}

    def ended(session, minute, text):
        texts = {"user_prompt_text": "Look", "final_response_text": text}
        return event("turn.completed", session, f"{session}/1", minute, stop_reason="end_turn", signals_extra=texts)

    hostile = "<img src=https://example.invalid/x onerror=alert(1)>"
    call = {"tool_use_id": "c1", "tool_name": "Task"}
    events = [
        event("tool.called", "s", "s/1", 0, **call, input={"prompt": "Look"}),
        event("tool.completed", "s", "s/1", 3, **call, success=True, output="Seen"),
        ended("s", 4, "Done"),
        event("session.started", "child", None, 1, parent_id="s", parent_tool_use_id="c1"),
        event("message.sent", "child", "child/1", 2, role="assistant", text=hostile, parts=[{"type": "reasoning", "text": "Hm"}]),
        ended("child", 2, "Inside"),
        event("session.started", hostile, None, 1, parent_id="child"),
        ended(hostile, 2, "Deep"),
    ]  # fmt: skip
    write_rows(tmp_path / "t.jsonl", events)
    (tmp_path / "pipeline.yaml").write_text("source: {traces/events: {path: t.jsonl}}\njudges: [heuristic/turn]\n")
    dicast(tmp_path, "run", "pipeline.yaml")
    dicast(tmp_path, "report", "last", "--out", "page.html")
    with open_page(tmp_path / "page.html", hash="#row=turn%2Fs%2F1", width=width) as page:
        agent = page.locator(".call + details.agent")
        agent.wait_for()
        assert agent.inner_text() == "Sub-agent child"
        assert agent.get_by_text("Inside").count() == 0
        agent.locator("summary").first.click()
        agent.get_by_text("Inside").wait_for()
        assert not agent.get_by_text("Hm", exact=True).is_visible()  # its reasoning is folded
        deep = agent.locator("details.agent")
        assert deep.inner_text() == f"Sub-agent {hostile}"
        deep.locator("summary").click()
        deep.get_by_text("Deep").wait_for()
        check_accessibility(page, width)


@pytest.mark.slow
def test_an_opened_turn_has_its_file_and_its_reference(open_page, tmp_path, dicast):
    pytest.importorskip("dicast_inspect")
    log = Path(__file__).parents[3] / "examples" / "inspect" / "sums.eval"
    (tmp_path / "sums.eval").write_bytes(log.read_bytes())
    (tmp_path / "p.yaml").write_text("source: {inspect/log: {path: sums.eval}}\njudges: [heuristic/turn]\n")
    dicast(tmp_path, "run", "p.yaml")
    dicast(tmp_path, "report", "last", "--out", "page.html")
    id_ = json.loads(dicast(tmp_path, "verdicts", "--json"))["verdicts"][0]["subject_id"]
    reference = json.loads(dicast(tmp_path, "show", id_, "--json"))["subject"]["reference"]
    with open_page(tmp_path / "page.html", hash=f"#row={quote(f'turn/{id_}', safe='')}") as page:
        drawer = page.locator("dialog[open]")
        drawer.get_by_text("From sums.eval").wait_for()
        assert f"Reference\ncopy\n{reference}" in drawer.inner_text()


def test_a_long_conversation_is_drawn_near_the_turn_and_further_on_request(open_page, tmp_path, dicast, write_rows):
    texts = [{"user_prompt_text": f"question {number}", "final_response_text": "answer"} for number in range(300)]
    events = [
        {"type": "turn.completed", "session_id": "s", "turn_id": f"s/{number}", "time": "2026-01-01T00:00:00Z",
         "payload": {"stop_reason": "end_turn", "signals_extra": text}}
        for number, text in enumerate(texts)
    ]  # fmt: skip
    write_rows(tmp_path / "t.jsonl", events)
    (tmp_path / "pipeline.yaml").write_text("source: {traces/events: {path: t.jsonl}}\njudges: [heuristic/turn]\n")
    dicast(tmp_path, "run", "pipeline.yaml")
    dicast(tmp_path, "report", "last", "--out", "page.html")
    with open_page(tmp_path / "page.html", hash="#row=turn%2Fs%2F150") as page:
        drawn = page.locator("dialog[open] li.turn")
        drawn.first.wait_for()
        assert drawn.count() == 81
        assert "question 150" in page.locator("li.turn.own").inner_text()
        page.get_by_text("Show 110 of 110 earlier turns").click()
        page.get_by_text("Show 109 of 109 later turns").click()
        page.wait_for_function("() => document.querySelectorAll('dialog[open] li.turn').length === 300")
        assert page.locator(".more-turns").count() == 0


def test_rows_that_fail_come_before_rows_that_only_another_tool_scores_low(open_page, tmp_path, dicast):
    pytest.importorskip("dicast_exports")
    results = [
        {
            "doc_id": n,
            "doc": {"q": "x"},
            "target": "a",
            "arguments": [["x"]],
            "resps": [[text]],
            "filtered_resps": [text],
            "exact_match": score,
        }
        for n, (text, score) in enumerate([("fine", 0.0), ("", 1.0)])
    ]
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps(item) + "\n" for item in results))
    (tmp_path / "p.yaml").write_text("source: {exports/lm_eval: {path: samples.jsonl}}\nmetrics: [proxy/format]\n")
    dicast(tmp_path, "run", "p.yaml")
    dicast(tmp_path, "report", "last", "--out", "page.html")
    with open_page(tmp_path / "page.html") as page:
        outcomes = [row.inner_text().split("\n")[0] for row in page.locator(".virtual-row").all()]
        assert [outcome.split()[-1] for outcome in outcomes] == ["fail", "pass"]


@pytest.mark.slow
def test_a_baseline_is_read_row_by_row_under_a_chosen_label(open_page, tmp_path, dicast, write_rows):
    (tmp_path / "p.yaml").write_text(
        "name: shop\nsource: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [diff/match, {check/contains: {as: city, value: o}}]\n"
        "gate: {on: diff/match, min_score: 0.5}\nledger: {ledger/sqlite: {path: ledger.db}}\n"
    )
    for outputs in (("Lima", "Oslo"), ("Lima, I think", "osl")):
        rows = [
            {"id": id, "output": output, "reference": id} for id, output in zip(("Lima", "Oslo"), outputs, strict=True)
        ]
        write_rows(tmp_path / "rows.jsonl", rows)
        dicast(tmp_path, "run", "p.yaml", "--json", code=0 if outputs[0] == "Lima" else 1)
    runs = json.loads(dicast(tmp_path, "runs", "--ledger", "ledger.db", "--json"))["runs"]
    arguments = "report", runs[0]["run_id"], "--baseline", runs[1]["run_id"], "--ledger", "ledger.db"
    dicast(tmp_path, *arguments, "--out", "page.html")
    with open_page(tmp_path / "page.html") as page:
        page.get_by_role("button", name="regressed").click()
        assert page.locator(".virtual-row").count() == 2
        page.get_by_label("changes of").select_option("city")
        page.get_by_role("button", name="fixed").click()
        assert [text.split("\n")[1] for text in page.locator(".virtual-row").all_inner_texts()] == []
        page.get_by_role("button", name="all").click()
        page.get_by_role("button", name="change").click()
        page.locator(".virtual-row").first.click()
        sides = page.locator("dialog .side .side")
        assert sides.nth(0).locator(".text").inner_text() in ("Lima", "Oslo")
        assert sides.nth(1).locator("ins, del").count() > 0


@attrs.frozen
class Rising:
    """A judge whose scores rise with the number of the subject, by *gain*."""

    gain: float
    name = "a"

    def judge(self, subject, children):
        number = int(subject.id)
        return Judgment(number / 20 + (self.gain + (number % 2) / 100 if self.gain else 0.0), 1.0)


@pytest.mark.slow
def test_a_report_names_the_test_that_decides_if_another_has_another_answer(open_page, tmp_path, dicast):
    ids = []
    for gain in (0.0, 0.02):
        ledger = {"ledger/sqlite": {"path": str(tmp_path / "ledger.db")}}
        rows = [Subject("row", str(number), "?", "!") for number in range(20)]
        ids.append(kernel.run({"name": "one", "judges": [Rising(gain)], "ledger": ledger}, subjects=rows).run_id)
    dicast(tmp_path, "report", ids[1], "--baseline", ids[0], "--ledger", "ledger.db", "--out", "page.html")
    with open_page(tmp_path / "page.html") as page:
        notes = page.locator(".finding .note").all_inner_texts()
        assert any(note.startswith("a: the answer of the first sentences decides") for note in notes)
