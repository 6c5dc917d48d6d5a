"""``dicast run --filter``, ``--only`` and ``--out``: a part of the subjects, some of the labels, and files of the run."""

from __future__ import annotations

import errno
import json

import pytest

from dicast._kernel.cli import main
from dicast.toolkit import files

ROWS = [
    {"id": "a1", "output": "Ankara", "topic": "cities", "meta": {"level": 1}},
    {"id": "a2", "output": "Bonn", "topic": "cities", "meta": {"level": 2}},
    {"id": "b1", "output": "Ankara", "topic": "rivers", "meta": {"level": 2}},
    {"id": "b2", "output": "Bonn", "topic": "rivers"},
]
PIPELINE = """
name: selected
source: {rows/jsonl: {path: rows.jsonl}}
metrics: [check/contains: {as: city, value: Ankara}, check/contains: {as: letter, value: a}]
gate: {on: metrics, min_score: 0.1}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "run.yaml").write_text(PIPELINE)
    return tmp_path


def run(capsys, *arguments):
    """Return the exit code and the document of ``dicast run``."""
    capsys.readouterr()
    code = main(["run", "run.yaml", "--json", *arguments])
    return code, json.loads(capsys.readouterr().out)


def judged(capsys, run_id):
    capsys.readouterr()
    main(["verdicts", "--run", run_id, "--json"])
    return [verdict["subject_id"] for verdict in json.loads(capsys.readouterr().out)["verdicts"]]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (["topic=cities"], ["a1", "a2"]),
        (["topic!=cities"], ["b1", "b2"]),
        (["id~^a"], ["a1", "a2"]),
        (["output~(?i)ankara"], ["a1", "b1"]),
        (["topic=cities", "output!~Ankara"], ["a2"]),
        (["meta.level=2"], ["a2", "b1"]),
        (["meta.level!=2"], ["a1", "b2"]),
        (["kind=row", "id=b2"], ["b2"]),
    ],
    ids=str,
)
def test_a_filter_selects_subjects_by_their_parts_and_columns(folder, capsys, rules, expected):
    code, done = run(capsys, *(word for rule in rules for word in ("--filter", rule)))
    assert code in (0, 1)
    assert judged(capsys, done["run_id"]) == expected
    (warning,) = [warning for warning in done["warnings"] if warning["kind"] == "filtered"]
    assert f"{len(expected)} of 4 subjects are accepted" in warning["message"]


OWN_NAMES = [
    {"id": 1, "kind": "billing", "output": "Ankara", "column": {"x": "a"}, "column.y": "b"},
    {"id": 2, "kind": "login", "output": "Bonn", "column": {"x": "c"}, "column.y": "d"},
]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (["column.kind=login"], ["2"]),
        (["column.kind!=login"], ["1"]),
        (["kind=row", "column.kind~^b"], ["1"]),
        (["column.id=2"], ["2"]),
        (["column.output=Bonn"], ["2"]),
        (["column.x=c"], ["2"]),
        (["column.column.x=c"], ["2"]),
        (["column.y=d"], ["2"]),
    ],
    ids=str,
)
def test_a_column_with_the_name_of_a_part_is_reached(folder, capsys, rules, expected):
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in OWN_NAMES))
    _, done = run(capsys, *(word for rule in rules for word in ("--filter", rule)))
    assert judged(capsys, done["run_id"]) == expected


def test_a_filter_on_a_part_names_the_column_of_the_same_name(folder, capsys):
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in OWN_NAMES))
    code, refused = run(capsys, "--filter", "kind=login")
    assert code == 2
    hint = "'kind' is the subject's kind; for the column of that name write column.kind"
    assert hint in refused["error"]["message"]
    _, done = run(capsys, "--filter", "kind!=login", "--filter", "id=1")
    (warning,) = [warning for warning in done["warnings"] if warning["kind"] == "filtered"]
    assert warning["message"].endswith(f"not judged: {hint}"), "the number 1 is the id 1, so id is no other column"


@pytest.mark.parametrize("option", ["--limit", "--head"])
def test_a_run_of_the_first_subjects_is_named_as_a_part(folder, capsys, option):
    _, done = run(capsys, option, "2")
    message = "only the first 2 subjects are judged (--limit or --head)"
    assert done["warnings"] == [{"kind": "limited", "message": message}]
    assert run(capsys, option, "9")[1]["warnings"] == []


def test_check_looks_up_the_baseline_in_the_ledger(folder, capsys):
    (folder / "new.yaml").write_text(PIPELINE + "baseline: {run: slected}\n")
    assert main(["check", "new.yaml"]) == 0
    assert "the baseline 'slected' was not looked up: there is no ledger yet" in capsys.readouterr().out
    run(capsys)
    assert main(["check", "new.yaml"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("new.yaml:6:17: ")
    assert "did you mean 'selected'?" in error
    assert main(["check", "new.yaml", "--set", "baseline.run=selected"]) == 0


def test_failing_selects_the_subjects_that_did_not_pass_before(folder, capsys):
    _, whole = run(capsys)
    _, part = run(capsys, "--filter", "failing")
    assert judged(capsys, part["run_id"]) == ["a2", "b2"]
    rows = [{**row, "output": "Ankara"} for row in ROWS]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, named = run(capsys, "--filter", f"failing={whole['run_id']}")
    assert judged(capsys, named["run_id"]) == ["a2", "b2"]
    run(capsys)
    code, refused = run(capsys, "--filter", "failing")
    assert code == 2
    assert "every subject of run" in refused["error"]["message"]


@pytest.mark.parametrize("rule", ["failing", "failing=selected"])
def test_a_resumed_run_is_filtered_by_the_run_that_was_the_newest_at_its_start(folder, capsys, rule):
    answer = folder / "answer.txt"
    (folder / "run.yaml").write_text("task: {task/command: {command: [sh, -c, cat answer.txt]}}" + PIPELINE)
    answer.write_text("Bonn")
    run(capsys)
    answer.unlink()
    _, part = run(capsys, "--filter", rule)
    assert part["failed"] == len(ROWS)
    answer.write_text("Ankara")
    run(capsys)
    code, resumed = run(capsys, "--resume", part["run_id"], "--filter", rule, "--retry-failed")
    assert (code, resumed["run_id"], resumed["failed"]) == (0, part["run_id"], 0)
    newer = run(capsys, "--filter", rule)[1]["error"]["message"]
    assert "every subject of run" in newer, "a new run is filtered by the newest run"


@pytest.mark.parametrize("rule", ["failing", "failing=selected"])
def test_a_resumed_run_keeps_its_subjects_although_the_older_run_was_retried_since(folder, capsys, rule):
    command = '[sh, -c, "grep -q cities && echo Ankara || cat answer.txt"]'
    (folder / "run.yaml").write_text(f"task: {{task/command: {{command: {command}}}}}" + PIPELINE)
    _, whole = run(capsys)
    _, part = run(capsys, "--filter", rule)
    assert whole["failed"] == part["failed"] == 2
    (folder / "answer.txt").write_text("Ankara")
    assert run(capsys, "--resume", whole["run_id"], "--retry-failed")[1]["failed"] == 0
    code, resumed = run(capsys, "--resume", part["run_id"], "--filter", rule, "--retry-failed")
    assert (code, resumed["run_id"], resumed["failed"]) == (0, part["run_id"], 0)
    assert resumed["scored"] == 2


def test_a_filtered_run_is_not_the_newest_whole_run(folder, capsys):
    _, whole = run(capsys)
    run(capsys, "--filter", "id=a2")
    _, part = run(capsys, "--filter", "failing")
    assert judged(capsys, part["run_id"]) == ["a2", "b2"], "the filtered run was taken as the earlier run"
    assert whole["subjects"] == 4


def test_a_filtered_run_is_compared_over_its_subjects_and_is_no_earlier_run(folder, capsys):
    _, whole = run(capsys)
    _, part = run(capsys, "--filter", "topic=cities")
    capsys.readouterr()
    assert main(["compare", whole["run_id"], part["run_id"], "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)["answers"]["metrics"]
    assert (answer["n"], answer["identical"], answer["unpaired_a"], answer["unpaired_b"]) == (2, 2, 2, 0)
    run(capsys)
    capsys.readouterr()
    assert main(["compare", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["a"]["run_id"] == whole["run_id"]


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (["nonsense"], ["'nonsense' is no rule", "KEY=TEXT"]),
        (["id~("], ["is not a regular expression"]),
        (["nonsense", "id~("], ["'nonsense' is no rule", "is not a regular expression"]),
        (["topc=cities"], ["accepts none of the 4 subjects", "did you mean 'topic'?"]),
        (["failing=never"], ["never"]),
    ],
    ids=str,
)
def test_a_wrong_filter_is_refused_before_anything_is_judged(folder, capsys, rules, words):
    code, done = run(capsys, *(word for rule in rules for word in ("--filter", rule)))
    assert code == 2
    assert all(word in done["error"]["message"] for word in words), done["error"]["message"]


def test_only_judges_by_the_named_labels_and_leaves_out_a_gate_about_others(folder, capsys):
    _, done = run(capsys, "--only", "city")
    main(["show", "last"])
    screen = capsys.readouterr().out
    assert screen.startswith("gate: not applied: --only left out letter, which it needs\n")
    assert screen.count("gate") == 1
    assert [*done["metrics"]] == ["city"]
    assert done["gate"] is None
    messages = [warning["message"] for warning in done["warnings"] if warning["kind"] == "only"]
    assert any("not judged: letter" in message for message in messages)


def test_only_with_every_label_changes_nothing(folder, capsys):
    _, done = run(capsys, "--only", "metrics")
    assert [*done["metrics"]] == ["city", "letter"]
    assert done["gate"]["passed"] is True
    assert [warning for warning in done["warnings"] if warning["kind"] == "only"] == []


def test_an_unknown_label_after_only_is_refused_with_the_nearest(folder, capsys):
    code, done = run(capsys, "--only", "citty")
    assert code == 2
    assert "did you mean 'city'?" in str(done["error"])


@pytest.mark.parametrize("name", ["out/run.html", "out/run.md", "out/run.csv"])
def test_out_writes_the_format_of_the_name(folder, capsys, name):
    code, done = run(capsys, "--out", name)
    assert code == 0
    assert (folder / name).stat().st_size
    assert done["sinks"] == {f"--out {name}": {"written": done["sinks"][f"--out {name}"]["written"], "lost": 0}}


def test_out_writes_the_document_as_json_and_replaces_only_documents(folder, capsys):
    _, done = run(capsys, "--out", "run.json")
    assert json.loads((folder / "run.json").read_text()) == done
    run(capsys, "--out", "run.json", "--limit", "1")
    assert json.loads((folder / "run.json").read_text())["subjects"] == 1
    (folder / "mine.json").write_text('{"mine": true}')
    code, refused = run(capsys, "--out", "new.json", "--out", "mine.json")
    assert code == 2
    assert "mine.json" in refused["error"]["message"]
    assert (folder / "mine.json").read_text() == '{"mine": true}'
    assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]


def test_out_never_writes_over_the_data(folder, capsys):
    before = "subject_kind,subject_id,output\nrow,a1,Ankara\n"
    (folder / "rows.csv").write_text(before)
    source = "source: {rows/csv: {path: rows.csv, fields: {id: subject_id}}}"
    (folder / "run.yaml").write_text(PIPELINE.replace("source: {rows/jsonl: {path: rows.jsonl}}", source))
    code, refused = run(capsys, "--out", "rows.csv")
    assert code == 2
    assert refused["error"]["message"].startswith("--out: sinks[0] would overwrite source: ")
    assert (folder / "rows.csv").read_text() == before


@pytest.mark.parametrize("name", ["mine.html", "mine.md", "mine.csv"])
def test_out_replaces_a_file_of_a_run_and_no_other_file(folder, capsys, name):
    mine = {"mine.html": "<!doctype html>\n<title>mine</title>", "mine.md": "# Notes\n", "mine.csv": "id,output\n1,a\n"}
    (folder / name).write_text(mine[name])
    code, refused = run(capsys, "--out", name)
    assert code == 2
    assert refused["error"]["message"].startswith(f"cannot write {name}: it has other content than such a file")
    assert (folder / name).read_text() == mine[name]
    assert not (folder / ".dicast").exists(), "the run was started"
    (folder / name).unlink()
    assert run(capsys, "--out", name)[0] == 0
    first = (folder / name).read_bytes()
    assert run(capsys, "--out", name, "--limit", "1")[0] == 0
    assert (folder / name).read_bytes() != first


def test_out_replaces_no_file_that_cannot_be_read(folder, capsys, monkeypatch):
    (folder / "mine.md").write_text("# Notes\n")
    read = files.open_file

    def refuse(path):
        if path.name == "mine.md":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(files, "open_file", refuse)
    code, refused = run(capsys, "--out", "mine.md")
    assert code == 2
    assert "cannot write mine.md: the file there cannot be read (Permission denied)" in refused["error"]["message"]
    assert (folder / "mine.md").read_text() == "# Notes\n"
    assert not (folder / ".dicast").exists(), "the run was started"


def test_out_protects_the_files_of_each_experiment(folder, capsys):
    (folder / "run.yaml").write_text(f"{PIPELINE}experiments: {{old: {{}}, new: {{}}}}\n")
    (folder / "of-new.md").write_text("# Notes\n")
    code, refused = run(capsys, "--out", "of-${experiment}.md")
    assert code == 2
    assert refused["error"]["message"].startswith("cannot write of-new.md: ")
    assert not (folder / "of-old.md").exists()


def test_an_unknown_format_is_refused_with_the_known_ones(folder, capsys):
    code, refused = run(capsys, "--out", "run.docx")
    assert code == 2
    assert "FILE.html, .md, .csv, or .json" in refused["error"]["message"]


def test_a_resumed_run_needs_the_same_filter(folder, capsys):
    (folder / "run.yaml").write_text((folder / "run.yaml").read_text() + "early_stop: []\n")
    _, done = run(capsys, "--filter", "id~^a")
    code, refused = run(capsys, "--resume", done["run_id"], "--retry-failed")
    assert code == 2
    assert "filter" in refused["error"]["message"]
    code, _ = run(capsys, "--resume", done["run_id"], "--retry-failed", "--filter", "id~^a")
    assert code == 0


def test_check_names_a_missing_baseline_file_and_refuses_another_missing_baseline_of_the_gate(folder, capsys):
    gate = PIPELINE.replace("min_score: 0.1", "baseline: main.json, max_drop: 0.02")
    (folder / "new.yaml").write_text(gate)
    assert main(["check", "new.yaml"]) == 0
    assert "there is no file main.json yet, and dicast run needs it" in capsys.readouterr().out
    run(capsys)
    assert main(["check", "new.yaml"]) == 0, "the job of the main branch writes the file"
    assert "dicast baseline save NAME RUN --file main.json" in capsys.readouterr().out
    (folder / "new.yaml").write_text(gate.replace("main.json", "main"))
    assert main(["check", "new.yaml"]) == 2
    assert "no finished run or baseline 'main'" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["show"], ["show", "--browse"], ["view"], ["compare", "--allow-incomparable"]])
def test_a_command_about_one_run_refuses_a_suite_with_its_experiments(folder, capsys, command):
    (folder / "run.yaml").write_text(PIPELINE + "experiments: {first: {}, second: {}}\n")
    run(capsys)
    capsys.readouterr()
    name, *options = command
    assert main([name, "selected", *options, *(["last"] if name == "compare" else [])]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "'selected' is a suite, and one run is needed here" in error
    assert "selected/first, selected/second; dicast report selected writes" in error


@pytest.mark.parametrize("line", ["", ", pass_at: 0.25"])
def test_a_metric_that_only_leaves_passes_at_its_line_of_the_whole_run(folder, capsys, line):
    """A number in ``scoring.pass_at`` is about all metrics together, so it is no line of a single metric of several."""
    (folder / "rows.jsonl").write_text("".join(json.dumps(row | {"reference": "Ankara is"}) + "\n" for row in ROWS))
    metrics = f"[{{diff/match: {{as: near{line}}}}}, {{proxy/format: {{as: form}}}}]"
    source = "{rows/jsonl: {path: rows.jsonl}}"
    (folder / "run.yaml").write_text(f"source: {source}\nmetrics: {metrics}\nscoring: {{pass_at: 0.9}}\n")
    (code, whole), (only_code, only) = run(capsys), run(capsys, "--only", "near")
    assert code == only_code == 0
    near = whole["metrics"]["near"]
    assert near["passes"]["passed"] == 2
    assert only["metrics"]["near"]["passes"] == near["passes"]
    assert only["labels"]["metrics"]["passes"] == near["passes"]
