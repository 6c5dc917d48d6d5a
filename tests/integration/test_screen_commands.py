"""Commands that print a run's summary: one screen, ``--full``, and the runs and ledgers that they name."""

from __future__ import annotations

import pytest

TIDY = "name: tidy\nmetrics: [proxy/keywords: {as: tidy, forbidden: [TODO]}]\ngate: {on: tidy, min_pass_rate: 0.9}\n"


@pytest.fixture
def judged(shop):
    """A folder with the run of a pipeline."""
    shop.rows("good", "a TODO", "fine")
    shop.pipeline(TIDY)
    shop.dicast("run", "p.yaml")
    return shop


def test_the_summary_fits_on_one_screen_and_begins_with_the_gate(judged):
    lines = judged.dicast("show", "last").out.splitlines()
    assert lines[0].startswith("gate: failed: the pass rate of tidy is 0.6667")
    assert len(lines) <= 22
    assert not any(line.startswith(("ledger: ", "score: ")) for line in lines)


def test_its_last_lines_are_commands_that_work(judged):
    lines = judged.dicast("show", "last").out.splitlines()
    (next_,) = [line.removeprefix("next: dicast ") for line in lines if line.startswith("next: ")]
    assert "has the forbidden 'TODO'" in judged.dicast(*next_.split()).out
    details = lines[-1].removeprefix("details: dicast ").split()
    assert judged.dicast(*details).out == judged.dicast("show", "last", "--full").out
    assert "\nledger: " in judged.dicast(*details).out


def test_full_prints_the_methods_and_the_digest_of_the_ledger(judged):
    text = judged.dicast("run", "p.yaml", "--full").out
    assert "score: mean 0.6667" in text
    assert "clustered by session_id" in text
    assert "\nledger: " in text


def test_full_is_refused_for_a_subject(judged):
    done = judged.dicast("show", "r1", "--full")
    assert done.code == 2
    assert "'r1' is a subject" in done.err


@pytest.mark.parametrize("name", ["tidy", "last"])
def test_show_with_a_run_alone_shows_the_run(judged, name):
    assert judged.dicast("show", "--run", name).out == judged.dicast("show", "last").out


def test_show_without_a_name_asks_for_one(judged):
    done = judged.dicast("show")
    assert done.code == 2
    assert "Missing argument 'RUN|SUBJECT': dicast show last" in done.err
    assert judged.dicast("show", "--all").code == 2


def test_a_run_with_a_ledger_of_its_own_leaves_the_default_alone(judged):
    (judged / "books").mkdir()
    done = judged.dicast("run", "p.yaml", "--ledger", "books/l.db")
    assert done.code == 1
    details = done.out.splitlines()[-1]
    assert details.endswith(" --ledger books/l.db")
    assert judged.dicast(*details.removeprefix("details: dicast ").split()).code == 0
    assert len(judged.dicast("runs", "--json").json["runs"]) == 1
    assert len(judged.dicast("runs", "--ledger", "books/l.db", "--json").json["runs"]) == 1


def test_another_ledger_keeps_the_other_options_of_the_files_ledger(judged):
    file = judged.pipeline(TIDY + "ledger: {ledger/sqlite: {path: a.db, content: digest}}\n").name
    judged.dicast("run", file, "--ledger", "b ${X}.db")
    assert not (judged / "a.db").exists()
    shown = judged.dicast("show", "r1", "--ledger", "b ${X}.db").out
    assert "TODO" not in shown.partition("tidy")[0]


def test_the_tried_rows_follow_the_summary(judged):
    lines = judged.dicast("run", "p.yaml", "--head", "2").out.splitlines()
    assert lines[0].startswith("gate: ")
    details = next(number for number, line in enumerate(lines) if line.startswith("details: "))
    assert lines[details + 1] == ""
    assert lines[details + 2].startswith("id ")


@pytest.mark.parametrize(
    ("gate", "column"),
    [
        ("", "metrics"),
        ("gate: {on: metrics, min_pass_rate: 0.5}", "metrics"),
        ("gate: {on: long, min_pass_rate: 0.5}", "long"),
    ],
)
def test_the_deciding_value_of_tried_rows_is_on_a_narrow_screen(shop, gate, column):
    shop.write("data.jsonl", [{"id": "a", "input": "word " * 90, "output": "text " * 90, "reference": "other " * 90}])
    file = shop.pipeline(f"name: tried\nmetrics: [proxy/format, proxy/length: {{as: long, max: 9}}]\n{gate}\n").name
    lines = shop.dicast("run", file, "--head", "1").out.splitlines()
    heads, values = next((line, lines[at + 1]) for at, line in enumerate(lines) if line.startswith("id "))
    assert heads.split()[:3] == ["id", column, "input"]
    assert values.split()[1].startswith("0.")


def test_a_suite_has_few_lines_for_each_experiment_and_one_table(judged):
    file = judged.pipeline(
        TIDY.replace("name: tidy\n", "") + "experiments: {plain: {}, other: {set: {gate.min_pass_rate: 0.95}}}\n"
    ).name
    text = judged.dicast("run", file).out
    assert text.count("gate: failed") == 2
    assert "label " not in text
    assert sum(line.startswith("EXPERIMENT") for line in text.splitlines()) == 1
