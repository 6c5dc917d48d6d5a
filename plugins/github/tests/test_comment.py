"""Comment of ``dicast ci`` for a pull request."""

from __future__ import annotations

import json
import re
import shlex
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import entry_points
from threading import Thread

import pytest
from click import Abort, UsageError
from click.testing import CliRunner

from dicast import LedgerRefused, RequestError
from dicast_github import command
from dicast_github.baselines import BaselinePair
from dicast_github.command import ci
from dicast_github.comment import EMPTY, Comment, scores_and_cost
from dicast_github.documents import DocumentsFile
from dicast_github.reasons import STOPS, call_fault, reason_lines, shard_steps
from dicast_github.rows import row_parts

PIPELINE = """
name: answers
source: {rows/jsonl: {path: rows.jsonl}}
metrics: [check/contains: {as: city, value: Ankara}]
"""
GATE = "gate: {baseline: main, max_drop: 0.02}\n"
HOSTILE = "@everyone ![x](http://a) | <b>"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITLAB_CI"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "main.yaml").write_text(PIPELINE.replace("answers", "main"))
    (tmp_path / "new.yaml").write_text(PIPELINE + GATE)
    write_rows(tmp_path, 38)
    return tmp_path


def write_rows(folder, passing):
    ids = [HOSTILE, *map(str, range(1, 40))]
    rows = [
        {"id": id, "input": "q", "output": "Ankara" if number >= 40 - passing else "Bonn"}
        for number, id in enumerate(ids)
    ]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))


def judge(*arguments):
    return CliRunner().invoke(ci, arguments, catch_exceptions=False, standalone_mode=False).return_value


def comment(folder, file, *arguments):
    code = judge(file, "--comment", "comment.md", *arguments)
    return code, (folder / "comment.md").read_text("utf-8")


def test_the_comment_says_of_each_label_whether_it_got_worse(folder):
    judge("main.yaml")
    write_rows(folder, 20)
    code, text = comment(folder, "new.yaml", "--report-url", "https://example.org/r")
    assert code == 1
    assert text.startswith("<!-- dicast ci: new.yaml -->\n\n### dicast: `answers`: failed")
    assert "| `city` | **worse** | -0.4500 |" in text
    assert "- `city`: 20 not passed, 18 newly failing: [`2`](https://example.org/r#row=row%2F2), [`3`](" in text
    assert " and 8 more" in text
    assert "- [report](https://example.org/r)" in text
    assert "spent nothing (baseline: nothing)" in text


def test_rows_without_a_partner_count_as_not_passed_too(folder):
    judge("main.yaml")
    rows = [{"id": id, "input": "q", "output": "Bonn"} for id in ("new", "newer")]
    with (folder / "rows.jsonl").open("a") as file:
        file.write("".join(f"\n{json.dumps(row)}" for row in rows))
    _, text = comment(folder, "new.yaml")
    line = "- `city`: 4 not passed, 2 of them without a partner in the baseline; the other 2 did not pass in the baseline either: "
    (shown,) = [line for line in text.splitlines() if line.startswith("- `city`: 4")]
    assert shown.startswith(line)
    assert shown.endswith("`1`, `new`, `newer`")


def test_fewer_failing_rows_are_not_called_equal_to_the_baseline(folder):
    write_rows(folder, 18)
    judge("main.yaml")
    write_rows(folder, 31)
    _, text = comment(folder, "new.yaml")
    assert "- `city`: 9 not passed; they did not pass in the baseline either: `@everyone" in text
    assert "- `city`: 13 newly passing: " in text


def test_a_comment_without_a_comparison_has_the_number_and_the_first_names_of_rows_that_did_not_pass(folder):
    write_rows(folder, 28)
    _, text = comment(folder, "main.yaml")
    assert re.search(r"^- `city`: 12 not passed: `@everyone.*`9` and 2 more$", text, re.MULTILINE)
    (folder / "comment.md").unlink()
    _, text = comment(folder, "new.yaml", "--set", "metrics=[check/contains: {as: city, value: Bonn}]")
    assert "| `city` | not compared |" in text
    assert re.search(r"^- `city`: 28 not passed: `12`, .* and 18 more$", text, re.MULTILINE)


def test_a_changed_metric_does_not_hide_the_answer_about_another(folder):
    metrics = '[check/contains: {as: city, value: Ankara}, check/contains: {as: other, value: "VALUE"}]'
    judge("main.yaml", "--set", f"metrics={metrics.replace('VALUE', 'a')}")
    write_rows(folder, 20)
    gate = "gate.on=city"
    code, text = comment(folder, "new.yaml", "--set", f"metrics={metrics.replace('VALUE', 'B')}", "--set", gate)
    assert code == 1
    assert "| `city` | **worse** | -0.4500 |" in text
    assert "18 newly failing" in text
    assert "| `other` | not compared |" in text
    assert "- Not compared `metrics`, `other`: `the runs differ in metrics[other] (value" in text


def test_a_baseline_file_is_compared_without_the_ledger_of_its_run(folder, monkeypatch):
    monkeypatch.setenv("DICAST_LEDGER", str(folder / "main.db"))
    judge("main.yaml")
    (folder / "sub").mkdir()
    (command,) = entry_points(group="console_scripts", name="dicast")
    assert command.load()(["baseline", "save", "main", "--file", "sub/main.json"]) == 0
    monkeypatch.setenv("DICAST_LEDGER", str(folder / "other.db"))
    write_rows(folder, 20)
    (folder / "sub" / "new.yaml").write_text(
        PIPELINE.replace("rows.jsonl", "../rows.jsonl") + GATE.replace("main", "main.json")
    )
    code, text = comment(folder, "sub/new.yaml")
    assert code == 1
    assert "| `city` | **worse** | -0.4500 |" in text
    assert "spent nothing (baseline: nothing)" in text
    assert "18 newly failing" in text


def test_against_takes_a_file_of_the_current_or_the_pipelines_folder(folder):
    judge("main.yaml")
    (command,) = entry_points(group="console_scripts", name="dicast")
    assert command.load()(["baseline", "save", "old", "main", "--file", "sub/old.json"]) == 0
    (folder / "sub" / "new.yaml").write_text(PIPELINE.replace("rows.jsonl", "../rows.jsonl"))
    for name in ("old.json", "sub/old.json", "old", "main"):
        code, text = comment(folder, "sub/new.yaml", "--against", name)
        assert (code, "**no difference found**" in text) == (0, True), name


def test_a_wrong_name_after_against_is_refused_before_a_row_is_judged(folder):
    judge("main.yaml")
    (folder / "sub").mkdir()
    (folder / "sub" / "new.yaml").write_text(PIPELINE.replace("rows.jsonl", "../rows.jsonl"))
    with pytest.raises(RequestError, match="did you mean 'main'") as caught:
        judge("sub/new.yaml", "--comment", "comment.md", "--against", "mian")
    assert "the pipeline's folder sub has no file 'mian'" in str(caught.value)
    text = (folder / "comment.md").read_text("utf-8")
    assert ("nothing was judged" in text, "did you mean 'main'" in text) == (True, True)
    answered = judge("sub/new.yaml", "--comment", "comment.md", "--against", "last")
    assert answered == 0


def test_equal_outputs_are_no_difference(folder):
    judge("main.yaml")
    code, text = comment(folder, "new.yaml")
    assert code == 0
    assert "**no difference found**" in text


def test_a_baseline_of_another_pipeline_is_answered_with_the_word_of_the_clause(folder):
    judge("main.yaml", "--set", "metrics=[check/contains: {as: city, value: Bonn}]")
    (command,) = entry_points(group="console_scripts", name="dicast")
    assert command.load()(["baseline", "save", "old", "main", "--file", "old.json"]) == 0
    _, text = comment(folder, "new.yaml", "--set", "gate.baseline=old.json")
    assert "The baseline `old.json` is a run of the pipeline `main`: correct `baseline` in the clause." in text
    assert "`dicast baseline save NAME answers --file FILE.json`, on the main branch" in text
    assert "in the same way; or name a run of answers in `baseline`" in text
    assert "git worktree" not in text


def test_a_baseline_that_cannot_be_compared_is_named_with_the_reason(folder):
    judge("main.yaml", "--set", "metrics=[check/contains: {as: city, value: Bonn}]")
    code, text = comment(folder, "new.yaml")
    assert code == 0
    assert "`city is not compared with main (run " in text
    assert "metrics[city]" in text
    judging = "dicast run new.yaml --set gate=null; dicast baseline save bridge answers --file bridge.json"
    assert f"\n(cd ../main; {judging})\ncp ../main/bridge.json ./\n" in text
    assert "| `city` | not compared |" in text
    assert re.search(
        r"the runs differ in metrics\[city\] \(value: .+?\); judge the baseline again, in the same way", text
    )


def test_a_gate_that_passed_without_the_comparison_has_an_annotation(folder, monkeypatch):
    judge("main.yaml", "--set", "metrics=[check/contains: {as: city, value: Bonn}]")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "step.md"))
    result = CliRunner().invoke(ci, ["new.yaml"], catch_exceptions=False, standalone_mode=False)
    (line,) = [line for line in result.output.splitlines() if "gate passed" in line]
    assert result.return_value == 0
    assert line.startswith("::warning file=")
    assert "the runs differ in metrics[city]" in line


def test_without_a_baseline_the_comment_says_how_to_name_one(folder):
    code, text = comment(folder, "main.yaml")
    assert code == 0
    assert "no baseline: add `baseline` to the gate" in text


def test_a_suite_without_a_baseline_states_so_once(folder):
    (folder / "suite.yaml").write_text(PIPELINE + "experiments: {plain: {}, other: {}, third: {}}\n")
    code, text = comment(folder, "suite.yaml")
    assert code == 0
    assert text.count("no baseline") == 1
    assert text.rstrip().endswith("no baseline: add `baseline` to the gate to compare with one")


def test_a_request_that_is_refused_has_a_comment_too(folder):
    with pytest.raises(RequestError, match="baseline"):
        comment(folder, "new.yaml")
    text = (folder / "comment.md").read_text("utf-8")
    assert text.startswith(f"<!-- dicast ci: new.yaml -->\n\n{EMPTY}\n\n### dicast: `new.yaml`: nothing was judged\n")
    assert "this ledger has no finished run or baseline 'main'" in text


def test_too_few_rows_have_one_reason_and_the_way_to_an_answer(folder):
    write_rows(folder, 40)
    judge("main.yaml")
    write_rows(folder, 39)
    code, text = comment(folder, "new.yaml")
    assert code == 0
    assert text.count("needed to tell") == 1
    assert (
        "so it does not stop the merge. Look at the 1 row below that newly fails. More rows show whether the mean is lower: "
        "see the number of pairs. `undecided: exit3` or `fail` in the clause stops it.\n" in text
    )
    assert "| `city` | **cannot tell** | -0.0250 |" in text


def test_rows_of_a_label_that_is_not_compared_are_not_left_out_of_its_change(folder):
    judge("main.yaml")
    lines = (folder / "rows.jsonl").read_text().splitlines()
    (folder / "rows.jsonl").write_text("\n".join(lines[:20]))
    _, text = comment(folder, "new.yaml")
    assert "| `city` | not compared |" in text
    assert "left out of the change" not in text
    assert text.count("20 of 40 subjects of the baseline") == 1
    assert "More rows give an answer" not in text


def test_an_id_cannot_be_markup(folder):
    write_rows(folder, 40)
    judge("main.yaml")
    write_rows(folder, 39)
    _, text = comment(folder, "new.yaml")
    (line,) = [line for line in text.splitlines() if "newly failing" in line]
    assert line.count("`") >= 4
    assert "![x](http://a) |" not in text.replace("`" + HOSTILE + "`", "")
    _, text = comment(folder, "new.yaml", "--report-url", "https://example.org/a (b) c")
    assert "](https://example.org/a%20%28b%29%20c#row=row%2F%40everyone%20%21%5Bx%5D%28http%3A%2F%2Fa%29" in text


def test_a_suite_has_a_part_for_each_experiment(folder):
    suite = PIPELINE + GATE.replace("main", "plain") + "experiments: {plain: {}, other: {}}\n"
    (folder / "suite.yaml").write_text(suite)
    code, text = comment(folder, "suite.yaml")
    assert code == 0
    assert "`answers/plain`" in text
    assert "`answers/other`" in text
    assert text.count("**no difference found**") == 1
    assert text.count("This run is the baseline of the others.") == 1
    assert "no baseline" not in text


def test_a_suite_without_a_gate_names_the_experiment_that_is_the_baseline(folder):
    section = "baseline: {run: plain, compare: [stats/paired]}\n"
    variants = "experiments: {plain: {}, other: {set: {metrics.city.value: Bonn}}}\n"
    (folder / "suite.yaml").write_text(PIPELINE + section + variants)
    code, text = comment(folder, "suite.yaml")
    assert code == 0
    assert text.count("This run is the baseline of the others.") == 1
    assert "no baseline" not in text
    assert "- Not compared with `answers/plain`: `the runs differ in metrics[city]" in text


def test_the_first_run_of_a_gate_on_the_last_run_has_nothing_to_compare_with(folder):
    (folder / "new.yaml").write_text(PIPELINE + GATE.replace("main", "last"))
    code, text = comment(folder, "new.yaml")
    assert code == 0
    assert "Not compared: there is no older run to compare with." in text
    assert "no baseline: add" not in text


def test_a_file_of_the_user_is_not_replaced_by_the_comment(folder):
    (folder / "README.md").write_text("# Mine\n")
    with pytest.raises(RequestError, match=r"cannot write README.md: it has other content"):
        judge("main.yaml", "--comment", "README.md")
    assert (folder / "README.md").read_text() == "# Mine\n"
    assert not (folder / ".dicast").exists(), "the run was started"


def test_the_comment_on_another_pipeline_is_not_replaced(folder):
    (folder / "other.yaml").write_text((folder / "main.yaml").read_text())
    _, first = comment(folder, "main.yaml")
    with pytest.raises(RequestError, match=r"comment.md: it has the comment '.* main.yaml -->', .* ci: other.yaml"):
        judge("other.yaml", "--comment", "comment.md")
    assert (folder / "comment.md").read_text("utf-8") == first
    assert comment(folder, "main.yaml")[0] == 0


def test_rows_are_named_for_six_labels_and_counted_for_the_others(folder):
    metrics = ", ".join(f"check/contains: {{as: m{number}, value: Ankara}}" for number in range(9))
    many = PIPELINE.replace("check/contains: {as: city, value: Ankara}", metrics)
    (folder / "main.yaml").write_text(many.replace("answers", "main"))
    (folder / "new.yaml").write_text(many + GATE.replace("{", "{on: metrics, "))
    judge("main.yaml")
    write_rows(folder, 20)
    lines = comment(folder, "new.yaml")[1].splitlines()
    failing = [line for line in lines if "18 newly failing" in line]
    assert len(failing) == 10
    assert sum("`2`" in line for line in failing) == 6


def test_a_label_that_the_gate_does_not_compare_has_no_answer_in_the_table(folder):
    judge("main.yaml")
    write_rows(folder, 0)
    code, text = comment(folder, "new.yaml", "--limit", "30")
    reason = "10 of 40 subjects of the baseline have no score in this run, more than 5%"
    assert code == 0
    assert f"is not compared with main (run {text.partition('(run ')[2][:26]}): {reason}" in text
    assert "| `city` | not compared |  |  |  | 0.0000 |" in text
    assert text.count(f"{reason}: 10 not in it ('30', ") == 1, "the gate's reason is repeated"
    assert "Not compared" not in text
    assert "### dicast: `answers`: passed, without an answer on `city`\n" in text
    assert "so it does not stop the merge. `undecided: exit3` or `fail` in the clause stops it." in text
    assert "**worse**" not in text


def test_several_reasons_that_the_gate_has_are_referred_to_once():
    faults = ["the run was stopped before its end: early_stop", "44 of 80 subjects have no score"]
    pair = BaselinePair("main", ["R"], {"answers": {label: {"faults": faults} for label in ("city", "town")}})
    reason = f"city is not compared with main (run R): {'; '.join(faults)}"
    gate = {"reasons": [reason], "clauses": [{"on": "city", "passed": None}]}
    figures = {"city": {"mean": 1.0}, "town": {"mean": 1.0}}
    done = {"gate": gate, "undecided": [], "metrics": figures}
    assert [*pair.notes(figures, done)] == ["- Not compared `town`: for the same reason"]


def test_labels_without_a_clause_have_a_line_after_changed_rows(folder):
    metrics = "check/contains: {as: city, value: Ankara}, check/contains: {as: town, value: Bonn}"
    text = PIPELINE.replace("check/contains: {as: city, value: Ankara}", metrics)
    (folder / "main.yaml").write_text(text.replace("answers", "main"))
    (folder / "new.yaml").write_text(text + GATE.replace("{", "{on: city, "))
    judge("main.yaml")
    (folder / "rows.jsonl").write_text((folder / "rows.jsonl").read_text().replace('"q"', '"p"'))
    _, text = comment(folder, "new.yaml")
    assert text.count("the runs differ in the input") == 1
    assert re.search("^- Not compared (`metrics`, )?`town`: for the same reason$", text, re.MULTILINE)


def test_one_reason_with_the_commands_of_two_programs_is_in_the_comment_once():
    reason = "4 of 8 subjects have no score: 4 without a score there ('1' and 3 more; causes: dicast verdicts --run R --failed; to judge them again: {} --retry-failed)"
    answers = {"city": {"faults": [reason.format("dicast run p.yaml --resume R")]}}
    pair = BaselinePair("main", ["R"], {"answers": answers})
    text = f"city is not compared with main (run R): {reason.format('dicast ci p.yaml --resume R --junit j.xml')}"
    gate = {"reasons": [text], "clauses": [{"on": "city", "passed": None}]}
    figures = {"city": {"mean": 1.0}}
    assert [*pair.notes(figures, {"gate": gate, "undecided": [], "metrics": figures})] == []
    (line,) = pair.notes(figures, {"gate": None, "undecided": [], "metrics": figures})
    assert line == "- Not compared: `4 of 8 subjects have no score: 4 without a score there ('1' and 3 more)`"


def test_a_reason_of_several_labels_is_in_the_comment_once(folder):
    metrics = "check/contains: {as: city, value: Ankara}, check/contains: {as: town, value: Bonn}"
    many = PIPELINE.replace("check/contains: {as: city, value: Ankara}", metrics)
    clauses = [f"{{on: {label}, baseline: main, max_drop: 0.02, undecided: exit3}}" for label in ("city", "town")]
    (folder / "main.yaml").write_text(many.replace("answers", "main"))
    (folder / "new.yaml").write_text(many + f"gate: [{', '.join(clauses)}]\n")
    judge("main.yaml")
    code, text = comment(folder, "new.yaml", "--limit", "30")
    assert code == 3
    assert "- `city, town are not compared with main (run " in text
    assert text.count("10 of 40 subjects of the baseline have no score") == 1
    assert "- Not compared `metrics`: for the same reason\n" in text
    changes = [f"metrics.{number}.check/contains.ignore_case=true" for number in (0, 1)]
    code, text = comment(folder, "new.yaml", *(word for change in changes for word in ("--set", change)))
    assert "- `city is not compared with main (run " in text


def test_labels_are_those_of_the_gate_then_the_worse_then_the_lowest(folder):
    names = ("best", "drop", "gated", "low")
    metrics = ", ".join(f"check/contains: {{as: {name}, value: '{{{{ {name} }}}}'}}" for name in names)
    rows = [{"id": str(number), "output": "x"} | dict.fromkeys(names, "x") | {"low": "y"} for number in range(40)]
    many = PIPELINE.replace("check/contains: {as: city, value: Ankara}", metrics)
    (folder / "main.yaml").write_text(many.replace("answers", "main"))
    (folder / "new.yaml").write_text(many + GATE.replace("{", "{on: gated, "))
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    judge("main.yaml")
    worse = [row | {"output": "z"} if int(row["id"]) < 20 else row for row in rows]
    worse = [row | dict.fromkeys(("best", "gated"), row["output"]) for row in worse]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, worse)))
    text = comment(folder, "new.yaml")[1]
    labels = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    assert labels[:2] == ["gated", "drop"]
    assert sorted(labels) == sorted([*names, "metrics"])
    assert labels.index("drop") < labels.index("best")


def test_a_disabled_run_has_a_comment_with_the_reason(folder, monkeypatch):
    judge("main.yaml")
    code, text = comment(folder, "new.yaml", "--set", "disabled=true")
    assert code == 0
    assert EMPTY in text
    assert "- `the pipeline has disabled: true" in text
    monkeypatch.setenv("DICAST_DISABLED", "1")
    code, text = comment(folder, "new.yaml")
    assert code == 0
    assert "- `DICAST_DISABLED is set: nothing was read, and the gate has no answer`" in text


def test_failed_rows_are_named(folder):
    rows = [{"id": f"row {number}", "output": None if number < 12 else "Ankara"} for number in range(14)]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    text = comment(folder, "main.yaml")[1]
    (line,) = [line for line in text.splitlines() if "failed:" in line]
    assert line.startswith("- 12 failed: `")
    assert "(the row lacks an output, a reference or another part): `row 0`, `row 1`, " in line
    assert line.endswith(" and 2 more")


def test_an_interruption_while_the_comment_is_written_is_reported(folder, monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    comment(folder, "main.yaml")
    monkeypatch.setattr("dicast_github.command.read_documents", interrupt)
    (command,) = entry_points(group="console_scripts", name="dicast")
    assert command.load()(["ci", "main.yaml", "--comment", "comment.md"]) == 130
    assert "comment.md: the comment has no result, because the command was interrupted" in capsys.readouterr().err
    text = (folder / "comment.md").read_text("utf-8")
    assert EMPTY in text
    assert "ended before it wrote the result" in text


def test_rows_are_not_tried_with_a_comment(folder):
    with pytest.raises(UsageError, match="--head N tries rows without a comment"):
        judge("main.yaml", "--head", "1", "--comment", "comment.md")


def test_each_baseline_of_the_gate_has_a_table(folder):
    judge("main.yaml")
    write_rows(folder, 20)
    judge("main.yaml", "--set", "name=release")
    clauses = "gate: [{on: city, baseline: main, max_drop: 0.02}, {on: city, baseline: release, max_drop: 0.05}]\n"
    (folder / "new.yaml").write_text(PIPELINE + clauses)
    text = comment(folder, "new.yaml")[1]
    first, second = text.partition("Against `main`:")[2].split("Against `release`:")
    assert "| `city` | **worse** | -0.4500 |" in first
    assert "| `city` | **no difference found** | +0.0000 |" in second


def test_the_jobs_summary_has_the_labels_in_the_order_of_the_comment(folder, monkeypatch):
    metrics = ", ".join(
        f"check/contains: {{as: {name}, value: {value}}}" for name, value in [("a", "nk"), ("low", "z"), ("z", "A")]
    )
    (folder / "main.yaml").write_text(
        PIPELINE.replace("check/contains: {as: city, value: Ankara}", metrics) + "gate: {on: z, min_score: 0.1}\n"
    )
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "step.md"))
    sink = "sinks=[github/summary]"
    text = comment(folder, "main.yaml", "--set", sink)[1]
    tables = [text, (folder / "step.md").read_text("utf-8").partition("| label |")[2]]
    orders = [re.findall(r"^\| `(\w+)` ", table, re.MULTILINE)[:4] for table in tables]
    assert orders[0] == orders[1]
    assert orders[0][0] == "z"
    assert orders[0].index("low") < orders[0].index("a")


def test_a_comment_has_no_paths_of_the_runner(folder):
    with pytest.raises(RequestError):
        judge(str(folder / "new.yaml"), "--comment", "comment.md")
    text = (folder / "comment.md").read_text("utf-8")
    assert text.startswith("<!-- dicast ci: new.yaml -->\n")
    assert str(folder) not in text


def test_amounts_reserved_for_calls_without_a_reply_are_in_the_comment(folder):
    result = CliRunner().invoke(ci, ["main.yaml", "--json"], catch_exceptions=False, standalone_mode=False)
    lost = {"usd": "0.066404", "msat": "0"}
    done = json.loads(result.stdout) | {"spend_lost": lost, "ledger": None, "base": str(folder)}
    Comment(folder / "comment.md", None, None).write("main.yaml", [done])
    text = (folder / "comment.md").read_text("utf-8")
    assert "spent nothing; lost, reserved for calls without a reply: 0.066404 usd; run `" in text


def test_subjects_that_the_proxies_held_back_leave_the_label_open_in_the_comment(folder):
    for file in ("main.yaml", "new.yaml"):
        text = (folder / file).read_text().replace("[check", "[proxy/format, check")
        (folder / file).write_text(text.replace("gate: {", "gate: {on: city, "))
    judge("main.yaml")
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    for row in rows[-4:]:
        row["output"] = ""
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    code, text = comment(folder, "new.yaml")
    assert code == 0
    assert "| `city` | **cannot tell** | -0.1000 to +0.0000 | " in text
    assert text.count("the proxies held back 4 subjects of the run") == 1
    assert "passed, without an answer on `city`" in text


def refusing():
    """Serve chat completions that refuse the key, and quote it; return a context of the address."""
    return answering(401)


@contextmanager
def answering(status=200, write=lambda body: "Ankara"):
    """Serve chat completions with the *status*, which quote the key in errors; yield the address. *write* returns the reply to a request."""
    usage = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
    choice = {"index": 0, "finish_reason": "stop"}
    fault = {"error": {"message": "wrong key: sk-quoted"}}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            message = {"role": "assistant", "content": write(body)}
            chat = {"model": "m-1", "choices": [{**choice, "message": message}], "usage": usage}
            reply = json.dumps(chat if status == 200 else fault).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


def asking(folder, url, budget=""):
    """Write a pipeline whose task asks a model at *url*."""
    model = f"{{model: m-1, base_url: '{url}', api_key: sk-secret, price: {{input_per_mtok: 1, output_per_mtok: 1}}}}"
    task = f"define: {{m: {{openai/chat: {model}}}}}\ntask: {{prompt/chat: {{model: m, user: Name, max_output_tokens: 9, retries: 0}}}}\n"
    (folder / "asking.yaml").write_text(PIPELINE + GATE + task + budget)


def test_a_provider_that_refuses_is_named_in_the_comment_with_the_next_step(folder):
    judge("main.yaml")
    with refusing() as url:
        asking(folder, f"{url}?key=sk-query")
        code, text = comment(folder, "asking.yaml")
    assert (code, text.split("\n\n")[1]) == (2, EMPTY)
    assert "### dicast: `answers`: not judged (exit code 2)\n" in text
    assert "undecided" not in text
    assert f"- `m-1 at {url}/chat/completions: HTTP 401`\n" in text
    assert "- next: correct the key, then `dicast ci asking.yaml --comment comment.md`\n" in text
    assert "- Not compared with `main`: `the run was not completed`" in text
    assert "sk-" not in text
    assert "--resume" not in text


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        (
            "m-1 at http://h:1/v1/chat/completions: HTTP 401: wrong key: sk-a",
            "m-1 at http://h:1/v1/chat/completions: HTTP 401",
        ),
        ("prompt/chat: m-1 at https://h/v1?key=sk-a: HTTP 503", "m-1 at https://h/v1: HTTP 503"),
        (
            "8 calls in a row got no connection; the last: m-1 at http://h:9/v1: no connection to h:9 (refused); start it",
            "8 calls in a row got no connection; the last: m-1 at http://h:9/v1: no connection to h:9 (refused)",
        ),
        ("the reply is not JSON: sk-a at http://x", None),
        ("", None),
    ],
)
def test_the_fault_of_a_call_has_the_model_the_address_and_the_status_alone(message, fault):
    assert call_fault(message) == fault


JUDGED = """
name: NAME
source: {rows/jsonl: {path: rows.jsonl}}
define: {grader: {openai/chat: {model: m-1, base_url: "URL", api_key: null, price: free}}}
judges: [llm/judge: {as: helpful, model: grader, criteria: [It helps.]}]
"""


def reply(body, score=0.8):
    """Return the reply of a judge to the request *body*."""
    (seal,) = re.findall(r"^seal: (\w+)$", json.loads(body)["messages"][-1]["content"], re.MULTILINE)
    return json.dumps({"seal": seal, "score": score, "confidence": 0.9, "rationale": "so"})


def test_pairs_whose_judge_varied_are_not_newly_failing(folder):
    scores = []
    with answering(write=lambda body: reply(body, scores.pop())) as url:
        (folder / "main.yaml").write_text(JUDGED.replace("URL", url).replace("NAME", "main"))
        (folder / "new.yaml").write_text(
            JUDGED.replace("URL", url).replace("NAME", "new") + GATE.replace("{", "{on: helpful, ")
        )
        scores[:] = [0.8] * 40
        judge("main.yaml")
        scores[:] = [0.3] * 12 + [0.8] * 28
        code, text = comment(folder, "new.yaml")
    assert code == 0
    assert "| `helpful` | **no difference found** | +0.0000 |" in text
    assert "newly failing" not in text
    line = "- `helpful`: 12 of 40 pairs have equal outputs and judges and count as unchanged, although their scores differ: the judge varies"
    assert f"{line}; 12 of them do not pass in this run alone: `" in text


def test_a_judge_at_another_address_is_answered_by_a_fixed_host_and_port(folder):
    with answering(write=reply) as url:
        (folder / "main.yaml").write_text(JUDGED.replace("URL", url).replace("NAME", "main"))
        new = JUDGED.replace("URL", url.replace("127.0.0.1", "localhost")).replace("NAME", "new")
        (folder / "new.yaml").write_text(new + GATE.replace("{", "{on: helpful, "))
        judge("main.yaml")
        code, text = comment(folder, "new.yaml")
    assert code == 0
    assert "base_url: " in text
    assert "give the judge's server a fixed host and port in all jobs" in text


def test_another_model_than_in_a_baseline_file_is_named_and_not_its_digest(folder, monkeypatch):
    with answering(write=reply) as url:
        (folder / "main.yaml").write_text(JUDGED.replace("URL", url).replace("NAME", "main"))
        judge("main.yaml")
        (command,) = entry_points(group="console_scripts", name="dicast")
        assert command.load()(["baseline", "save", "main", "--file", "old.json"]) == 0
        monkeypatch.setenv("DICAST_LEDGER", str(folder / "other.db"))
        new = JUDGED.replace("URL", url).replace("NAME", "new").replace("model: m-1", "model: m-2")
        (folder / "new.yaml").write_text(new + GATE.replace("{baseline: main", "{on: helpful, baseline: old.json"))
        text = comment(folder, "new.yaml")[1]
    assert ('openai/chat.model: "m-2", not "m-1"' in text, "sha256" in text) == (True, False), text


def test_a_budget_that_allows_no_call_is_named_in_the_comment_with_its_amounts(folder):
    judge("main.yaml")
    asking(folder, "http://127.0.0.1:9/v1", "budget: {run: 0.000001 usd}\n")
    code, text = comment(folder, "asking.yaml")
    assert (code, text.split("\n\n")[1]) == (5, EMPTY)
    line = r"- calls not made because of the run_cap: 40; budget.run is 0\.000001 usd, this run spent nothing, "
    line += r"and the most expensive of these calls may cost up to 0\.0000\d+ usd\n"
    line += "- subjects left out because of the budget: 40 of 40\n"
    assert re.search(
        line + "- next: raise the cap: budget.run is 0.000001 usd, then `dicast ci asking.yaml --comment comment.md`\n",
        text,
    )
    assert "- Not compared: `the run has no score of the label`" in text


def test_the_cap_of_a_day_that_other_runs_used_up_is_named_alike_in_every_report(folder):
    judge("main.yaml")
    with answering() as url:
        asking(folder, url, "budget: {day: 1 usd}\n")
        comment(folder, "asking.yaml")
        spent = "0.001"
        asking(folder, url, f"budget: {{day: {spent} usd}}\n")
        arguments = ["asking.yaml", "--comment", "c.md", "--junit", "j.xml"]
        result = CliRunner().invoke(ci, arguments, catch_exceptions=False, standalone_mode=False)
    assert result.return_value == 5
    line = (
        rf"calls not made because of the daily_cap: 40; budget\.day is {spent} usd, all runs in this ledger spent {spent}0* usd of it on "
        r"\d{4}-\d\d-\d\d \(this run: nothing\), the day ends at 00:00 UTC, and the most expensive of these calls may cost up to 0\.0000\d+ usd"
    )
    text = (folder / "c.md").read_text()
    assert re.search(line, text)
    assert f"- next: raise the cap: budget.day is {spent} usd, or wait for the next day (UTC), then `dicast ci" in text
    assert re.search(line, (folder / "j.xml").read_text())
    assert re.search(line.replace(" ", r"\s+"), result.output)


def test_the_adjusted_p_is_in_the_comment_where_it_decides(folder):
    metrics = "[{check/contains: {as: city, value: Ankara}}, {check/contains: {as: other, value: Ankara}}, {check/contains: {as: third, value: Bonn}}]"
    text = re.sub(r"metrics: .*", f"metrics: {metrics}", PIPELINE)
    (folder / "main.yaml").write_text(text.replace("answers", "main"))
    (folder / "new.yaml").write_text(text + "gate: {on: third, baseline: main, max_drop: 0.9}\n")
    write_rows(folder, 40)
    judge("main.yaml")
    write_rows(folder, 36)
    _, text = comment(folder, "new.yaml")
    (row,) = [line for line in text.splitlines() if line.startswith("| `city` |")]
    assert re.search(r"\*\*cannot tell\*\* \(about .* needed to tell; p adjusted by Holm is 0\.\d+\)", row)


def test_a_drop_that_the_gate_allows_has_the_reason_why_the_gate_passes(folder):
    judge("main.yaml")
    (folder / "new.yaml").write_text(PIPELINE + GATE.replace("0.02", "0.9"))
    write_rows(folder, 36)
    code, text = comment(folder, "new.yaml")
    assert code == 0
    assert "\nThe gate passes: `city` changed by -0.0500, within max_drop 0.9.\n" in text


def test_a_cap_that_is_reached_half_way_is_named_with_the_command_that_goes_on(folder):
    judge("main.yaml")
    with answering() as url:
        asking(folder, url, "budget: {run: 0.0003 usd}\nexecutor: {dicast/async: {concurrency: 1}}\n")
        code, text = comment(folder, "asking.yaml")
    assert code == 3
    assert EMPTY not in text
    (cap,) = [line for line in text.splitlines() if line.startswith("- calls not made because of the run_cap: ")]
    assert re.search(
        r"budget\.run is 0\.0003 usd, this run spent 0\.000\d+ usd, and the most expensive of these calls", cap
    )
    assert re.search(r"\n- subjects left out because of the budget: \d+ of 40\n", text)
    again = r"- next: raise the cap: budget\.run is 0\.0003 usd, then `dicast ci asking.yaml --resume \w+ --comment comment\.md --retry-failed`"
    assert re.search(again + r" with the ledger of this job, `\.dicast/ledger\.db`\. ", text)
    assert "`throttled_no_heuristic` of the task (the remaining budget is too small): " in text


def test_a_call_that_fails_has_its_first_cause_and_the_command_that_tries_again(folder):
    judge("main.yaml")
    with answering(429) as url:
        asking(folder, url)
        code, text = comment(folder, "asking.yaml")
    assert code == 3
    assert f"; the first: `m-1 at {url}/chat/completions: HTTP 429`\n" in text.replace("prompt/chat: ", "")
    assert "(HTTP 429), then `dicast ci asking.yaml --comment comment.md`" in text
    assert "sk-" not in text


def test_the_next_step_after_an_error_of_the_server_names_its_status(folder):
    judge("main.yaml")
    with answering(500) as url:
        asking(folder, url)
        _, text = comment(folder, "asking.yaml", "--limit", "1")
    assert "wait until the endpoint answers without errors (HTTP 500), then `dicast ci asking.yaml" in text


def test_a_call_without_a_reply_has_its_cause_its_cost_and_the_way_to_more_time():
    fault = "m-1 at http://a/v1/chat/completions: no reply within 1 s"
    failure = {
        "subject_kind": "row",
        "subject_id": "1",
        "judge": "j",
        "failure_mode": "timeout",
        "error_message": fault,
    }
    started = {"file": "p.yaml", "kind": "pipeline", "set": ["judges.j.model.openai/chat.timeout=1", "name=x"]}
    done = {
        "gate": None,
        "undecided": [],
        "stopped": None,
        "run_id": "R",
        "scored": 0,
        "subjects": 1,
        "judges": {},
        "metrics": {"city": {"scored": 1}},
        "failed_subjects": [failure],
        "failures": {"timeout": 1},
        "cost": {"usd": "0.1"},
        "throttled": {},
        "unaffordable": 0,
        "started": started,
    }
    steps = [*reason_lines(done, "p.yaml", None)]
    assert steps[0].startswith(
        "- next: wait until the endpoint answers in time (no reply within 1 s), then `dicast ci p.yaml "
    )
    assert steps[1:] == [
        "- next: with a higher `timeout` of the model in the file, a new run: `dicast ci p.yaml --set name=x`"
    ]
    (rows,) = row_parts(done, {}, None, None)
    assert rows.endswith(f"`1`; the first: `{fault}`; a call without a reply is counted with the most that it may cost")


def test_a_merge_names_the_commands_that_continue_the_shards_that_did_not_end():
    assert [*shard_steps({"stopped": None}, "p.yaml")] == []
    stopped = {
        "reason": "unfinished_shards",
        "shards": "shard 2/3 (run R2 in s-2.db): interrupted, shard 3/3 (run R3 in s-3.db): x",
    }
    assert [*shard_steps({"stopped": stopped}, "p.yaml")] == [
        "- or continue shard 2/3 in its ledger: `dicast run p.yaml --shard 2/3 --resume R2 --ledger s-2.db`",
        "- or continue shard 3/3 in its ledger: `dicast run p.yaml --shard 3/3 --resume R3 --ledger s-3.db`",
        "- then merge all shards again, into a new ledger",
    ]


def test_an_early_stop_that_leaves_out_rows_has_the_command_that_judges_all(folder):
    judge("main.yaml")
    stop = "early_stop=[{stats/threshold: {metric: score, threshold: 0.5, min_rows: 5}}]"
    _, text = comment(folder, "new.yaml", "--set", stop, "--set", "executor={dicast/async: {concurrency: 1}}")
    assert "### dicast: `answers`: passed, without an answer on `city`" in text
    (command,) = re.findall(r"- next: to compare all rows, a run without the early stop: `(.+)`\n", text)
    assert judge(*shlex.split(command)[2:]) == 0
    assert "**no difference found**" in (folder / "comment.md").read_text("utf-8")


def test_a_gate_without_an_answer_has_a_next_step_and_both_limits(folder):
    judge("main.yaml")
    write_rows(folder, 37)
    code, text = comment(folder, "new.yaml", "--set", "gate.bound=interval", "--set", "gate.max_drop=0.03")
    assert code == 3
    assert "max_drop is 0.03 for the whole interval (bound: interval)" in text
    assert "- next: judge more rows, on the main branch too, and save its baseline again; or decide" in text


def test_a_suite_begins_with_the_answers_of_its_experiments(folder):
    gate = "gate: {on: city, min_pass_rate: 0.5}\n"
    variants = "experiments: {plain: {}, other: {set: {metrics.city.value: Bonn}}, third: {}}\n"
    (folder / "suite.yaml").write_text(PIPELINE + gate + variants)
    code, text = comment(folder, "suite.yaml")
    assert code == 1
    assert text.splitlines()[2] == "### dicast: `suite.yaml`: failed: 1 of 3 experiments, passed: 2"


def test_labels_with_other_numbers_of_scores_have_a_number_each():
    labels = {"city": {"scored": 2, "total": 2}, "polite": {"scored": 0, "total": 2}}
    figures = {label: {**counts, "mean": None} for label, counts in labels.items()}
    done = {"labels": figures, "metrics": {}, "scored": 0, "cost": {}, "spend_lost": {}, "run_id": "R", "gate": None}
    assert scores_and_cost(done, None, None) == "scored: `city` 2 of 2, `polite` 0 of 2, spent nothing; run `R`"


def test_another_line_of_passing_is_named_with_the_line_that_counts_both_runs(folder):
    metrics = "[diff/similarity: {as: city, pass_at: %s}]"
    text = re.sub("metrics: .*", "metrics: " + metrics, PIPELINE)
    (folder / "main.yaml").write_text(text.replace("answers", "main") % 0.5)
    (folder / "new.yaml").write_text(text % 0.9 + GATE)
    rows = [{"id": str(number), "output": "Ankarra", "reference": "Ankara"} for number in range(20)]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    judge("main.yaml")
    assert "counted at" not in comment(folder, "new.yaml", "--set", "metrics.city.pass_at=0.5")[1]
    _, text = comment(folder, "new.yaml")
    lines = "`city`: a row passes at 0.9 in this run, and at 0.5 in the baseline; the passes of both runs are counted at 0.9"
    assert lines in text


@pytest.mark.parametrize(
    ("arguments", "error", "reason"),
    [
        (("--ledger", "new.yaml"), LedgerRefused, "the ledger cannot be used: new.yaml is not a SQLite file"),
        (("--nosuch",), UsageError, "the command is wrong: No such option"),
    ],
)
def test_an_error_of_the_command_has_its_message_and_its_fix_in_the_comment(folder, arguments, error, reason):
    with pytest.raises(error):
        comment(folder, "main.yaml", *arguments)
    text = (folder / "comment.md").read_text("utf-8")
    assert reason in text
    assert error is not LedgerRefused or "choose another path" in text


def test_the_state_of_a_run_is_in_the_comment_until_the_result(folder, monkeypatch):
    monkeypatch.setattr("dicast_github.documents.SECONDS", 0.0)
    monkeypatch.setattr(Comment, "write", lambda *_, **__: None)  # as if the process had been killed
    _, text = comment(folder, "main.yaml")
    assert text.split("\n\n")[1] == EMPTY
    assert "- judged before the end: at least 40 subjects, spent nothing; run `" in text


def test_a_second_signal_leaves_the_comment_of_a_killed_run(folder, monkeypatch):
    run = command._on_system

    def interrupt(*arguments):
        run(*arguments)
        raise Abort  # a second signal, before the run has a document

    monkeypatch.setattr("dicast_github.documents.SECONDS", 0.0)
    monkeypatch.setattr(DocumentsFile, "close", lambda _: 0)
    monkeypatch.setattr(command, "_on_system", interrupt)
    with pytest.raises(Abort):
        judge("main.yaml", "--comment", "comment.md")
    text = (folder / "comment.md").read_text("utf-8")
    assert text.split("\n\n")[1:3] == [EMPTY, "### dicast: `main.yaml`: ended without a result"]
    assert "such as by a second signal, a kill or a lack of memory" in text
    assert "- judged before the end: at least 40 subjects, spent nothing; run `" in text
    assert re.search(r"- next: `dicast ci main.yaml --resume \w+ --comment comment.md` with the ledger of this", text)
    assert "nothing was judged" not in text


def test_a_pull_request_from_a_fork_has_the_reason_for_an_empty_key(folder, monkeypatch):
    sides = {side: {"repo": {"full_name": f"{side}/r"}} for side in ("head", "base")}
    (folder / "event.json").write_text(json.dumps({"pull_request": {"number": 3, **sides}}))
    for name, value in (("ACTIONS", "true"), ("REPOSITORY", "base/r"), ("EVENT_PATH", str(folder / "event.json"))):
        monkeypatch.setenv(f"GITHUB_{name}", value)
    with refusing() as url:
        asking(folder, url)
        code, text = comment(folder, "asking.yaml", "--set", "gate=null")
    assert (code, EMPTY in text) == (2, True)
    assert "GitHub gives its jobs no secrets, so a key from a secret is empty." in text
    (folder / "comment.md").unlink()
    code, text = comment(folder, "main.yaml")
    assert (code, "no secrets" in text) == (0, False)


@pytest.mark.parametrize("reason", [*STOPS])
def test_each_reason_to_stop_has_words_and_a_next_step(reason, tmp_path):
    empty = {"failures": {}, "failed_subjects": [], "throttled": {}, "unaffordable": 0, "judges": {}}
    shards = {"shards": "shard 1/2: interrupted"} if reason == "unfinished_shards" else {}
    done = {
        "stopped": {"reason": reason, **shards},
        "metrics": {"m": {"scored": 1}},
        "scored": 1,
        "subjects": 4,
        "cost": {},
    }
    text = "\n".join(reason_lines({**empty, **done, "run_id": "R", "name": "a"}, "a.yaml", tmp_path / "ledger.db"))
    assert f"{STOPS[reason]} (`{reason}`); scored before: 1 of 4 subjects" in text
    assert "`dicast ci a.yaml --resume R` with the ledger of this job, `ledger.db`. " in text


def test_a_sink_that_lost_events_is_in_the_comment_of_a_run_that_passed(folder):
    sink = "sinks=[notify/webhook: {url: http://127.0.0.1:9/x, when: always}]"
    code, text = comment(folder, "main.yaml", "--set", sink)
    assert code == 4
    assert re.search(r"### dicast: `main`: [\w ]+, but a sink lost events \(exit code 4\)\n", text)
    assert re.search(r"- the sink `notify/webhook` lost \d events?: `", text)


def test_an_endpoint_that_is_down_has_one_next_step_in_log_and_comment(folder):
    asking(folder, "http://127.0.0.1:9/v1")
    code, text = comment(folder, "asking.yaml", "--set", "gate=null")
    assert code == 2
    assert "correct base_url, then `dicast ci asking.yaml --set gate=null --comment comment.md`\n" in text
    assert "correct the key" not in text


def ask_by_variables(folder, monkeypatch, url, key):
    """Ask the model at *url*, whose address and *key* are variables of the environment; return the text of the log and of the comment."""
    monkeypatch.setenv("JUDGE_URL", url)
    monkeypatch.setenv("JUDGE_KEY", key)
    asking(folder, "${JUDGE_URL}")
    file = folder / "asking.yaml"
    file.write_text(file.read_text().replace("sk-secret", "'${JUDGE_KEY}'"))
    arguments = ["asking.yaml", "--comment", "comment.md", "--set", "gate=null"]
    result = CliRunner().invoke(ci, arguments, catch_exceptions=False, standalone_mode=False)
    return " ".join(result.output.split()), (folder / "comment.md").read_text("utf-8")


@pytest.mark.parametrize("status", [401, 403])
def test_an_empty_variable_of_a_refused_key_is_named(folder, monkeypatch, status):
    with answering(status) as url:
        log, text = ask_by_variables(folder, monkeypatch, url, "")
        assert "set JUDGE_KEY in the environment, which was empty, then with the file unchanged: dicast ci" in log
        assert "- empty in the environment when the calls were sent: `JUDGE_KEY`, in place of a secret\n" in text
        assert "- next: set JUDGE_KEY in the environment, which was empty, then `dicast ci asking.yaml" in text
        log, text = ask_by_variables(folder, monkeypatch, url, "sk-wrong")
    assert "correct the key in the environment, then with the file unchanged" in log
    assert "JUDGE_KEY" not in text
    assert "sk-" not in text


def test_the_variable_of_an_address_is_named_after_a_refusal(folder, monkeypatch):
    with answering(404) as url:
        log, text = ask_by_variables(folder, monkeypatch, url, "sk-1")
    place = "the address or the model in the file or in the environment (JUDGE_URL)"
    assert "once the endpoint has the model, with the file and JUDGE_URL unchanged: dicast ci" in log
    assert f"after a correction of {place}, a new run: dicast ci" in log
    assert f"- next: correct {place}, then `dicast ci asking.yaml" in text


def test_the_variable_of_an_address_is_named_without_a_connection(folder, monkeypatch):
    log, text = ask_by_variables(folder, monkeypatch, "http://127.0.0.1:9/v1", "sk-1")
    place = "in the file or in the environment (JUDGE_URL)"
    assert "once the endpoint answers, with the file and JUDGE_URL unchanged: dicast ci" in log
    assert f"after a correction of the address or the model {place}, a new run: dicast ci" in log
    assert f"- next: start the server, or correct base_url {place}, then `dicast ci asking.yaml" in text


def test_a_fork_without_secrets_has_the_step_of_a_maintainer_alone(folder):
    with refusing() as url:
        asking(folder, url)
        result = CliRunner().invoke(ci, ["asking.yaml", "--json", "--set", "gate=null"], standalone_mode=False)
    done = json.loads(result.stdout) | {"ledger": None, "base": str(folder)}
    Comment(folder / "comment.md", None, None, is_fork=True).write("asking.yaml", [done])
    text = (folder / "comment.md").read_text("utf-8")
    assert "Next: a maintainer pushes the branch to this repository" in text
    assert "- next:" not in text


def test_rows_without_a_partner_are_counted_in_the_comment(folder):
    write_rows(folder, 40)
    judge("main.yaml")
    rows = (folder / "rows.jsonl").read_text().replace('"id": "38"', '"id": "a"').replace('"id": "39"', '"id": "b"')
    (folder / "rows.jsonl").write_text(rows)
    _, text = comment(folder, "new.yaml")
    line = (
        "without a partner in the other run, and left out of the change: 2 rows of the baseline and 2 rows of this run"
    )
    assert f"- `city`: {line}\n" in text


def test_a_resumed_run_takes_another_pace_of_the_model_and_no_other_price(folder):
    with answering(write=lambda body: texts[0] or reply(body)) as url:
        text = JUDGED.replace("URL", url).replace("NAME", "new") + "metrics: [check/contains: {value: Ankara}]\n"
        pace = ", timeout: 50, retries: 3, requests_per_minute: 60000, tokens_per_minute: 1e9"
        texts = ["not JSON"]
        (folder / "new.yaml").write_text(text)
        code, _ = comment(folder, "new.yaml", "--limit", "2")
        assert code == 3
        texts[0] = ""
        (folder / "new.yaml").write_text(text.replace("price: free", "price: {input_per_mtok: 0, output_per_mtok: 0}"))
        with pytest.raises(RequestError, match=r"cannot be resumed: judges\[helpful\] has changed \(.*price"):
            judge("new.yaml", "--resume", "--retry-failed")
        (folder / "new.yaml").write_text(text.replace(", price", f"{pace}, price"))
        assert judge("new.yaml", "--resume", "--retry-failed", "--limit", "2") == 0
        (folder / "new.yaml").write_text(text.replace("It helps", "It lies"))
        with pytest.raises(RequestError, match="cannot be resumed"):
            judge("new.yaml", "--resume", "--retry-failed")


def test_the_command_of_an_experiment_has_the_path_of_the_report_as_the_user_wrote_it(folder):
    with answering(429) as url:
        asking(folder, url)
        path = folder / "asking.yaml"
        path.write_text(
            path.read_text()
            .replace("name: answers\n", "name: all\nexperiments: {plain: {set: {}}, other: {set: {}}}\n")
            .replace(GATE, "")
        )
        _, text = comment(folder, "asking.yaml", "--limit", "1", "--junit", "${experiment}.xml")
    assert text.count("--junit '${experiment}.xml' --comment comment.md`") == 2
    assert (folder / "plain.xml").is_file()


def test_failures_of_one_experiment_are_judged_again_alone(folder):
    with answering(429) as url:
        text = (
            JUDGED.replace("URL", url)
            .replace("price: free", "price: free, retries: 0")
            .replace("NAME", "all\nexperiments: {plain: {set: {}}, other: {set: {}}}")
        )
        (folder / "new.yaml").write_text(text + "metrics: [check/contains: {value: Ankara}]\n")
        (folder / "rows.jsonl").write_text('{"id": "1", "input": "q", "output": "Ankara"}\n')
        _, text = comment(folder, "new.yaml")
    for name in ("plain", "other"):
        assert f"--comment comment.md --experiment {name} --retry-failed`" in text
