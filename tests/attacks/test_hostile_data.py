"""Data that somebody wrote to hang, to exhaust or to break whoever reads it."""

from __future__ import annotations

import gzip
import json
import os

import pytest

DEEP = 100_000
BOMB = gzip.compress(b"a" * 2**24, 9) * 10
"""160 MiB in a fraction of a MiB: one line, in as many members."""


@pytest.mark.parametrize(
    ("row", "said"),
    [
        pytest.param(b'{"id": "1", "output": %b}' % (b"[" * DEEP + b"]" * DEEP), "depth limit exceeded", id="arrays"),
        pytest.param(
            b'{"id": "1", "output": %b1%b}' % (b'{"a":' * DEEP, b"}" * DEEP), "depth limit exceeded", id="objects"
        ),
        pytest.param(b'{"id": "1", "c": %b}' % (b"[" * 500 + b"]" * 500), "more than 200 levels", id="some"),
        pytest.param(b'{"id": "1", "output": %b}' % (b"9" * 1_000_000), "infinity", id="a number of a million digits"),
        pytest.param(b'{"id": "1", "output": 1e999}', "infinity", id="an exponent"),
        pytest.param(b'{"id": "1", "output": NaN}', "not JSON", id="nan"),
    ],
)
def test_a_row_that_cannot_be_kept_is_refused_with_its_line(attack, row, said):
    attack.write("rows.jsonl", b'{"id": "0", "output": "a"}\n' + row + b"\n")
    ended = attack.dicast("run", attack.rows())
    assert ended.code == 2
    assert "rows.jsonl:2" in ended.errors
    assert said in ended.errors
    assert len(ended.errors) < 1_000


def test_a_row_with_half_of_a_character_fails_and_is_never_scored(attack):
    attack.write("rows.jsonl", b'{"id": "0", "output": "a"}\n{"id": "\\ud800", "output": "a"}\n')
    ended = attack.dicast("run", attack.rows(), "--json")
    done = json.loads(ended.output)
    assert (ended.code, done["scored"], done["failures"]) == (3, 1, {"source_error": 1})
    assert done["read"]["failed"] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    ["rows/csv: {path: bomb.gz}", "traces/events: {path: bomb.gz}"],
    ids=lambda text: text.partition(":")[0],
)
def test_a_gzip_bomb_is_read_in_pieces(attack, source):
    attack.write("bomb.gz", gzip.compress(b'{"id": "') + BOMB)
    section = "metrics: [proxy/format]" if source.startswith("rows") else "judges: [heuristic/turn]"
    attack.write("pipeline.yaml", f"source: {{{source}}}\n{section}\n")
    ended = attack.bounded("run", "pipeline.yaml", gib=0.5)
    assert (ended.code, ended.errors.count("\n")) == (2, 1)
    assert "bomb.gz:1: the line is longer than max_line_bytes" in ended.errors


@pytest.mark.parametrize("kind", ["fifo", "device", "folder", "circle"])
def test_what_is_no_file_is_not_waited_for(attack, kind):
    made = {
        "fifo": os.mkfifo,
        "device": lambda path: path.symlink_to("/dev/zero"),
        "folder": lambda path: path.mkdir(),
        "circle": lambda path: path.symlink_to(path),
    }
    made[kind](attack.folder / "rows.jsonl")
    ended = attack.bounded("check", attack.rows(), gib=4)
    assert ended.code == 2
    assert "'rows.jsonl' " in ended.errors
    assert "did you mean" not in ended.errors


@pytest.mark.parametrize("path", [".", "..", "./", "/"])
def test_a_folder_as_path_is_named_in_words(attack, path):
    ended = attack.dicast("check", attack.rows(path))
    assert ended.code == 2
    assert f"the file '{path}' is not a file" in ended.errors


SINKS = ["csv/rows", "github/summary", "jsonl/events", "jsonl/rows", "junit/xml", "outcome/labels", "parquet/rows"]
SINKS += ["report/badge", "report/html", "report/markdown"]


@pytest.mark.parametrize("sink", SINKS)
def test_a_sink_reads_no_file_of_the_system_before_it_writes(attack, sink):
    attack.write("rows.jsonl", '{"id": "1", "output": "a"}\n')
    options = "path: /proc/kmsg" + {
        "report/badge": ", on: proxy/format",
        "outcome/labels": ", metric: proxy/format",
    }.get(sink, "")
    ended = attack.bounded("run", attack.rows(more=f"sinks: [{sink}: {{{options}}}]\n"), gib=4)
    assert ended.code == 2
    assert "/proc/kmsg: it is not a regular file" in ended.errors


WRITERS = {
    "ledger": "ledger: {ledger/sqlite: {path: PLACE}}",
    "recording": "judges: [evaluator/judge: {objective: good, model: {replay/chat: {path: PLACE, record: MODEL}}}]",
    "cache": "judges: [evaluator/judge: {objective: good, model: {cache/chat: {path: PLACE, model: MODEL}}}]",
}


@pytest.mark.parametrize("place", ["/proc/kmsg", "fifo"])
@pytest.mark.parametrize("name", WRITERS)
def test_no_other_writer_waits_for_a_path_that_is_no_file(attack, name, place):
    attack.write("rows.jsonl", '{"id": "1", "output": "a"}\n')
    os.mkfifo(attack.folder / "fifo")
    model = '{openai/chat: {base_url: "http://127.0.0.1:9/v1", model: m, price: free}}'
    text = WRITERS[name].replace("PLACE", place).replace("MODEL", model)
    metrics = "metrics: [proxy/format]\n"
    attack.write("pipeline.yaml", f"source: {{rows/jsonl: {{path: rows.jsonl}}}}\n{metrics}{text}\n")
    ended = attack.bounded("run", "pipeline.yaml", gib=4)
    assert ended.code == 2, ended
    assert place in ended.errors


@pytest.mark.parametrize("sink", ["csv/rows", "jsonl/events"])
def test_a_sink_does_not_wait_for_a_reader_of_a_fifo(attack, sink):
    attack.write("rows.jsonl", '{"id": "1", "output": "a"}\n')
    os.mkfifo(attack.folder / "out")
    ended = attack.bounded("run", attack.rows(more=f"sinks: [{sink}: {{path: out}}]\n"), gib=4)
    assert ended.code == 2
    assert "it is not a regular file" in ended.errors


@pytest.mark.parametrize(
    "component",
    [
        'metrics: [proxy/keywords: {required: ["(a+)+$"], regex: true}]',
        'metrics: [proxy/format]\nextractors: [extract/regex: {pattern: "(a+)+$", into: x}]',
        'metrics: [proxy/format]\nextractors: [extract/label: {labels: {"(a+)+$": 1}, into: x}]',
    ],
    ids=["proxy/keywords", "extract/regex", "extract/label"],
)
def test_no_output_makes_a_pattern_backtrack_for_ever(attack, component):
    attack.write("rows.jsonl", json.dumps({"id": "1", "output": "a" * 100_000 + "!"}) + "\n")
    text = "source: {rows/jsonl: {path: rows.jsonl}}\nledger: {ledger/sqlite: {path: ledger.db}}\n"
    attack.write("pipeline.yaml", text + component)
    ended = attack.bounded("run", "pipeline.yaml", "--json", gib=4)
    assert ended.code in (0, 3), ended
    assert json.loads(ended.output)["failures"] == {}


def test_no_result_of_a_tool_makes_a_pattern_backtrack_for_ever(attack):
    call = {"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}
    said = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "a" * 100_000 + "!"},
        {"role": "assistant", "content": "done"},
    ]
    attack.write("chats.jsonl", json.dumps({"messages": said}) + "\n")
    attack.write(
        "pipeline.yaml",
        'source: {traces/messages: {path: chats.jsonl, tool_error: "(a+)+$"}}\njudges: [heuristic/turn]\n'
        "ledger: {ledger/sqlite: {path: ledger.db}}\n",
    )
    ended = attack.bounded("run", "pipeline.yaml", "--json", gib=4)
    assert ended.code in (0, 3), ended
    assert json.loads(ended.output)["scored"] == 1


@pytest.mark.parametrize(
    "cut", [b"\x1f\x8b\x08\x00" + bytes(range(200)), BOMB[: len(BOMB) // 32]], ids=["rubbish", "cut"]
)
def test_gzip_that_is_broken_is_refused(attack, cut):
    attack.write("rows.jsonl", cut)
    ended = attack.bounded("run", attack.rows(), gib=0.75)
    assert ended.code == 2
    assert "rows.jsonl:1" in ended.errors


@pytest.mark.parametrize("command", [["init"], ["init", "--from", "promptfoo"]], ids=" ".join)
def test_a_device_is_not_copied_until_the_disk_is_full(attack, command):
    ended = attack.bounded(*command, "/dev/zero", "--out", "new.yaml", gib=4)
    assert ended.code == 2
    assert "/dev/zero: this is a device" in ended.errors


def test_a_sink_whose_path_is_links_in_a_circle_refuses_the_run(attack):
    attack.write("rows.jsonl", '{"id": "1", "output": "a"}\n')
    (attack.folder / "out").symlink_to(attack.folder / "out")
    ended = attack.dicast("run", attack.rows(more="sinks: [csv/rows: {path: out}]\n"))
    assert ended.code == 2
    assert "out" in ended.errors


def _special(folder):
    (folder / "zero").symlink_to("/dev/zero")
    os.mkfifo(folder / "fifo")
    with (folder / "huge").open("wb") as file:
        file.truncate(2**42)


@pytest.mark.parametrize("name", ["zero", "fifo", "huge"])
@pytest.mark.parametrize(
    "command",
    [
        ["labels", "import", "@"],
        ["compare", "@", "rows.jsonl"],
        ["ledger", "verify", "--ledger", "@"],
        ["serve", "--once-json", "/runs", "--token-file", "@", "--ledger", "ledger.db"],
        ["init", "@", "--out", "new.yaml"],
        ["init", "--from", "promptfoo", "@", "--out", "new.yaml"],
        ["optimize", "@"],
        ["optimize", "run", "spec.toml", "--seed-file", "@"],
        ["optimize", "run", "spec.toml", "--dataset", "@"],
        ["evaluate", "--subject", "row", "--judge", "@", "--ledger", "ledger.db"],
        ["calibrate", "pipeline.yaml", "--gold", "@"],
        ["doctor", "pipeline.yaml", "--gold", "@"],
        ["check", "@"],
        ["cache", "@"],
    ],
    ids=lambda words: "-".join(words[:3]).replace("@", "file"),
)
def test_no_command_waits_for_or_fills_memory_with_what_is_no_file(attack, monkeypatch, command, name):
    monkeypatch.setattr("dicast.toolkit.files.WRITER_SECONDS", 0.1)
    _special(attack.folder)
    attack.write("rows.jsonl", '{"id": "1", "output": "a"}\n')
    attack.write("spec.toml", '[optimization]\nseed = "a"\n[evaluator]\ncommand = ["true"]\n')
    attack.rows()
    ended = attack.dicast(*(word.replace("@", name) for word in command))
    assert ended.code == 2, ended
    assert "defect" not in ended.errors


@pytest.mark.parametrize("command", [["report", "@"], ["show", "@"], ["baseline", "save", "name", "@"]], ids=" ".join)
def test_a_name_of_a_run_is_no_file(attack, command):
    _special(attack.folder)
    attack.write("rows.jsonl", '{"id": "1", "output": "a"}\n')
    assert attack.dicast("run", attack.rows()).code == 0
    for name in ("zero", "fifo", "huge"):
        ended = attack.dicast(*(word.replace("@", name) for word in command), "--ledger", "ledger.db")
        assert ended.code == 2, ended


def test_a_table_with_very_many_columns_is_looked_at_in_part(attack):
    names = ["input", *(f"c{number}" for number in range(5_000)), "output"]
    attack.write("wide.csv", ",".join(names) + "\n" + ",".join("a" for _ in names) + "\n")
    ended = attack.dicast("init", "wide.csv", "--out", "new.yaml", "--no-try")
    assert ended.code == 0
    assert "init looked at the first 1,000 of 5,002" in ended.output
    assert "output: column 'output' (guessed: its name)" in ended.output
