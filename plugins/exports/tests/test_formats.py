"""Each format as its tool documents it: rows, references, recorded scores, failed records."""

from __future__ import annotations

import asyncio
import csv
import io
import json

import pytest

from dicast import DataError
from dicast.toolkit.beginning import read_beginning
from dicast.toolkit.detection import detected
from dicast_exports import Helm, Langfuse, LangSmith, LmEval, MLflow, OpenAIBatch, Promptfoo

from . import examples


@pytest.mark.parametrize("form", ["json", "compact", "jsonl", "yaml", "version 2"])
def test_results_of_promptfoo_are_rows_in_every_form(read, write, form):
    match form:
        case "json":
            path = write("results.json", examples.PROMPTFOO)
        case "compact":
            path = write("results.json", json.dumps(examples.PROMPTFOO))
        case "jsonl":
            path = write("results.jsonl", [examples.RESULT, examples.BROKEN_RESULT], lines=True)
        case "yaml":
            path = write("results.yaml", yaml_of(examples.PROMPTFOO))
        case _:
            summary = {**examples.PROMPTFOO["results"], "version": 2, "table": {"head": {}, "body": []}}
            path = write("results.json", {"results": summary})
    rows = read(Promptfoo, path)
    assert rows.ids == ["0/0", "1/0"]
    subject = rows["0/0"].subject
    assert (subject.input, subject.output, subject.context["vars"]) == ("Say hello", "Say hello", {"word": "hello"})
    assert (subject.context["cost"], subject.context["latency_ms"], subject.context["provider"]) == (0.5, 2, "echo")
    assert rows.scores("0/0") == {
        "promptfoo": (0.5, "recorded"),
        "tone": (0.7, "recorded"),
        "contains": (1.0, "truth"),
        "exact": (0.0, "truth"),
        "llm-rubric": (0.9, "model"),
        "human": (1.0, "human"),
        "similar": (0.8, "recorded"),
    }
    assert rows.failures == {"1/0": "API error: 500"}
    assert rows["1/0"].recorded == ()


def yaml_of(document) -> str:
    """Return a document as YAML in the style of js-yaml."""
    import yaml

    return yaml.safe_dump(document, sort_keys=False)


def test_samples_of_the_harness_have_the_scored_answer(read, write):
    rows = read(LmEval, write("samples_sums_2026-01-01T00-00-00.000000.jsonl", examples.SAMPLES, lines=True))
    assert rows.ids == ["0/strict-match", "1"]
    strict, choice = (due.subject for due in rows.dues)
    assert (strict.input, strict.output, strict.reference) == ("Q: 1 + 1\nA:", "2", "2")
    assert strict.context["task"] == "sums"
    assert (choice.input, choice.output, choice.reference) == ("The sky is", "blue", "blue")
    assert rows.scores("0/strict-match") == {"exact_match,strict-match": (1.0, "recorded")}
    assert rows.scores("1") == {"acc": (1.0, "recorded"), "word_perplexity": (-12.5, "recorded")}


def test_samples_of_older_versions_have_lists_of_arguments(read, write):
    sample = {**examples.SAMPLES[0], "arguments": [["Q", {"until": []}]], "filter": None, "acc": 0.0}
    del sample["metrics"]
    rows = read(LmEval, write("samples_old.jsonl", [sample], lines=True))
    assert rows["0"].subject.input == "Q"
    assert rows.scores("0") == {"exact_match": (1.0, "recorded"), "acc": (0.0, "recorded")}


@pytest.mark.parametrize("indent", [None, 2])
def test_samples_and_results_in_an_array_are_read(read, write, indent):
    samples = write("samples_sums_2026-01-01T00-00-00.000000.json", json.dumps(examples.SAMPLES, indent=indent))
    assert len(read(LmEval, samples).ids) == len(examples.SAMPLES)
    batch = write("batch.json", json.dumps(examples.BATCH, indent=indent))
    assert read(OpenAIBatch, batch).ids == ["chat", "responses", "late", "bad"]


def test_tasks_of_a_folder_have_separate_ids(read, write):
    for task in ("a", "b"):
        path = write(f"out/samples_{task}_2026-01-01T00-00-00.jsonl", examples.SAMPLES[1:], lines=True)
    write("out/results.json", {"results": {}})
    rows = read(LmEval, path.parent)
    assert rows.ids == ["a/1", "b/1"]
    assert any("results.json" in note for note in rows.counts.notes)


def test_results_of_a_batch_are_joined_with_their_requests(read, write):
    path = write("output.jsonl", examples.BATCH, lines=True)
    alone = read(OpenAIBatch, path)
    assert alone["chat"].subject.input is None
    write("input.jsonl", examples.REQUESTS, lines=True)
    rows = read(OpenAIBatch, path)
    chat, responses = rows["chat"], rows["responses"]
    assert (chat.subject.input, chat.subject.output, chat.finish_reason) == ("Capital of Turkey?", "Ankara", "stop")
    assert (responses.subject.input, responses.subject.output) == ("Capital of Australia?", "Canb")
    assert responses.finish_reason == "max_output_tokens"
    assert rows.failures == {"late": "too late", "bad": "no such model (status 400)"}
    assert (rows.counts.records, rows.counts.failed) == (4, 2)
    assert read(OpenAIBatch, path.parent).ids == ["chat", "responses", "late", "bad"]
    other = write("elsewhere/input.txt", examples.REQUESTS, lines=True)
    assert read(OpenAIBatch, path, requests=other)["chat"].subject.input == "Capital of Turkey?"


def test_second_replies_and_requests_without_a_reply_are_counted_and_named(read, write):
    extra = [{**examples.REQUESTS[0], "custom_id": f"open-{number}"} for number in range(7)]
    path = write("output.jsonl", [*examples.BATCH, examples.BATCH[0]], lines=True)
    write("input.jsonl", [*examples.REQUESTS, *extra], lines=True)
    rows = read(OpenAIBatch, path)
    assert rows.ids[-1] == "chat#2"
    assert "1 repeated id (chat): the second record is ID#2" in rows.counts.notes
    known = {record["custom_id"] for record in examples.REQUESTS}
    strangers = sum(record["custom_id"] not in known for record in examples.BATCH)
    assert rows.counts.details["requests"] == {"without_reply": 7, "replies_without_request": strangers}
    assert "7 requests without a reply: open-0, open-1, open-2, open-3, open-4, …" in rows.counts.notes
    answered = write("done/output.jsonl", [examples.BATCH[0]], lines=True)
    write("done/input.jsonl", [examples.REQUESTS[0]], lines=True)
    assert "requests" not in read(OpenAIBatch, answered).counts.details
    output = write(
        "split/output.jsonl", [record for record in examples.BATCH if record["custom_id"] == "chat"], lines=True
    )
    write("split/error.jsonl", [{"custom_id": "responses", "response": None, "error": {"message": "late"}}], lines=True)
    write("split/input.jsonl", examples.REQUESTS, lines=True)
    (output.parent / "broken.jsonl").write_text('{"custom_id": "chat", "response": {}}\nbroken\n')
    assert "requests" not in read(OpenAIBatch, output).counts.details
    (output.parent / "broken.jsonl").unlink()
    assert read(OpenAIBatch, output.parent).ids == ["responses", "chat"]


def test_a_call_of_a_tool_without_a_text_is_an_empty_output(read, write):
    reply = {
        "choices": [
            {
                "message": {"content": None, "tool_calls": [{"id": "c", "function": {"name": "f"}}]},
                "finish_reason": "tool_calls",
            }
        ]
    }
    rows = read(
        OpenAIBatch,
        write(
            "o.jsonl", [{"custom_id": "t", "response": {"status_code": 200, "body": reply}, "error": None}], lines=True
        ),
    )
    subject = rows["t"].subject
    assert (subject.output, subject.context["tool_calls"]) == ("", [{"id": "c", "function": {"name": "f"}}])


def test_a_reply_without_a_text_has_no_output(read, write):
    body = {"choices": [{"message": {"role": "assistant", "content": None}, "finish_reason": "length"}]}
    records = [{"custom_id": "t", "response": {"status_code": 200, "body": body}, "error": None}]
    row = read(OpenAIBatch, write("o.jsonl", records, lines=True))["t"]
    assert (row.subject.output, row.finish_reason) == (None, "length")


def test_a_broken_neighbor_of_a_batch_is_no_file_of_requests(read, write):
    path = write("output.jsonl", examples.BATCH, lines=True)
    (path.parent / "other.jsonl.gz").write_bytes(b"\x1f\x8b\x08broken")
    assert read(OpenAIBatch, path)["chat"].subject.input is None


def test_a_sample_with_a_score_that_is_not_finite_refuses_no_file(read, write):
    path = write("samples_sums_2026-01-01T00-00-00.000000.jsonl", examples.SAMPLES, lines=True)
    count = len(read(LmEval, path).ids)
    sample = {**examples.SAMPLES[0], "doc_id": 99, "doc": {"loss": float("nan")}}
    path.write_text(path.read_text().rstrip("\n") + f"\n{json.dumps(sample)}\n")
    rows = read(LmEval, path)
    assert (len(rows.ids), rows.counts.marked) == (count + 1, {"number that is not finite": 1})


def csv_of(records) -> str:
    """Return records as CSV, with objects as JSON texts."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, dict.fromkeys(key for record in records for key in record))
    writer.writeheader()
    for record in records:
        writer.writerow(
            {key: json.dumps(value) if isinstance(value, dict | list) else value for key, value in record.items()}
        )
    return stream.getvalue()


@pytest.mark.parametrize("form", ["jsonl", "json", "csv"])
def test_traces_of_langfuse_have_the_scores_of_the_export(read, write, form):
    tables = {"traces": examples.TRACES, "observations": examples.OBSERVATIONS, "scores": examples.SCORES}
    for table, records in tables.items():
        name = f"export/{table}/part.{form}"
        path = write(name, csv_of(records)) if form == "csv" else write(name, records, lines=form == "jsonl")
    rows = read(Langfuse, path.parent.parent)
    assert rows.ids == ["t1", "t2"]
    subject = rows["t1"].subject
    assert (subject.input, subject.output, subject.session_id) == ("Q", "A", "s")
    assert rows.scores("t1") == {"stars": (4.0, "human"), "tone": ("warm", "model"), "ok": (1.0, "recorded")}
    assert rows.failures == {"t2": "the trace failed: timed out"}
    (alone,) = (path.parent.parent / "traces").iterdir()
    assert read(Langfuse, alone).scores("t1") == rows.scores("t1")


def test_an_export_without_traces_has_its_observations_without_a_parent(read, write):
    rows = read(Langfuse, write("observations.jsonl", examples.OBSERVATIONS, lines=True))
    assert rows.ids == ["o1", "o2"]
    assert rows.counts.details["models"] == {"m": 1}
    assert rows.failures == {"o2": "the trace failed: timed out"}
    assert any("1 observation with a parent" in note for note in rows.counts.notes)


@pytest.mark.parametrize("form", ["lines", "array", "runs"])
def test_runs_of_langsmith_are_rows_with_their_feedback(read, write, form):
    content = {"runs": examples.RUNS} if form == "runs" else examples.RUNS
    rows = read(LangSmith, write("runs.json", content, lines=form == "lines"))
    assert rows.ids == ["r1", "r3", "r4"]
    assert (rows["r1"].subject.input, rows["r1"].subject.output, rows["r1"].subject.session_id) == ("Q", "A", "s")
    assert rows["r4"].subject.output == {"a": "A", "b": 2}
    assert rows["r4"].subject.reference == "R"
    assert rows.scores("r1") == {"correct": (1.0, "recorded"), "tone": ("warm", "recorded")}
    assert rows.scores("r4") == {"rated": (0.25, "human")}
    assert rows.failures == {"r3": "the run failed: ValueError('no')"}
    everything = read(LangSmith, write("all.json", examples.RUNS), runs="all")
    assert everything.ids == ["r1", "r2", "r3", "r4"]


@pytest.mark.parametrize("form", ["lines", "array", "traces", "one"])
def test_traces_of_mlflow_have_assessments_as_scores(read, write, form):
    traces = [examples.TRACE, examples.FAILED_TRACE]
    content = {"traces": traces} if form == "traces" else examples.TRACE if form == "one" else traces
    rows = read(MLflow, write("traces.json", content, lines=form == "lines"))
    assert rows.ids == ["tr-1", *(["tr-2"] if form != "one" else [])]
    subject = rows["tr-1"].subject
    assert (subject.input, subject.output, subject.reference, subject.session_id) == ("Q", "A", "A", "s")
    assert rows.scores("tr-1") == {
        "correct": (1.0, "model"),
        "rated": (0.5, "human"),
        "checked": ("error: x", "recorded"),
    }
    assert rows.failures == ({} if form == "one" else {"tr-2": "the trace failed: it broke"})


def test_a_record_that_ended_with_an_error_fails_with_an_output_too(read, write):
    run = {**examples.RUNS[0], "error": "RateLimitError(429)"}
    assert read(LangSmith, write("runs.jsonl", [run], lines=True)).failures == {
        "r1": "the run failed: RateLimitError(429)"
    }
    span = {**examples.TRACE["data"]["spans"][0], "status": {"code": "STATUS_CODE_ERROR", "message": "429"}}
    trace = {"info": {**examples.TRACE["info"], "state": "ERROR"}, "data": {"spans": [span]}}
    assert read(MLflow, write("traces.jsonl", [trace], lines=True)).failures == {"tr-1": "the trace failed: 429"}
    observation = {**examples.OBSERVATIONS[0], "level": "ERROR", "status_message": "429"}
    assert read(Langfuse, write("o.jsonl", [observation], lines=True)).failures == {"o1": "the trace failed: 429"}


def test_the_spans_of_tools_in_a_trace_of_mlflow_are_counted(read, write):
    tool = {"name": "look", "parent_span_id": "1", "attributes": {"mlflow.spanType": '"TOOL"'}}
    trace = {"info": examples.TRACE["info"], "data": {"spans": [*examples.TRACE["data"]["spans"], tool]}}
    rows = read(MLflow, write("traces.jsonl", [trace], lines=True))
    assert any("1 span of tools (otel/spans reads them) left out" in note for note in rows.counts.notes)


def test_a_scenario_of_helm_has_the_statistics_of_its_instances(read, write):
    path = write("run/scenario_state.json", examples.STATE)
    alone = read(Helm, path)
    assert [*alone.counts.marked] == ["scenario state without per_instance_stats.json (it has no scores)"]
    write("run/per_instance_stats.json", examples.STATISTICS)
    rows = read(Helm, path)
    due = rows["id1"]
    assert (due.subject.input, due.subject.output, due.subject.reference, due.finish_reason) == (
        "Q",
        " A",
        "Ankara",
        "stop",
    )
    assert due.subject.context["mapped_output"] == "Ankara"
    assert rows.scores("id1") == {"exact_match": (1.0, "recorded"), "num_prompt_tokens": (31.0, "recorded")}
    assert rows.failures == {"id2": "the request failed: overloaded"}


FILES = {
    "exports/promptfoo": examples.PROMPTFOO,
    "exports/lm_eval": examples.SAMPLES,
    "exports/openai_batch": examples.BATCH,
    "exports/langfuse": examples.TRACES,
    "exports/langsmith": examples.RUNS,
    "exports/mlflow": [examples.TRACE, examples.FAILED_TRACE],
    "exports/helm": examples.STATE,
}


@pytest.mark.parametrize("component", FILES)
def test_each_format_is_detected_by_its_content(write, component):
    content = FILES[component]
    paths = [write("a.json", content), write("b.txt", json.dumps(content))]
    if isinstance(content, list):
        paths.append(write("c.jsonl", content, lines=True))
    for path in paths:
        found = detected(read_beginning(path, "utf-8"))
        assert found is not None
        assert found.component == component


@pytest.mark.parametrize("cls", [Promptfoo, LmEval, OpenAIBatch, Langfuse, LangSmith, MLflow, Helm])
def test_another_file_is_refused_with_the_next_step(read, write, cls):
    with pytest.raises(DataError, match="does not look like"):
        read(cls, write("x.json", {"some": "thing"}))
    with pytest.raises(DataError, match="empty"):
        read(cls, write("y.json", ""))


@pytest.mark.parametrize(
    ("cls", "content"), [(Promptfoo, examples.PROMPTFOO), (LangSmith, examples.RUNS), (Helm, examples.STATE)]
)
def test_a_cut_document_is_refused_before_anything_is_judged(read, write, cls, content):
    text = json.dumps(content)
    path = write("whole.json", text)
    source = cls(path=path)
    with source.reading() as live:
        path.write_text(text[: len(text) * 2 // 3])
        with pytest.raises(DataError):
            live.check()


def test_secrets_in_reasons_are_masked_like_secrets_in_rows(write):
    key = "AKIA" + "IOSFODNN7EXAMPLX"
    grading = {"reason": f"it shows {key}", "componentResults": []}
    result = {**examples.RESULT, "response": {"output": f"key {key}"}, "gradingResult": grading}
    source = Promptfoo(path=write("r.jsonl", [result], lines=True), scan="mask")

    async def read_all():
        async with source.open(None) as live:
            return list(live.subjects()), live.read_counts()

    (due,), counts = asyncio.run(read_all())
    assert key not in str(due.subject.output)
    assert key not in str(due.recorded[0].reason)
    assert counts.details["scan"]
