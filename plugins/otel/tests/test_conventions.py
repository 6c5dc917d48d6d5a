"""Each convention's attributes for the same conversation: a user asks, the model calls a tool, and answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

QUESTION, ANSWER = "Weather in Rome?", "It is 22C."
LINES = [f"user: {QUESTION}", 'call weather {"city": "Rome"}', "result 22C", f"assistant: {ANSWER}"]
ARGUMENTS = '{"city": "Rome"}'


def _parts(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    return list(parts)


_CALL = {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Rome"}}
_GENAI_INPUT = [
    {"role": "user", "parts": [{"type": "text", "content": QUESTION}]},
    {"role": "assistant", "parts": [_CALL]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "22C"}]},
]
_GENAI_OUTPUT = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}], "finish_reason": "stop"}]
_CHAT = [
    {"role": "user", "content": QUESTION},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "22C"},
]
_VERCEL = [
    {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
    {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "weather", "input": {"city": "Rome"}}]},
    {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "weather", "output": {"type": "text", "value": "22C"}}]},
]  # fmt: skip
_GEMINI = {
    "model": "gemini-2.5-pro",
    "contents": [
        {"role": "user", "parts": [{"text": QUESTION}]},
        {"role": "model", "parts": [{"function_call": {"id": "c1", "name": "weather", "args": {"city": "Rome"}}}]},
        {"role": "user", "parts": [{"function_response": {"id": "c1", "name": "weather", "response": "22C"}}]},
    ],
}
_BEDROCK = [
    {"role": "user", "content": [{"text": QUESTION}]},
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "weather", "input": {"city": "Rome"}}}]},
    {
        "role": "user",
        "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "22C"}], "status": "success"}}],
    },
]

CONVENTIONS: dict[str, dict[str, Any]] = {
    "genai as json": {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(_GENAI_INPUT),
        "gen_ai.output.messages": json.dumps(_GENAI_OUTPUT),
    },
    "genai as values": {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": _GENAI_INPUT,
        "gen_ai.output.messages": _GENAI_OUTPUT,
    },
    "openllmetry": {
        "llm.request.type": "chat",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": QUESTION,
        "gen_ai.prompt.1.role": "assistant",
        "gen_ai.prompt.1.tool_calls.0.id": "c1",
        "gen_ai.prompt.1.tool_calls.0.name": "weather",
        "gen_ai.prompt.1.tool_calls.0.arguments": ARGUMENTS,
        "gen_ai.prompt.2.role": "tool",
        "gen_ai.prompt.2.tool_call_id": "c1",
        "gen_ai.prompt.2.content": "22C",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": ANSWER,
        "gen_ai.completion.0.finish_reason": "stop",
    },
    "openinference": {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.contents.0.message_content.type": "text",
        "llm.input_messages.0.message.contents.0.message_content.text": QUESTION,
        "llm.input_messages.1.message.role": "assistant",
        "llm.input_messages.1.message.tool_calls.0.tool_call.id": "c1",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "weather",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.arguments": ARGUMENTS,
        "llm.input_messages.2.message.role": "tool",
        "llm.input_messages.2.message.tool_call_id": "c1",
        "llm.input_messages.2.message.content": "22C",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": ANSWER,
    },
    "openinference of phoenix": {
        "openinference": {"span": {"kind": "LLM"}},
        "llm": {
            "input_messages": [
                {"message": {"role": "user", "content": QUESTION}},
                {
                    "message": {
                        "role": "assistant",
                        "tool_calls": [{"tool_call": {"id": "c1", "function": {"name": "weather", "arguments": ARGUMENTS}}}],
                    }
                },
                {"message": {"role": "tool", "tool_call_id": "c1", "content": "22C"}},
            ],
            "output_messages": [{"message": {"role": "assistant", "content": ANSWER}}],
        },
    },
    "openinference values": {
        "openinference.span.kind": "LLM",
        "input.value": json.dumps({"model": "m", "messages": _CHAT}),
        "output.value": json.dumps({"choices": [{"message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}]}),
    },
    "vercel": {
        "ai.operationId": "ai.streamText.doStream",
        "ai.prompt.messages": json.dumps(_VERCEL),
        "ai.response.text": ANSWER,
        "ai.response.finishReason": "stop",
    },
    "vercel outer": {
        "ai.operationId": "ai.generateText",
        "ai.prompt": json.dumps({"messages": _VERCEL}),
        "ai.response.text": ANSWER,
    },
    "adk": {
        "gen_ai.system": "gcp.vertex.agent",
        "gcp.vertex.agent.llm_request": json.dumps(_GEMINI),
        "gcp.vertex.agent.llm_response": json.dumps({"content": {"role": "model", "parts": [{"text": ANSWER}]}, "finish_reason": "STOP"}),
    },
    "mlflow": {
        "mlflow.spanType": '"CHAT_MODEL"',
        "mlflow.spanInputs": json.dumps({"messages": _CHAT, "model": "m"}),
        "mlflow.spanOutputs": json.dumps({"choices": [{"message": {"role": "assistant", "content": ANSWER}}]}),
    },
    "langfuse": {
        "langfuse.observation.type": "generation",
        "langfuse.observation.input": json.dumps(_CHAT),
        "langfuse.observation.output": json.dumps({"role": "assistant", "content": ANSWER}),
    },
    "logfire of openai": {
        "request_data": json.dumps({"model": "m", "messages": _CHAT}),
        "response_data": json.dumps({"message": {"role": "assistant", "content": ANSWER}}),
    },
    "pydantic-ai events": {
        "gen_ai.operation.name": "chat",
        "events": json.dumps(
            [
                {"event.name": "gen_ai.user.message", "role": "user", "content": QUESTION},
                {"event.name": "gen_ai.assistant.message", "role": "assistant", "tool_calls": _CHAT[1]["tool_calls"]},
                {"event.name": "gen_ai.tool.message", "role": "tool", "id": "c1", "content": "22C"},
                {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "content": ANSWER}},
            ]
        ),
    },
    "pydantic-ai agent": {
        "agent_name": "a",
        "pydantic_ai.all_messages": json.dumps([*_GENAI_INPUT, *_GENAI_OUTPUT]),
    },
    "langchain": {
        "openinference.span.kind": "LLM",
        "input.value": json.dumps(
            {
                "messages": [
                    [
                        {"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": {"content": QUESTION, "type": "human"}},
                        {
                            "lc": 1,
                            "type": "constructor",
                            "id": ["langchain", "AIMessage"],
                            "kwargs": {"content": "", "type": "ai", "tool_calls": [{"name": "weather", "args": {"city": "Rome"}, "id": "c1"}]},
                        },
                        {"lc": 1, "type": "constructor", "id": ["langchain", "ToolMessage"], "kwargs": {"content": "22C", "tool_call_id": "c1"}},
                    ]
                ]
            }
        ),
        "output.value": json.dumps({"generations": [[{"text": ANSWER, "message": {"type": "ai", "content": ANSWER}}]]}),
    },
    "bedrock in openllmetry": {
        "gen_ai.prompt": json.dumps(_BEDROCK),
        "gen_ai.completion": json.dumps({"role": "assistant", "content": [{"text": ANSWER}]}),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CONVENTIONS)
def test_a_span_of_each_convention_is_the_same_conversation(name, span, read_spans):
    reading = read_spans(span("1", CONVENTIONS[name]))
    assert reading.only == LINES
    assert not reading.counts.marked
    assert reading.counts.details["contents"]["calls"] == reading.counts.details["contents"]["results"] == 1


_EVENTS = {
    "attributes": [
        ("gen_ai.user.message", {"content": QUESTION}),
        ("gen_ai.assistant.message", {"tool_calls": json.dumps(_CHAT[1]["tool_calls"])}),
        ("gen_ai.tool.message", {"id": "c1", "content": "22C"}),
        ("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": json.dumps({"role": "assistant", "content": ANSWER})}),
    ],
    "a body of JSON": [
        ("gen_ai.user.message", {"gen_ai.event.content": json.dumps(_CHAT[0])}),
        ("gen_ai.assistant.message", {"gen_ai.event.content": json.dumps(_CHAT[1])}),
        ("gen_ai.tool.message", {"gen_ai.event.content": json.dumps({"id": "c1", "content": "22C"})}),
        ("gen_ai.choice", {"gen_ai.event.content": json.dumps({"index": 0, "message": {"role": "assistant", "content": ANSWER}})}),
    ],
    "blocks of Bedrock": [
        ("gen_ai.user.message", {"content": json.dumps(_BEDROCK[0]["content"])}),
        ("gen_ai.assistant.message", {"content": json.dumps(_BEDROCK[1]["content"])}),
        ("gen_ai.tool.message", {"role": "tool", "content": json.dumps(_BEDROCK[2]["content"])}),
        ("gen_ai.choice", {"message": json.dumps([{"text": ANSWER}]), "finish_reason": "end_turn"}),
    ],
    "prompt and completion": [
        ("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps(_CHAT)}),
        ("gen_ai.content.completion", {"gen_ai.completion": json.dumps([{"role": "assistant", "content": ANSWER}])}),
    ],
    "details": [
        (
            "gen_ai.client.inference.operation.details",
            {"gen_ai.input.messages": _GENAI_INPUT, "gen_ai.output.messages": _GENAI_OUTPUT},
        )
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", _EVENTS)
def test_messages_in_events_of_a_span_are_read(name, span, read_spans):
    events = [{"name": kind, "attributes": attributes, "time": [1, 0]} for kind, attributes in _EVENTS[name]]
    assert read_spans(span("1", {"gen_ai.operation.name": "chat"}, events=events)).only == LINES


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "c1",
         "gen_ai.tool.call.arguments": ARGUMENTS, "gen_ai.tool.call.result": "22C"},
        {"openinference.span.kind": "TOOL", "tool.name": "weather", "input.value": ARGUMENTS, "output.value": "22C"},
        {"traceloop.span.kind": "tool", "traceloop.entity.name": "weather", "traceloop.entity.input": ARGUMENTS, "traceloop.entity.output": "22C"},
        {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "weather", "ai.toolCall.id": "c1", "ai.toolCall.args": ARGUMENTS, "ai.toolCall.result": "22C"},
        {"mlflow.spanType": "TOOL", "gen_ai.tool.name": "weather", "mlflow.spanInputs": ARGUMENTS, "mlflow.spanOutputs": "22C"},
        {"langfuse.observation.type": "tool", "gen_ai.tool.name": "weather", "langfuse.observation.input": ARGUMENTS, "langfuse.observation.output": "22C"},
        {"gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "c1", "tool_arguments": ARGUMENTS, "tool_response": "22C"},
    ],
)  # fmt: skip
def test_a_tool_span_is_the_call_of_the_model_with_its_result(attributes, span, read_spans):
    question = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(_GENAI_INPUT[:1]),
        "gen_ai.output.messages": json.dumps(_GENAI_INPUT[1:2]),
    }
    answered = {**CONVENTIONS["genai as json"]}
    reading = read_spans(span("1", question), span("2", attributes, at=2), span("3", answered, at=4))
    assert reading.only == LINES
    assert reading.counts.details["contents"]["calls"] == 1


def test_system_instructions_are_one_message(span, read_spans):
    attributes = {
        **CONVENTIONS["genai as json"],
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be brief."}]),
    }
    reading = read_spans(span("1", attributes), span("2", attributes, at=5))
    assert reading.only == ["system: Be brief.", *LINES]
    assert len(reading.payloads("tool.called")) == 1


def test_media_and_reasoning_become_parts(span, read_spans):
    inputs = [
        {"role": "user", "parts": [{"type": "text", "content": "What is it?"}, {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "aGFsbG8="}]}
    ]  # fmt: skip
    outputs = [
        {"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, {"type": "text", "content": "A cat."}]}
    ]
    reading = read_spans(span("1", {"gen_ai.input.messages": inputs, "gen_ai.output.messages": outputs}))
    assert reading.only == ["user: What is it?\n[image/png, 5 B]", "assistant: A cat."]
    parts = [part for payload in reading.payloads("message.sent") for part in payload["parts"]]
    assert {part["type"] for part in parts} == {"text", "image", "reasoning"}


def test_an_unknown_part_is_marked_and_counted(span, read_spans):
    inputs = [{"role": "user", "parts": [{"type": "hologram", "content": "x"}]}]
    attributes = {"gen_ai.input.messages": inputs, "gen_ai.output.messages": _GENAI_OUTPUT}
    reading = read_spans(span("1", attributes))
    assert reading.only[0] == 'user: [unknown part "hologram"]'
    assert reading.counts.marked == {"part hologram": 1}


def test_model_usage_cost_and_stop_reason_are_recorded(span, read_spans):
    attributes = {
        **CONVENTIONS["openinference"],
        "llm.model_name": "m-1",
        "llm.token_count.prompt": 7,
        "llm.token_count.completion": 3,
        "llm.cost.total": 0.25,
    }
    reading = read_spans(span("1", attributes))
    (call,) = reading.payloads("llm.call_completed")
    assert call["model"] == "m-1"
    assert call["usage"] == {"input_tokens": 7, "output_tokens": 3}
    assert call["cost_usd"] == 0.25


def test_texts_that_mlflow_wrote_as_json_are_read_without_quotes(span, read_spans):
    named = {**CONVENTIONS["mlflow"], "mlflow.llm.model": '"m-1"', "mlflow.trace.session": '"s-1"'}
    tool = {"mlflow.spanType": '"TOOL"', "mlflow.spanInputs": ARGUMENTS, "mlflow.spanOutputs": '"22C"'}
    reading = read_spans(span("1", named), span("2", tool, at=2))
    assert [call["model"] for call in reading.payloads("llm.call_completed")] == ["m-1"]
    assert {result["output"] for result in reading.payloads("tool.completed")} == {"22C"}
    assert {*reading.sessions} == {"s-1"}


def test_the_model_of_mlflow_is_read_from_the_request_or_the_reply(span, read_spans):
    (call,) = read_spans(span("1", CONVENTIONS["mlflow"])).payloads("llm.call_completed")
    assert call["model"] == "m"
