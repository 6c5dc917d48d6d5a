"""``dicast init``: its guesses about data, its output, and its refusals."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import shlex
from importlib.util import find_spec

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dicast._kernel.cli import main
from dicast._kernel.contract.registry import Registry


@pytest.fixture
def init(tmp_path, monkeypatch, capsys):
    """Write a file of data, look at it: ``init(text, "answers.csv", …)`` returns the exit code, the document and the pipeline."""
    monkeypatch.chdir(tmp_path)

    def run(text, name, *options, tries=False):
        content = text if isinstance(text, bytes) else text.encode()
        (tmp_path / name).write_bytes(content)
        code = main(["init", name, *options, "--json", *(() if tries else ("--no-try",))])
        document = json.loads(capsys.readouterr().out)
        written = tmp_path / "pipeline.yaml"
        return code, document, yaml.safe_load(written.read_text()) if written.exists() else None

    return run


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def of_source(pipeline):
    ((name, options),) = pipeline["source"].items()
    return name, options


ANSWERS = "qid,Question,model_answer,Expected Answer,notes\n" + "".join(
    f"q{n},How many legs have {n} spiders?,{8 * n},{8 * n},-\n" for n in range(1, 7)
)


def test_columns_are_known_by_the_names_that_people_give_them(init):
    code, document, pipeline = init(ANSWERS, "spiders.csv")
    assert code == 0
    fields = {"id": "qid", "input": "Question", "output": "model_answer", "reference": "Expected Answer"}
    assert of_source(pipeline) == ("rows/csv", {"path": "spiders.csv", "fields": fields})
    assert {field: one["column"] for field, one in document["fields"].items()} == fields
    assert pipeline["name"] == "spiders"
    assert pipeline["metrics"] == ["diff/numeric"]
    assert pipeline["gate"] == {"min_pass_rate": 0.8, "min_coverage": 0.95}


def test_guesses_stand_in_comments_of_the_file(init, tmp_path):
    init(ANSWERS, "spiders.csv")
    text = (tmp_path / "pipeline.yaml").read_text()
    assert "# output: column 'model_answer' (guessed: its name)\n" in text
    assert "# in each row's context: 'notes'\n" in text


def test_failed_records_are_looked_at_like_others(init):
    broken = r'{"id": "1", "input": "q", "output": "half \ud83d", "reference": "x"}'
    code, document, pipeline = init(
        f"{broken}\n{lines({'id': '2', 'input': 'q', 'output': 'x', 'reference': 'x'})}", "rows.jsonl"
    )
    assert code == 0
    assert pipeline["metrics"]
    assert set(document["fields"]) == {"id", "input", "output", "reference"}


TALES = [
    ("a short tale of one goat", "The goat went home, and it slept there until noon."),
    ("tell me of two bees", "Both bees flew."),
]


def test_columns_without_known_names_are_known_by_their_contents(init):
    text = "k,theme,story\n" + "".join(f'{n},"{item}","{other}"\n' for n, (item, other) in enumerate(TALES))
    code, document, pipeline = init(text, "tales.csv")
    assert code == 0
    assert document["fields"]["input"] == {"column": "theme", "why": "the first of two texts"}
    assert document["fields"]["output"] == {"column": "story", "why": "the second of two texts"}
    assert of_source(pipeline)[1]["fields"] == {"input": "theme", "output": "story"}


def test_tests_of_code_are_no_output(init):
    rows = [
        {
            "task_id": f"T/{n}",
            "prompt": f"def f{n}(): ",
            "canonical_solution": f"return {n} * 2\n",
            "test": f"assert f{n}() == {n}",
        }
        for n in range(6)
    ]
    code, document, _ = init(lines(*rows), "code.jsonl")
    assert code == 0
    assert "output" not in document["fields"]
    assert document["fields"]["reference"]["column"] == "canonical_solution"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("output_1", "output_2"),
        ("response_a", "response_b"),
        ("Answer A", "Answer B"),
        ("output1", "output2"),
        ("chosen", "rejected"),
    ],
)
@pytest.mark.parametrize("asks", [False, True])
def test_of_two_outputs_a_label_is_no_reference(first, second, asks, init):
    rows = [
        {"id": str(n), "prompt": "Say it.", first: f"It is {n}.", second: "No way.", "label": 1 + n % 2}
        for n in range(6)
    ]
    code, document, pipeline = init(lines(*rows), "pairs.jsonl", *(["--model", "gpt-4o-mini"] if asks else []))
    assert code == 0
    assert {field: document["fields"][field]["column"] for field in ("output", "reference")} == {
        "output": first,
        "reference": second,
    }
    assert ({"llm/pairwise": {"model": "asked"}} in pipeline["metrics"]) is asks
    assert not any("check/icontains" in metric for metric in pipeline["metrics"])


def test_a_column_that_is_often_equal_to_the_output_is_the_reference(init):
    text = "prompt,output,kind\n" + "".join(f"text {n},{'ab'[n % 2]},{'ab'[n % 2]}\n" for n in range(8))
    _, document, _ = init(text, "labels.csv")
    assert document["fields"]["reference"]["column"] == "kind"


@pytest.mark.parametrize(
    ("rows", "metrics", "pass_at"),
    [
        ([{"output": "12", "expected": "12.0"}, {"output": "7", "expected": "8"}], ["diff/numeric"], None),
        ([{"output": "yes", "expected": "yes"}, {"output": "no", "expected": "yes"}], ["diff/match"], 1),
        ([{"output": {"a": 1}, "expected": {"a": 1}}], [{"proxy/format": {"require_json": True}}, "diff/json"], 1),
        ([{"output": "The capital is Ankara, I think.", "expected": "Ankara"}], [{"check/icontains": {"value": "{{ reference }}"}}], None),
        ([{"output": "Fine weather.", "assert": [{"check": "contains", "value": "Fine"}]}], ["check/assertions"], 1),
        ([{"output": '{"a": 1}'}], [{"proxy/format": {"require_json": True}}], 1),
    ],
)  # fmt: skip
def test_metrics_are_chosen_by_what_is_there(rows, metrics, pass_at, init):
    code, document, pipeline = init(lines(*rows), "rows.jsonl", tries=True)
    assert (code, document["untried"], document["tried"]["failed"]) == (0, None, 0)
    assert pipeline["metrics"] == metrics
    assert pipeline.get("scoring", {}).get("pass_at") == pass_at


def test_the_gate_fails_where_half_of_the_rows_are_wrong(init, capsys):
    init("question,answer,expected\n" + "".join(f"q {n},{n % 2},1\n" for n in range(10)), "half.csv")
    assert main(["run", "pipeline.yaml"]) == 1
    capsys.readouterr()


def test_transcripts_are_judged_turn_by_turn(init):
    talk = {
        "messages": [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Hello, how can I help?"}]
    }
    code, document, pipeline = init(gzip.compress(lines(talk, talk).encode()), "talks.jsonl.gz", tries=True)
    assert code == 0
    assert (document["kind"], pipeline["source"]) == (
        "turns",
        {"traces/messages": {"path": "talks.jsonl.gz", "unknown": "mark"}},
    )
    assert pipeline["judges"] == ["heuristic/turn"]
    assert pipeline["gate"]["on"] == "heuristic/turn"
    assert document["tried"]["scored"] == 2


def talk(answer="shipped", **keys):
    called = {"id": "1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    message = [("user", {"content": "Where is it?"}), ("assistant", {"content": None, "tool_calls": [called]})]
    message += [("tool", {"tool_call_id": "1", "content": answer}), ("assistant", {"content": "It was shipped."})]
    return {**keys, "messages": [{"role": role, **options} for role, options in message]}


@pytest.mark.parametrize(
    ("first", "second", "taken"),
    [
        ({"conversation_id": "c1"}, {"conversation_id": "c2"}, "conversation_id"),
        ({"id": "same", "thread_id": 1}, {"id": "same", "thread_id": 2}, "thread_id"),
        ({"id": "c1"}, {}, None),
        ({"user": "u1"}, {"user": "u2"}, None),
    ],
)
def test_a_conversation_is_named_by_a_key_that_all_have_and_no_two_share(init, first, second, taken):
    code, document, pipeline = init(lines(talk(**first), talk(**second)), "talks.jsonl", tries=True)
    assert (code, document["tried"]["scored"]) == (0, 2)
    assert of_source(pipeline)[1].get("id") == (taken and f"{{{{ {taken} }}}}")


@pytest.mark.parametrize(
    ("answer", "fails"), [("Error: no such order", True), ("error 404", True), ("An error came before.", False)]
)
def test_results_of_tools_that_begin_with_error_are_failures_of_the_tool(init, answer, fails):
    code, _, pipeline = init(lines(talk("found"), talk(answer)), "talks.jsonl")
    assert code == 0
    pattern = of_source(pipeline)[1].get("tool_error")
    assert (pattern is not None and re.search(pattern, answer) is not None) == fails
    assert pattern is None or re.search(pattern, "found") is None


def test_short_names_are_known_and_rows_without_ids_are_named_by_their_numbers(init, tmp_path, capsys):
    rows = [{"q": f"Why {n}?", "resp": str(n), "gt": str(n)} for n in range(3)]
    code, document, _ = init(json.dumps(rows), "short.json")
    assert (code, {field: one["column"] for field, one in document["fields"].items()}) == (
        0,
        {"input": "q", "output": "resp", "reference": "gt"},
    )
    assert "# id: none found; rows are named by their numbers\n" in (tmp_path / "pipeline.yaml").read_text()


def test_a_column_named_as_a_number_is_the_id_where_no_two_rows_have_the_same(init):
    rows = [("T-1", "7", "Which is it?", "This one."), ("T-2", "7", "Which is that?", "That one there.")]
    text = "Visit no,Ticket Nr.,question,answer\n" + "".join(f"{b},{a},{c},{d}\n" for a, b, c, d in rows)
    code, document, _ = init(text, "tickets.csv")
    assert (code, document["fields"]["id"]["column"]) == (0, "Ticket Nr.")


def test_trace_events_are_judged_turn_by_turn(init):
    event = {
        "type": "turn.completed",
        "session_id": "s",
        "turn_id": "t",
        "payload": {"stop_reason": "end_turn", "signals_extra": {"final_response_text": "Done."}},
    }
    code, _, pipeline = init(lines(event), "trace.jsonl")
    assert (code, list(pipeline["source"])) == (0, ["traces/events"])


def test_without_outputs_a_task_makes_them_where_a_model_is_named(init):
    text = "question,expected\nWhat is the capital of Turkey?,Ankara\nAnd of Peru?,Lima\n"
    code, document, pipeline = init(text, "asked.csv", "--model", "anthropic/claude-x", tries=True)
    assert code == 0
    assert pipeline["define"] == {"asked": {"litellm/chat": {"model": "anthropic/claude-x"}}}
    assert pipeline["task"] == {"prompt/chat": {"model": "asked", "user": "{{ input }}"}}
    assert pipeline["metrics"] == [{"check/icontains": {"value": "{{ reference }}"}}]
    assert document["tried"] is None
    assert document["untried"].startswith("it would ask a model, which may cost money")


def test_a_claude_model_is_asked_by_its_own_api(init, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-the-test")
    _, _, pipeline = init("question,expected\n2+2?,4\n", "asked.csv", "--model", "claude-haiku-4-5")
    assert pipeline["define"] == {"asked": {"anthropic/chat": {"model": "claude-haiku-4-5"}}}


def test_a_pipeline_that_is_not_tried_is_checked(init, monkeypatch):
    monkeypatch.setenv("DICAST_BLOCK", "prompt")
    code, document, _ = init("question,expected\nTurkey?,Ankara\n", "asked.csv", "--model", "a/b", tries=True)
    assert code == 0
    assert "; dicast check says: pipeline.yaml:" in document["untried"]
    assert "plugin 'prompt'" in document["untried"]


def test_without_outputs_and_a_model_the_task_is_an_example_in_a_comment(init, tmp_path):
    code, document, pipeline = init("question,expected\nTurkey?,Ankara\n", "asked.csv", tries=True)
    assert (code, document["tried"], "task" in pipeline) == (0, None, False)
    assert document["next"] == [
        "dicast init asked.csv --model NAME --out pipeline-2.yaml",
        "dicast check pipeline.yaml",
    ]
    assert "# task:\n#   prompt/chat:\n" in (tmp_path / "pipeline.yaml").read_text()
    assert main(["check", "pipeline.yaml"]) == 0


TICKETS = "ticket,complaint,kind,score\n" + "".join(
    f"T-{number},{text},{kind},{number % 4}\n"
    for number, (text, kind) in enumerate(
        [
            ("Chain skips under load", "gears"),
            ("Flat tire again", "wheels"),
            ("Gears slip", "gears"),
            ("Hub has play", "wheels"),
        ]
    )
)


def test_the_only_text_next_to_codes_is_the_input_of_a_task(init):
    code, document, pipeline = init(TICKETS, "tickets.csv")
    why = "the only text of several words, next to numbers, labels and codes"
    assert (code, document["fields"]["input"]) == (0, {"column": "complaint", "why": why})
    assert pipeline["source"]["rows/csv"]["fields"] == {"id": "ticket", "input": "complaint"}
    assert document["judged"] == "nothing yet: no column has outputs"


@pytest.mark.parametrize(
    ("text", "options", "fields"),
    [
        (TICKETS, ("--fields", "input=complaint", "--fields", "reference=kind", "--kind", "rows"), {"id": "ticket", "input": "complaint", "reference": "kind"}),
        (TICKETS.replace(",", ":"), ("--delimiter", ":", "--fields", "output="), {"id": "ticket", "input": "complaint"}),
        ("Flat tire\nChain slips\n", ("--no-header", "--fields", "input=column_1", "output="), {"input": "column_1"}),
        (TICKETS.replace("tire", "caf\u00e9 tire").encode("cp1252"), ("--encoding", "cp1252"), {"id": "ticket", "input": "complaint"}),
    ],
)  # fmt: skip
def test_the_next_command_repeats_the_options_and_works_as_printed(text, options, fields, init, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-test")
    (tmp_path / "pipeline-2.yaml").write_text("name: of the user\n")
    code, document, _ = init(text, "my tickets.csv", *options, tries=True)
    assert code == 0
    again = shlex.split(document["next"][0])
    assert (again[:2], again[-1]) == (["dicast", "init"], "pipeline-3.yaml")
    assert main(again[1:]) == 0
    written = yaml.safe_load((tmp_path / "pipeline-3.yaml").read_text())
    (options_of_source,) = written["source"].values()
    assert (options_of_source["fields"], "task" in written) == (fields, True)
    assert main(shlex.split(document["next"][1])[1:]) == 0


WORKSHOP = "ticket,complaint,kind,right_part,score,remark\n" + "".join(
    f"W-{number:03},My bike squeals on day {number},brakes,brake {'pads' if number % 2 else 'cable'},3,{'urgent now' * (number == 7)}\n"
    for number in range(1, 13)
)


@pytest.mark.parametrize("options", [(), ("--fields", "input=complaint", "--fields", "reference=right_part")])
def test_a_named_model_writes_the_outputs_if_no_column_is_named_as_the_output(options, init, tmp_path):
    code, document, pipeline = init(WORKSHOP, "workshop.csv", "--model", "wrench-1", *options)
    assert (code, list(pipeline["task"]["prompt/chat"])) == (0, ["model", "user"])
    assert pipeline["define"] == {"asked": {"openai/chat": {"model": "wrench-1"}}}
    assert (document["fields"]["id"]["column"], document["fields"]["input"]["column"]) == ("ticket", "complaint")
    line = "# output: none found, so the model writes it; column 'remark' is blank in 11 of 12 rows; to judge a column"
    assert f"{line} instead: --fields output=COLUMN\n" in (tmp_path / "pipeline.yaml").read_text()


def test_a_mostly_blank_column_is_no_output_unless_the_user_names_it(init):
    named = ("--fields", "input=complaint", "--fields", "reference=right_part")
    _, document, pipeline = init(WORKSHOP, "workshop.csv", *named)
    assert ("output" in document["fields"], document["judged"]) == (
        False,
        "the output must contain the text of column 'right_part'",
    )
    assert pipeline["source"]["rows/csv"]["fields"] == {"id": "ticket", "input": "complaint", "reference": "right_part"}
    blank = "question,answer\n" + "What is it?,\n" * 3 + "What now?,this\n"
    _, document, _ = init(blank, "blank.csv", "--out", "blank.yaml")
    assert "output" not in document["fields"]
    _, document, _ = init(blank, "blank.csv", "--out", "named.yaml", "--fields", "output=answer")
    assert document["fields"]["output"]["column"] == "answer"


def test_a_guessed_output_comes_with_the_option_for_no_output(init, tmp_path):
    rows = "".join(f"Why is it {n}?,It is so because of {n}\n" for n in range(3))
    init("question,Antwort\n" + rows, "a.csv")
    line = "# output: column 'Antwort' (guessed: the only text of several words next to 'question'); if no column is the output: --fields output="
    assert f"{line}\n" in (tmp_path / "pipeline.yaml").read_text()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("ticket,question\n7,a b\n8,c d\n", "column 'ticket' (guessed: its name, and its values are unique)"),
        ("Fall,question\nF-1,a b\nF-2,c d\n", "column 'Fall' (guessed: the first column, with unique codes)"),
        ("Fall,output,question\nF-1,x,a b\nF-2,y,c d\n", "column 'Fall' (guessed: the first other column, with unique codes)"),
        ("Fall,input,question\nF-1,x,a b\nF-2,y,c d\n", "column 'Fall' (guessed: the first other column, with unique codes)"),
        ("order,reference,question\n1,x,a b\n2,y,c d\n", "column 'order' (guessed: its name, and its values are unique)"),
        ("ticket,question\n7,a b\n7,c d\n", "none found; rows are named by their lines"),
        ("question,Fall\na b,F-1\na b,F-2\n", "none found; rows are named by their lines; to name them by a column: --fields id=Fall"),
        ("question,Fall\na b,F-1\na b,F-1\n", "none found; rows are named by their lines"),
    ],
)  # fmt: skip
def test_a_first_column_of_keys_is_the_id_and_another_unique_column_is_named(text, line, init, tmp_path):
    assert init(text, "a.csv", "--fields", "input=question", "output=")[0] == 0
    assert f"# id: {line}\n" in (tmp_path / "pipeline.yaml").read_text()


def test_flags_win_over_guesses(init):
    code, document, pipeline = init(
        ANSWERS, "spiders.csv", "--fields", "output=notes", "--fields", "reference=", "--out", "pipeline.yaml"
    )
    assert (code, document["fields"]["output"]) == (0, {"column": "notes", "why": "as --fields says"})
    assert "reference" not in of_source(pipeline)[1]["fields"]


def test_several_fields_may_follow_one_flag(init):
    _, document, _ = init(ANSWERS, "spiders.csv", "--fields", "output=notes", "reference=model_answer")
    assert [document["fields"][name]["column"] for name in ("output", "reference")] == ["notes", "model_answer"]


@pytest.mark.parametrize(
    ("text", "name", "options", "said"),
    [
        ("", "a.csv", (), "a.csv: there are no"),
        ("a,b\n", "a.csv", (), "a.csv: there are no"),
        ("a,b\n1,2\n3\n", "a.csv", (), "a.csv:3: the record has 1 value, the header has 2 columns: a, b"),
        (b"a,b\n1,\xff\n", "a.csv", (), "a.csv: the file is not UTF-8 (line 2); cp1252 might fit: dicast init a.csv --encoding cp1252"),
        ('{"a": 1}\n{"a": \n', "a.jsonl", (), "a.jsonl:2:"),
        ("a,b\n1,2\n", "a.csv", (), "the columns are a, b. If a column has outputs: --fields output=COLUMN. If a task shall write them: --fields input=COLUMN --model NAME"),
        ("a,b\n1,2\n", "a.csv", (), "Add reference=COLUMN for the column with the right answers."),
        ("a,b\n1,2\n", "a.csv", ("--fields", "outptu=a"), "did you mean 'output'?"),
        ("answr,b\n1,2\n", "a.csv", ("--fields", "output=answer"), "the data has no column 'answer'; it has answr, b, did you mean 'answr'?"),
        ("a,b\n1,2\n", "a.csv", ("--kind", "turns"), "conversations are JSON: one a line, or an array of them"),
        ("a,b\n1,2\n", "a.csv", ("b.csv",), "init takes one file, and got a.csv and b.csv"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_or_guessed_is_said(text, name, options, said, init):
    code, document, pipeline = init(text, name, *options)
    assert (code, pipeline) == (2, None)
    assert said in document["error"]["message"]


def test_no_output_is_guessed_where_another_column_may_have_it(init):
    code, document, pipeline = init("Frage,Antwort\nWie viele Beine?,Acht\nWelcher Planet?,Merkur\n", "fragen.csv")
    assert (code, pipeline) == (2, None)
    assert (
        "the columns are Frage, Antwort. Likely: Frage, Antwort. If a column has outputs: --fields output=Frage."
        in (document["error"]["message"])
    )
    code, document, _ = init("question,topic\nWhy is it?,physics\nWho was it?,history\n", "topics.csv")
    assert (code, document["judged"]) == (0, "nothing yet: no column has outputs")


@pytest.mark.parametrize(
    ("text", "flags", "options"),
    [
        ("question;answer;expected\nTürkei?;Ankara;Ankara\n".encode("cp1252"), ("--encoding", "cp1252"), {"encoding": "cp1252", "delimiter": ";"}),
        ("question,answer,expected\nTürkei?,Ankara,Ankara\n".encode("utf-16"), (), {"encoding": "utf-16"}),
        (b"question:answer:expected\na, b?:Ankara:Ankara\n", ("--delimiter", ":"), {"delimiter": ":"}),
        (b"Ankara,Ankara\nRome,Paris\n", ("--no-header", "--fields", "output=column_1"), {"header": False}),
    ],
)  # fmt: skip
def test_flags_say_how_a_file_is_read(text, flags, options, init):
    code, document, pipeline = init(text, "a.csv", *flags, tries=True)
    assert (code, document["untried"]) == (0, None)
    assert {key: value for key, value in of_source(pipeline)[1].items() if key not in ("path", "fields")} == options


@pytest.mark.parametrize(
    ("name", "flags", "message"),
    [
        ("a.csv", ("--encoding", "nope"), "a.csv: unknown encoding 'nope'; Python's names are taken, such as utf-8"),
        ("a.csv", ("--delimiter", "xx"), "a.csv: 'xx' is not a delimiter; write one character"),
        ("a.jsonl", ("--no-header",), "a.jsonl: unknown option 'header' of rows/jsonl"),
    ],
)
def test_a_flag_that_does_not_fit_is_an_error_about_the_file(name, flags, message, init):
    code, document, pipeline = init(ANSWERS if name == "a.csv" else lines(*ROWS), name, *flags)
    assert (code, pipeline) == (2, None)
    assert document["error"]["message"].startswith(message)


def test_one_conversation_in_a_json_file_is_a_transcript(init):
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    code, _, pipeline = init(json.dumps({"messages": messages}), "chat.json", tries=True)
    assert (code, list(pipeline["source"])) == (0, ["traces/messages"])


def test_a_column_that_some_rows_lack_is_not_guessed(init):
    _, document, _ = init(
        lines({"question": "Why?", "answer": "So."}, {"question": "Who?", "answer": "He.", "gold": "She."}), "a.jsonl"
    )
    assert {field: one["column"] for field, one in document["fields"].items()} == {
        "input": "question",
        "output": "answer",
    }


ROWS = [{"question": f"Twice {n}?", "answer": f"It is {2 * n}, I think.", "expected": str(2 * n)} for n in range(5)]


@pytest.mark.parametrize(
    ("name", "text", "source", "option"),
    [
        ("a.json", json.dumps(ROWS), "rows/json", {}),
        ("b.json", json.dumps({"meta": {"n": 5}, "data": ROWS}), "rows/json", {"at": "data"}),
        ("c.yaml", yaml.safe_dump(ROWS), "rows/yaml", {}),
        ("d.csv", "question;answer\nWhy is it?;Because it is, and so on.\n", "rows/csv", {"delimiter": ";"}),
        ("e.tsv", "question\tanswer\nWhy is it?\tBecause it is.\n", "rows/csv", {}),
        ("f", lines(*ROWS), "rows/jsonl", {}),
    ],
)  # fmt: skip
def test_a_file_is_read_by_the_source_that_fits_it(name, text, source, option, init):
    registry = Registry()
    if not any(component.name == "rows/json" for component in registry.load("rows")) and source != "rows/jsonl":
        pytest.skip("this dicast-rows reads JSON lines and CSV with commas")
    code, document, pipeline = init(text, name, tries=True)
    assert (code, document["untried"], list(pipeline["source"])) == (0, None, [source])
    assert {key: value for key, value in of_source(pipeline)[1].items() if key not in ("path", "fields")} == option


def test_a_missing_file_is_an_error(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["init", "nothing.csv"]) == 2
    assert "nothing.csv: no such file" in capsys.readouterr().err


def test_nothing_is_written_over(init, tmp_path, capsys):
    (tmp_path / "pipeline.yaml").write_text("mine: 1\n")
    code, document, pipeline = init(ANSWERS, "spiders.csv")
    assert (code, pipeline) == (2, {"mine": 1})
    assert document["error"]["message"] == "pipeline.yaml exists already; choose another name: --out FILE.yaml"
    assert main(["init", "spiders.csv", "--out", "sub/other.yaml", "--no-try"]) == 0
    assert of_source(yaml.safe_load((tmp_path / "sub" / "other.yaml").read_text()))[1]["path"] == "../spiders.csv"
    capsys.readouterr()


def test_without_data_there_is_an_example_that_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [".dicast", "answers.csv", "pipeline.yaml"]
    output = capsys.readouterr().out
    assert "Wrote answers.csv and pipeline.yaml.\n" in output
    assert output.endswith("Next:\n  dicast check pipeline.yaml\n  dicast run pipeline.yaml\n  dicast show last\n")
    assert main(["run", "pipeline.yaml"]) == 0
    assert main(["init", "--out", "second.yaml"]) == 2
    assert "answers.csv exists already" in capsys.readouterr().err
    assert not (tmp_path / "second.yaml").exists()


@pytest.fixture
def answered(tmp_path, monkeypatch):
    """Run ``init a.csv`` on a terminal with typed answers: ``answered("\\n-\\n")`` returns the text of the pipeline."""
    (tmp_path / "a.csv").write_text("question,answer,note\nwhy is it,because it is so,x\n")
    monkeypatch.chdir(tmp_path)

    def run(text):
        typed = io.StringIO(text)
        monkeypatch.setattr(typed, "isatty", lambda: True, raising=False)
        monkeypatch.setattr("sys.stdin", typed)
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        assert main(["init", "a.csv", "--no-try"]) == 0
        return (tmp_path / "pipeline.yaml").read_text()

    return run


def test_a_terminal_is_asked_with_the_guess_as_the_default(answered):
    text = answered("\n\nnote\n")
    fields = of_source(yaml.safe_load(text))[1]["fields"]
    assert fields == {"input": "question", "output": "answer", "reference": "note"}
    assert "# reference: column 'note' (as you answered)\n" in text


def test_a_terminal_is_asked_for_the_model_that_writes_missing_outputs(answered, capsys):
    pipeline = yaml.safe_load(answered("\n-\nnote\nwrench-1\n"))
    assert (list(pipeline["task"]), pipeline["define"]) == (
        ["prompt/chat"],
        {"asked": {"openai/chat": {"model": "wrench-1"}}},
    )
    printed = capsys.readouterr().out
    assert "Model that writes the outputs (such as gpt-5-mini; empty: none): " in printed
    assert printed.endswith(
        "Next:\n  dicast check pipeline.yaml\n  dicast run pipeline.yaml --head 3\n  dicast run pipeline.yaml\n  dicast show last\n"
    )


def test_a_terminal_is_asked_for_the_model_that_judges_and_needs_none(answered, capsys):
    assert "define" not in yaml.safe_load(answered("\n\n\n\n"))
    assert "Model that judges the outputs (such as gpt-5-mini; empty: none): " in capsys.readouterr().out


def test_an_id_that_occurs_twice_further_down_is_no_id(init):
    rows = "".join(f"{n},text {n},answer {n}\n" for n in range(1100)) + "5,again,again\n"
    code, document, _ = init("qid,question,answer\n" + rows, "many.csv")
    assert (code, document["fields"]["id"]["column"]) == (0, "{{ line }}")
    assert "occur twice: rows are named by their numbers" in document["fields"]["id"]["why"]


@pytest.mark.skipif(find_spec("dicast_prompt") is None, reason="needs prompt/chat")
def test_a_model_judges_where_there_is_nothing_to_compare_with(init):
    text = "question,answer\n" + "".join(f'"Why is it {n}?","It is so because of {n}."\n' for n in range(3))
    _, document, pipeline = init(text, "open.csv", "--model", "gpt-x", tries=True)
    assert pipeline["define"] == {"asked": {"openai/chat": {"model": "gpt-x"}}}
    assert list(pipeline["metrics"][1]) == ["llm/judge"]
    assert document["tried"] is None


NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\n\0", exclude_categories=["Cs"]), min_size=1, max_size=12
)
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=40)
KNOWN = st.sampled_from(
    [
        "question",
        "answer",
        "expected",
        "context",
        "qid",
        "output",
        "reference",
        "id",
        "session_id",
        "${HOME}",
        "a.b",
        "no",
    ]
)


@st.composite
def tables(draw):
    header = draw(st.lists(NAMES | KNOWN, min_size=1, max_size=5, unique=True))
    row = st.lists(VALUES, min_size=len(header), max_size=len(header))
    return [header, *draw(st.lists(row, min_size=1, max_size=4))]


@settings(max_examples=25)
@given(table=tables())
@example(table=[["\x1f{{"], ["0"]])
def test_whatever_it_writes_for_a_csv_file_is_a_pipeline(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("init")
    with (folder / "data.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(table)
    code = main(["init", str(folder / "data.csv"), "--out", str(folder / "made.yaml"), "--no-try"])
    assert code in (0, 2)
    assert code == 2 or main(["check", str(folder / "made.yaml")]) == 0


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (None, "model: none named, so no model judges or writes outputs; to add one: --model NAME"),
        (
            "gpt-5",
            "gpt-5 writes the outputs and judges, by openai/chat at https://api.openai.com/v1, with the key in OPENAI_API_KEY",
        ),
        (
            "claude-x",
            "by anthropic/chat at the provider's address, with the key in ANTHROPIC_API_KEY; another endpoint: base_url: URL",
        ),
    ],
)
def test_it_states_the_metrics_it_left_out_and_the_endpoint_of_the_model(tmp_path, monkeypatch, capsys, model, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("id,question\n1,Who?\n2,Where?\n")
    assert main(["init", "rows.csv", *([] if model is None else ["--model", model])]) == 0
    printed, file = capsys.readouterr().out, (tmp_path / "pipeline.yaml").read_text()
    for text in (printed, file.replace("\n# ", " ")):
        assert "reference: none found, so metrics that compare with it are left out" in text
        assert "--fields reference=COLUMN" in text
        assert words in text


def test_it_states_that_a_named_model_is_not_used(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("id,output,expected\n1,a,a\n2,b,b\n")
    assert main(["init", "rows.csv", "--model", "gpt-5"]) == 0
    printed = capsys.readouterr().out
    assert "model: gpt-5 is not used, because a metric without a model fits" in printed
    assert "reference: none found" not in printed
