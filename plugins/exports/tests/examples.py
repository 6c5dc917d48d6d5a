"""A small file of each format, as its tool documents it."""

from __future__ import annotations

from typing import Any

RESULT: dict[str, Any] = {
    "promptIdx": 0,
    "testIdx": 0,
    "testCase": {"vars": {"word": "hello"}, "assert": []},
    "promptId": "p",
    "provider": {"id": "echo", "label": ""},
    "prompt": {"raw": "Say hello", "label": "Say {{word}}"},
    "vars": {"word": "hello"},
    "response": {"output": "Say hello", "tokenUsage": {"total": 3}, "cost": 0.5},
    "success": False,
    "failureReason": 1,
    "error": "Expected output to equal bye",
    "score": 0.5,
    "latencyMs": 2,
    "namedScores": {"exact": 0, "tone": 0.7},
    "gradingResult": {
        "pass": False,
        "score": 0.5,
        "reason": "Expected output to equal bye",
        "componentResults": [
            {"pass": True, "score": 1, "reason": "has it", "assertion": {"type": "contains", "value": "hello"}},
            {
                "pass": False,
                "score": 0,
                "reason": "is not",
                "assertion": {"type": "equals", "value": "bye", "metric": "exact"},
            },
            {
                "pass": True,
                "score": 0.9,
                "reason": "fine",
                "assertion": {"type": "llm-rubric", "provider": "openai:gpt"},
            },
            {"pass": True, "score": 1, "reason": "good", "assertion": {"type": "human"}},
            {"pass": True, "score": 0.8, "reason": "near", "assertion": {"type": "similar"}},
        ],
    },
}
BROKEN_RESULT = {
    **RESULT,
    "testIdx": 1,
    "failureReason": 2,
    "error": "API error: 500",
    "response": {"error": "API error: 500"},
}
PROMPTFOO = {
    "evalId": "eval-1",
    "results": {
        "version": 3,
        "timestamp": "2026-01-01T00:00:00Z",
        "prompts": [],
        "results": [RESULT, BROKEN_RESULT],
        "stats": {},
    },
    "config": {},
}

SAMPLES: list[dict[str, Any]] = [
    {
        "doc_id": 0,
        "doc": {"question": "1 + 1"},
        "target": "2",
        "arguments": {"gen_args_0": {"arg_0": "Q: 1 + 1\nA:", "arg_1": {"until": ["\n"]}}},
        "resps": [[" It is 2."]],
        "filtered_resps": ["2"],
        "filter": "strict-match",
        "metrics": ["exact_match"],
        "doc_hash": "a",
        "exact_match": 1.0,
    },
    {
        "doc_id": 1,
        "doc": {"q": "sky"},
        "target": "1",
        "arguments": {
            "gen_args_0": {"arg_0": "The sky is", "arg_1": " green"},
            "gen_args_1": {"arg_0": "The sky is", "arg_1": " blue"},
        },
        "resps": [[["-5.5", "False"]], [["-1.5", "True"]]],
        "filtered_resps": [["-5.5", "False"], ["-1.5", "True"]],
        "filter": "none",
        "metrics": ["acc", "word_perplexity"],
        "doc_hash": "b",
        "acc": 1.0,
        "word_perplexity": [-12.5, 3],
    },
]

BATCH: list[dict[str, Any]] = [
    {
        "id": "b1",
        "custom_id": "chat",
        "response": {
            "status_code": 200,
            "request_id": "r1",
            "body": {
                "model": "gpt-4o-mini",
                "choices": [
                    {"index": 0, "message": {"role": "assistant", "content": "Ankara"}, "finish_reason": "stop"}
                ],
                "usage": {"total_tokens": 9},
            },
        },
        "error": None,
    },
    {
        "id": "b2",
        "custom_id": "responses",
        "response": {
            "status_code": 200,
            "body": {
                "model": "gpt-5",
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
                "output": [
                    {"type": "reasoning", "summary": []},
                    {"type": "message", "content": [{"type": "output_text", "text": "Canb"}]},
                ],
            },
        },
        "error": None,
    },
    {"id": "b3", "custom_id": "late", "response": None, "error": {"code": "batch_expired", "message": "too late"}},
    {
        "id": "b4",
        "custom_id": "bad",
        "response": {
            "status_code": 400,
            "body": {"error": {"message": "no such model", "type": "invalid_request_error"}},
        },
        "error": None,
    },
]
REQUESTS = [
    {"custom_id": "chat", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Capital of Turkey?"}]}},
    {"custom_id": "responses", "method": "POST", "url": "/v1/responses", "body": {"model": "gpt-5", "input": "Capital of Australia?"}},
]  # fmt: skip

TRACES: list[dict[str, Any]] = [
    {"id": "t1", "timestamp": "2026-01-01 00:00:00.000000", "name": "qa", "session_id": "s", "user_id": "u", "metadata": {}, "tags": [], "input": {"question": "Q"}, "output": "A"},
    {"id": "t2", "timestamp": "2026-01-01 00:00:01.000000", "name": "qa", "session_id": None, "user_id": None, "metadata": {}, "tags": [], "input": "Q2", "output": None},
]  # fmt: skip
OBSERVATIONS: list[dict[str, Any]] = [
    {"id": "o1", "trace_id": "t1", "type": "GENERATION", "start_time": "2026-01-01 00:00:00.000000", "parent_observation_id": None, "name": "call", "input": "Q", "output": "A", "provided_model_name": "m", "level": "DEFAULT", "usage_details": {"total": 3}},
    {"id": "o2", "trace_id": "t2", "type": "SPAN", "start_time": "2026-01-01 00:00:01.000000", "parent_observation_id": None, "name": "call", "input": "Q2", "output": None, "level": "ERROR", "status_message": "timed out"},
    {"id": "o3", "trace_id": "t1", "type": "SPAN", "start_time": "2026-01-01 00:00:01.000000", "parent_observation_id": "o1", "name": "inner", "input": None, "output": None, "level": "DEFAULT"},
]  # fmt: skip
SCORES: list[dict[str, Any]] = [
    {"id": "s1", "trace_id": "t1", "observation_id": None, "name": "stars", "value": 4, "string_value": None, "data_type": "NUMERIC", "source": "ANNOTATION", "comment": "nice", "author_user_id": "ada"},
    {"id": "s2", "trace_id": "t1", "observation_id": "o1", "name": "tone", "value": 1, "string_value": "warm", "data_type": "CATEGORICAL", "source": "EVAL", "comment": None, "author_user_id": None},
    {"id": "s3", "trace_id": "t1", "observation_id": None, "name": "ok", "value": 1, "string_value": "True", "data_type": "BOOLEAN", "source": "API", "comment": None, "author_user_id": None},
]  # fmt: skip

RUNS: list[dict[str, Any]] = [
    {"id": "r1", "name": "chain", "run_type": "chain", "inputs": {"question": "Q"}, "outputs": {"answer": "A"}, "error": None, "parent_run_id": None, "feedback_stats": {"correct": {"n": 1, "avg": 1.0, "values": {}}, "tone": {"n": 2, "avg": None, "values": {"warm": 2, "cold": 1}}}, "total_tokens": 5, "extra": {"metadata": {"ls_model_name": "m", "session_id": "s"}}},
    {"id": "r2", "name": "llm", "run_type": "llm", "inputs": {"q": "x"}, "outputs": {"t": "y"}, "error": None, "parent_run_id": "r1"},
    {"id": "r3", "name": "chain", "run_type": "chain", "inputs": {"question": "Q3"}, "outputs": None, "error": "ValueError('no')", "parent_run_id": None},
    {"id": "r4", "name": "chain", "run_type": "chain", "inputs": {"question": "Q4"}, "outputs": {"a": "A", "b": 2}, "error": None, "parent_run_id": None, "reference_outputs": {"answer": "R"}, "feedback": [{"key": "rated", "score": 0.25, "comment": "hm", "feedback_source": {"type": "app", "user_name": "ada"}}]},
]  # fmt: skip

TRACE: dict[str, Any] = {
    "info": {
        "trace_id": "tr-1",
        "request_time": "2026-01-01T00:00:00Z",
        "state": "OK",
        "trace_metadata": {"mlflow.trace.session": "s", "mlflow.trace.tokenUsage": '{"total_tokens": 3}'},
        "tags": {"mlflow.traceName": "qa", "team": "x"},
        "assessments": [
            {"assessment_name": "correct", "source": {"source_type": "LLM_JUDGE", "source_id": "judge"}, "feedback": {"value": "yes"}, "rationale": "right"},
            {"assessment_name": "rated", "source": {"source_type": "HUMAN", "source_id": "ada"}, "feedback": {"value": 0.5}},
            {"assessment_name": "checked", "source": {"source_type": "CODE", "source_id": "f"}, "feedback": {"value": None, "error": {"error_message": "x", "error_code": "E"}}},
            {"assessment_name": "expected_response", "source": {"source_type": "HUMAN"}, "expectation": {"value": "A"}},
        ],
    },
    "data": {"spans": [{"name": "root", "parent_span_id": None, "attributes": {"mlflow.spanInputs": '{"question": "Q"}', "mlflow.spanOutputs": '"A"'}, "status": {"code": "STATUS_CODE_OK", "message": ""}}]},
}  # fmt: skip
FAILED_TRACE: dict[str, Any] = {
    "info": {"trace_id": "tr-2", "state": "ERROR", "trace_metadata": {}, "tags": {}, "assessments": []},
    "data": {"spans": [{"name": "root", "parent_span_id": None, "attributes": {"mlflow.spanInputs": '"Q2"'}, "status": {"code": "STATUS_CODE_ERROR", "message": "it broke"}}]},
}  # fmt: skip

STATE: dict[str, Any] = {
    "adapter_spec": {"method": "multiple_choice_joint", "model": "org/model"},
    "request_states": [
        {"instance": {"id": "id1", "input": {"text": "Capital of Turkey?"}, "references": [{"output": {"text": "Ankara"}, "tags": ["correct"]}, {"output": {"text": "Izmir"}, "tags": []}], "split": "test"}, "output_mapping": {"A": "Ankara", "B": "Izmir"}, "train_trial_index": 0, "request": {"model": "org/model", "prompt": "Q"}, "result": {"success": True, "completions": [{"text": " A", "finish_reason": {"reason": "stop"}}], "request_time": 0.5}},
        {"instance": {"id": "id2", "input": {"text": "Q2"}, "references": [], "split": "test"}, "train_trial_index": 0, "request": {"model": "org/model", "prompt": "Q2"}, "result": {"success": False, "error": "overloaded", "completions": []}},
    ],
}  # fmt: skip
STATISTICS: list[dict[str, Any]] = [
    {"instance_id": "id1", "train_trial_index": 0, "stats": [{"name": {"name": "exact_match", "split": "test"}, "count": 1, "sum": 1, "mean": 1.0}, {"name": {"name": "num_prompt_tokens"}, "count": 1, "sum": 31, "mean": 31.0}, {"name": {"name": "unused"}, "count": 0, "sum": 0}]},
]  # fmt: skip
