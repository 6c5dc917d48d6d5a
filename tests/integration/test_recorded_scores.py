"""Scores that another tool recorded become verdicts under their own labels, and enter no figure of dicast's own."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import dicast
from dicast import ConfigError, DataError, Due, InvalidScore, RecordedScore, Score, Subject, metric
from dicast._kernel.cli import main
from dicast._kernel.run.direct import DirectWindow
from dicast.testing import run_pipeline

GOOD = RecordedScore("accuracy", 1.0, basis="truth", reason="equals the target", by="match")
BAD = RecordedScore("accuracy", 0.0, basis="truth", by="match")
FILE = "metrics: [own]\n"


@metric(tier="truth")
def half(subject: Subject) -> Score:
    """Half of a score, for every subject."""
    return Score(0.5)


def row(id_: str, *recorded: RecordedScore) -> Due:
    return Due(Subject("row", id_, "asked", "answered"), recorded=recorded)


def ran(*subjects: Due, text: str = FILE):
    return run_pipeline(text, subjects=subjects, components={"own": half()})


def test_a_recorded_score_is_a_verdict_with_its_label_and_basis():
    done = ran(row("1", GOOD), row("2", BAD))
    verdict = next(verdict for verdict in done.verdicts if verdict.judge == "recorded/accuracy")
    assert (verdict.score, verdict.judge_kind, verdict.basis, verdict.judge_cost_usd) == (1.0, "recorded", "truth", 0)
    assert verdict.signals["by"] == "match"
    assert verdict.signals["rationale_redacted"] == "equals the target"
    assert done.document["recorded"] == {
        "recorded/accuracy": {"mean": 0.5, "by_basis": {"truth": 2}, "scored": 2, "total": 2}
    }


def test_each_recorded_verdict_ends_the_evaluation_that_it_started():
    done = ran(row("1", GOOD))
    started = {event.payload["judge"]: event.payload["eval_id"] for event in done.of("eval.started")}
    assert started == {event.payload["judge"]: event.payload["eval_id"] for event in done.of("eval.completed")}
    assert {*started} == {"metrics", "recorded/accuracy"}


def test_recorded_scores_change_no_other_figure():
    with_scores, without = ran(row("1", GOOD), row("2", BAD)), ran(row("1"), row("2"))
    left_out = {"run_id", "recorded", "ledger"}
    assert {key: value for key, value in with_scores.document.items() if key not in left_out} == {
        key: value for key, value in without.document.items() if key not in left_out
    }


def test_a_number_outside_the_unit_interval_stays_raw():
    scores = [RecordedScore("rating", raw=number) for number in (5, 1, 3)]
    done = ran(*(row(str(place), score) for place, score in enumerate(scores)))
    figures = done.document["recorded"]["recorded/rating"]
    assert (figures["mean"], figures["scale"], figures["by_basis"]) == (3.0, "raw", {"recorded": 3})
    raw = [verdict for verdict in done.verdicts if verdict.judge == "recorded/rating"]
    assert [(verdict.score, verdict.raw) for verdict in raw] == [(None, 5.0), (None, 1.0), (None, 3.0)]


def test_categories_are_counted_and_have_no_score():
    done = ran(
        *(row(str(place), RecordedScore("tone", text=text)) for place, text in enumerate(["warm", "cold", "warm"]))
    )
    figures = done.document["recorded"]["recorded/tone"]
    assert (figures["mean"], figures["scored"], figures["total"]) == (None, 0, 3)
    assert figures["categories"] == {"cold": 1, "warm": 2}


@pytest.mark.parametrize(
    ("line", "passed"),
    [("min_score: 0.4", True), ("min_score: 0.6", False), ("min_basis: truth", True), ("min_pass_rate: 0.9", False)],
)
def test_a_gate_uses_a_recorded_label_only_by_name(line, passed):
    done = ran(row("1", GOOD), row("2", BAD), text=f"{FILE}gate: {{on: recorded/accuracy, bound: point, {line}}}\n".replace(
        "bound: point, min_basis", "min_basis"))  # fmt: skip
    assert done.document["gate"]["passed"] is passed
    assert ran(row("1", BAD), text=f"{FILE}gate: {{min_score: 0.4}}\n").document["gate"]["passed"] is True


def test_a_model_behind_a_recorded_score_counts_as_a_proxy_for_min_basis():
    score = RecordedScore("helpful", 1.0, basis="model", by="some-model")
    done = ran(row("1", score), text=f"{FILE}gate: {{on: recorded/helpful, min_basis: model}}\n")
    assert done.document["gate"]["passed"] is False
    verdict = next(verdict for verdict in done.verdicts if verdict.judge_kind == "recorded")
    assert (verdict.basis, verdict.judge_model) == ("model", "some-model")


def test_a_gate_on_a_label_that_few_subjects_have_is_undecided():
    done = ran(row("1", GOOD), row("2"), text=f"{FILE}gate: {{on: recorded/accuracy, min_score: 0.4}}\n")
    assert done.document["gate"]["passed"] is None
    assert done.exit_code == 3
    missing = ran(row("1"), text=f"{FILE}gate: {{on: recorded/accuracy, min_score: 0.4}}\n")
    assert missing.document["gate"]["passed"] is None


def test_a_component_cannot_have_a_recorded_label():
    with pytest.raises(ConfigError, match="belong to scores that other tools recorded"):
        ran(row("1"), text="metrics: [{own: {as: recorded/own}}]\n")


def test_two_recorded_scores_of_one_subject_have_two_names():
    with pytest.raises(DataError, match="two recorded scores have the name 'accuracy'"):
        ran(row("1", GOOD, BAD))


@pytest.mark.parametrize(
    "options", [{"value": 1.5}, {"value": float("nan")}, {"raw": float("inf")}, {}, {"value": 1, "text": "C"}]
)
def test_a_score_that_is_none_is_refused(options):
    with pytest.raises(InvalidScore):
        RecordedScore("accuracy", **options)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A ledger with two runs over three rows: the recorded score is 1, 0 and 1, the run's own score .5."""
    path = tmp_path / "ledger.db"
    names = {"1": GOOD, "2": BAD, "3": GOOD}
    for _ in range(2):
        rows = [row(id_, score, RecordedScore("stars", raw=int(id_))) for id_, score in names.items()]
        dicast.run({"metrics": [half()], "ledger": {"ledger/sqlite": {"path": str(path)}}}, subjects=rows)
    return path


@pytest.fixture
def command(ledger, capsys):
    """Run a command on the ledger; return its exit code and its output, which is a document with ``--json``."""

    def run(*arguments: str):
        code = main([*arguments, "--ledger", str(ledger)])
        output = capsys.readouterr()
        return code, json.loads(output.out) if "--json" in arguments else output.out + output.err

    return run


@pytest.fixture
def ask(command):
    """Run a command on the ledger and return its document."""

    def run(*arguments: str):
        code, document = command(*arguments, "--json")
        assert code == 0, document
        return document

    return run


def test_agreement_compares_a_recorded_label_with_the_runs_own(ask):
    document = ask("agreement", "--judge", "metrics", "--judge", "recorded/accuracy", "--run", "last")
    assert (document["n"], document["base_rate"]) == (3, pytest.approx(5 / 6))
    document = ask("agreement", "--judge", "metrics", "--gold", "recorded/accuracy", "--run", "last")
    assert document["n"] == 3
    assert {*document["raters"]} == {"metrics", "recorded/accuracy"}


def test_labels_of_another_kind_of_subject_are_named_with_the_fix(ledger, command, ask):
    scored = Due(Subject("session", "s", output="x", session_id="s"), recorded=[RecordedScore("whole", 1.0)])
    pipeline = {
        "define": {"half": half()},
        "metrics": [{"half": {"on": ["turn"]}}],
        "ledger": {"ledger/sqlite": {"path": str(ledger)}},
    }
    done = dicast.run({**pipeline, "name": "k"}, subjects=[scored, Subject("turn", "s/1", output="x", session_id="s")])
    document = ask("agreement", "--judge", "metrics", "--judge", "recorded/whole", "--run", done.run_id)
    kinds = "metrics judged subjects of kind turn", "recorded/whole judged subjects of kind session"
    assert all(text in document["reasons"]["alpha"] for text in kinds)
    code, output = command("agreement", "--judge", "metrics", "--gold", "recorded/whole", "--run", done.run_id)
    assert code == 2
    assert "judge subjects of kind session, such as by on: [session]" in output


def test_a_threshold_by_recorded_scores_is_not_about_people(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = [
        {"testIdx": n, "promptIdx": 0, "prompt": {"raw": "?"}, "vars": {}, "provider": {"id": "echo"},
         "response": {"output": "yes" if n % 4 else "no"}, "success": bool(n % 4), "failureReason": 0, "score": int(n % 4 > 0)}
        for n in range(40)
    ]  # fmt: skip
    Path("results.json").write_text(
        json.dumps({"results": {"version": 3, "results": results, "prompts": [], "stats": {}}, "config": {}})
    )
    Path("p.yaml").write_text(
        "name: p\nsource: {exports/promptfoo: {path: results.json}}\nmetrics: [check/contains: {as: said, value: 'yes'}]\n"
    )
    assert main(["run", "p.yaml"]) == 0
    capsys.readouterr()
    calibrate = ["calibrate", "p.yaml", "--metric", "said", "--gold", "recorded/promptfoo"]
    assert main(calibrate) == 0
    text = capsys.readouterr().out
    assert "of kept verdicts agree with recorded/promptfoo" in text
    assert "people" not in text
    assert main([*calibrate, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["gold"]["source"] == "recorded/promptfoo"


def test_labels_of_a_raw_scale_are_refused_as_gold(command):
    code, output = command("agreement", "--judge", "metrics", "--gold", "recorded/stars")
    assert code == 2
    assert "recorded/stars has a raw scale" in output
    code, output = command("agreement", "--judge", "metrics", "--gold", "recorded/acuracy")
    assert code == 2
    assert "recorded/accuracy" in output


def test_verdicts_and_show_list_recorded_scores_under_their_label(ask, command):
    verdicts = ask("verdicts", "--judge", "recorded/accuracy", "--run", "last")["verdicts"]
    assert [(verdict["judge_kind"], verdict["score"]) for verdict in verdicts] == [
        ("recorded", 1),
        ("recorded", 0),
        ("recorded", 1),
    ]
    shown = ask("show", "1")
    assert {verdict["judge"] for verdict in shown["verdicts"]} == {"metrics", "recorded/accuracy", "recorded/stars"}
    _, text = command("show", "1")
    assert "by recorded" in text
    assert "equals the target" in text


def test_quality_counts_only_dicasts_own_verdicts_unless_a_label_is_named(ask):
    own_alone = ask("quality", "--group-by", "none", "--subject-kind", "row")["data"]
    assert [group["verdict_count"] for group in own_alone] == [6]
    named = ask("quality", "--group-by", "none", "--subject-kind", "row", "--judge", "recorded/accuracy")
    assert [group["verdict_count"] for group in named["data"]] == [6]


SCORED = '''
from dicast import Due, RecordedScore, Judgment, Score, Source, Subject, hookimpl, judge, metric

@attrs.frozen
class Turns:
    """Six turns of one session and the session, each with a score of another tool."""

    name = "turns"
    kinds = ("turn", "session")

    def subjects(self):
        score = RecordedScore("accuracy", 1.0, reason="because it was so", by="match")
        for number in range(6):
            turn = Subject("turn", f"s/{number}", "asked", "answered", session_id="s", parent_id="s")
            yield Due(turn, recorded=(score,))
        yield Due(Subject("session", "s", "asked", "answered", session_id="s"), recorded=(score,))

@metric(tier="truth")
def half(subject: Subject) -> Score:
    """Half of a score."""
    return Score(0.5)

@judge()
def child_labels(subject: Subject, children) -> Judgment:
    """Fail if a child's verdict is of another tool."""
    return Judgment(0.0 if any(child.judge_kind == "recorded" for child in children) else 1.0, signals={"children": len(children)})

@hookimpl
def dicast_judges():
    return [child_labels]

@hookimpl
def dicast_sources():
    return [Turns]

@hookimpl
def dicast_metrics():
    return [half]
'''
SCORED_FILE = "source: scored/turns\nmetrics: [{scored/half: {on: [turn, session]}}]\n"


def recorded_of(shop) -> list[tuple[str, str]]:
    """Return the run and the subject of each verdict of another tool in the ledger."""
    completed = [event for event in shop.events("eval.completed") if event["payload"]["judge_kind"] == "recorded"]
    return [(event["run_id"], event["subject_id"]) for event in completed]


def test_a_resumed_run_records_each_score_once(shop, plugin, monkeypatch):
    plugin("scored", SCORED)
    take, count = DirectWindow._take, 0

    async def break_off(self, due):
        nonlocal count
        count += 1
        if count > 3:
            raise RuntimeError("the machine stopped")
        await take(self, due)

    with monkeypatch.context() as patch:
        patch.setattr(DirectWindow, "_take", break_off)
        assert shop.run(SCORED_FILE).code == 70
    assert len(recorded_of(shop)) == 3
    done = shop.run(SCORED_FILE, "--resume")
    assert done.code == 0
    assert done.json["recorded"]["recorded/accuracy"]["total"] == 7
    assert len(set(recorded_of(shop))) == len(recorded_of(shop)) == 7


def test_a_re_evaluation_records_no_score_again(shop, plugin):
    plugin("scored", SCORED)
    assert shop.run(SCORED_FILE).code == 0
    before = recorded_of(shop)
    window = ("--since", "2000-01-01", "--until", "2100-01-01")
    done = shop.dicast("evaluate", "--judge", "scored/child_labels", *window, "--subject", "turn", "--yes", "--json")
    assert done.json["subjects"] == 6, done
    assert recorded_of(shop) == before


def test_a_session_judge_reads_no_score_of_another_tool(shop, plugin):
    plugin("scored", SCORED)
    done = shop.run("source: scored/turns\njudges: [scored/child_labels]\n")
    assert done.code == 0, done
    verdicts = shop.dicast("verdicts", "--judge", "scored/child_labels", "--json").json["verdicts"]
    assert [verdict["signals"]["children"] for verdict in verdicts] == [0] * 6 + [6]
    assert {verdict["score"] for verdict in verdicts} == {1}
    assert {verdict["parent_eval_id"] for verdict in verdicts[:6]} == {verdicts[6]["eval_id"]}


def test_sinks_get_the_reason_of_a_score_only_with_content(shop, plugin):
    plugin("scored", SCORED)
    shop.run(f"{SCORED_FILE}sinks: [{{jsonl/events: {{path: events.jsonl}}}}]\n")
    assert "because it was so" not in (shop / "events.jsonl").read_text()
    assert "because it was so" in json.dumps(shop.events("eval.completed"))


def test_a_ledger_of_digests_keeps_no_reason(shop, plugin):
    plugin("scored", SCORED)
    shop.run(f"{SCORED_FILE}ledger: {{ledger/sqlite: {{path: .dicast/ledger.db, content: digest}}}}\n")
    assert recorded_of(shop)
    assert "because it was so" not in json.dumps(shop.events("eval.completed"))


def test_reports_name_recorded_labels_apart_from_the_runs_own(shop, plugin):
    plugin("scored", SCORED)
    shop.run(f"{SCORED_FILE}sinks: [{{csv/rows: {{path: rows.csv}}}}, {{report/markdown: {{path: run.md}}}}]\n")
    assert "| `recorded/accuracy` | 1.0000 | 7 of 7 | recorded: 7 |" in (shop / "run.md").read_text()
    header, first, *_ = csv.reader((shop / "rows.csv").read_text().splitlines())
    assert dict(zip(header, first, strict=True))["recorded_accuracy"] == "1.0"
    text = shop.dicast("show", "last", "--full").out
    assert "recorded by other tools" in text
    assert "recorded/accuracy" in text
    assert shop.dicast("report", "--out", "report.html").code == 0
    assert "recorded/accuracy" in (shop / "report.html").read_text()


def test_a_comparison_counts_recorded_passes_under_their_label(ask, ledger):
    path = {"ledger/sqlite": {"path": str(ledger)}}
    worse = [row("1", BAD), row("2", BAD), row("3", GOOD)]
    dicast.run({"metrics": [half()], "ledger": path}, subjects=worse)
    runs = [run["run_id"] for run in ask("runs")["runs"]]
    document = ask("compare", runs[1], runs[0], "--allow-incomparable")
    counts = document["passes"]["recorded/accuracy"]
    assert (counts["a"], counts["b"], counts["known"]) == (1, 0, 3)
    assert [(flip["label"], flip["a"], flip["score_a"]) for flip in document["flips"]] == [
        ("recorded/accuracy", True, None)
    ]


def test_calibration_takes_recorded_scores_as_labels(shop, plugin):
    plugin("scored", SCORED)
    pipeline = shop.write("j.yaml", "source: scored/turns\njudges: [scored/child_labels]\n")
    assert shop.dicast("run", pipeline).code == 0
    done = shop.dicast("calibrate", pipeline, "--gold", "recorded/accuracy", "--assume-random", "--json")
    assert done.code == 2
    assert "recorded/accuracy: 7 labels are too few" in done.json["error"]["message"]
    assert "judge more subjects that have such scores" in done.json["error"]["message"]
    done = shop.dicast("calibrate", pipeline, "--gold", "recorded/acuracy", "--json")
    assert done.json["error"]["errors"][0]["hint"] == "recorded/accuracy"
