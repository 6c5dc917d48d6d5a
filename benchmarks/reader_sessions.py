"""Sessions of agents as their tools record them, with *turns* requests of the user and two calls of tools in each."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from reader_texts import Texts

CALLS = 2
"""Calls of tools in a turn."""

RESULT = 2_500
"""Characters of a tool's result."""

Value = dict[str, Any]


def chat_messages(texts: Texts, number: int, turns: int) -> Value:
    """Return a conversation in the format of OpenAI Chat."""
    messages: list[Value] = [{"role": "system", "content": texts.prose(1500)}]
    for _ in range(turns):
        messages.append({"role": "user", "content": texts.ask()})
        for _ in range(CALLS):
            id_ = f"call_{texts.hex(20)}"
            function = {"name": "bash", "arguments": json.dumps(texts.arguments())}
            calls = [{"id": id_, "type": "function", "function": function}]
            messages.append({"role": "assistant", "content": texts.prose(150), "tool_calls": calls})
            messages.append({"role": "tool", "tool_call_id": id_, "content": texts.output(RESULT)})
        messages.append({"role": "assistant", "content": texts.prose(900)})
    return {"id": f"conversation-{number}", "messages": messages}


def claude_code(texts: Texts, number: int, turns: int) -> list[Value]:
    """Return the records of a session of Claude Code."""
    session, records = texts.uuid(), list[Value]()

    def add(type_: str, message: Value, **fields: Any) -> None:
        parent = records[-1]["uuid"] if records else None
        place = {"cwd": "/srv/app", "sessionId": session, "version": "2.0.31", "gitBranch": "main"}
        records.append({"parentUuid": parent, "isSidechain": False, "userType": "external", **place, "type": type_, "message": message, "uuid": texts.uuid(), "timestamp": texts.time(), **fields})  # fmt: skip

    def answer(*blocks: Value, stop: str = "tool_use") -> None:
        usage = {**texts.usage(), "cache_creation_input_tokens": 0, "cache_read_input_tokens": 9211, "service_tier": "standard"}  # fmt: skip
        head = {"id": f"msg_{texts.hex(24)}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
        message = {**head, "content": list(blocks), "stop_reason": stop, "stop_sequence": None, "usage": usage}
        add("assistant", message, requestId=f"req_{texts.hex(24)}")

    for _ in range(turns):
        add("user", {"role": "user", "content": texts.ask()})
        for _ in range(CALLS):
            id_, output = f"toolu_{texts.hex(24)}", texts.output(RESULT)
            use = {"type": "tool_use", "id": id_, "name": "Bash", "input": texts.arguments()}
            answer({"type": "text", "text": texts.prose(150)}, use)
            result = {"tool_use_id": id_, "type": "tool_result", "content": output, "is_error": False}
            detail = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
            add("user", {"role": "user", "content": [result]}, toolUseResult=detail)
        answer({"type": "text", "text": texts.prose(900)}, stop="end_turn")
    return records


def codex(texts: Texts, number: int, turns: int) -> list[Value]:
    """Return the records of a rollout of Codex."""
    records: list[Value] = []

    def add(type_: str, **payload: Any) -> None:
        records.append({"timestamp": texts.time(), "type": type_, "payload": payload})

    add("session_meta", id=texts.uuid(), timestamp=texts.time(), cwd="/srv/app", originator="codex_cli_rs", cli_version="0.60.1", instructions=texts.prose(2000), git={"branch": "main"})  # fmt: skip
    for _ in range(turns):
        add("turn_context", cwd="/srv/app", approval_policy="on-request", sandbox_policy={"mode": "workspace-write"}, model="gpt-5-codex", effort="medium", summary="auto")  # fmt: skip
        text = texts.ask()
        add("response_item", type="message", role="user", content=[{"type": "input_text", "text": text}])
        add("event_msg", type="user_message", message=text, kind="plain")
        for _ in range(CALLS):
            text, id_ = texts.prose(150), f"call_{texts.hex(20)}"
            summary = [{"type": "summary_text", "text": text}]
            add("response_item", type="reasoning", summary=summary, content=None, encrypted_content=texts.hex(1200))
            add("event_msg", type="agent_reasoning", text=text)
            arguments = json.dumps(texts.arguments())
            add("response_item", type="function_call", name="shell", arguments=arguments, call_id=id_)
            output = json.dumps({"output": texts.output(RESULT), "metadata": {"exit_code": 0, "duration_seconds": 0.3}})
            add("response_item", type="function_call_output", call_id=id_, output=output)
            info = {"total_token_usage": texts.usage(), "last_token_usage": texts.usage()}
            add("event_msg", type="token_count", info=info, rate_limits=None)
        text = texts.prose(900)
        add("event_msg", type="agent_message", message=text)
        add("response_item", type="message", role="assistant", content=[{"type": "output_text", "text": text}])
    return records


def gemini_chat(texts: Texts, number: int, turns: int) -> Value:
    """Return a chat file of Gemini CLI."""
    messages: list[Value] = []
    tokens = {"input": 9000, "output": 200, "cached": 0, "thoughts": 50, "tool": 0, "total": 9250}

    def add(type_: str, content: str, **fields: Any) -> None:
        messages.append({"id": texts.uuid(), "timestamp": texts.time(), "type": type_, "content": content, **fields})

    for _ in range(turns):
        add("user", texts.ask())
        calls = []
        for _ in range(CALLS):
            id_, output = f"run_shell_command-{texts.serial()}", texts.output(RESULT)
            response = {"id": id_, "name": "run_shell_command", "response": {"output": output}}
            calls.append({"id": id_, "name": "run_shell_command", "args": texts.arguments(), "result": [{"functionResponse": response}], "status": "success", "timestamp": texts.time(), "resultDisplay": output, "displayName": "Shell"})  # fmt: skip
        thoughts = [{"subject": "Plan", "description": texts.prose(200), "timestamp": texts.time()}]
        add("gemini", texts.prose(300), thoughts=thoughts, tokens=tokens, model="gemini-2.5-pro", toolCalls=calls)
        add("gemini", texts.prose(900), tokens=tokens, model="gemini-2.5-pro")
    return {"sessionId": texts.uuid(), "projectHash": texts.hex(64), "startTime": texts.time(), "lastUpdated": texts.time(), "messages": messages}  # fmt: skip


def copilot(texts: Texts, number: int, turns: int) -> list[Value]:
    """Return the events of a session of Copilot's command line."""
    records: list[Value] = []

    def add(type_: str, **data: Any) -> None:
        parent = records[-1]["id"] if records else None
        records.append({"type": type_, "data": data, "id": texts.uuid(), "timestamp": texts.time(), "parentId": parent})

    add("session.start", sessionId=texts.uuid(), version=1, producer="copilot-agent", copilotVersion="0.0.360", startTime=texts.time(), selectedModel="gpt-5")  # fmt: skip
    for _ in range(turns):
        text = texts.ask()
        add("user.message", content=text, transformedContent=text, attachments=[])
        for _ in range(CALLS):
            id_, arguments = f"call_{texts.hex(20)}", texts.arguments()
            requests = [{"toolCallId": id_, "name": "bash", "arguments": arguments}]
            add("assistant.message", messageId=texts.uuid(), content=texts.prose(150), toolRequests=requests)
            add("tool.execution_start", toolCallId=id_, toolName="bash", arguments=arguments)
            result = {"content": texts.output(RESULT)}
            add("tool.execution_complete", toolCallId=id_, success=True, result=result, toolTelemetry={})
        add("assistant.message", messageId=texts.uuid(), content=texts.prose(900), toolRequests=[])
    return records


def opencode_export(texts: Texts, number: int, turns: int) -> Value:
    """Return a session from ``opencode export``."""
    session, messages = f"ses_{texts.hex(26)}", list[Value]()
    tokens = {"input": 9000, "output": 300, "reasoning": 0, "cache": {"read": 0, "write": 0}}

    def add(role: str, *parts: Value, **info: Any) -> None:
        id_ = f"msg_{texts.hex(26)}"
        placed = [{"id": f"prt_{texts.hex(26)}", "sessionID": session, "messageID": id_, **part} for part in parts]
        head = {"id": id_, "sessionID": session, "role": role, "time": {"created": 1771237534577}, **info}
        messages.append({"info": head, "parts": placed})

    def tool() -> Value:
        state = {"status": "completed", "input": texts.arguments(), "output": texts.output(RESULT), "title": "run", "metadata": {"exit": 0}, "time": {"start": 1, "end": 2}}  # fmt: skip
        return {"type": "tool", "callID": f"call_{texts.hex(20)}", "tool": "bash", "state": state}

    for _ in range(turns):
        add("user", {"type": "text", "text": texts.ask()})
        tools = [tool() for _ in range(CALLS)]
        answer = {"type": "text", "text": texts.prose(900)}
        add("assistant", {"type": "step-start"}, answer, *tools, modelID="claude-sonnet-4-5", cost=0.01, tokens=tokens)
    info = {"id": session, "projectID": "p", "directory": "/srv/app", "title": "Fix", "version": "1.0.1", "time": {"created": 1771237534577}}  # fmt: skip
    return {"info": info, "messages": messages}


def atif_trajectory(texts: Texts, number: int, turns: int) -> Value:
    """Return a trajectory in ATIF."""
    steps: list[Value] = []
    metrics = {"prompt_tokens": 9000, "completion_tokens": 200, "cached_tokens": 0, "cost_usd": 0.01}

    def add(source: str, message: str, **fields: Any) -> None:
        step = {"step_id": len(steps) + 1, "timestamp": texts.time(), "source": source, "message": message}
        steps.append({**step, **fields})

    for _ in range(turns):
        add("user", texts.ask())
        for _ in range(CALLS):
            id_ = f"call_{texts.hex(20)}"
            calls = [{"tool_call_id": id_, "function_name": "execute_bash", "arguments": texts.arguments()}]
            results = [{"source_call_id": id_, "content": texts.output(RESULT)}]
            add("agent", texts.prose(150), tool_calls=calls, observation={"results": results}, metrics=metrics)
        add("agent", texts.prose(900))
    agent = {"name": "openhands", "version": "1.1.0", "model_name": "gpt-5"}
    return {"schema_version": "ATIF-v1.5", "session_id": texts.uuid(), "agent": agent, "steps": steps, "final_metrics": {"total_prompt_tokens": 1}}  # fmt: skip


def swe_agent(texts: Texts, number: int, turns: int) -> Value:
    """Return a trajectory of SWE-agent."""
    steps = []
    for _ in range(turns * (CALLS + 1)):
        thought, action = texts.prose(300), f"{texts.arguments().get('command', 'submit')}\n"
        state = {"open_file": "n/a", "working_dir": "/app"}
        steps.append({"action": action, "observation": texts.output(RESULT), "response": f"{thought}\n```\n{action}```", "state": state, "thought": thought, "execution_time": 0.3})  # fmt: skip
    history = [{"role": "system", "content": texts.prose(2000), "agent": "primary", "message_type": "system_prompt"}]
    info = {"exit_status": "submitted", "submission": ""}
    return {"environment": "swe_main", "trajectory": steps, "history": history, "info": info}


def openhands_events(texts: Texts, number: int, turns: int) -> list[Value]:
    """Return the events of a session of OpenHands."""
    events: list[Value] = []

    def add(source: str, message: str, **fields: Any) -> None:
        head = {"id": len(events), "timestamp": texts.time(), "source": source, "message": message}
        events.append({**head, **fields})

    for _ in range(turns):
        text = texts.ask()
        add("user", text, action="message", args={"content": text, "image_urls": None, "wait_for_response": False})
        for _ in range(CALLS):
            response = {"id": texts.uuid(), "model": "gpt-5", "usage": texts.usage()}
            call = {"function_name": "execute_bash", "tool_call_id": f"call_{texts.hex(20)}", "model_response": response, "total_calls_in_response": 1}  # fmt: skip
            arguments = {"command": texts.output(200), "thought": texts.prose(150), "is_input": False, "blocking": False}  # fmt: skip
            add("agent", "Running", action="run", tool_call_metadata=call, args=arguments)
            extras = {"command": "x", "metadata": {"exit_code": 0}}
            add("agent", "Done", cause=len(events) - 1, observation="run", content=texts.output(RESULT), tool_call_metadata=call, extras=extras)  # fmt: skip
        text = texts.prose(900)
        add("agent", text, action="message", args={"content": text, "wait_for_response": True})
    return events


def adk_case(texts: Texts, number: int, turns: int) -> Value:
    """Return a case of an evaluation set of ADK."""
    empty = dict.fromkeys(("video_metadata", "thought", "code_execution_result", "executable_code", "file_data", "function_call", "function_response", "inline_data"))  # fmt: skip
    conversation = []
    for _ in range(turns):
        ids = [f"adk-{texts.uuid()}" for _ in range(CALLS)]
        uses = [{"id": id_, "args": texts.arguments(), "name": "run_shell"} for id_ in ids]
        responses = [{"id": id_, "name": "run_shell", "response": {"result": texts.output(RESULT)}} for id_ in ids]
        data = {"tool_uses": uses, "tool_responses": responses, "intermediate_responses": []}
        prompt, answer = ({"parts": [{**empty, "text": text}]} for text in (texts.ask(), texts.prose(900)))
        conversation.append({"invocation_id": texts.uuid(), "user_content": {**prompt, "role": "user"}, "final_response": {**answer, "role": "model"}, "intermediate_data": data, "creation_timestamp": 1747340849.04})  # fmt: skip
    return {"eval_id": f"case-{number}", "conversation": conversation, "session_input": None, "creation_timestamp": 1747340849.5}  # fmt: skip


_RESOURCE = {
    "k8s.node.name": "server-0", "service.instance.id": "controller-55bdf57754-j845v", "service.namespace": "agents", "service.version": "0.9.0",
    "telemetry.sdk.language": "python", "telemetry.sdk.name": "opentelemetry", "telemetry.sdk.version": "1.38.0", "service.name": "agents",
}  # fmt: skip


def _spans(texts: Texts, number: int, turns: int, *, plumbing: int) -> Iterator[tuple[str, str, str | None, Value]]:
    """Yield the name, the id, the parent and the attributes of each span; *plumbing* is the number of spans of HTTP for each call of the model."""
    root, history = texts.hex(16), list[Value]()
    head = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5", "gen_ai.response.model": "gpt-5"}  # fmt: skip
    yield "invoke_agent coder", root, None, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "coder", "gen_ai.conversation.id": f"conversation-{number}"}  # fmt: skip
    for _ in range(turns):
        history.append({"role": "user", "parts": [{"type": "text", "content": texts.ask()}]})
        for step in range(CALLS + 1):
            call = {"type": "tool_call", "id": f"call_{texts.hex(20)}", "name": "bash", "arguments": texts.arguments()}
            is_last = step == CALLS
            parts = [{"type": "text", "content": texts.prose(900)}] if is_last else [call]
            answer = {"role": "assistant", "parts": parts, "finish_reason": "stop" if is_last else "tool_call"}
            inputs, outputs = json.dumps(history[-4:]), json.dumps([answer])
            yield "chat gpt-5", texts.hex(16), root, {**head, "gen_ai.usage.input_tokens": 900, "gen_ai.usage.output_tokens": 90, "gen_ai.input.messages": inputs, "gen_ai.output.messages": outputs}  # fmt: skip
            history.append(answer)
            if not is_last:
                output = texts.output(RESULT)
                yield "execute_tool bash", texts.hex(16), root, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "bash", "gen_ai.tool.call.id": call["id"], "gen_ai.tool.call.arguments": json.dumps(call["arguments"]), "gen_ai.tool.call.result": output}  # fmt: skip
                response = {"type": "tool_call_response", "id": call["id"], "response": output}
                history.append({"role": "tool", "parts": [response]})
            for _ in range(plumbing):
                yield "GET /api/tasks/{id}", texts.hex(16), root, {"server.address": "controller.agents", "http.request.method": "GET", "url.scheme": "http", "server.port": 8083, "network.peer.address": "10.42.0.37", "network.peer.port": 58452, "user_agent.original": "python-httpx/0.28.1", "url.path": f"/api/tasks/{texts.uuid()}", "network.protocol.version": "1.1", "http.response.status_code": 200}  # fmt: skip


def _pairs(attributes: Value) -> list[Value]:
    return [{"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}} for key, value in attributes.items()]  # fmt: skip


def _otlp_spans(texts: Texts, number: int, turns: int, plumbing: int, *, is_base64: bool = False) -> Iterator[Value]:
    trace, time = texts.hex(32), 1777555053780274700 + number * 10**12

    def id_of(digits: str) -> str:
        return base64.b64encode(bytes.fromhex(digits)).decode() if is_base64 else digits

    for name, id_, parent, attributes in _spans(texts, number, turns, plumbing=plumbing):
        time += 10**6
        parents = {} if parent is None else {"parentSpanId": id_of(parent)}
        times = {"startTimeUnixNano": str(time), "endTimeUnixNano": str(time + 900_000)}
        yield {"traceId": id_of(trace), "spanId": id_of(id_), **parents, "name": name, "kind": 3, **times, "attributes": _pairs(attributes), "status": {}}  # fmt: skip


def otlp_request(texts: Texts, number: int, turns: int, *, is_base64: bool = False, plumbing: int = 1) -> Value:
    """Return a request of OTLP in JSON with a trace."""
    spans = list(_otlp_spans(texts, number, turns, plumbing, is_base64=is_base64))
    scope = {"scope": {"name": "agents", "version": "1"}, "spans": spans}
    return {"resourceSpans": [{"resource": {"attributes": _pairs(_RESOURCE)}, "scopeSpans": [scope]}]}


def tempo_batches(texts: Texts, number: int, turns: int) -> Value:
    """Return a trace as Tempo exports it, with many spans of HTTP."""
    library = {"name": "agents", "version": "1"}
    resource = {"attributes": _pairs(_RESOURCE)}
    return {
        "batches": [
            {
                "resource": resource,
                "instrumentationLibrarySpans": [{"spans": [span], "instrumentationLibrary": library}],
            }
            for span in _otlp_spans(texts, number, turns, 6)
        ]
    }


def jaeger_trace(texts: Texts, number: int, turns: int) -> Value:
    """Return a trace of Jaeger."""
    trace, spans = texts.hex(32), list[Value]()
    for name, id_, parent, attributes in _spans(texts, number, turns, plumbing=2):
        references = [] if parent is None else [{"refType": "CHILD_OF", "traceID": trace, "spanID": parent}]
        tags = [{"key": key, "type": "int64" if isinstance(value, int) else "string", "value": value} for key, value in attributes.items()]  # fmt: skip
        start = 1771237534577907 + len(spans) * 1000 + number * 10**8
        spans.append({"traceID": trace, "spanID": id_, "operationName": name, "references": references, "startTime": start, "duration": 900, "tags": tags, "logs": [], "processID": "p1", "warnings": None})  # fmt: skip
    return {"traceID": trace, "spans": spans, "processes": {"p1": {"serviceName": "agents", "tags": []}}, "warnings": None}  # fmt: skip
