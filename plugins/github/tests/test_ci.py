"""``dicast ci``: the run, its exit code, and the files and lines for each CI system."""

from __future__ import annotations

import io
import json
import os
import re
import sqlite3
import subprocess
import sys
import xml.etree.ElementTree as ET
from contextlib import closing, redirect_stderr, redirect_stdout
from importlib.metadata import entry_points
from threading import Event, Thread
from time import sleep

import pytest

from dicast_github.comment import FORK

PIPELINE = """
name: answers
source: {rows/jsonl: {path: rows.jsonl}}
metrics: [check/contains: {value: Ankara}]
gate: {min_score: %s}
"""
OURS = ("GITHUB_", "GITLAB_", "DICAST_", "CI")
"""What CI systems and dicast put into the environment."""
HOSTILE = "::error::forged ##[error]forged\n::stop-commands::x\n::add-mask::a"


@pytest.fixture
def folder(tmp_path):
    rows = [{"id": "1", "output": "Ankara"}, {"id": HOSTILE, "output": HOSTILE}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "passes.yaml").write_text(PIPELINE % 0.4)
    (tmp_path / "fails.yaml").write_text(PIPELINE % 0.9)
    return tmp_path


def ci(folder, *arguments, **environment):
    """Run ``dicast ci`` in this process."""
    (command,) = entry_points(group="console_scripts", name="dicast")
    printed, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed), redirect_stderr(errors):
        patch.chdir(folder)
        for name in [name for name in os.environ if name.startswith(OURS)]:
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        code = command.load()(["ci", *arguments])
    return subprocess.CompletedProcess(
        arguments, code, *(text.buffer.getvalue().decode() for text in (printed, errors))
    )


def github(folder, *arguments):
    settings = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_WORKSPACE": str(folder),
        "GITHUB_STEP_SUMMARY": str(folder / "step.md"),
    }
    return ci(folder, *arguments, **settings)


def followed(text):
    """The commands that GitHub's runner would carry out of a log: none between stop-commands and its word."""
    stopped, commands = None, []
    for line in map(str.lstrip, text.splitlines()):
        if stopped is not None:
            stopped = None if line == f"::{stopped}::" else stopped
        elif (match := re.fullmatch("::stop-commands::(.+)", line)) is not None:
            stopped = match[1]
        elif line.startswith("::") or "##[" in line:
            commands.append(line)
    return commands


@pytest.mark.parametrize(("name", "code"), [("passes", 0), ("fails", 1), ("none", 2)])
@pytest.mark.parametrize(
    "where", [{}, {"GITHUB_ACTIONS": "true"}, {"GITLAB_CI": "true"}], ids=["plain", "github", "gitlab"]
)
def test_the_exit_code_is_that_of_the_run(folder, name, code, where):
    assert ci(folder, f"{name}.yaml", **where).returncode == code


def ci_process(folder, *arguments):
    """Run ``dicast ci`` in a process of its own."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    command = [sys.executable, "-m", "dicast", "ci", *arguments]
    return subprocess.run(command, cwd=folder, env=clean, capture_output=True, check=False)


def test_a_process_of_its_own_ends_with_the_exit_code_of_the_run(folder):
    done = ci_process(folder, "fails.yaml")
    assert (done.returncode, done.stdout.startswith(b"gate: failed: ")) == (1, True)


def test_elsewhere_it_prints_what_dicast_run_prints(folder):
    output = ci(folder, "fails.yaml").stdout
    assert output.startswith("gate: failed: the mean of check/contains is 0.5, below min_score 0.9\nanswers  run ")
    assert not any(line.lstrip().startswith("::") for line in output.splitlines())
    assert not (folder / "dicast-junit.xml").exists()


def test_under_github_the_summary_is_written_and_annotations_are_printed(folder):
    done = github(folder, "fails.yaml")
    assert (folder / "step.md").read_text().startswith("## `answers`: failed")
    commands = followed(done.stdout)
    assert commands[:2] == ["::group::dicast run fails.yaml", "::endgroup::"]
    assert commands[2].startswith("::error file=fails.yaml,line=5,title=dicast answers::gate failed: ")
    assert [line.split(" ")[0] for line in commands[3:]] == ["::warning"]
    assert "answers  run " in done.stdout


def test_text_of_others_is_no_command(folder):
    """The log has the text at a place without commands, and an annotation has it escaped."""
    commands = followed(github(folder, "fails.yaml").stdout)
    assert not [line for line in commands if line.startswith(("::error::forged", "::add-mask", "##["))]
    assert len(commands) == 4


def test_a_wrong_file_is_annotated_where_it_is_wrong(folder):
    (folder / "wrong.yaml").write_text("name: x\nsource: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [check/contans]\n")
    done = github(folder, "wrong.yaml")
    (line,) = followed(done.stdout)[2:]
    assert line.startswith("::error file=wrong.yaml,line=3,col=11,title=dicast::")
    assert "did you mean 'check/contains'?" in line
    assert done.returncode == 2


def test_a_refused_file_is_in_the_jobs_summary_with_the_note_about_forks(folder):
    (folder / "wrong.yaml").write_text(PIPELINE % 0.4 + "wrong: 1\n")
    ends = {"head": {"repo": {"full_name": "other/a"}}, "base": {"repo": {"full_name": "me/a"}}}
    event = {"number": 7, "pull_request": {"number": 7, **ends}, "repository": {"full_name": "me/a"}}
    (folder / "event.json").write_text(json.dumps(event))
    names = {"GITHUB_EVENT_PATH": str(folder / "event.json"), "GITHUB_REPOSITORY": "me/a"}
    step = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(folder / "step.md")}
    done = ci(folder, "wrong.yaml", **names, **step)
    text = (folder / "step.md").read_text()
    assert done.returncode == 2
    assert text.startswith("## `wrong.yaml`: nothing was judged\n\n- `wrong.yaml:")
    assert FORK in text
    assert FORK in done.stderr
    (folder / "step.md").unlink()
    assert FORK not in ci(folder, "wrong.yaml", **step).stderr
    assert FORK not in (folder / "step.md").read_text()


def test_a_test_report_that_needs_a_plugin_names_its_option(folder):
    (folder / "blocked.yaml").write_text(PIPELINE % 0.4 + "plugins: {block: [junit]}\n")
    done = ci(folder, "blocked.yaml", "--junit", "j.xml")
    assert done.returncode == 2
    assert done.stderr.startswith("--junit: plugin 'junit' ")


def test_under_gitlab_the_log_has_a_section_and_a_test_report_is_written(folder):
    output = ci(folder, "fails.yaml", GITLAB_CI="true").stdout
    begin = re.match(r"\x1b\[0Ksection_start:\d+:(dicast_\w+)\r\x1b\[0Kdicast run fails.yaml\n", output)
    assert re.search(rf"\x1b\[0Ksection_end:\d+:{begin[1]}\r\x1b\[0K\n", output)
    assert output.endswith("test report: dicast-junit.xml (artifacts:reports:junit)\n")
    assert ET.parse(folder / "dicast-junit.xml").getroot().get("tests") == "3"


def test_a_test_report_is_written_anywhere_it_is_asked_for(folder):
    assert ci(folder, "fails.yaml", "--junit", "out/j.xml").returncode == 1
    assert (folder / "out" / "j.xml").is_file()


def test_options_of_dicast_run_are_taken_and_json_is_one_document(folder):
    done = github(folder, "fails.yaml", "--limit", "1", "--set", "gate.min_score=0.5", "--json")
    assert json.loads(done.stdout)["subjects"] == 1
    assert done.returncode == 0
    (folder / "wrong.yaml").write_text("source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [check/contans]\n")
    wrong = github(folder, "wrong.yaml", "--json")
    assert "'contans'" in json.loads(wrong.stdout)["error"]["message"]
    assert "::error file=wrong.yaml,line=2" in wrong.stderr


@pytest.mark.parametrize(("where", "name"), [({"GITLAB_CI": "true"}, "dicast-junit.xml"), ({}, "j.xml")])
def test_the_report_of_another_pipeline_is_not_replaced(folder, where, name):
    options = [] if where else ["--junit", name]
    assert [ci(folder, "fails.yaml", *options, **where).returncode for _ in range(2)] == [1, 1]
    first = (folder / name).read_bytes()
    done = ci(folder, "passes.yaml", *options, "--comment", "c.md", **where)
    assert done.returncode == 2
    words = "it has the report '<!-- dicast ci: fails.yaml -->', and this report is '<!-- dicast ci: passes.yaml -->'; give --junit another path, or remove the file"
    assert words in done.stderr
    assert words in (folder / "c.md").read_text("utf-8")
    assert (folder / name).read_bytes() == first


@pytest.mark.parametrize(("where", "name"), [({"GITLAB_CI": "true"}, "dicast-junit.xml"), ({}, "out/all.xml")])
def test_a_suite_has_one_test_report_of_all_experiments(folder, where, name):
    (folder / "suite.yaml").write_text(PIPELINE % 0.4 + "experiments: {a: {}, b: {}}\n")
    apart = ci(folder, "suite.yaml", "--junit", "apart/${experiment}.xml")
    done = ci(folder, "suite.yaml", *([] if where else ["--junit", name]), **where)
    assert (done.returncode, apart.returncode) == (0, 0), done.stderr
    whole = ET.parse(folder / name).getroot()
    alone = [ET.parse(folder / "apart" / f"{experiment}.xml").getroot() for experiment in "ab"]
    assert (whole.tag, whole.get("name")) == ("testsuites", "answers")
    for count in ("tests", "failures", "errors", "skipped"):
        assert int(whole.get(count)) == sum(int(root.get(count)) for root in alone)
    names = [
        f"{experiment}: {suite.get('name')}" for experiment, root in zip("ab", alone, strict=True) for suite in root
    ]
    assert [suite.get("name") for suite in whole] == names
    cases = [
        [(case.get("name"), case.get("classname")) for root in roots for case in root.iter("testcase")]
        for roots in ([whole], alone)
    ]
    assert cases[0] == cases[1]
    texts = [[element.text for root in roots for element in root.iter("failure")] for roots in ([whole], alone)]
    assert texts[0] == texts[1]


def test_a_test_report_that_cannot_be_written_is_refused_before_the_run(folder):
    (folder / "out").write_text("a file")
    done = ci(folder, "fails.yaml", "--junit", "out/j.xml")
    assert done.returncode == 2
    assert not (folder / ".dicast").exists()


def test_a_test_report_replaces_an_older_report_and_no_other_file(folder):
    (folder / "README.md").write_text("# Mine\n")
    assert ci(folder, "fails.yaml", "--junit", "README.md").returncode == 2
    assert (folder / "README.md").read_text() == "# Mine\n"
    assert not (folder / ".dicast").exists()
    assert [ci(folder, "fails.yaml", "--junit", "j.xml").returncode for _ in range(2)] == [1, 1]


def test_a_disabled_run_has_a_test_report_with_one_skipped_case(folder):
    assert ci(folder, "fails.yaml", "--junit", "j.xml", DICAST_DISABLED="1").returncode == 0
    root = ET.parse(folder / "j.xml").getroot()
    assert (root.get("tests"), root.get("skipped"), root.get("failures")) == ("1", "1", "0")
    (skipped,) = root.iter("skipped")
    assert skipped.get("message") == "DICAST_DISABLED is set: nothing was read, and the gate has no answer"
    assert ci(folder, "fails.yaml", "--junit", "j.xml").returncode == 1, "the report is replaced"


def test_a_suite_has_a_summary_of_each_experiment(folder):
    suite = PIPELINE % 0.4 + "experiments: {a: {}, b: {set: {gate.min_score: 0.9}}}\n"
    (folder / "suite.yaml").write_text(suite)
    done = github(folder, "suite.yaml", "--junit", "out/${experiment}.xml")
    assert done.returncode == 1
    text = (folder / "step.md").read_text()
    assert ("## `answers/a`: passed" in text, "## `answers/b`: failed" in text) == (True, True)
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["a.xml", "b.xml"]
    assert sum(line.startswith("::error") for line in followed(done.stdout)) == 1


@pytest.mark.slow
def test_an_interrupted_run_names_the_command_that_resumes_it_with_its_reports(folder):
    """The command of the task interrupts the process that runs the pipeline."""
    task = "task: {task/command: {command: [sh, -c, 'kill -INT $PPID; sleep 5']}}\n"
    (folder / "slow.yaml").write_text(PIPELINE % 0.4 + task)
    done = ci(folder, "slow.yaml", "--comment", "out/c.md", "--junit", "j.xml", "--set", "gate.min_score=0.3")
    (line,) = [line.strip() for line in done.stdout.splitlines() if "--resume" in line]
    run_id = line.partition("--resume ")[2].split()[0]
    options = f"--resume {run_id} --junit j.xml --comment out/c.md"
    assert line == f"dicast ci slow.yaml --set gate.min_score=0.3 {options}"
    assert done.returncode == 130
    text = (folder / "out" / "c.md").read_text("utf-8")
    assert "<!-- dicast ci: no result -->" in text
    assert "the run was not completed: interrupted" in text
    assert (
        "- the run was interrupted, such as by a canceled job or a time limit (`interrupted`); scored before: 0 of"
        in text
    )
    assert "- next: `dicast ci slow.yaml --set gate.min_score=0.3 --junit j.xml --comment out/c.md`\n" in text


@pytest.mark.slow
@pytest.mark.parametrize("first", ["a", "b"])
def test_a_resumed_suite_writes_the_reports_of_all_experiments(folder, first):
    """The task of *first* interrupts the process at its first call: before the other experiment, or after its end."""
    command = "if [ -e again ]; then echo Ankara; else touch again; kill -INT $PPID; sleep 5; fi"
    change = f"{{set: {{task: {{task/command: {{command: [sh, -c, '{command}']}}}}}}}}"
    experiments = ", ".join(f"{name}: {change if name == first else '{}'}" for name in "ab")
    (folder / "suite.yaml").write_text(f"{PIPELINE % 0.4}experiments: {{{experiments}}}\n")
    options = ("--junit", "s.xml", "--comment", "s.md")
    broken = ci(folder, "suite.yaml", *options)
    assert broken.returncode == 130, broken.stdout + broken.stderr
    assert broken.stdout.count("details: dicast show ") == 1
    (line,) = [line.strip() for line in broken.stdout.splitlines() if "--resume" in line]
    done = ci(folder, *line.removeprefix("dicast ci ").split())
    assert done.returncode == 0, done.stdout + done.stderr
    whole = ET.parse(folder / "s.xml").getroot()
    assert {suite.get("name").partition(":")[0] for suite in whole} == {"a", "b"}
    assert len([case for case in whole.iter("testcase") if case.find("skipped") is None]) >= 4
    titles = [line for line in (folder / "s.md").read_text("utf-8").splitlines() if line.startswith("###")]
    suite = "### dicast: `suite.yaml`: passed: 2 of 2 experiments"
    assert titles == [suite, "### dicast: `answers/a`: passed", "### dicast: `answers/b`: passed"]


@pytest.mark.slow
def test_a_killed_run_leaves_the_number_of_judged_subjects_and_the_command_that_resumes_it(folder):
    """The command of the task kills the process that runs the pipeline, at the third row and after the comment was written."""
    script = 'case "$row" in *third*) sleep 6; kill -KILL $PPID;; esac;'
    write_slow(folder, "killed.yaml", script)
    assert ci_process(folder, "killed.yaml", "--comment", "c.md").returncode == -9
    text = (folder / "c.md").read_text("utf-8")
    assert "### dicast: `killed.yaml`: ended without a result" in text
    assert "nothing was judged" not in text
    assert re.search(r"- judged before the end: at least 2 subjects, spent nothing; run `\w+`", text)
    assert re.search(
        r"- next: `dicast ci killed.yaml --resume \w+ [^`]*--comment [\w./]+` with the ledger of this", text
    )


@pytest.mark.slow
def test_a_process_that_is_killed_before_its_first_subject_leaves_the_command_to_run_again(folder):
    (folder / "killer.py").write_text("import os\nos.kill(os.getpid(), 9)\n")
    task = "task: {task/python: {target: 'killer:task'}}\ntrust: [killer.py]\n"
    (folder / "killed.yaml").write_text(PIPELINE % 0.4 + task)
    assert ci_process(folder, "killed.yaml", "--comment", "c.md").returncode == -9
    text = (folder / "c.md").read_text("utf-8")
    assert "- no subject was judged\n- next: `dicast ci killed.yaml` with the same options\n" in text


def write_slow(folder, name, script, *, sections=""):
    """Write a pipeline of four rows whose task is the shell *script*; it reads the row from standard input."""
    rows = [json.dumps({"id": name, "input": name}) for name in ("first", "second", "third", "last")]
    (folder / "rows.jsonl").write_text("\n".join(rows))
    task = {
        "task": {
            "task/command": {"command": ["sh", "-c", f'read -r row; {script} echo "{{\\"output\\": \\"Ankara\\"}}"']}
        }
    }
    rest = {"executor": {"dicast/async": {"concurrency": 1}}}
    parts = [PIPELINE % 0.4, *(json.dumps(part)[1:-1] + "\n" for part in (task, rest)), sections]
    (folder / name).write_text("".join(parts))


@pytest.mark.slow
def test_a_ledger_that_another_process_locks_is_named_in_the_comment_and_the_test_report(folder):
    ci(folder, "passes.yaml", "--ledger", "l.db")
    script = f'case "$row" in *third*) touch {folder}/third; while [ ! -e {folder}/held ]; do sleep .05; done;; esac;'
    sections = "ledger: {ledger/sqlite: {path: l.db, busy_timeout: 0.2}}\n"
    write_slow(folder, "locked.yaml", script, sections=sections)
    is_over = Event()

    def hold():
        while not (folder / "third").exists():
            sleep(0.02)
        with closing(sqlite3.connect(folder / "l.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            (folder / "held").touch()
            is_over.wait(60)

    thread = Thread(target=hold)
    thread.start()
    gate = "gate=[{on: metrics, baseline: last, max_drop: 0.1}]"
    try:
        done = ci(folder, "locked.yaml", "--comment", "c.md", "--junit", "j.xml", "--set", gate)
    finally:
        (folder / "third").touch()
        is_over.set()
        thread.join()
    assert done.returncode == 4
    text = (folder / "c.md").read_text("utf-8")
    cause = "another process has kept the ledger l.db locked for 0.2 s: let it finish, or wait longer"
    fix = "with --ledger '{ledger/sqlite: {path: l.db, busy_timeout: 30}}', or choose another path for a new run"
    assert f"- `{cause} {fix}`\n" in text
    assert re.search("- next: remove this cause, then `dicast ci locked.yaml --set .* --resume ", text)
    for words in ("disk", "free space", "no older run"):
        assert words not in text + done.stdout
    assert "locked for 0.2 s" in (folder / "j.xml").read_text("utf-8")


def test_a_cap_of_the_day_is_of_one_job_if_the_ledger_is_new(folder):
    note = 'warning: budget.day caps this job alone, because its ledger was empty at the start; see "An empty ledger in each job" in'
    day = ["--set", "budget.day=2 usd"]
    options = ([], [*day, "--ledger", "other.db"], [*day, "--ledger", "other.db"])
    outputs = [" ".join(ci(folder, "passes.yaml", *words).stdout.split()) for words in options]
    assert [note in output for output in outputs] == [False, True, False]
