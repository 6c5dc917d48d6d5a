"""Results of other tools as they export them; *turns* scales the texts of a result."""

from __future__ import annotations

import json
from typing import Any

from reader_sessions import RESULT, Value
from reader_texts import Texts


def _size(turns: int) -> int:
    return RESULT * turns // 4


def promptfoo_result(texts: Texts, number: int, turns: int) -> Value:
    """Return a result of promptfoo."""
    prompt, output = texts.prose(_size(turns)), texts.output(_size(turns))
    checks = [
        {"pass": True, "score": 1, "reason": texts.prose(200), "assertion": {"type": type_, "value": texts.prose(100)}}
        for type_ in ("contains", "llm-rubric", "javascript")
    ]
    variables = {"question": texts.ask(), "context": prompt}
    return {
        "id": texts.uuid(), "promptIdx": 0, "testIdx": number, "testCase": {"vars": variables, "assert": []}, "promptId": texts.hex(64),
        "provider": {"id": "openai:gpt-5", "label": ""}, "prompt": {"raw": prompt, "label": "{{context}}"}, "vars": variables,
        "response": {"output": output, "tokenUsage": {"total": 300, "prompt": 200, "completion": 100}, "cached": False, "cost": 0.0012},
        "success": True, "failureReason": 0, "score": 1, "latencyMs": 912, "namedScores": {}, "cost": 0.0012, "metadata": {},
        "gradingResult": {"pass": True, "score": 1, "reason": "All assertions passed", "namedScores": {}, "componentResults": checks},
    }  # fmt: skip


def lm_eval_sample(texts: Texts, number: int, turns: int) -> Value:
    """Return a sample of lm-evaluation-harness."""
    prompt, answer = texts.prose(_size(turns)), texts.prose(400)
    arguments = {"gen_args_0": {"arg_0": prompt, "arg_1": {"until": ["\n\n"], "do_sample": False}}}
    hashes = {name: texts.hex(64) for name in ("doc_hash", "prompt_hash", "target_hash")}
    answers = {"target": answer, "resps": [[answer]], "filtered_resps": [answer], "filter": "none"}
    return {"doc_id": number, "doc": {"question": prompt, "answer": answer}, "arguments": arguments, **answers, "metrics": ["exact_match"], **hashes, "exact_match": 1.0}  # fmt: skip


def batch_line(texts: Texts, number: int, turns: int) -> Value:
    """Return a line of the output of an OpenAI batch."""
    message: Value = {"role": "assistant", "content": texts.output(_size(turns)), "refusal": None, "annotations": []}
    choices = [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}]
    usage = {"prompt_tokens": 200, "completion_tokens": 90, "total_tokens": 290}
    body = {"id": f"chatcmpl-{texts.hex(28)}", "object": "chat.completion", "created": 1771237534, "model": "gpt-4o-mini-2024-07-18", "choices": choices, "usage": usage}  # fmt: skip
    response = {"status_code": 200, "request_id": texts.hex(32), "body": body}
    return {"id": f"batch_req_{texts.hex(24)}", "custom_id": f"request-{number}", "response": response, "error": None}


def batch_request(texts: Texts, number: int, turns: int) -> Value:
    """Return the request of a line."""
    messages = [{"role": "system", "content": texts.prose(300)}, {"role": "user", "content": texts.prose(_size(turns))}]
    body = {"model": "gpt-4o-mini", "messages": messages, "max_tokens": 1000}
    return {"custom_id": f"request-{number}", "method": "POST", "url": "/v1/chat/completions", "body": body}


def langfuse_trace(texts: Texts, number: int, turns: int) -> tuple[list[Value], list[Value], list[Value]]:
    """Return a trace of Langfuse with its observations and its scores."""
    id_, question, answer = texts.uuid(), texts.prose(_size(turns)), texts.output(_size(turns))
    trace = {"id": id_, "timestamp": texts.time(), "name": "qa", "session_id": f"s-{number // 3}", "user_id": "u", "metadata": {"release": "1"}, "tags": [], "input": {"question": question}, "output": answer}  # fmt: skip
    observation = {"id": texts.uuid(), "trace_id": id_, "type": "GENERATION", "start_time": texts.time(), "parent_observation_id": None, "name": "call", "input": [{"role": "user", "content": question}], "output": answer, "provided_model_name": "gpt-5", "level": "DEFAULT", "usage_details": {"total": 300}}  # fmt: skip
    scores = [{"id": texts.uuid(), "trace_id": id_, "observation_id": None, "name": name, "value": 1, "string_value": None, "data_type": "NUMERIC", "source": "EVAL", "comment": texts.prose(150), "author_user_id": None} for name in ("right", "tone")]  # fmt: skip
    return [trace], [observation], scores


def langsmith_run(texts: Texts, number: int, turns: int) -> Value:
    """Return a run of LangSmith."""
    extra = {"metadata": {"ls_model_name": "gpt-5", "session_id": f"s-{number // 3}"}, "runtime": {"sdk": "langsmith-py"}}  # fmt: skip
    texts_of_run = {"inputs": {"question": texts.prose(_size(turns))}, "outputs": {"answer": texts.output(_size(turns))}}  # fmt: skip
    feedback = {"correct": {"n": 1, "avg": 1.0, "values": {}}}
    return {"id": texts.uuid(), "name": "chain", "run_type": "chain", "start_time": texts.time(), "end_time": texts.time(), **texts_of_run, "error": None, "parent_run_id": None, "trace_id": texts.uuid(), "feedback_stats": feedback, "total_tokens": 300, "extra": extra}  # fmt: skip


def mlflow_trace(texts: Texts, number: int, turns: int) -> Value:
    """Return a trace of MLflow."""
    question, answer = texts.prose(_size(turns)), texts.output(_size(turns))
    attributes = {"mlflow.spanInputs": json.dumps({"question": question}), "mlflow.spanOutputs": json.dumps(answer), "mlflow.spanType": '"CHAIN"'}  # fmt: skip
    span: dict[str, Any] = {"trace_id": texts.hex(24), "span_id": texts.hex(16), "parent_span_id": None, "name": "root", "start_time_unix_nano": 1777555053780274700, "end_time_unix_nano": 1777555053790274700, "events": [], "status": {"code": "STATUS_CODE_OK", "message": ""}, "attributes": attributes}  # fmt: skip
    inner = {**span, "span_id": texts.hex(16), "parent_span_id": span["span_id"], "name": "call"}
    assessments = [{"assessment_name": "correct", "source": {"source_type": "LLM_JUDGE", "source_id": "judge"}, "feedback": {"value": "yes"}, "rationale": texts.prose(200)}]  # fmt: skip
    metadata = {"mlflow.trace.session": f"s-{number // 3}", "mlflow.trace.tokenUsage": '{"total_tokens": 3}'}
    info = {"trace_id": f"tr-{texts.hex(32)}", "request_time": texts.time(), "state": "OK", "trace_metadata": metadata, "tags": {"mlflow.traceName": "qa"}, "assessments": assessments}  # fmt: skip
    return {"info": info, "data": {"spans": [span, inner]}}


def helm_state(texts: Texts, number: int, turns: int) -> Value:
    """Return a request of a scenario state of HELM."""
    text, answer = texts.prose(_size(turns)), texts.prose(400)
    references = [{"output": {"text": texts.prose(100)}, "tags": ["correct"]}]
    instance = {"id": f"id{number}", "input": {"text": text}, "references": references, "split": "test"}
    tokens = [{"text": word, "logprob": -0.1234567} for word in answer.split()]
    result = {"success": True, "completions": [{"text": answer, "logprob": -3.2, "tokens": tokens}], "cached": True, "request_time": 0.5}  # fmt: skip
    request = {"model": "org/model", "prompt": text, "temperature": 0.0}
    return {"instance": instance, "train_trial_index": 0, "request": request, "result": result}


def helm_statistics(texts: Texts, number: int, turns: int) -> Value:
    """Return the statistics of an instance."""
    names = ("exact_match", "quasi_exact_match", "num_prompt_tokens", "num_completion_tokens", "inference_runtime")
    numbers = {"count": 1, "sum": 1.0, "sum_squared": 1.0, "min": 1.0, "max": 1.0, "mean": 1.0}
    stats = [{"name": {"name": name, "split": "test"}, **numbers} for name in names]
    return {"instance_id": f"id{number}", "train_trial_index": 0, "stats": stats}


def inspect_sample(texts: Texts, number: int, turns: int) -> Value:
    """Return a sample of a log of Inspect with its messages and its events."""
    messages, events = list[Value](), list[Value]()

    def add(role: str, content: str, **fields: Any) -> None:
        messages.append({"id": texts.hex(22), "role": role, "content": content, **fields})

    add("system", texts.prose(800), source="input")
    for _ in range(turns):
        add("user", texts.ask(), source="input")
        for _ in range(2):
            id_, arguments, output = f"call_{texts.hex(20)}", texts.arguments(), texts.output(RESULT)
            call = {"id": id_, "function": "bash", "arguments": arguments, "type": "function"}
            add("assistant", texts.prose(200), source="generate", tool_calls=[call])
            add("tool", output, tool_call_id=id_, function="bash")
            answer = {"model": "gpt-5", "choices": [], "usage": texts.usage(), "time": 0.5}
            events.append({"timestamp": texts.time(), "event": "model", "model": "openai/gpt", "input": [], "tools": [], "tool_choice": "auto", "config": {}, "output": answer})  # fmt: skip
            events.append({"timestamp": texts.time(), "event": "tool", **call, "result": output, "events": []})
        add("assistant", texts.prose(900), source="generate")
    last = {"model": "gpt-5", "choices": [{"message": messages[-1], "stop_reason": "stop"}], "usage": texts.usage()}
    scores = {"match": {"value": "C", "answer": "yes", "explanation": "yes"}}
    return {"id": number, "epoch": 1, "input": texts.ask(), "target": "yes", "messages": messages, "output": last, "scores": scores, "metadata": {}, "store": {}, "events": events, "uuid": texts.hex(22)}  # fmt: skip
