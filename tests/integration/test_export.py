"""``dicast export``: recorded runs as files of other tools."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from dicast._kernel.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
SCHEMA = Path(__file__).parent / "every_eval_ever" / "eval.schema.json"
"""The public schema of Every Eval Ever, under its license."""

FORMATS = ("atif", "eee", "jsonl", "openai-evals", "otlp", "parquet")


def conversation(id_: str) -> dict[str, object]:
    call = {"id": f"{id_}-c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "rome"}'}}
    return {
        "id": id_,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": "I look.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"{id_}-c1", "content": "22C"},
            {"role": "assistant", "content": "It is 22C."},
            {"role": "user", "content": "Thanks"},
            {"role": "assistant", "content": "Welcome."},
        ],
    }


@pytest.fixture
def judged(tmp_path, monkeypatch, capfd):
    """A folder, the current one, with a judged run of two conversations."""
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text("".join(json.dumps(conversation(id_)) + "\n" for id_ in ("a", "b")))
    Path("p.yaml").write_text(
        "name: p\nsource: {traces/messages: {path: in.jsonl, id: '{{ id }}'}}\njudges: [heuristic/turn]\n"
    )
    assert main(["run", "p.yaml"]) == 0
    capfd.readouterr()
    return tmp_path


def export(format_: str, *words: str, code: int = 0) -> Path:
    out = Path(f"out.{format_}")
    assert main(["export", "last", "--to", format_, "--out", str(out), *words]) == code
    return out


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("format_", FORMATS)
def test_an_existing_file_is_kept_unless_it_may_be_replaced(judged, format_, capfd):
    out = judged / f"out.{format_}"
    out.write_text("mine")
    export(format_, code=2)
    assert "exists" in capfd.readouterr().err
    assert out.read_text() == "mine"
    assert sorted(path.name for path in judged.iterdir()) == [".dicast", "in.jsonl", out.name, "p.yaml"]
    export(format_, "--overwrite")
    assert out.read_bytes() != b"mine"


def test_a_format_that_does_not_exist_names_the_nearest(judged, capfd):
    export("otpl", code=2)
    error = capfd.readouterr().err
    assert "--to otpl: no such format" in error
    assert "otlp" in error


def test_trajectories_have_the_messages_calls_results_and_verdicts(judged, capfd):
    out = export("atif", "--json")
    document = json.loads(capfd.readouterr().out)
    assert (document["written"], document["left_out"]) == (2, {})
    first, _ = lines(out)
    assert [(step["source"], step["message"]) for step in first["steps"]] == [
        ("system", "Be brief."), ("user", "Weather?"), ("agent", "I look."), ("agent", "It is 22C."), ("user", "Thanks"), ("agent", "Welcome."),
    ]  # fmt: skip
    assert [step["step_id"] for step in first["steps"]] == [1, 2, 3, 4, 5, 6]
    (call,) = first["steps"][2]["tool_calls"]
    assert (call["function_name"], call["arguments"]) == ("search", {"q": "rome"})
    assert first["steps"][2]["observation"]["results"] == [{"source_call_id": call["tool_call_id"], "content": "22C"}]
    assert [verdict["subject_id"] for verdict in first["extra"]["dicast"]["verdicts"]] == ["a/1", "a/2"]


def test_exported_trajectories_are_imported_with_the_same_counts(judged, capfd):
    export("atif")
    capfd.readouterr()
    assert main(["import", "out.atif", "in.jsonl", "--dry-run", "--json"]) == 0
    after, before = json.loads(capfd.readouterr().out)["files"]
    names = ("sessions", "turns", "calls", "results", "failed_results", "unmatched")
    assert [after[name] for name in names] == [before[name] for name in names]


def test_content_is_left_out_if_asked(judged):
    for format_ in FORMATS:
        text = export(format_, "--no-content").read_bytes()
        assert b"22C" not in text
        assert b"Weather" not in text


def test_a_table_has_a_row_for_each_subject(judged):
    rows = lines(export("jsonl"))
    assert [(row["subject_id"], row["output"]) for row in rows] == [
        ("a/1", "It is 22C."), ("a/2", "Welcome."), ("b/1", "It is 22C."), ("b/2", "Welcome."),
    ]  # fmt: skip
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(export("parquet"))
    assert table["subject_id"].to_pylist() == [row["subject_id"] for row in rows]
    assert table["score"].to_pylist() == [row["score"] for row in rows]


def test_items_have_the_input_the_output_and_the_scores(judged):
    item, *_ = lines(export("openai-evals"))
    assert item["item"]["input"] == "Weather?"
    assert item["item"]["scores"].keys() == {"heuristic/turn"}
    assert item["sample"] == {"output_text": "It is 22C."}


def test_a_record_has_the_means_and_fits_the_public_schema(judged, capfd):
    record = json.loads(export("eee").read_text())
    capfd.readouterr()
    main(["show", "last", "--json"])
    mean = json.loads(capfd.readouterr().out)["labels"]["heuristic/turn"]["mean"]
    (result,) = record["evaluation_results"]
    assert (result["score_details"]["score"], result["metric_config"]["metric_id"]) == (mean, "heuristic/turn")
    schema = json.loads(SCHEMA.read_text())
    assert record["schema_version"] == schema["version"]
    jsonschema.validate(record, schema)


def test_log_events_have_the_ids_of_the_judged_spans(judged, capfd):
    spans = EXAMPLES / "otel" / "spans.jsonl"
    Path("spans.yaml").write_text(f"name: s\nsource: {{otel/spans: {{path: {spans}}}}}\njudges: [heuristic/turn]\n")
    assert main(["run", "spans.yaml"]) == 0
    capfd.readouterr()
    requests = lines(export("otlp", "--json"))
    document = json.loads(capfd.readouterr().out)
    records = [record for request in requests for record in request["resourceLogs"][0]["scopeLogs"][0]["logRecords"]]
    assert len(records) == document["written"] > 0
    assert document["left_out"] == {}
    recorded = spans.read_text()
    for record in records:
        assert record["eventName"] == "gen_ai.evaluation.result"
        assert record["spanId"] in recorded
        assert record["traceId"] in recorded


def test_the_verdict_on_a_tool_cycle_has_the_id_of_the_span_of_its_call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = EXAMPLES / "otel" / "spans.jsonl"
    source = f"otel/spans: {{path: {path}, subjects: [tool_cycle, turn]}}"
    Path("spans.yaml").write_text(f"name: s\nsource: {{{source}}}\njudges: [heuristic/tool_cycle, heuristic/turn]\n")
    assert main(["run", "spans.yaml"]) == 0
    spans = {span["context"]["span_id"].removeprefix("0x"): span for span in lines(path)}
    for again in (False, True):
        if again:
            recorded = "source: {traces/recorded: {subject: tool_cycle}}\njudges: [heuristic/tool_cycle]\n"
            Path("again.yaml").write_text(f"name: again\n{recorded}")
            assert main(["run", "again.yaml"]) == 0
        Path("out.otlp").unlink(missing_ok=True)
        requests = lines(export("otlp"))
        records = [one for request in requests for one in request["resourceLogs"][0]["scopeLogs"][0]["logRecords"]]
        operations = {}
        for record in records:
            attributes = {item["key"]: item["value"].get("stringValue") for item in record["attributes"]}
            operation = spans[record["spanId"]]["attributes"]["gen_ai.operation.name"]
            operations.setdefault(attributes["gen_ai.evaluation.name"], set()).add(operation)
        assert operations.pop("heuristic/tool_cycle") == {"execute_tool"}
        assert operations == ({} if again else {"heuristic/turn": {"chat"}})


def test_log_events_without_a_span_are_counted(judged, capfd):
    requests = lines(export("otlp", "--json"))
    assert json.loads(capfd.readouterr().out)["left_out"] == {"parents of results: their subjects are no spans": 4}
    assert "spanId" not in json.dumps(requests)


def test_scores_of_other_tools_are_in_every_table(judged, capfd):
    result = {"testIdx": 0, "promptIdx": 0, "prompt": {"raw": "Say hello"}, "vars": {}, "provider": {"id": "echo"},
              "response": {"output": "hello"}, "success": True, "failureReason": 0, "score": 1, "namedScores": {"polite": 0.5}}  # fmt: skip
    Path("results.json").write_text(
        json.dumps({"evalId": "e", "results": {"version": 3, "stats": {}, "results": [result]}})
    )
    Path("r.yaml").write_text("name: r\nsource: {exports/promptfoo: {path: results.json}}\nmetrics: [proxy/format]\n")
    assert main(["run", "r.yaml"]) == 0
    (row,) = lines(export("jsonl"))
    assert row["recorded_polite"] == 0.5
    (item,) = lines(export("openai-evals"))
    assert item["item"]["scores"]["recorded/polite"] == 0.5
    record = json.loads(export("eee").read_text())
    means = {
        item["metric_config"]["metric_id"]: item["score_details"]["score"] for item in record["evaluation_results"]
    }
    assert means["recorded/polite"] == 0.5
