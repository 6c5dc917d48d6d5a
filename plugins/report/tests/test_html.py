"""Contents of the file that report/html and dicast report write."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from fractions import Fraction

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from dicast import Entry, Event
from dicast.reading import Gold, LabeledOutputs, output_digest
from dicast.toolkit.gold import GoldLabel
from dicast.toolkit.intervals import wilson
from dicast.toolkit.sub_agents import SubAgents
from dicast_report.choice import Choice
from dicast_report.command import report as write_report
from dicast_report.contents import Contents
from dicast_report.conversation import conversations
from dicast_report.human_labels import Reliability, human_labels
from dicast_report.marking import Marking
from dicast_report.page import inert
from dicast_report.row_columns import RowColumns
from dicast_report.spread import Spread, Spreads
from dicast_report.subjects import SubjectResults

PIPELINE = """name: capitals
source: {rows/jsonl: {path: rows.jsonl}}
metrics: [diff/match]
sinks: [{report/html: {path: out/report.html}}]
ledger: {ledger/sqlite: {path: ledger.db}}
"""
ROWS = [
    {"id": "turkey", "input": "Turkey, my own question", "output": "Ankara", "reference": "Ankara"},
    {"id": "peru", "input": "Peru", "output": "Cusco", "reference": "Lima"},
    {"id": "norway", "input": "Norway", "output": "Oslo"},
]


@pytest.fixture
def run(tmp_path, dicast, write_rows):
    """Return a function that runs the pipeline, with optional other rows or sinks, and returns its document."""

    def run(*arguments, rows=ROWS, pipeline=PIPELINE, code=3):
        write_rows(tmp_path / "rows.jsonl", rows)
        (tmp_path / "pipeline.yaml").write_text(pipeline)
        return json.loads(dicast(tmp_path, "run", "pipeline.yaml", "--json", *arguments, code=code))

    return run


def block(file, name):
    return re.search(rf'<script type="[a-z/]+" id="dicast-{name}">(.*?)</script>', file.read_text("utf-8"), re.DOTALL)[
        1
    ]


def report(file):
    return json.loads(block(file, "report"))


def rows(file, name="table"):
    return json.loads(gzip.decompress(base64.b64decode(block(file, name))))


def test_the_page_has_a_pass_line_only_for_labels_that_have_one(run, tmp_path):
    run()
    (page,) = report(tmp_path / "out/report.html")["runs"]
    assert page["pass_at"] == {"diff/match": 0.5}
    run(pipeline=PIPELINE + "scoring: {pass_at: 0.8}\n")
    (page,) = report(tmp_path / "out/report.html")["runs"]
    assert page["pass_at"] == {"diff/match": 0.8, "metrics": 0.8}


def test_the_page_holds_the_runs_document(run, tmp_path):
    done = run()
    (page_run,) = report(tmp_path / "out/report.html")["runs"]
    later = {"ledger", "sinks"}  # which are known only when the page is written
    assert {k: v for k, v in page_run["document"].items() if k not in later} == {
        k: v for k, v in done.items() if k not in later
    }
    assert done["sinks"]["report/html"]["lost"] == 0
    (table,) = rows(tmp_path / "out/report.html")
    assert table["ids"] == ["turkey", "peru", "norway"]
    assert table["outcomes"] == ["pass", "fail", "none"]
    assert table["scores"] == "1.0,0.0,"


def test_the_page_runs_its_own_script_and_style_and_loads_nothing(run, tmp_path):
    run()
    text = (tmp_path / "out/report.html").read_text("utf-8")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)[1]
    allowed = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL)[1]
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    digest = lambda part: f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'"  # noqa: E731
    assert allowed == {
        "default-src": "'none'",
        "script-src": digest(script),
        "style-src": digest(style),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert not re.search(r"<(?:link|img|iframe|object|embed)\b|\ssrc=|@import|url\(", text.partition("<!--")[0])
    assert "preact" in text.partition("<!--")[2]  # the licences of what is inside


def test_the_newest_row_of_the_ledger_can_be_checked(run, tmp_path, dicast):
    run()
    ledger = report(tmp_path / "out/report.html")["runs"][0]["provenance"]["ledger"]
    assert ledger["path"] == "ledger.db"
    dicast(tmp_path, "ledger", "verify", "--ledger", ledger["path"], "--head", ledger["digest"])


def test_without_content_nothing_that_was_judged_is_in_the_page(run, tmp_path):
    run(pipeline=PIPELINE.replace("out/report.html", "out/report.html, content: false"))
    page = tmp_path / "out/report.html"
    (table,), (texts,), (results,) = (rows(page, name) for name in ("table", "texts", "said"))
    assert texts["inputs"] == texts["outputs"] == [None, None, None]
    assert table["reasons"] == ["", "", "missing_input"]
    assert report(page)["runs"][0]["rows"]["content"] is False
    for secret in ("my own question", "Cusco", "Lima"):
        assert secret not in json.dumps([table, texts, results, report(page)["runs"][0]["labels"]])


def test_a_resumed_run_writes_the_whole_page(run, tmp_path, dicast, write_rows):
    first = run()
    write_rows(tmp_path / "rows.jsonl", ROWS)
    again = json.loads(
        dicast(tmp_path, "run", "pipeline.yaml", "--resume", first["run_id"], "--retry-failed", "--json", code=3)
    )
    assert again["run_id"] == first["run_id"]
    run_report = report(tmp_path / "out/report.html")["runs"][0]
    assert run_report["rows"]["total"] == 3
    (label,) = (label for label in run_report["labels"] if label["label"] == "metrics")
    assert label["failures"] == {"missing_input": 1}
    words = "missing_input (the row lacks an output, a reference or another part)"
    assert run_report["failures"] == [[words, 1, ["failures", "missing_input"]]]


def test_a_long_run_shows_what_failed_then_the_worst_then_a_draw(run, tmp_path):
    long_rows = [{"id": f"r{n:03}", "input": "q", "output": str(n % 10), "reference": "3"} for n in range(200)]
    del long_rows[7]["reference"], long_rows[90]["reference"]
    run(rows=long_rows, pipeline=PIPELINE.replace("out/report.html", "out/report.html, rows: 50"), code=0)
    page = tmp_path / "out/report.html"
    run_report, (table,) = report(page)["runs"][0], rows(page)
    assert run_report["rows"] == {"shown": 50, "total": 200, "unscored": 2, "worst": 24, "drawn": 24, "content": True}
    assert len(set(table["ids"])) == 50
    assert table["ids"] == sorted(table["ids"])  # in the order of the run
    assert {"r007", "r090"} <= set(table["ids"])
    assert table["outcomes"].count("fail") >= 24
    assert (
        sum(next(label for label in run_report["labels"] if label["counted"])["bins"]) == 198
    )  # figures are of the whole run


def test_dicast_report_writes_the_same_from_the_ledger(run, tmp_path, dicast):
    run()
    done = json.loads(dicast(tmp_path, "report", "--ledger", "ledger.db", "--out", "later.html", "--json"))
    assert done["runs"][0]["rows"] == 3
    assert done["bytes"] == (tmp_path / "later.html").stat().st_size
    assert rows(tmp_path / "later.html") == rows(tmp_path / "out/report.html")
    later, then = (report(tmp_path / name)["runs"][0] for name in ("later.html", "out/report.html"))
    later["provenance"].pop("ledger"), then["provenance"].pop("ledger")
    later["document"].pop("sinks"), then["document"].pop("sinks")  # a sink cannot count a page before it is written
    assert later == then


@pytest.mark.slow
def test_a_baseline_is_compared_as_dicast_compare_does(run, tmp_path, dicast):
    a = run()["run_id"]
    b = run(rows=[{**ROWS[0], "output": "Istanbul"}, {**ROWS[1], "output": "Lima"}, ROWS[2]])["run_id"]
    compared = json.loads(dicast(tmp_path, "compare", a, b, "--allow-incomparable", "--ledger", "ledger.db", "--json"))
    dicast(tmp_path, "report", b, "--baseline", a, "--ledger", "ledger.db")
    run_report = report(tmp_path / "report.html")["runs"][0]
    assert run_report["compared"] == compared
    counts = compared["passes"][compared["label"]]
    assert [counts[name] for name in ("a", "b", "known")] == [1, 1, 2]
    page = {"run_id": a, "name": "capitals", "label": compared["label"], "passes": compared["passes"]}
    assert run_report["flips"] == page
    (table,) = rows(tmp_path / "report.html")
    assert table["was"][""] == "1.0,0.0,"
    assert table["flips"][compared["label"]] == ["lost", "gained", ""]
    (texts,) = rows(tmp_path / "report.html", "texts")
    assert texts["old"][:2] == [row["output"] for row in ROWS[:2]]


@pytest.mark.slow
def test_a_baseline_over_other_inputs_is_named_on_the_terminal(run, tmp_path, monkeypatch):
    a = run()["run_id"]
    b = run(rows=[{**ROWS[0], "input": "another question"}, *ROWS[1:]])["run_id"]
    monkeypatch.chdir(tmp_path)
    compared = CliRunner().invoke(write_report, [b, "--baseline", a, "--ledger", "ledger.db"], catch_exceptions=False)
    assert f"NOT COMPARABLE: {a} and {b} differ in " in compared.stderr
    alone = CliRunner().invoke(write_report, [b, "--ledger", "ledger.db"], catch_exceptions=False)
    assert alone.stderr == ""


@pytest.fixture(scope="session")
def two_runs(capitals, dicast):
    """Return the ids of the two runs of *capitals*, the newest first."""
    return [
        page_run["run_id"]
        for page_run in json.loads(dicast(capitals, "runs", "--ledger", "ledger.db", "--json"))["runs"]
    ]


def test_several_runs_have_paths_of_their_own(capitals, two_runs, tmp_path, dicast):
    dicast(capitals, "report", *two_runs, "--ledger", "ledger.db", "--out", tmp_path / "report.html")
    assert [page_run["prefix"] for page_run in report(tmp_path / "report.html")["runs"]] == [
        f"{run}." for run in two_runs
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere",), "the ledger has no run 'nowhere'"),
        (("last", "--baseline", "nowhere"), "no finished run or baseline 'nowhere'"),
    ],
)
def test_a_wrong_request_says_what_is_wrong(capitals, tmp_path, dicast, arguments, message):
    out = tmp_path / "report.html"
    printed = dicast(capitals, "report", *arguments, "--ledger", "ledger.db", "--out", out, "--json", code=2)
    assert message in json.loads(printed)["error"]["message"]
    assert not out.exists()


def test_several_runs_have_no_baseline(capitals, two_runs, dicast):
    printed = dicast(capitals, "report", *two_runs, "--baseline", "last", "--ledger", "ledger.db", "--json", code=2)
    assert "leave it out" in json.loads(printed)["error"]["message"]


SUITE = """name: shop/north
source: {rows/jsonl: {path: rows.jsonl}}
task: {task/python: {target: "toy:slow"}}
metrics: [diff/match]
ledger: {ledger/sqlite: {path: ledger.db}}
experiments: {plain: {}, brief: {}}
"""


@pytest.fixture(scope="module")
def suite(tmp_path_factory, dicast, write_rows):
    """Return a folder with a suite that ran twice; each row of its task takes 10 ms."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "toy.py").write_text("import time\n\n\ndef slow(input):\n    time.sleep(0.01)\n    return input\n")
    (folder / "suite.yaml").write_text(SUITE)
    write_rows(folder / "rows.jsonl", [{"id": str(n), "input": "x", "reference": "x"} for n in range(4)])
    for _ in range(2):
        dicast(folder, "run", "suite.yaml", "--json")
    return folder


@pytest.mark.parametrize("arguments", [(), ("last",), ("shop/north",)])
def test_a_suite_is_named_with_its_experiments(suite, dicast, arguments):
    dicast(suite, "report", *arguments, "--ledger", "ledger.db", "--out", "suite.html")
    page_report = report(suite / "suite.html")
    assert page_report["title"] == "shop/north: plain · brief"
    assert [(page_run["title"], page_run["prefix"]) for page_run in page_report["runs"]] == [
        ("plain", "experiments.plain."),
        ("brief", "experiments.brief."),
    ]
    newest = json.loads(dicast(suite, "runs", "--ledger", "ledger.db", "--json"))["runs"][:2]
    assert {page_run["key"] for page_run in page_report["runs"]} == {page_run["run_id"] for page_run in newest}


def test_an_experiment_alone_has_the_name_of_its_run(suite, dicast):
    dicast(suite, "report", "shop/north/brief", "--ledger", "ledger.db", "--out", "one.html")
    assert report(suite / "one.html")["title"] == "shop/north/brief"


def test_what_the_task_took_stands_beside_what_verdicts_took(suite, dicast):
    dicast(suite, "report", "shop/north/brief", "--ledger", "ledger.db", "--out", "one.html")
    task = report(suite / "one.html")["runs"][0]["task"]
    assert task["label"] == "task/python"
    (reply,) = task["replies"]
    assert (reply["criterion"], reply["replies"], reply["usd"]) == ("", 4, None)
    assert reply["latency"]["longest"] >= reply["latency"]["p50"] >= 10


@pytest.mark.parametrize("cost", ["costly", True, None, [1]])
def test_a_cost_that_is_no_number_is_not_known(cost):
    spreads = Spreads(Marking((), (), (), {}))
    for recorded_cost in (0.25, 0.5, cost):
        subject = SubjectResults("row", str(recorded_cost), None, 0)
        subject.record = {
            "responses": {
                "a": {"metrics": {"cost": recorded_cost, "latency_seconds": 2}},
                "b": {"metrics": {"cost": 1}},
            }
        }
        spreads.add(subject)
    (a,) = spreads.task_json()
    times = dict.fromkeys(("p50", "p95", "longest"), 2000)
    assert a == {"criterion": "a", "replies": 3, "usd": None, "latency": times}


def test_a_name_with_control_characters_is_told_by_its_escapes(run, tmp_path):
    run(pipeline=PIPELINE.replace("name: capitals", 'name: "a\\e[31m\\0b"'))
    text = (tmp_path / "out/report.html").read_text("utf-8")
    assert "<title>a\\u001b[31m\\u0000b · dicast report</title>" in text
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", text)


@pytest.mark.parametrize("name", ["ledger.db", "suite.yaml", "rows.jsonl", "mine.html"])
def test_a_file_that_is_no_page_is_not_replaced(suite, dicast, name):
    (suite / "mine.html").write_text(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>mine</title>'
    )
    before = (suite / name).read_bytes()
    printed = dicast(suite, "report", "--ledger", "ledger.db", "--out", name, "--json", code=2)
    assert f"cannot write {name}: it " in json.loads(printed)["error"]["message"]
    assert (suite / name).read_bytes() == before
    dicast(suite, "ledger", "verify", "--ledger", "ledger.db")


def test_a_page_and_an_empty_file_are_replaced(suite, dicast):
    (suite / "again.html").write_bytes(b"")
    for _ in range(2):
        dicast(suite, "report", "--ledger", "ledger.db", "--out", "again.html")
    assert report(suite / "again.html")["title"] == "shop/north: plain · brief"


def test_a_folder_in_its_place_is_found_before_anything_is_judged(run, tmp_path):
    (tmp_path / "out/report.html").mkdir(parents=True)
    error = run(code=2)["error"]
    assert "report.html" in error["message"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_data_cannot_end_the_block_that_it_stands_in(value):
    text = inert({"value": value})
    assert not set(b"<") & set(text)
    assert "\u2028" not in text.decode()
    assert "\u2029" not in text.decode()
    assert json.loads(text) == {"value": value}


MARKING = Marking(("right",), ("judge",), ("judge",), {"judge": 0.6})


def judged_subject(number, score, *, label="judge", **fields):
    results = (
        {"failure_mode": "timeout", "error_message": ""}
        if score is None
        else {"score": score, "confidence": 0.9, **fields}
    )
    return SubjectResults("row", f"r{number}", None, number, {label: results})


scores = st.none() | st.floats(0, 1)


@given(st.lists(scores, max_size=60), st.integers(1, 30))
def test_a_choice_has_room_for_so_many_and_takes_failures_first(given_scores, limit):
    choice = Choice(limit, MARKING)
    subjects = [judged_subject(number, score) for number, score in enumerate(given_scores)]
    for subject in subjects:
        assert choice.add(subject) == []
    chosen = choice.chosen()
    assert chosen.total == len(subjects)
    assert len(chosen.rows) == min(limit, len(subjects))
    assert [candidate.place for candidate in chosen.rows] == sorted({candidate.place for candidate in chosen.rows})
    unscored = [candidate for candidate in subjects if MARKING.outcome(candidate) == "none"]
    chosen_ids = {candidate.id for candidate in chosen.rows}
    assert len(chosen_ids & {candidate.id for candidate in unscored}) == min(limit, len(unscored))
    if len(subjects) > limit:
        assert chosen.unscored + chosen.worst + chosen.drawn == limit
        lowest_chosen = sorted(
            MARKING.score(candidate) for candidate in chosen.rows if MARKING.outcome(candidate) != "none"
        )
        lowest = sorted(MARKING.score(candidate) for candidate in subjects if MARKING.outcome(candidate) != "none")
        assert lowest_chosen[: chosen.worst] == lowest[: chosen.worst]


def test_who_is_drawn_does_not_depend_on_the_order():
    def drawn(subjects):
        choice = Choice(10, MARKING)
        for subject in subjects:
            choice.add(subject)
        return {row.id for row in choice.chosen().rows}

    subjects = [judged_subject(number, 0.9) for number in range(100)]
    assert len(drawn(subjects) & drawn([judged_subject(99 - number, 0.9) for number in range(100)])) >= 5


def test_a_subject_that_is_judged_again_counts_once():
    choice, spreads = Choice(10, MARKING), Spreads(MARKING)
    for subject in (
        judged_subject(0, None),
        judged_subject(1, 0.5),
        SubjectResults("row", "r0", None, 2, {"judge": {"score": 0.8, "confidence": 1.0}}),
    ):
        spreads.add(subject)
        spreads.take_back(choice.add(subject))
    chosen = choice.chosen()
    assert chosen.total == 2
    assert [MARKING.outcome(row) for row in chosen.rows] == ["pass", "fail"]
    (label,) = spreads.json()
    assert (label["n"], label["failed"], label["passed"]) == (2, 0, 1)


@given(st.lists(st.floats(-5, 5) | st.floats(0, 1), min_size=1, max_size=50))
def test_every_value_is_in_a_bar(values):
    spreads = Spreads(MARKING)
    for number, value in enumerate(values):
        spreads.add(SubjectResults("row", f"r{number}", None, number, {}, {"metrics": {"scores": {"tone": value}}}))
    (tone,) = spreads.json()
    assert sum(tone["bins"]) == len(values)
    assert tone["low"] <= tone["high"]


def test_confidence_is_set_against_what_people_say():
    from statsmodels.stats.proportion import proportion_confint

    labels = [GoldLabel(f"r{number}", float(number % 4 > 0), "row") for number in range(40)]
    gold = Gold({(label.kind, label.subject_id, None, None): label for label in labels})
    reliability = Reliability(MARKING, LabeledOutputs(gold), "run")
    for number in range(50):
        reliability.add(judged_subject(number, 0.9))
    (judge,) = reliability.json()
    assert (judge["label"], judge["n"], judge["agree"]) == ("judge", 40, 0.75)
    (bin,) = judge["bins"]
    assert (bin["confidence"], bin["agree"], bin["n"]) == (pytest.approx(0.9), 0.75, 40)
    assert (bin["ci_low"], bin["ci_high"]) == pytest.approx(proportion_confint(30, 40, method="wilson"), abs=1e-12)


@pytest.mark.parametrize(("digest", "n"), [(output_digest("polite"), 1), (output_digest("rude"), 0), (None, 0)])
def test_confidence_is_set_against_labels_of_the_output_that_the_run_judged(digest, n):
    payload = {"subject": "r1", "subject_kind": "row", "score": 1.0} | ({"output_digest": digest} if digest else {})
    labels = [
        ("run.started", {"task": "t"}),
        ("subject.read", {"digest": "d", "content": {"output": None}}),
        ("record.completed", {"response": {"content": "polite"}}),
        ("label.given", payload),
    ]
    written = [Event(str(at), type, "", "run", body, None, None, "row", "r1") for at, (type, body) in enumerate(labels)]

    def read(query):
        return (Entry(at, event, "", "") for at, event in enumerate(written) if event.type in query.types)

    reliability = Reliability(MARKING, human_labels(read, "run"), "run")
    reliability.add(judged_subject(1, 0.9))
    assert [entry["n"] for entry in reliability.json()] == [1] * n


@given(st.integers(1, 500), st.data())
def test_the_interval_is_wilsons(n, data):
    from statsmodels.stats.proportion import proportion_confint

    k = data.draw(st.integers(0, n))
    assert wilson(k / n, n) == pytest.approx(proportion_confint(k, n, method="wilson"), abs=1e-9)


def events(*payloads):
    return lambda query: iter(
        [
            Entry(n, Event(str(n), type, "", "run", payload, "s", turn), "", "")
            for n, (type, turn, payload) in enumerate(payloads)
        ]
    )


def test_a_conversation_has_what_was_said_and_done_in_its_order():
    texts = {"user_prompt_text": "Where is it?", "final_response_text": "On its way."}
    read = events(
        ("message.sent", None, {"role": "system", "text": "Be kind."}),
        ("tool.called", "t1", {"tool_use_id": "c1", "tool_name": "find", "input": {"order": 7}}),
        ("tool.failed", "t1", {"tool_use_id": "c1", "tool_name": "find", "error": "no such order"}),
        ("eval.started", "t1", {}),
        ("message.sent", "t1", {"role": "assistant", "text": "One moment."}),
        ("tool.completed", "t1", {"tool_use_id": "c2", "tool_name": "look", "success": True, "output": "sent"}),
        ("turn.completed", "t1", {"stop_reason": "end_turn", "signals_extra": texts}),
        ("feedback.explicit", "t1", {"rating": "thumbs_down"}),
        ("session.ended", None, {"disposition": "abandoned"}),
    )
    turns = conversations(read, "run", {"s"}, SubAgents())["s"]
    assert [turn["id"] for turn in turns] == [None, "t1", None]
    messages = [
        (
            message["kind"],
            message.get("role") or message.get("name"),
            message.get("text"),
            message.get("result"),
            message.get("failed"),
        )
        for turn in turns
        for message in turn["messages"]
    ]
    assert messages == [
        ("said", "system", "Be kind.", None, None),
        ("said", "user", "Where is it?", None, None),
        ("call", "find", None, "no such order", True),
        ("said", "assistant", "One moment.", None, None),
        ("call", "look", None, "sent", False),
        ("said", "assistant", "On its way.", None, None),
        ("note", None, "explicit feedback: thumbs_down", None, None),
        ("note", None, "session ended: abandoned", None, None),
    ]


def test_a_result_without_a_call_has_an_unknown_tool():
    read = events(("tool.completed", "t1", {"tool_use_id": "c9", "tool_name": None, "output": "sent"}))
    ((message,),) = (turn["messages"] for turn in conversations(read, "run", {"s"}, SubAgents())["s"])
    assert (message["name"], message["result"]) == ("unknown tool", "sent")


def test_a_ledger_without_content_has_no_conversation():
    digest = {"digest": "0" * 64}
    read = events(("tool.called", "t1", digest), ("tool.failed", "t1", digest), ("session.ended", None, digest))
    assert conversations(read, "run", {"s"}, SubAgents()) == {}


def test_what_a_models_calls_repeat_is_told_once():
    prompt = {"role": "user", "content": "Hello"}
    read = events(
        (
            "llm.call_completed",
            "t1",
            {"input": {"messages": [{"role": "system", "content": "P"}, prompt]}, "output": {"content": "Hi"}},
        ),
        (
            "llm.call_completed",
            "t1",
            {"input": {"messages": [prompt, {"role": "assistant", "content": "Hi"}]}, "output": "Bye"},
        ),
        (
            "turn.completed",
            "t1",
            {"stop_reason": "end_turn", "signals_extra": {"user_prompt_text": "Hello", "final_response_text": "Bye"}},
        ),
    )
    (turn,) = conversations(read, "run", {"s"}, SubAgents())["s"]
    assert [(message["role"], message["text"]) for message in turn["messages"]] == [
        ("system", "P"),
        ("user", "Hello"),
        ("assistant", "Hi"),
        ("assistant", "Bye"),
    ]


def test_numbers_of_rows_keep_their_tokens():
    columns = RowColumns(MARKING, None, content=True)
    table = columns._table(
        [
            judged_subject(0, 1.0),
            judged_subject(1, 1),
            judged_subject(2, 0.1 + 0.2),
            judged_subject(3, 1e-7),
            judged_subject(4, None),
        ]
    )
    assert table["scores"] == "1.0,1,0.30000000000000004,1e-7,"


def test_labels_are_set_against_the_run_that_they_are_about(run, tmp_path, dicast, write_rows):
    done = run()
    write_rows(tmp_path / "gold.jsonl", [{"subject_id": "turkey", "score": 1.0}, {"subject_id": "peru", "score": 1.0}])
    dicast(tmp_path, "labels", "import", "gold.jsonl", "--labeller", "ann", "--ledger", "ledger.db")
    dicast(tmp_path, "report", "--ledger", "ledger.db")  # taking labels in is no run that one would look at
    (page_run,) = report(tmp_path / "report.html")["runs"]
    assert page_run["document"]["run_id"] == done["run_id"]
    (judge,) = page_run["reliability"]
    assert (judge["label"], judge["n"], judge["agree"]) == ("metrics", 2, 0.5)


def test_a_row_that_fails_another_label_of_the_gate_fails_and_says_why(run, tmp_path):
    pipeline = PIPELINE.replace("[diff/match]", "[check/contains: {as: lima, value: Lima}, diff/match: {weight: 9}]")
    pipeline += "gate: [{min_score: 0.3, min_coverage: 0.3}, {on: lima, min_pass_rate: 0.9}]\n"
    run(pipeline=pipeline, rows=ROWS[:2], code=1)
    (table,) = rows(tmp_path / "out/report.html")
    assert (table["scores"].split(",")[0], table["outcomes"]) == ("0.9", ["fail", "fail"])
    assert table["reasons"][0].startswith("lima: ")


def test_a_row_that_passes_names_a_low_score_of_another_tool():
    marking = Marking(("diff/match",), ("judge",), ("judge",), {"judge": 0.5})
    columns = RowColumns(marking, None, content=True)
    subjects = [judged_subject(number, 1.0) for number in range(3)]
    for subject, score in zip(subjects, (0.0, 1.0, None), strict=True):
        subject.results["recorded/match"] = {"score": score, "judge_kind": "recorded"}
    table = columns.json(subjects, Contents())["table"]
    assert table["outcomes"] == ["pass", "pass", "pass"]
    assert table["reasons"] == ["recorded/match is 0", "", ""]


def test_only_flags_of_the_gate_decide_beside_verdicts():
    subject = SubjectResults(
        "row", "1", None, 0, {"judge": {"score": 0.7}}, {"metrics": {"score_flags": {"kind": False, "x": None}}}
    )
    outcomes = {
        gated: Marking((), ("judge",), ("judge",), {}, gated).outcome(subject) for gated in ((), ("kind",), ("x",))
    }
    assert outcomes == {(): "pass", ("kind",): "fail", ("x",): "pass"}


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=30))
def test_the_mean_of_a_label_is_exact_and_rounded_once(values):
    spread = Spread()
    for value in values:
        spread.add(value)
    assert spread.mean() == float(sum(map(Fraction, values)) / len(values))


def test_without_values_there_is_no_mean():
    assert Spread().mean() is None


def test_reasoning_is_apart_from_the_text_of_its_message():
    reasoning, text = {"type": "reasoning", "text": "It is late."}, {"type": "text", "text": "One moment."}
    read = events(
        ("message.sent", "t1", {"role": "user", "text": "Where is it?"}),
        ("message.sent", "t1", {"role": "assistant", "text": "One moment.", "parts": [reasoning, text]}),
        ("message.sent", "t1", {"role": "assistant", "text": "", "parts": [reasoning]}),
    )
    (turn,) = conversations(read, "run", {"s"}, SubAgents())["s"]
    assert [(message["text"], message.get("reasoning")) for message in turn["messages"]] == [
        ("Where is it?", None),
        ("One moment.", "It is late."),
        ("", "It is late."),
    ]
