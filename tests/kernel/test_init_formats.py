"""``dicast init`` on files of other tools, on conversations of every dialect, on objects, ids and encodings."""

from __future__ import annotations

import gzip
import io
import json
import os
import zipfile
from pathlib import Path

import pytest
import yaml

from dicast._kernel.cli import main

OUTSIDE = Path(os.environ.get("DICAST_OUTSIDE_DATA", "data"))


@pytest.fixture
def init(tmp_path, monkeypatch, capsys):
    """Write a file of data, look at it: ``init(content, "answers.csv", …)`` returns the exit code, the document and the source."""
    monkeypatch.chdir(tmp_path)

    def run(content, name, *options, tries=False):
        if not isinstance(content, bytes):
            content = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        (tmp_path / name).write_bytes(content)
        code = main(["init", name, *options, "--json", *(() if tries else ("--no-try",))])
        document = json.loads(capsys.readouterr().out)
        written = tmp_path / "pipeline.yaml"
        source = yaml.safe_load(written.read_text())["source"] if written.exists() else None
        return code, document, source

    return run


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def packed(*names):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, "{}")
    return buffer.getvalue()


INSPECT = {
    "version": 2,
    "samples": [{"id": 1, "input": "q", "target": "a", "output": {"choices": [{"message": {"content": "a"}}]}}],
}
OTHERS = [
    ("a.json", {"resourceLogs": []}, "OpenTelemetry logs or metrics (OTLP JSON)"),
    ("a.json", INSPECT, "an Inspect log"),
    ("a.zip", packed("a.csv"), "a zip archive; unpack it"),
    ("a.docx", packed("word/document.xml"), "save the file as .xlsx or .csv"),
    ("a.xls", b"\xd0\xcf\x11\xe0" + b"\0" * 99, "an old Excel workbook"),
    ("a.db", b"SQLite format 3\0" + b"\0" * 99, "a SQLite database"),
    ("a.bin", bytes(range(256)), "a binary file"),
    ("a.csv", "a,b\nc,d\n".encode("utf-16-le"), "--encoding utf-16-le"),
    ("a.pdf", b"%PDF-1.7\n\xff\xfe", "a PDF"),
    ("a.yaml", "prompts: [a]\nproviders: [b]\ntests: []\n", "dicast init --from promptfoo FILE"),
    ("a.yaml", "source: {rows/csv: {path: a.csv}}\nmetrics: [proxy/format]\n", "a pipeline of dicast; dicast run FILE"),
    ("a.jsonl", lines({"doc_id": 1, "doc": {}, "target": "a", "resps": [["a"]]}), "samples of lm-evaluation-harness"),
    ("a.jsonl", lines({"run_type": "llm", "inputs": {}, "outputs": {}}), "LangSmith runs"),
    (
        "a.jsonl",
        lines({"custom_id": "1", "method": "POST", "url": "/v1", "body": {}}),
        "requests of a batch, without answers",
    ),
]


@pytest.mark.parametrize(("name", "content", "says"), OTHERS, ids=[f"{name}-{says}" for name, _, says in OTHERS])
def test_a_file_of_another_tool_is_named_and_refused(init, name, content, says):
    code, document, source = init(content, name)
    assert (code, source) == (2, None)
    assert document["error"]["message"].startswith(f"{name}: this looks like ")
    assert says in document["error"]["message"]
    assert "\n" not in document["error"]["message"]


@pytest.mark.outside_data
def test_real_files_of_other_tools_are_named_and_refused(tmp_path, monkeypatch, capsys):
    if not (OUTSIDE / "traces").is_dir():
        pytest.skip("DICAST_OUTSIDE_DATA does not name the folder that has traces")
    monkeypatch.chdir(tmp_path)
    files = [path for path in (OUTSIDE / "traces").rglob("*") if path.is_file()]
    taken = []
    for path in files:
        code = main(["init", str(path), "--no-try", "--out", f"{len(taken)}.yaml"])
        message = capsys.readouterr().err
        if code == 0:
            taken.append(path.name)
        else:
            assert (code, "this looks like " in message, message.count("\n")) == (2, True, 1), (path, message)
    assert len(files) > 50
    sessions = ("claude-code", "codex", "copilot", "gemini-cli", "atif", "swe-agent", "openhands", "adk")
    assert {path.name for path in files if path.parent.name in ("otlp", "openinference", *sessions)} <= set(taken)


def claude(type_, content):
    return {"type": type_, "sessionId": "s", "uuid": type_, "message": {"role": type_, "content": content}}


def codex(role, text):
    return {"type": "response_item", "payload": {"type": "message", "role": role, "content": text}}


SESSIONS = {
    "transcripts/claude_code": lines(claude("user", "Hi"), claude("assistant", "Ho")),
    "transcripts/codex": lines({"type": "session_meta", "payload": {"id": "s"}}, codex("user", "Hi"), codex("assistant", "Ho")),
    "transcripts/gemini_cli": {"sessionId": "s", "messages": [{"type": "user", "content": "Hi"}, {"type": "gemini", "content": "Ho"}]},
    "transcripts/atif": {"schema_version": "ATIF-v1.6", "agent": {}, "steps": [{"source": "user", "message": "Hi"}, {"source": "agent", "message": "Ho"}]},
    "transcripts/openhands": [{"id": 1, "timestamp": "t", "source": "user", "action": "message", "args": {"content": "Hi"}}, {"id": 2, "timestamp": "t", "source": "agent", "action": "message", "args": {"content": "Ho"}}],
    "transcripts/swe_agent": {"trajectory": [{"action": "ls", "observation": "x", "thought": "Ho"}], "history": [{"role": "user", "content": "Hi"}]},
    "transcripts/adk": {"eval_set_id": "e", "eval_cases": [{"eval_id": "s", "conversation": [{"user_content": {"parts": [{"text": "Hi"}]}, "final_response": {"parts": [{"text": "Ho"}]}}]}]},
}  # fmt: skip


@pytest.mark.parametrize("source", SESSIONS)
def test_recorded_sessions_of_other_tools_are_judged_turn_by_turn(init, source):
    code, document, written = init(SESSIONS[source], "session", tries=True)
    assert (code, document["kind"], document["tried"]["scored"]) == (0, "turns", 1)
    assert written == {source: {"path": "session"}}


@pytest.mark.parametrize(
    "row",
    [
        {"type": "reasoning", "input": "2 + 2", "output": "4"},
        {"id": 1, "source": "web", "action": "click", "input": "2 + 2", "output": "4"},
        {"type": "user", "input": "2 + 2", "output": "4", "session_id": "s"},
        {"query": "2 + 2", "output": "4", "reference": "4"},
    ],
)
def test_rows_with_columns_that_sessions_have_too_stay_rows(init, row):
    code, document, source = init(lines(row, row), "rows.jsonl")
    assert (code, document["kind"], list(source)) == (0, "rows", ["rows/jsonl"])


TURNS = [{"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "It was shipped."}]
DIALECTS = {
    "openai": {"messages": TURNS},
    "anthropic": {"system": "Be kind.", "messages": [TURNS[0], {"role": "assistant", "content": [{"type": "text", "text": "Here."}]}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "Where?"}]}, {"role": "model", "parts": [{"text": "Here."}]}]},
    "sharegpt": {"conversations": [{"from": "human", "value": "Where?"}, {"from": "gpt", "value": "Here."}]},
    "langchain": {"messages": [{"type": "human", "content": "Where?"}, {"type": "ai", "content": "Here."}]},
    "responses": {
        "object": "response", "input": [{"role": "user", "content": "Where?"}],
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Here."}]}],
    },
}  # fmt: skip


@pytest.mark.parametrize("layout", ["lines", "array", "document", "pretty"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_conversations_of_every_dialect_are_read_turn_by_turn(init, dialect, layout):
    first, second = ({"id": name, **DIALECTS[dialect]} for name in "ab")
    text = {
        "lines": lines(first, second), "array": json.dumps([first, second]), "document": json.dumps(first),
        "pretty": json.dumps(first, indent=1),
    }[layout]  # fmt: skip
    code, document, source = init(text, "talks.json", tries=True)
    assert (code, document["kind"]) == (0, "turns")
    assert source == {"traces/messages": {"path": "talks.json", "unknown": "mark", "id": "{{ id }}"}}
    assert document["tried"]["scored"] == (2 if layout in ("lines", "array") else 1)


def test_a_list_of_messages_is_one_conversation(init):
    code, _, source = init(TURNS, "talk.json")
    assert (code, source) == (0, {"traces/messages": {"path": "talk.json", "unknown": "mark"}})


def test_a_prompt_of_messages_with_an_answer_in_a_column_is_a_row(init):
    row = {"messages": TURNS[:1], "response": "It was shipped.", "expected": "shipped"}
    code, document, source = init(lines(row, row), "rows.jsonl")
    assert (code, document["kind"]) == (0, "rows")
    assert source["rows/jsonl"]["fields"]["output"] == "response"


@pytest.mark.parametrize(
    ("keys", "template"),
    [
        ([{"id": "a"}, {"id": "b"}], "{{ id }}"),
        ([{"id": "a", "trial": 1}, {"id": "a", "trial": 2}], "{{ id }}-{{ trial }}"),
        ([{"id": "a", "model": "m"}, {"id": "a", "model": "m"}], None),
    ],
)
def test_conversations_of_one_id_are_told_apart_by_a_second_key_or_their_number(init, tmp_path, keys, template):
    code, document, source = init(lines(*({**item, "messages": TURNS} for item in keys)), "talks.jsonl", tries=True)
    assert (code, document["tried"]["scored"]) == (0, 2)
    assert source["traces/messages"].get("id") == template
    text = (tmp_path / "pipeline.yaml").read_text()
    assert (
        template is not None
        or 'conversations are named by their numbers. To use keys as names: id: "{{ id }}-{{ KEY }}"' in text
    )


@pytest.mark.parametrize(
    ("rows", "template"),
    [
        ([{"id": "a", "model": "x"}, {"id": "a", "model": "y"}], "{{ id }}-{{ model }}"),
        ([{"id": "a", "note": "x"}, {"id": "a", "note": "y"}], "{{ id }}-{{ note }}"),
        ([{"id": "a", "note": "x"}, {"id": "a", "note": "x"}], "{{ line }}"),
        ([{"qid": "a", "model": "x"}, {"qid": "b", "model": "x"}], "qid"),
        ([{"case_id": "a", "model": "x"}, {"case_id": "a", "model": "y"}], "{{ case_id }}-{{ model }}"),
        ([{"case_id": "a", "model": "x"}, {"case_id": "a", "model": "x"}], None),
    ],
)
def test_rows_of_one_id_are_told_apart_by_a_second_column_or_their_line(init, rows, template):
    rows = [{**row, "question": "How many?", "answer": f"{n} of them", "expected": "8"} for n, row in enumerate(rows)]
    code, document, source = init(lines(*rows), "rows.jsonl", tries=True)
    assert (code, document["untried"], document["tried"]["scored"]) == (0, None, 2)
    assert source["rows/jsonl"]["fields"].get("id") == template


REPLY = {"choices": [{"message": {"role": "assistant", "content": "It is Lima."}, "stop_reason": "stop"}]}


@pytest.mark.parametrize(
    ("output", "path"),
    [
        (REPLY, "output.choices.0.message.content"),
        ({"answer": "It is Lima.", "confidence": 0.9}, "output.answer"),
        ({"content": [{"type": "text", "text": "It is Lima."}], "stop_reason": "stop"}, "output.content.0.text"),
    ],
)
def test_of_an_output_that_is_an_object_the_text_is_compared(init, output, path):
    rows = [{"id": str(n), "input": "Capital of Peru?", "output": output, "target": "stop"} for n in range(3)]
    code, document, source = init(lines(*rows), "rows.jsonl", tries=True)
    assert (code, source["rows/jsonl"]["fields"]["output"]) == (0, path)
    assert document["tried"]["score"]["mean"] == 0.0  # "stop" is in the object, and not in the answer


def test_an_object_without_a_known_place_is_refused_with_its_places(init):
    rows = [{"input": "q", "output": {"verdict": {"city": "Lima"}, "rank": 1}, "expected": "Lima"}] * 2
    code, document, source = init(lines(*rows), "rows.jsonl")
    assert (code, source) == (2, None)
    assert "column 'output' has objects" in document["error"]["message"]
    assert document["error"]["message"].endswith("--fields output=output.PATH; places: verdict.city, rank")
    code, _, source = init(lines(*rows), "rows.jsonl", "--fields", "output=output.verdict.city")
    assert (code, source["rows/jsonl"]["fields"]) == (0, {"output": "output.verdict.city", "reference": "expected"})


def test_replies_of_which_most_failed_are_never_judged_by_their_form(init):
    good = {"type": "succeeded", "message": {"role": "assistant", "content": [{"type": "text", "text": "Lima"}]}}
    rows = [{"custom_id": "1", "result": good}, *({"custom_id": n, "result": {"type": "expired"}} for n in "23")]
    code, document, source = init(lines(*rows), "rows.jsonl")
    assert (code, source) == (2, None)
    assert document["error"]["message"].endswith(
        "--fields output=result.PATH; places: type, message.role, message.content"
    )
    code, document, _ = init(lines(*rows), "rows.jsonl", "--fields", "output=result.message.content.0.text", tries=True)
    assert (code, document["tried"]["failures"]) == (0, {"source_error": 2})


def test_most_objects_decide_the_place(init):
    outputs = [{"text": "4"}, {"answer": "4"}, {"answer": "4"}, {"answer": "5", "text": "x"}]
    rows = [{"input": "2+2?", "output": output, "expected": "4"} for output in outputs]
    code, document, _ = init(lines(*rows), "rows.jsonl")
    assert code == 2  # the first row has no such place, which the check of the whole file finds
    assert "the row has no 'output.answer'" in document["error"]["message"]
    code, _, source = init(lines(*rows[1:]), "rows.jsonl")
    assert (code, source["rows/jsonl"]["fields"]["output"]) == (0, "output.answer")


def test_objects_are_compared_with_objects(init):
    rows = [{"input": "q", "output": {"label": "a"}, "expected": {"label": "a"}}] * 2
    code, document, source = init(lines(*rows), "rows.jsonl", tries=True)
    assert (code, document["judged"]) == (0, "the output against column 'expected', as JSON")
    assert document["tried"]["score"]["mean"] == 1.0
    assert source["rows/jsonl"]["fields"] == {"reference": "expected"}


def test_results_of_a_batch_are_rows_with_the_text_of_the_replies(init):
    good = {"custom_id": "1", "response": {"status_code": 200, "body": REPLY}, "error": None}
    failed = {"custom_id": "2", "response": None, "error": {"message": "expired"}}
    code, document, source = init(lines(good, {**good, "custom_id": "3"}, failed), "batch.jsonl", tries=True)
    assert code == 0
    assert source == {"exports/openai_batch": {"path": "batch.jsonl"}}
    assert document["tried"]["failures"] == {"source_error": 1}


def test_a_column_of_objects_alone_is_no_answer(init):
    code, document, source = init(lines({"blob": {"a": 1}}, {"blob": {"a": 2}}), "rows.jsonl")
    assert (code, source) == (2, None)
    assert "no column looks like the outputs" in document["error"]["message"]


CAFE = "question,answer,expected\nWhere?,at the caf\N{LATIN SMALL LETTER E WITH ACUTE} there,caf\N{LATIN SMALL LETTER E WITH ACUTE}\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", CAFE),
        (
            "a.jsonl",
            '{"output": "caf\N{LATIN SMALL LETTER E WITH ACUTE}", "reference": "caf\N{LATIN SMALL LETTER E WITH ACUTE}"}\n'
            * 2,
        ),
        (
            "a.json",
            '[{"output": "caf\N{LATIN SMALL LETTER E WITH ACUTE}", "reference": "caf\N{LATIN SMALL LETTER E WITH ACUTE}"}]',
        ),
        (
            "a.yaml",
            "- output: caf\N{LATIN SMALL LETTER E WITH ACUTE}\n  reference: caf\N{LATIN SMALL LETTER E WITH ACUTE}\n",
        ),
    ],
)
def test_a_file_that_is_not_utf8_is_refused_in_one_line_with_the_command_that_reads_it(init, name, text):
    code, document, source = init(text.encode("cp1252"), name)
    assert (code, source) == (2, None)
    message = document["error"]["message"]
    assert message.endswith(f"cp1252 might fit: dicast init {name} --encoding cp1252")
    assert "\n" not in message
    code, document, source = init(text.encode("cp1252"), name, "--encoding", "cp1252", tries=True)
    assert (code, document["tried"]["score"]["mean"]) == (0, 1.0)
    assert next(iter(source.values()))["encoding"] == "cp1252"


@pytest.mark.parametrize("layout", ["lines", "array"])
def test_conversations_are_read_in_another_encoding(init, layout):
    talks = [
        {"id": name, "messages": [TURNS[0], {"role": "assistant", "content": "caf\N{LATIN SMALL LETTER E WITH ACUTE}"}]}
        for name in "ab"
    ]
    text = (
        "".join(json.dumps(talk, ensure_ascii=False) + "\n" for talk in talks)
        if layout == "lines"
        else json.dumps(talks, ensure_ascii=False)
    )
    code, document, _ = init(text.encode("cp1252"), "talks.json")
    assert (code, document["error"]["message"].endswith("dicast init talks.json --encoding cp1252")) == (2, True)
    code, document, source = init(text.encode("cp1252"), "talks.json", "--encoding", "cp1252", tries=True)
    assert (code, document["tried"]["scored"], source["traces/messages"]["encoding"]) == (0, 2, "cp1252")


@pytest.mark.parametrize(("answers", "code"), [("y\n\n\n\n", 0), ("n\n", 2)])
def test_a_terminal_is_asked_once_about_the_encoding(tmp_path, monkeypatch, capsys, answers, code):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_bytes(CAFE.encode("cp1252"))
    monkeypatch.setattr("sys.stdin", io.StringIO(answers))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert main(["init", "a.csv", "--no-try"]) == code
    printed = capsys.readouterr()
    question = "a.csv is not UTF-8 (line 2). Read it as cp1252? Line 2 is then: Where?,at the caf\N{LATIN SMALL LETTER E WITH ACUTE} there"
    assert question in printed.err
    assert (tmp_path / "pipeline.yaml").exists() == (code == 0)


def test_a_workbook_becomes_a_pipeline_over_its_sheet(init, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (
        ["Question", "Answer", "Gold"],
        ["Capital of Peru?", "Lima", "Lima"],
        ["Capital of Chile?", "Lima", "Santiago"],
    ):
        book.active.append(row)
    book.save(tmp_path / "made.xlsx")
    code, document, source = init((tmp_path / "made.xlsx").read_bytes(), "answers.xlsx", tries=True)
    fields = {"input": "Question", "output": "Answer", "reference": "Gold"}
    assert (code, source) == (0, {"rows/xlsx": {"path": "answers.xlsx", "fields": fields}})
    assert document["tried"]["score"]["mean"] == 0.5
    book.create_sheet("More").append(["Answer"])
    book.save(tmp_path / "made.xlsx")
    (tmp_path / "pipeline.yaml").unlink()
    code, document, _ = init((tmp_path / "made.xlsx").read_bytes(), "answers.xlsx")
    assert (code, "sheets Sheet, More have values; write sheet: NAME" in document["error"]["message"]) == (2, True)
    code, _, source = init((tmp_path / "made.xlsx").read_bytes(), "answers.xlsx", "--sheet", "Sheet")
    assert (code, source["rows/xlsx"]["sheet"]) == (0, "Sheet")
    (tmp_path / "pipeline.yaml").unlink()
    code, _, source = init(gzip.compress((tmp_path / "made.xlsx").read_bytes()), "answers.xlsx.gz", "--sheet", "Sheet")
    assert (code, [*source]) == (0, ["rows/xlsx"])


def test_a_column_of_what_a_bot_should_say_is_the_reference(init):
    text = "Customer asks,Bot says,Should say\n" + "How do I reset it?,Click on Forgot password.,Forgot password\n" * 3
    code, document, source = init(text, "desk.csv")
    assert (code, source["rows/csv"]["fields"]) == (
        0,
        {"input": "Customer asks", "output": "Bot says", "reference": "Should say"},
    )


@pytest.mark.parametrize("options", [(), ("--kind", "turns")])
def test_one_document_over_many_lines_is_not_an_error_a_line(init, options):
    code, document, _ = init(json.dumps({"a": {"b": [1] * 200}}, indent=1), "a.jsonl", *options)
    assert (code, document["error"]["message"].count("\n")) == (2, 0)


def test_an_array_is_read_whatever_the_file_is_called(init):
    rows = [{"question": "2+2?", "answer": "4", "expected": "4"}] * 2
    code, _, source = init(json.dumps(rows, indent=1), "rows.jsonl", tries=True)
    assert (code, [*source]) == (0, ["rows/json"])
