"""``--set`` for a suite: values that experiments replace, misspelled experiments, and keys with dots."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from dicast._kernel.cli import main

SUITE = """
name: letters
source: {rows/jsonl: {path: rows.jsonl}}
metrics: [check/contains: {as: city, value: Ankara, weight: 2}]
scoring: {pass_at: 0.5}
experiments:
  plain: {}
  strict: {set: {scoring.pass_at: 0.9}}
  other: {set: {"metrics.city": {check/contains: {as: city, value: Bonn}}}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "output": "Ankara"}\n')
    (tmp_path / "suite.yaml").write_text(SUITE)
    return tmp_path


def check(capsys, setting):
    """Return the exit code, and the text of ``dicast check``."""
    capsys.readouterr()
    code = main(["check", "suite.yaml", "--set", setting])
    shown = capsys.readouterr()
    return code, " ".join((shown.out + shown.err).split())


def refusal(capsys, experiment, setting):
    """Return the message that refuses the run of one experiment."""
    capsys.readouterr()
    assert main(["run", "suite.yaml", "--experiment", experiment, "--set", setting, "--json"]) == 2
    return json.loads(capsys.readouterr().out)["error"]["message"]


def suggestion(text):
    """Return the value of the ``--set`` in a message, as a shell reads it."""
    match = re.search(r"write (--set .*)", text)
    assert match is not None, text
    return shlex.split(match[1].rpartition(" (")[0] if match[1].endswith(")") else match[1])[1]


@pytest.mark.parametrize(
    ("experiment", "setting", "form"),
    [
        ("strict", "scoring.pass_at=0.7", 'experiments.strict.set."scoring.pass_at"=0.7'),
        ("strict", "scoring={pass_at: 0.7}", 'experiments.strict.set."scoring.pass_at"=0.7'),
        (
            "other",
            "metrics.city.value=it's",
            'experiments.other.set."metrics.city".check/contains.value="it\'s"',
        ),
    ],
)
def test_a_value_that_the_only_judged_experiment_replaces_is_refused_with_the_form_that_works(
    folder, capsys, experiment, setting, form
):
    message = refusal(capsys, experiment, setting)
    assert "no run would use it" in message
    assert suggestion(message) == form
    assert main(["run", "suite.yaml", "--experiment", experiment, "--set", form]) == 0
    assert "no effect" not in capsys.readouterr().out


def test_a_value_that_some_experiments_replace_is_one_warning_with_their_names(folder, capsys):
    code, text = check(capsys, "scoring.pass_at=0.7")
    assert code == 0
    assert text.count("has no effect on strict") == 1
    assert main(["run", "suite.yaml", "--set", "scoring.pass_at=0.7", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)["experiments"]
    kinds = {name: [warning["kind"] for warning in of["warnings"]] for name, of in done.items()}
    assert "override_replaced" in kinds["strict"]
    assert "override_replaced" not in kinds["plain"]


@pytest.mark.parametrize(
    "setting", ["scoring.pass_at=0.9", "metrics.city.weight=3", 'experiments.strict.set."scoring.pass_at"=0.7']
)
def test_an_equal_value_and_a_value_of_the_experiment_itself_are_accepted(folder, capsys, setting):
    code, text = check(capsys, setting)
    assert code == 0
    assert ("has no effect on other" in text) is ("weight" in setting)
    assert "has no effect on strict" not in text


@pytest.mark.parametrize(
    "setting", ["experiments.strict.set.scoring.pass_at=0.7", "experiments.plain.set.scoring.pass_at=0.7"]
)
def test_a_path_with_dots_below_set_is_refused_with_its_quoted_form(folder, capsys, setting):
    code, text = check(capsys, setting)
    assert code == 2
    name = setting.split(".")[1]
    form = suggestion(text)
    assert form == f'experiments.{name}.set."scoring.pass_at"=0.7'
    assert check(capsys, form)[0] == 0


def test_a_key_with_dots_of_any_mapping_is_refused_with_its_quoted_form(folder, capsys):
    (folder / "suite.yaml").write_text(
        SUITE.partition("experiments:")[0] + 'define: {"a.b": {check/contains: {value: x}}}\n'
    )
    code, text = check(capsys, "define.a.b.value=y")
    assert code == 2
    assert suggestion(text) == 'define."a.b".value="y"'
    assert check(capsys, suggestion(text))[0] == 0


def test_a_path_below_a_misspelled_experiment_is_refused_with_the_nearest_name(folder, capsys):
    code, text = check(capsys, 'experiments.stric.set."scoring.pass_at"=0.7')
    assert code == 2
    assert "no experiment 'stric'; it has plain, strict, other" in text
    assert "did you mean 'strict'?" in text
    assert check(capsys, "experiments.stric={set: {scoring.pass_at: 0.7}}")[0] == 0


def test_a_resumed_experiment_keeps_a_setting_of_its_suite_that_it_replaces(folder, capsys):
    (folder / "rows.jsonl").write_text('{"id": "a", "output": "Ankara"}\n{"id": "b"}\n')
    setting = ["--set", "scoring.pass_at=0.7"]
    main(["run", "suite.yaml", *setting, "--json"])
    run = json.loads(capsys.readouterr().out)["experiments"]["strict"]
    resume = ["--resume", run["run_id"], "--experiment", "strict", "--retry-failed"]
    assert main(["run", "suite.yaml", *setting, *resume, "--json"]) != 2, capsys.readouterr()


def test_a_run_prints_a_warning_about_a_replaced_setting_once(folder, capsys):
    main(["run", "suite.yaml", "--set", "scoring.pass_at=0.7"])
    shown = " ".join(capsys.readouterr().err.split())
    assert shown.count("warning: --set scoring.pass_at: ") == 1
    assert "replaces this value, so it has no effect on strict" in shown
