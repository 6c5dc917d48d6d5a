from __future__ import annotations

import http.server
import json
import pickle
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dicast
from dicast import ConfigError, Failure, Score, Subject, TraceEvent
from dicast_proxy import ToolParamsSchema

BOOK = {
    "type": "object",
    "properties": {
        "seats": {"type": "integer", "minimum": 1},
        "date": {"type": "string", "format": "date"},
        "who": {"type": "array", "items": {"$ref": "#/$defs/person"}},
    },
    "required": ["seats"],
    "additionalProperties": False,
    "$defs": {"person": {"type": "object", "required": ["name"]}},
}
TOOLS = {"book": BOOK, "list_airports": {"type": "object", "maxProperties": 0}}


def judged(output, tools=TOOLS, **options) -> Score | Failure:
    return ToolParamsSchema(tools=tools, **options).score(Subject("row", "q1", output=output))


def book(**params):
    return {"tool": "book", "params": params}


def faults(tools) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        ToolParamsSchema(tools=tools)
    return [str(problem) for problem in caught.value.problems]


# Calls


def test_valid_params_score_1():
    score = judged(book(seats=2, who=[{"name": "Ada"}]))
    assert (score.value, score.details) == (1.0, "")
    assert score.signals == {"tool": "book", "tool_known": True, "params_valid": True}


def test_every_violation_is_named_with_its_pointer():
    score = judged(book(seats="two", who=[{"name": "Ada"}, {}, 3], **{"a/b~": 1}))
    assert score.value == 0.0
    assert {(violation_["pointer"], violation_["keyword"]) for violation_ in score.signals["violations"]} == {
        ("/seats", "type"),
        ("/who/1", "required"),
        ("/who/2", "type"),
        ("", "additionalProperties"),
    }
    assert score.signals["params_valid"] is False
    assert 'params/seats: "two" is not of type "integer"' in score.details
    assert score.details.endswith("; and 1 more")


def test_an_unknown_tool_scores_0_and_names_the_nearest():
    score = judged({"tool": "bok", "params": {"seats": 1}})
    assert (score.value, score.details) == (0.0, "unknown tool 'bok', did you mean 'book'?")
    assert score.signals == {"tool": "bok", "tool_known": False, "params_valid": False}


@pytest.mark.parametrize("output", [{"tool": None}, {"tool": 7}, {"tool": ["book"], "params": {"seats": 1}}])
def test_a_call_of_no_tool_scores_0(output):
    assert (judged(output).value, judged(output).details) == (0.0, "the call names no tool")


def test_params_that_are_missing_are_null():
    assert judged({"tool": "book"}).details == "book: the call has no params"
    assert judged({"tool": "any"}, {"any": {"type": "null"}}).value == 1.0


def test_numbers_count_by_their_value():
    assert judged(book(seats=2.0)).value == 1.0
    assert judged(book(seats=True)).value == judged(book(seats="2")).value == 0.0
    assert judged(book(seats=2.0), {"book": BOOK | {"$schema": "http://json-schema.org/draft-04/schema#"}}).value == 0.0


def test_params_that_are_text_are_text():
    score = judged({"tool": "book", "params": '{"seats": 1}'})
    assert score.value == 0.0
    assert score.details.endswith("the params are text, not an object")


def test_the_arguments_of_openai_are_json_text():
    call = {"name": "book", "arguments": '{"seats": 1}'}
    for output in (
        call,
        {"id": "c1", "type": "function", "function": call},
        call | {"arguments": {"seats": 1}},
        json.dumps(call),
    ):
        assert judged(output).value == 1.0
    assert judged(call | {"arguments": '{"seats": 1'}).value == 0.0


def test_a_field_of_the_output_is_the_call():
    output = {"steps": [{"call": book(seats=1)}]}
    assert judged(output, field="steps.0.call").value == judged(json.dumps(output), field="/steps/0/call").value == 1.0
    assert judged(output, field="steps.1.call").details == "the field 'steps.1.call' of the output is missing"


@pytest.mark.parametrize(
    "output", [None, "", "I will book it.", 7, [], {"answer": 1}, b"\xff", object(), "[" * 100_000]
)
def test_what_is_no_call_scores_0(output):
    assert judged(output).value == 0.0
    assert judged(output).details in ("the output is missing", "the output is no tool call")


def nested(levels):
    nested_value: object = 1
    for _ in range(levels):
        nested_value = {"a": nested_value}
    return nested_value


@pytest.mark.parametrize(
    "params", [nested(300), nested(100_000), {"a": b"\xff"}, {"a": "\ud800"}, {"\ud800": 1}, {1: 2}, {"a": {1}}]
)
def test_params_that_are_no_json_score_0(params):
    score = judged({"tool": "any", "params": params}, {"any": {"additionalProperties": {"$ref": "#"}}})
    assert score.value == 0.0
    assert score.details.startswith("any: the params are not JSON")


def test_a_tool_whose_name_cannot_be_written_is_named_as_far_as_it_can():
    score = judged({"tool": "b\ud800k", "params": {}})
    assert score.value == 0.0
    json.dumps(score.signals).encode()
    assert "b?k" in score.details


def test_a_hundred_megabytes_are_told_in_a_few_words():
    score = judged(book(seats="x" * 100_000_000, date=["y" * 1000] * 10_000))
    assert score.value == 0.0
    assert len(score.details) < 400
    assert len(json.dumps(score.signals)) < 2000


@pytest.mark.slow
def test_a_million_violations_are_cut():
    score = judged({"tool": "t", "params": [0] * 100_000}, {"t": {"items": {"type": "string"}}})
    assert score.value == 0.0
    assert len(score.signals["violations"]) == 20
    assert len(score.details) < 400


def test_a_pattern_that_explodes_is_a_failure_that_names_it():
    tools = {"t": {"properties": {"a": {"pattern": r"^(?:(a+)\1)+$"}}}}
    answer = judged({"tool": "t", "params": {"a": "a" * 5001}}, tools)
    assert isinstance(answer, Failure)
    assert answer.kind == "timeout"
    assert "params/a" in answer.message
    assert "/properties/a/pattern" in answer.message
    assert judged({"tool": "t", "params": {"a": "aa"}}, tools).value == 1.0
    linear = {"t": {"pattern": "^(a+)+$"}}
    assert judged({"tool": "t", "params": "a" * 5001 + "b"}, linear).value == 0.0


def test_formats_are_checked_on_request():
    assert judged(book(seats=1, date="tomorrow")).value == 1.0
    assert judged(book(seats=1, date="tomorrow"), formats=True).value == 0.0
    assert judged(book(seats=1, date="2026-01-31"), formats=True).value == 1.0


# Several calls


def test_of_several_calls_the_share_that_is_valid_counts_and_the_others_are_named():
    score = judged([book(seats=1), {"tool": "bok"}, book(), "text"])
    assert score.value == 0.25
    assert score.details == "3 of 4 calls are not valid; call 2: unknown tool 'bok', did you mean 'book'?"
    assert {key: score.signals[key] for key in ("calls", "tool_known", "params_valid")} == {
        "calls": 4,
        "tool_known": 2,
        "params_valid": 1,
    }
    assert [violation_["call"] for violation_ in score.signals["invalid"]] == [2, 3, 4]


def called(id, **payload):
    return TraceEvent("tool.called", {"tool_use_id": id, "tool_name": "book", **payload})


def test_a_turn_is_judged_by_all_its_calls():
    events = (called("u1", input={"seats": 1}), called("u2", input={}), TraceEvent("turn.completed", {}))
    score = ToolParamsSchema(tools=TOOLS).score(Subject("turn", "t", events=events))
    assert score.value == 0.5
    assert score.signals["invalid"][0]["call"] == "u2"
    quiet = ToolParamsSchema(tools=TOOLS).score(Subject("turn", "t", events=events[2:]))
    assert (quiet.value, quiet.details) == (1.0, "there are no tool calls")


def test_a_tool_cycle_is_the_call_in_its_input_whatever_the_tool_gave():
    result_text = json.dumps(book(seats=1))
    cycle = Subject("tool_cycle", "u1", {"tool_name": "book", "input": {}}, result_text)
    assert ToolParamsSchema(tools=TOOLS).score(cycle).value == 0.0
    assert ToolParamsSchema(tools=TOOLS).score(Subject("tool_cycle", "u1", None, book(seats=1))).value == 1.0


def test_an_input_of_which_a_trace_has_only_the_hash_is_a_failure():
    event = called("u1", input_hash="6c1f")
    cycle = Subject("tool_cycle", "u1", {"tool_name": "book", "input": None}, events=(event,))
    for subject in (cycle, Subject("turn", "t", events=(event,))):
        answer = ToolParamsSchema(tools=TOOLS).score(subject)
        assert isinstance(answer, Failure)
        assert "only a hash of the input of book" in answer.message


# Tools


def test_all_faults_of_all_schemas_are_told_at_once_by_pointer():
    tools = {
        "a": {"properties": {"x": {"type": "intger"}}, "required": 3},
        "b": {"properties": {"$ref": {"$ref": "#/$defs/no"}, "y~/": {"pattern": "("}}},
        "c": 7,
        "fine": BOOK,
        "d": {
            "allOf": [{"$ref": "https://example.com/x.json"}, {"$ref": "file:///etc/passwd"}, {"$ref": "other.json#/a"}]
        },
        "e": {"$schema": "http://json-schema.org/draft-7/schema#"},
        "f": nested(300),
        "g": {"default": b"\xff"},
    }
    problems_ = faults(tools)
    assert problems_[0].startswith("the schema of 'a' at /properties/x/type: \"intger\" is no type")
    assert problems_[0].endswith("did you mean 'integer'?")
    expected = [
        "'a' at /required: 3 is not of type",
        "'b' at /properties/y~0~1/pattern: \"(\" is not a",
        "'b' at /properties/$ref/$ref: '#/$defs/no' leads nowhere",
        "'c' is a mapping, true or false, not int",
        "'d' at /allOf/0/$ref: 'https://example.com/x.json' is outside of the schema, and other documents are never fetched",
        "'d' at /allOf/1/$ref: 'file:///etc/passwd' is outside",
        "'d' at /allOf/2/$ref: 'other.json#/a' is outside",
        "'e' at /$schema: 'http://json-schema.org/draft-7/schema#' is no draft of JSON Schema",
        "'f' is not JSON",
        "'g' is not JSON",
    ]
    assert len(problems_) == len(expected) + 1
    for problem, start in zip(problems_[1:], expected, strict=True):
        assert problem.startswith(f"the schema of {start}"), problem
    assert "did you mean 'http://json-schema.org/draft-07/schema'?" in problems_[8]


def test_what_looks_like_a_reference_in_data_is_none():
    tools = {"t": {"properties": {"$ref": {"enum": [{"$ref": "http://example.com"}]}, "enum": {"type": "string"}}}}
    assert judged({"tool": "t", "params": {"$ref": {"$ref": "http://example.com"}}}, tools).value == 1.0


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}},
        {"$ref": "#here", "$defs": {"a": {"$anchor": "here", "type": "object"}}},
        {"$id": "https://example.com/root", "$ref": "part", "$defs": {"a": {"$id": "part", "type": "object"}}},
        {
            "$id": "https://example.com/root",
            "$ref": "https://example.com/root#/$defs/a",
            "$defs": {"a": {"type": "object"}},
        },
        {"$ref": "#/$defs/a%20b~1c", "$defs": {"a b/c": {"type": "object"}}},
    ],
)
def test_references_within_the_schema_work(schema):
    assert judged({"tool": "t", "params": {}}, {"t": schema}).value == 1.0
    assert judged({"tool": "t", "params": []}, {"t": schema}).value == 0.0


def test_a_schema_that_refers_to_itself_without_end_is_answered():
    for schema in (
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    ):
        assert judged({"tool": "t", "params": {}}, {"t": schema}).value == 1.0


def test_nothing_is_fetched():
    requests = []

    class Server(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            self.send_error(404)

    with http.server.HTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        schemas = (
            {"$ref": f"{address}/a.json"},
            {"$id": f"{address}/root", "$ref": "b.json"},
            {"$schema": f"{address}/meta"},
            {"$dynamicRef": f"{address}/c"},
        )
        messages = [faults({"t": schema})[0] for schema in schemas]
        server.shutdown()
        thread.join()
    assert requests == []
    assert "never fetched" in messages[0]
    assert "is no draft" in messages[2]


def test_a_mapping_a_list_of_function_tools_and_a_file_of_either_are_the_same(tmp_path):
    openai = [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in TOOLS.items()]
    anthropic = [{"name": name, "input_schema": schema} for name, schema in TOOLS.items()]
    mcp = {"tools": [{"name": name, "inputSchema": schema} for name, schema in TOOLS.items()]}
    text = json.dumps(openai)
    (tmp_path / "tools.json").write_text("\ufeff" + text, encoding="utf-8")
    (tmp_path / "tools.yaml").write_text(text, encoding="utf-8")
    for form in (openai, anthropic, mcp, tmp_path / "tools.json", tmp_path / "tools.yaml"):
        assert ToolParamsSchema(tools=form) == ToolParamsSchema(tools=TOOLS)
    assert judged({"tool": "t", "params": {"a": 1}}, [{"function": {"name": "t"}}]).value == 1.0


@pytest.mark.parametrize("tools", [{}, [], {"tools": []}])
def test_no_tools_are_refused(tools):
    assert "at least one" in faults(tools)[0]


def test_every_entry_that_is_no_function_tool_is_named():
    problems_ = faults([{"name": "a"}, 3, {"function": {"parameters": {}}}, {"name": "a"}])
    assert [problem[:3] for problem in problems_] == ["[1]", "[2]", "[3]"]
    assert "second tool of the name 'a'" in problems_[2]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("tools.json", '{"a": {,}}', "tools.json:1:8: not JSON"),
        ("tools.yaml", "a: {type: object\nb: [", "tools.yaml:2:2: not valid YAML"),
        ("tools.yaml", "a: true\nb: false\na: true", "tools.yaml:3:1: the key 'a' is given twice"),
        ("tools.yaml", "{[a]: true}", "tools.yaml:1:2: a key must be text"),
        ("tools.yaml", "- &a [x, x, x, x, x, x, x, x, x, x]\n" + "\n".join(f"- &{b} [{', '.join([f'*{a}'] * 10)}]" for a, b in zip("abcdef", "bcdefg", strict=True)), "aliases expanded"),
        ("tools.yaml", "[" * 5000, "nested deeper than 100 levels"),
        ("tools.yaml", "a: &a {properties: {b: *a}}", "the alias *a is inside the value it names"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_told_by_its_place(tmp_path, name, text, message):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert message in faults(tmp_path / name)[0]


def test_a_file_that_is_not_utf8_or_not_there_is_refused(tmp_path):
    for name in ("tools.yaml", "tools.json"):
        (tmp_path / name).write_bytes(b'{"a": "\xff"}')
        assert name in faults(tmp_path / name)[0]
    assert "cannot read none.json" in faults(tmp_path / "none.json")[0]


def test_yaml_is_read_by_the_core_schema(tmp_path):
    (tmp_path / "tools.yaml").write_text(
        "t: {enum: [no, 2026-01-31, 0o7, 1e3, ~, 'null', True, 010]}", encoding="utf-8"
    )
    metric = ToolParamsSchema(tools=tmp_path / "tools.yaml")
    assert metric.tools["t"] == {"enum": ["no", "2026-01-31", 7, 1000.0, None, "null", True, 10]}


def test_a_pipeline_finds_the_file_beside_itself_and_tells_its_faults_with_their_place(tmp_path):
    (tmp_path / "calls.jsonl").write_text(json.dumps({"id": "1", "output": book(seats=0)}), encoding="utf-8")
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS), encoding="utf-8")
    pipeline = "source: {rows/jsonl: {path: calls.jsonl}}\nmetrics:\n  - proxy/tool_params_schema: {tools: FILE}\nledger: {ledger/sqlite: {path: l.db}}\n"
    file = tmp_path / "pipeline.yaml"
    file.write_text(pipeline.replace("FILE", "tools.json"), encoding="utf-8")
    run = dicast.run(file)
    (verdict,) = run.verdicts
    assert (verdict.score, verdict.scores[0]["signals"]["violations"][0]["keyword"]) == (0.0, "minimum")
    file.write_text(pipeline.replace("FILE", "tool.json"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"pipeline.yaml:3:\d+: .*did you mean 'tools.json'"):
        dicast.run(file)
    file.write_text(pipeline.replace("FILE", "{t: {type: objct}}"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"pipeline.yaml:3:\d+: the schema of 't' at /type.*did you mean 'object'"):
        dicast.run(file)


def test_without_the_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(ConfigError, match=r"dicast\[schemas\]"):
        ToolParamsSchema(tools=TOOLS)


# In general

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda x: (
        st.lists(x, max_size=4)
        | st.dictionaries(st.text() | st.sampled_from(["tool", "params", "seats"]), x, max_size=4)
    ),
    max_leaves=10,
)


@given(JSON, JSON)
def test_any_output_gets_the_same_score_twice(output, params):
    for metric in (ToolParamsSchema(tools=TOOLS), ToolParamsSchema(tools=TOOLS, field="a.0")):
        for metric_ in (output, {"tool": "book", "params": params}):
            first, second = (metric.score(Subject("row", "q1", output=metric_)) for _ in range(2))
            assert first == second
            assert 0.0 <= first.value <= 1.0
            json.dumps(first.signals).encode()


@given(JSON)
def test_true_lets_everything_pass_and_false_nothing(params):
    assert judged({"tool": "t", "params": params}, {"t": True}).value == 1.0
    assert judged({"tool": "t", "params": params}, {"t": False}).value == 0.0


def test_the_metric_is_a_picklable_value_of_tier_proxy():
    metric = pickle.loads(pickle.dumps(ToolParamsSchema(tools=TOOLS)))
    assert metric == ToolParamsSchema(tools=TOOLS)
    assert metric.score(Subject("row", "1", output=book(seats=1))).value == 1.0
    assert metric.tier == "proxy"


CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
BROKEN = {"type": "objet"}


def with_tools(params, *, tool="weather", context=None, call_input=None, output=None):
    call = {"tool": tool, "params": params} if output is None else output
    return Subject("row", "1", call_input, call, context=context or {})


@pytest.mark.parametrize("where", ["context", "input"])
def test_without_tools_they_come_with_the_subject(where):
    metric = ToolParamsSchema()
    tools = {"tools": [{"type": "function", "function": {"name": "weather", "parameters": CITY}}]}
    fields = {"context": tools} if where == "context" else {"call_input": tools}
    assert metric.score(with_tools({"city": "Oslo"}, **fields)).value == 1
    result = metric.score(with_tools({"town": "Oslo"}, **fields))
    assert (result.value, result.signals["params_valid"]) == (0, False)
    assert (
        "unknown tool 'wether', did you mean 'weather'?"
        in metric.score(with_tools({}, tool="wether", **fields)).details
    )


def test_a_schema_of_the_data_that_does_not_compile_scores_half():
    context = {"tools": {"weather": BROKEN, "time": CITY}}
    result = ToolParamsSchema().score(with_tools({"city": "Oslo"}, context=context))
    assert (result.value, result.confidence) == (0.5, 1.0)
    assert "objet" in result.signals["schema_error"]
    assert ToolParamsSchema().score(with_tools({"city": "Oslo"}, tool="time", context=context)).value == 1
    calls = [{"tool": "weather", "params": {}}, {"tool": "time", "params": {"city": "Oslo"}}]
    listed = ToolParamsSchema().score(with_tools(None, output=calls, context=context))
    assert (listed.value, "objet" in listed.signals["schema_error"]) == (0.75, True)


def test_tools_that_are_nowhere_or_no_tools_are_missing_input():
    assert ToolParamsSchema().score(with_tools({})).kind == "missing_input"
    result = ToolParamsSchema().score(with_tools({}, context={"tools": "none"}))
    assert (result.kind, "cannot be read" in result.message) == ("missing_input", True)
    at = ToolParamsSchema(tools_field="request.tools").score(
        with_tools({"city": "x"}, context={"request": {"tools": {"weather": CITY}}})
    )
    assert at.value == 1


def test_a_schema_in_the_file_that_does_not_compile_refuses_the_file():
    with pytest.raises(ConfigError, match="objet"):
        ToolParamsSchema({"weather": BROKEN})
