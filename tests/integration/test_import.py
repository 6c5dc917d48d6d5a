"""``dicast import``: the report of recorded files, and the pipelines that judge them."""

from __future__ import annotations

import json
import os
import pty
from contextlib import redirect_stderr
from pathlib import Path

import pytest
from click.testing import CliRunner

from dicast._import.command import import_files
from dicast._kernel.cli import main

KEYS = ["path", "format", "version", "sessions", "turns", "messages", "calls", "results", "failed_results", "unmatched",
        "unmatched_calls", "rows", "models",
        "recorded_scores", "marked", "unknown", "failed"]  # fmt: skip
TRACES = Path(os.environ.get("DICAST_OUTSIDE_DATA", Path(__file__).parents[3] / "shared" / "data")) / "traces"
INSPECT_LOG = Path(__file__).parents[2] / "examples" / "inspect" / "sums.eval"
KEY = "AKIA" + "IOSFODNN7EXAMPLE"


def chat(question: str = "q", id_: str = "a", **fields: object) -> str:
    call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": question},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
        {"role": "assistant", "content": "answer"},
    ]
    return json.dumps({"id": id_, "messages": messages, **fields}) + "\n"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder that is the current directory, with a folder of recorded files."""
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "data"
    (data / "deep").mkdir(parents=True)
    (data / "one.jsonl").write_text(chat() + chat("more", "b"))
    (data / "deep" / "two.json").write_text("[" + chat(id_="a").strip() + "]")
    (data / "events.jsonl").write_text(
        '{"type": "turn.completed", "session_id": "s", "turn_id": "t", "payload": {"stop_reason": "end_turn", "tool_call_count": 0}}\n'
    )
    (data / "notes.txt").write_text("no records here\n")
    (data / "empty.jsonl").write_text("")
    return tmp_path


def run_import(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(import_files, words, catch_exceptions=True)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        assert code == 2, result.exception
        return str(result.exception)
    assert result.exit_code == code, result.output
    return result.output


def dicast(*words: str) -> int:
    return main(list(words))


def test_a_folder_of_mixed_files_becomes_one_pipeline_that_runs_without_a_model(folder, capfd):
    document = json.loads(run_import("data", "--json"))
    assert document.keys() == {"files", "pipeline"}
    files = {Path(file["path"]).name: file for file in document["files"]}
    assert all([*file] == KEYS for file in files.values() if file["format"])
    assert files["empty.jsonl"].pop("reason") == "the file is empty"
    assert [*files["empty.jsonl"]] == KEYS
    assert {name: file["format"] for name, file in files.items()} == {
        "one.jsonl": "traces/messages", "two.json": "traces/messages", "events.jsonl": "traces/events", "notes.txt": None, "empty.jsonl": None,
    }  # fmt: skip
    one = files["one.jsonl"]
    assert [one[key] for key in KEYS[3:12]] == [2, 2, 8, 2, 2, 0, 0, 0, 0]
    assert document["pipeline"] == "pipeline.yaml"
    assert dicast("check", "pipeline.yaml") == 0
    capfd.readouterr()
    assert dicast("run", "pipeline.yaml", "--json") == 0
    run = json.loads(capfd.readouterr().out)
    assert (run["subjects"], run["failed"], run["cost"]["usd"]) == (4, 0, "0")


def test_the_report_lists_known_files_and_names_the_others(folder):
    report = " ".join(run_import("data", "--dry-run").split())
    assert "5 files: 3 of known formats, 2 left out" in report
    assert "notes.txt: no known format; nearest is JSON lines; line 1, column 1 is not JSON" in report
    assert "empty.jsonl: the file is empty" in report
    assert not (folder / "pipeline.yaml").exists()


def test_sessions_of_several_sources_have_unique_ids(folder, capfd):
    run_import("data/one.jsonl", "data/deep/two.json")
    assert dicast("run", "pipeline.yaml", "--json") == 0
    run = json.loads(capfd.readouterr().out)
    assert (run["subjects"], run["read"]["records"]) == (3, 3)
    assert dicast("verdicts", "--json") == 0
    ids = {verdict["subject_id"] for verdict in json.loads(capfd.readouterr().out)["verdicts"]}
    assert ids == {"a/1", "b/1", "a#2/1"}


def test_an_existing_pipeline_is_kept(folder):
    (folder / "pipeline.yaml").write_text("mine")
    assert "pipeline.yaml exists already" in run_import("data", code=2)
    assert (folder / "pipeline.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"mesages": [{"role": "user"}]}\n', "nearest is traces/messages; x.jsonl:1: the key 'mesages' is unknown, did you mean 'messages'?"),
        ('{"a": 1}\n', "nearest is rows/jsonl; x.jsonl:1: no key is that of a conversation"),
        ("some prose\n", "line 1, column 1 is not JSON"),
        ("[1, 2]\n", "no JSON object"),
        ("", "the file is empty"),
        (chat() + '{"messages": 3}\n', "line 2: a conversation needs 'messages'"),
    ],
)  # fmt: skip
def test_a_file_of_no_format_is_refused_with_the_nearest_format_and_the_first_place(folder, text, words):
    (folder / "x.jsonl").write_text(text)
    assert words in run_import("x.jsonl", code=2)
    assert not (folder / "pipeline.yaml").exists()


def test_a_broken_file_of_a_known_format_is_left_out_with_exit_code_3(folder):
    (folder / "data" / "broken.jsonl").write_text(chat() + '{"messages": 3}\n')
    assert "broken.jsonl: line 2" in run_import("data", code=3)
    assert "broken" not in (folder / "pipeline.yaml").read_text()
    assert dicast("check", "pipeline.yaml") == 0


def test_a_file_of_rows_becomes_a_pipeline_of_its_own(folder):
    (folder / "data" / "rows.csv").write_text("id,input,output\n1,q,a\n")
    report = run_import("data")
    assert "Wrote pipeline.yaml and pipeline-rows.yaml." in report
    lines = [line.split() for line in report.splitlines()]
    assert ["format", "files", "rows", "sessions", "turns", "calls", "results", "failed"] in lines
    assert ["rows/csv", "1", "1", "0", "0", "0", "0", "0"] in lines
    assert dicast("run", "pipeline-rows.yaml") == 0


def test_a_file_of_rows_without_a_column_of_outputs_has_the_command_that_names_it(folder):
    (folder / "shop list.csv").write_text("a,b\n1,2\n")
    message = run_import("shop list.csv", code=2)
    assert "If a column has outputs: dicast init 'shop list.csv' --fields output=COLUMN." in message


def test_a_file_in_another_encoding_is_read_with_the_option_only(folder):
    (folder / "latin.csv").write_bytes("id,input,output\n1,q,caf\u00e9\n2,q,\u00e9\n".encode("cp1252"))
    message = run_import("latin.csv", code=2)
    assert (
        "the file is not UTF-8 (2 lines, the first is line 2); cp1252 might fit: dicast import latin.csv --encoding cp1252"
        in message
    )
    run_import("latin.csv", "--encoding", "cp1252")
    assert dicast("run", "pipeline.yaml") == 0


def test_a_workbook_is_read_as_rows(folder):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["id", "input", "output"], [1, "q", "a"]):
        book.active.append(row)
    book.save(folder / "book.xlsx")
    assert json.loads(run_import("book.xlsx", "--json"))["files"][0]["format"] == "rows/xlsx"
    assert dicast("run", "pipeline.yaml") == 0


def test_secrets_are_counted_and_never_printed(folder):
    (folder / "data" / "one.jsonl").write_text(chat(f"my key is {KEY}"))
    report = run_import("data")
    assert "secrets and personal data: 1 aws-key" in report
    assert KEY not in report
    assert "scan" not in (folder / "pipeline.yaml").read_text()


def test_a_masked_import_masks_in_every_run(folder, capfd):
    (folder / "data" / "one.jsonl").write_text(chat(f"my key is {KEY}"))
    run_import("data/one.jsonl", "--scan", "mask")
    assert dicast("run", "pipeline.yaml") == 0
    assert dicast("ledger", "export") == 0
    exported = capfd.readouterr().out
    assert KEY not in exported
    assert "[masked: aws-key]" in exported


def test_a_format_by_name_is_used_and_a_wrong_name_is_refused(folder):
    assert "did you mean 'traces/messages'?" in run_import("data", "--as", "traces/mesages", code=2)
    document = json.loads(run_import("data/one.jsonl", "--as", "messages", "--json"))
    assert document["files"][0]["format"] == "traces/messages"


def test_a_missing_path_names_the_nearest_file(folder):
    message = run_import("data/ones.jsonl", "data/other", code=2)
    assert "data/ones.jsonl: no such file or folder, did you mean 'one.jsonl'?" in message
    assert "data/other: no such file or folder" in message


def test_links_and_repeated_paths_count_once(folder):
    (folder / "data" / "link.jsonl").symlink_to(folder / "data" / "one.jsonl")
    files = json.loads(run_import("data", "data/one.jsonl", "--json"))["files"]
    assert sum(file["sessions"] for file in files) == 4


def test_a_sample_is_written_with_its_strata_and_runs_with_weights(folder, capfd):
    (folder / "data" / "many.jsonl").write_text(
        "".join(chat(id_=f"m{number}", team="ab"[number % 5 == 0]) for number in range(20))
    )
    run_import("data/many.jsonl", "--sample", "8", "--by", "team")
    assert "traces/sample" in (folder / "pipeline.yaml").read_text()
    assert dicast("run", "pipeline.yaml", "--json") == 0
    run = json.loads(capfd.readouterr().out)
    assert run["read"]["sample"] == {"drawn": 8, "of": 20}
    assert run["score"]["weight"] == pytest.approx(20)
    assert run["score"]["effective_n"] < 8


@pytest.mark.parametrize("option", [[], ["--dry-run"]])
def test_a_sample_that_no_run_can_draw_is_refused_before_a_pipeline_is_written(folder, option):
    (folder / "data" / "many.jsonl").write_text("".join(chat(id_=f"m{n}", team=f"t{n}") for n in range(4)))
    message = run_import("data/many.jsonl", "--sample", "3", "--by", "team", *option, code=2)
    assert "--sample 3 --by team: by team makes more than 3 groups: 4; draw 4 sessions or more" in message
    assert not (folder / "pipeline.yaml").exists()
    run_import("data/many.jsonl", "--sample", "4", "--by", "team", "--out", "deep/p.yaml", *option)


def test_the_suggested_limit_forbids_a_tool_that_the_files_call(folder):
    run_import("data/one.jsonl")
    text = (folder / "pipeline.yaml").read_text()
    assert "forbidden: [search]" in text
    assert "The files call search." in text


def test_the_suggested_limits_gate_once_their_marks_are_removed(folder, capfd):
    pytest.importorskip("dicast_trajectory")
    run_import("data/one.jsonl")
    path = folder / "pipeline.yaml"
    above, comments, block = path.read_text().rpartition("The files call search.\n")
    path.write_text(above + comments + "".join(line.removeprefix("# ") for line in block.splitlines(keepends=True)))
    capfd.readouterr()
    assert dicast("run", "pipeline.yaml", "--json") == 1
    clauses = json.loads(capfd.readouterr().out)["gate"]["clauses"]
    assert {clause["on"] for clause in clauses} == {"heuristic/turn", "trajectory/limits"}


def test_the_pipeline_names_the_scores_of_other_tools_and_gates_on_them_by_name(folder, capfd):
    pytest.importorskip("dicast_inspect")
    run_import(str(INSPECT_LOG))
    path = folder / "pipeline.yaml"
    text = path.read_text()
    assert "# They enter the gate only by name, in a clause of their own: on: recorded/" in text
    name = text.partition(" of their own: on: ")[2].partition(".\n")[0]
    path.write_text(text.replace("gate:\n", f"gate:\n  - {{on: {name}, min_score: 0, min_coverage: 0}}\n"))
    capfd.readouterr()
    dicast("run", "pipeline.yaml", "--json")
    assert name in {clause["on"] for clause in json.loads(capfd.readouterr().out)["gate"]["clauses"]}


def test_sessions_without_calls_get_no_suggestion_of_a_forbidden_tool(folder):
    (folder / "data" / "plain.jsonl").write_text(
        '{"id": "p", "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}\n'
    )
    run_import("data/plain.jsonl")
    text = (folder / "pipeline.yaml").read_text()
    assert "max_repeats" in text
    assert "forbidden" not in text


def test_calls_and_results_without_a_partner_are_counted(folder):
    call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "assistant", "content": "a"},
        {"role": "tool", "tool_call_id": "c9", "content": "found"},
        {"role": "assistant", "content": "b"},
    ]
    (folder / "data" / "odd.jsonl").write_text(json.dumps({"id": "odd", "messages": messages}) + "\n")
    (file,) = json.loads(run_import("data/odd.jsonl", "--json", "--dry-run"))["files"]
    assert (file["unmatched"], file["unmatched_calls"]) == (1, 1)
    report = run_import("data/odd.jsonl", "--dry-run")
    assert "tool calls without a result: 1\n" in report
    assert "tool results without a call: 1\n" in report


@pytest.mark.parametrize(
    ("extra", "record"),
    [
        ("inspect", {"version": 2, "status": "success", "eval": {}, "samples": []}),
        ("exports", {"doc_id": 1, "resps": [], "doc": {}}),
        ("otel", {"resourceSpans": []}),
    ],
)
def test_a_file_whose_source_is_not_installed_has_the_command_that_installs_it(folder, monkeypatch, extra, record):
    monkeypatch.setattr("dicast._import.command.detecting_sources", list)
    (folder / "x.json").write_text(json.dumps(record))
    message = run_import("x.json", code=2)
    assert "no installed source reads; install its source: " in message
    assert f"dicast[{extra}]" in message


def test_one_command_installs_all_missing_sources(folder, monkeypatch):
    monkeypatch.setattr("dicast._import.command.detecting_sources", list)
    (folder / "data" / "x.json").write_text(json.dumps({"resourceSpans": []}))
    (folder / "data" / "y.jsonl").write_text(json.dumps({"doc_id": 1, "resps": [], "doc": {}}) + "\n")
    report = run_import("data", "--scan", "mask")
    assert report.count("dicast[") == 1
    lines = report.partition("To read 2 more files, install the missing sources and import again:\n")[2].splitlines()
    assert "dicast[otel,exports]" in lines[0]
    assert lines[1:] == ["  dicast import data --out pipeline-2.yaml --scan mask"]


def test_the_printed_command_imports_again_next_to_the_first_pipeline(folder, monkeypatch):
    with monkeypatch.context() as context:
        context.setattr("dicast._import.command.detecting_sources", list)
        (folder / "data" / "x.json").write_text(json.dumps({"resourceSpans": []}))
        again = run_import("data").splitlines()[-1]
    assert again == "  dicast import data --out pipeline-2.yaml"
    run_import(*again.split()[2:])
    assert {path.name for path in folder.glob("*.yaml")} >= {"pipeline.yaml", "pipeline-2.yaml"}


def test_a_wrong_format_is_answered_by_the_format_that_the_file_has(folder):
    assert "data/one.jsonl looks like conversations: --as traces/messages" in run_import(
        "data/one.jsonl", "--as", "traces/mesages", code=2
    )
    message = run_import("data/one.jsonl", "--as", "transcripts/codex", code=2)
    assert "it does not look like transcripts/codex; it looks like conversations: --as traces/messages" in message
    line = {"type": "user", "uuid": "1", "sessionId": "s", "message": {"role": "user", "content": "Go"}}
    (folder / "claude.jsonl").write_text(json.dumps(line) + "\n")
    for wrong in ("transcripts/codex", "claude"):
        assert "--as transcripts/claude_code" in run_import("claude.jsonl", "--as", wrong, code=2)


def test_a_file_that_is_no_file_of_these_rows_is_not_read_as_another_format(folder):
    message = run_import("data/one.jsonl", "--as", "rows/jsonl", code=2)
    assert "it does not look like rows/jsonl; it looks like conversations: --as traces/messages" in message
    (folder / "rows.csv").write_text("input,output\na,b\n")
    assert "it looks like rows: --as rows/csv" in run_import("rows.csv", "--as", "rows/jsonl", code=2)


def test_full_lists_have_a_different_name_for_each_file(folder):
    for name in ("a/session.jsonl", "b/session.jsonl", f"{'x' * 30}1{'y' * 30}.jsonl", f"{'x' * 30}2{'y' * 30}.jsonl"):
        path = folder / "data" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(chat(id_=name))
    names = [
        line.split()[0] for line in run_import("data", "--full", "--dry-run").splitlines() if line.startswith("  ")
    ]
    assert len(set(names)) == len(names)
    assert {"a/session.jsonl", "b/session.jsonl"} <= set(names)
    assert sum("1yy" in name or "2yy" in name for name in names) == 2
    assert all(len(name) <= 29 for name in names)


def test_the_next_steps_end_with_the_report_or_with_the_command_that_installs_it(folder, monkeypatch):
    assert run_import("data/one.jsonl").endswith("  dicast show last\n  dicast report last --out report.html\n")
    monkeypatch.setattr("dicast._import.command.commands", dict)
    assert "dicast[report]" in run_import("data/one.jsonl", "--out", "second.yaml").splitlines()[-1]


def test_a_group_without_a_sample_is_a_wrong_request(folder):
    assert "--by needs --sample: add it, or remove --by" in run_import("data", "--by", "model", code=2)


@pytest.mark.outside_data
@pytest.mark.skipif(not TRACES.is_dir(), reason="DICAST_OUTSIDE_DATA names the folder of outside data")
def test_every_file_of_other_tools_has_a_known_format_and_its_pipeline_is_correct(folder):
    document = json.loads(run_import(str(TRACES), "--json"))
    assert [file["path"] for file in document["files"] if file["format"] is None] == []
    assert sum(file["sessions"] for file in document["files"]) > 50
    assert dicast("check", "pipeline.yaml") == 0


def session(id_: str, *records: object) -> str:
    """Return the lines of a session of Claude Code with one turn."""
    base = {"sessionId": id_, "isSidechain": False, "version": "1.0.0", "timestamp": "2026-01-01T00:00:00Z"}
    user = {"type": "user", "uuid": f"{id_}u", "parentUuid": None, "message": {"role": "user", "content": "q"}, **base}
    blocks = [{"type": "text", "text": "a"}]
    reply = {
        "type": "assistant", "uuid": f"{id_}a", "parentUuid": f"{id_}u",
        "message": {"role": "assistant", "id": "m", "type": "message", "model": "m", "content": blocks}, **base,
    }  # fmt: skip
    return "".join(json.dumps(record) + "\n" for record in (user, reply, *records))


def test_a_folder_of_many_files_has_a_row_for_each_format_and_fits_a_screen(folder):
    for number in range(12):
        (folder / "data" / f"s{number:02}.jsonl").write_text(session(f"s{number}", *(f"odd {kind}" for kind in "ab")))
    lines = run_import("data").splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert lines[1].split() == ["format", "files", "sessions", "turns", "calls", "results", "failed"]
    assert {tuple(line.split()) for line in lines[2:6]} == {
        ("traces/messages", "2", "3", "3", "3", "3", "0"),
        ("transcripts/claude_code", "12", "12", "12", "0", "0", "0"),
        ("traces/events", "1", "1", "1", "0", "0", "0"),
        ("all", "15", "16", "16", "3", "3", "0"),
    }
    (marked,) = (line for line in lines if "line a string" in line)
    assert marked == "unknown shape: 24 line a string, first at data/s00.jsonl:3"
    assert "s03.jsonl" not in "\n".join(lines)
    assert "s03.jsonl" in run_import("data", "--full", "--dry-run")


def test_a_file_that_no_source_reads_is_noted_once_and_a_file_of_another_source_never(folder, capfd):
    (folder / "data" / "claude.jsonl").write_text(session("s"))
    source = (
        "{traces/joined: {sources: [transcripts/claude_code: {path: data}, traces/messages: {path: data/one.jsonl}]}}"
    )
    (folder / "p.yaml").write_text(f"name: p\nsource: {source}\njudges: [heuristic/turn]\n")
    dicast("run", "p.yaml", "--json")
    notes = json.loads(capfd.readouterr().out)["read"]["notes"]
    (note,) = (note for note in notes if "left out" in note)
    names = "empty.jsonl, events.jsonl, notes.txt, two.json"
    assert note == f"4 files left out, which no source of this pipeline reads: {names}"


def test_the_summary_has_few_lines_of_notes_and_the_document_has_all(folder, capfd):
    data = folder / "data" / "claude.jsonl"
    odd = [{"type": f"odd-{number}", "sessionId": "s"} for number in range(9)]
    data.write_text(session("s", *odd))
    (folder / "p.yaml").write_text(
        "name: p\nsource: {transcripts/claude_code: {path: data/claude.jsonl, unknown: mark}}\njudges: [heuristic/turn]\n"
    )
    dicast("run", "p.yaml", "--json")
    notes = json.loads(capfd.readouterr().out)["read"]["notes"]
    assert len(notes) == 9
    dicast("run", "p.yaml")
    lines = capfd.readouterr().out.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("read: "))
    end = next(place for place, line in enumerate(lines) if line.endswith("more notes (--json)"))
    assert end - start <= 4
    assert "4 more kinds" in " ".join(lines[start:end]).replace("  ", " ")


def write_claude_code(path: Path, *records: dict[str, object]) -> None:
    base = {"sessionId": path.stem, "uuid": path.stem, "version": "2.0.76"}
    path.write_text("".join(json.dumps(base | record) + "\n" for record in records))


def test_sessions_without_a_reply_are_counted_and_break_no_import_of_their_folder(folder, capfd):
    home = folder / "home"
    home.mkdir()
    user = {"type": "user", "message": {"role": "user", "content": "hello"}}
    reply = {"type": "assistant", "uuid": "u2", "message": {"role": "assistant", "content": "hi"}}
    write_claude_code(home / "whole.jsonl", user, reply)
    write_claude_code(home / "asked.jsonl", user)
    (home / "old.jsonl").write_text('{"type": "summary", "summary": "s", "leafUuid": "x"}\n')
    (home / "files.jsonl").write_text('{"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}\n')
    document = json.loads(run_import("home", "--json"))
    files = {Path(file["path"]).name: file for file in document["files"]}
    assert {file["format"] for file in files.values()} == {"transcripts/claude_code"}
    assert [files["asked.jsonl"][key] for key in ("sessions", "turns", "messages")] == [1, 0, 1]
    assert {name for name, file in files.items() if "no subjects" in file.get("reason", "")} == {
        "asked.jsonl", "old.jsonl", "files.jsonl",
    }  # fmt: skip
    assert files["old.jsonl"]["reason"] == "there are no subjects: the input has no messages, only 1 summary"
    assert "{path: home, unknown: mark}" in Path("pipeline.yaml").read_text()
    assert dicast("run", "pipeline.yaml") == 0
    assert json.loads(run_import("home/asked.jsonl", "--json", "--dry-run"))["files"][0]["messages"] == 1
    assert "no subjects in 1 session" in run_import("home/asked.jsonl", "--out", "other.yaml", code=2)


def test_a_conversation_without_a_reply_is_counted(folder):
    Path("asked.jsonl").write_text('{"messages": [{"role": "user", "content": "hello"}]}\n')
    (file,) = json.loads(run_import("asked.jsonl", "--json", "--dry-run"))["files"]
    assert [file[key] for key in ("sessions", "messages")] == [1, 1]


def test_a_session_in_utf_16_is_refused_with_its_encoding(folder):
    write_claude_code(Path("s.jsonl"), {"type": "user", "message": {"role": "user", "content": "hello"}})
    Path("s.jsonl").write_text(Path("s.jsonl").read_text(), encoding="utf-16")
    message = run_import("s.jsonl", "--dry-run", code=2)
    assert "reads UTF-8, the file is utf-16" in message


def test_a_cut_document_names_the_place_of_the_cut(folder):
    Path("cut.json").write_text('{\n "sessionId": "s",\n "messages": [\n')
    assert "JSON document; line 4, column 1 is not JSON: unexpected end" in run_import("cut.json", "--dry-run", code=2)


def test_calls_and_results_of_a_session_are_counted_by_id(shop):
    def call(id_):
        return {"role": "assistant", "tool_calls": [{"id": id_, "type": "function", "function": {"name": "look", "arguments": "{}"}}]}  # fmt: skip

    def result(id_):
        return {"role": "tool", "tool_call_id": id_, "content": "seen"}

    messages = [{"role": "user", "content": "Look."}, call("c1"), result("c1"), call("c1"), result("c1"), call("c2")]
    messages += [result("c2"), {"role": "assistant", "content": "Done."}]
    text = "".join(json.dumps({"id": id_, "messages": messages}) + "\n" for id_ in ("a", "b"))
    shop.write("talks.jsonl", text)
    (file,) = shop.dicast("import", "talks.jsonl", "--dry-run", "--json").json["files"]
    assert (file["sessions"], file["calls"], file["results"]) == (2, 4, 4)


def test_a_folder_with_a_file_for_each_event_is_one_session(folder, capfd):
    words = [("user", "Hi"), ("agent", "Ho")] * 6
    events = [{"id": number, "source": source, "action": "message", "args": {"content": text}} for number, (source, text) in enumerate(words)]  # fmt: skip
    for name in ("first", "second"):
        conversation = folder / "home" / name
        for part in ("events", "event_cache"):
            (conversation / part).mkdir(parents=True)
        for event in events:
            (conversation / "events" / f"{event['id']}.json").write_text(json.dumps(event))
        (conversation / "event_cache" / "0-25.json").write_text(json.dumps(events))
    files = json.loads(run_import("home", "--json"))["files"]
    read = [(file["path"], file["sessions"], file["turns"]) for file in files if file["format"]]
    assert read == [(f"home/{name}/events", 1, 6) for name in ("first", "second")]
    assert [file["reason"] for file in files if not file["format"]] == ["it repeats events of the other files"] * 2
    assert "  first/events" in run_import("home", "--dry-run")
    assert dicast("run", "pipeline.yaml", "--json") == 0
    assert json.loads(capfd.readouterr().out)["subjects"] == 12
    named = json.loads(run_import("home/first", "home/first/events", "--dry-run", "--json"))["files"]
    assert [(file["path"], file["sessions"]) for file in named if file["format"]] == [("home/first/events", 1)]


def test_a_folder_that_cannot_be_read_is_named_and_the_others_are_read(folder, monkeypatch, capfd):
    session = {"type": "user", "message": {"role": "user", "content": "hello"}}
    reply = {"type": "assistant", "uuid": "u2", "message": {"role": "assistant", "content": "hi"}}
    (folder / "home" / "private").mkdir(parents=True)
    write_claude_code(folder / "home" / "a.jsonl", session, reply)
    scan = os.scandir

    def refusing(path):
        if Path(path).name == "private":
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)
    files = {file["path"]: file for file in json.loads(run_import("home", "--json"))["files"]}
    assert (files["home/a.jsonl"]["turns"], files["home/private"]["reason"]) == (1, "the folder cannot be read: Permission denied")  # fmt: skip
    assert dicast("run", "pipeline.yaml", "--json") == 0
    assert "private" in " ".join(json.loads(capfd.readouterr().out)["read"]["notes"])
    assert "the folder cannot be read" in run_import("home/private", "--dry-run", code=2)


def test_a_pipe_is_named_once_and_a_value_that_is_no_list_is_named(folder):
    os.mkfifo(folder / "data" / "pipe")
    (folder / "data" / "wrong.jsonl").write_text('{"messages": 3}\n')
    files = {Path(file["path"]).name: file for file in json.loads(run_import("data", "--json"))["files"]}
    assert files["pipe"]["reason"].startswith("this is a pipe")
    assert files["wrong.jsonl"]["reason"].endswith(
        "wrong.jsonl:1: the value of 'messages' is 3, not a list of messages"
    )


def test_long_names_of_files_are_cut_in_the_middle_where_they_are_alike(folder):
    (folder / "home").mkdir()
    for number in (1, 2):
        (folder / "home" / f"9f1c0000-0000-4000-8000-{number:012}.jsonl").write_text(chat(id_=str(number)))
    lines = run_import("home", "--dry-run").splitlines()
    names = [line.split()[0] for line in lines if line.startswith("  9f1c")]
    assert names == [f"9f1c0000-0000-…0000000{number}.jsonl" for number in (1, 2)]


def test_turns_that_the_user_took_back_are_in_the_numbers_and_counted_apart(folder):
    records = [
        {"type": "user", "uuid": "1", "parentUuid": None, "message": {"role": "user", "content": "Add"}},
        {"type": "assistant", "uuid": "2", "parentUuid": "1", "message": {"id": "m1", "content": [{"type": "text", "text": "Added"}]}},
        {"type": "user", "uuid": "3", "parentUuid": "2", "message": {"role": "user", "content": "Run"}},
        {"type": "assistant", "uuid": "4", "parentUuid": "3", "message": {"id": "m2", "content": [{"type": "tool_use", "id": "c1", "name": "run", "input": {}}]}},
        {"type": "user", "uuid": "5", "parentUuid": "4", "message": {"content": [{"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": True}]}},
        {"type": "user", "uuid": "6", "parentUuid": "2", "message": {"role": "user", "content": "Test"}},
        {"type": "assistant", "uuid": "7", "parentUuid": "6", "message": {"id": "m3", "content": [{"type": "text", "text": "Tested"}]}},
    ]  # fmt: skip
    path = folder / "data" / "session.jsonl"
    path.write_text("".join(json.dumps({**record, "sessionId": "s"}) + "\n" for record in records))
    (file,) = json.loads(run_import(str(path), "--dry-run", "--json"))["files"]
    numbers = {name: file[name] for name in ("sessions", "turns", "messages", "calls", "results", "failed_results")}
    assert numbers == {"sessions": 1, "turns": 3, "messages": 7, "calls": 1, "results": 1, "failed_results": 1}
    assert file["abandoned"] == {"turns": 1, "messages": 3, "calls": 1, "results": 1, "failed_results": 1}


def test_the_progress_on_a_terminal_is_one_line_that_is_cleared_and_has_no_escaped_codes(folder, monkeypatch, capfd):
    monkeypatch.setenv("TERM", "xterm-256color")
    for number in range(25):
        (folder / "data" / f"more{number}.jsonl").write_text(chat(id_=f"more{number}"))
    reader, writer = pty.openpty()
    with open(writer, "w") as terminal, redirect_stderr(terminal):
        dicast("import", "data", "--dry-run")
        print("END", end="", file=terminal, flush=True)
        output = ""
        while not output.endswith("END"):  # a terminal may deliver its text in several pieces
            output += os.read(reader, 65536).decode()
    output = output.removesuffix("END")
    os.close(reader)
    clear = "\r\x1b[K"
    total = len([*(folder / "data").iterdir()])
    lines = [f"reading files: {count} of {total}" for count in range(total)]
    assert output == "".join(f"{clear}{line}" for line in lines) + clear
    assert "\\u" not in capfd.readouterr().out
