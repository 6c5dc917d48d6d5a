"""Record the spans of this example with the SDK of OpenTelemetry: an agent of a shop, which asks an expert agent once.

Run it with ``uv run --with opentelemetry-sdk python record.py``. The agent has no model: its answers are below.
"""  # noqa: INP001

from __future__ import annotations

import json
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.trace import Span, Status, StatusCode, Tracer

FILE = Path(__file__).with_name("spans.jsonl")

Message = dict[str, object]


def text(role: str, content: str) -> Message:
    """Return a message that is one text."""
    return {"role": role, "parts": [{"type": "text", "content": content}]}


def call(id: str, name: str, **arguments: object) -> Message:
    """Return a message that calls a tool."""
    return {"role": "assistant", "parts": [{"type": "tool_call", "id": id, "name": name, "arguments": arguments}]}


def result(id: str, response: str) -> Message:
    """Return a message with the result of a tool."""
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": id, "response": response}]}


class Agent:
    """An agent whose model calls repeat the history of its conversation, as real ones do."""

    def __init__(self, tracer: Tracer, name: str, conversation: str | None = None) -> None:
        self._tracer, self._name, self._conversation = tracer, name, conversation
        self._history: list[Message] = []

    def invoke(self, question: str, *steps: Message | tuple[Message, str, bool, Agent | None]) -> None:
        """Record one invocation: a *question*, and the steps of its answer."""
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": self._name}
        if self._conversation is not None:
            attributes["gen_ai.conversation.id"] = self._conversation
        self._history.append(text("user", question))
        with self._tracer.start_as_current_span(f"invoke_agent {self._name}", attributes=attributes):
            for step in steps:
                if isinstance(step, tuple):
                    self._chat(step[0])
                    self._execute(*step)
                else:
                    self._chat(step)

    def _chat(self, answer: Message) -> None:
        with self._tracer.start_as_current_span("chat shop-1") as span:
            span.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.request.model": "shop-1"})
            span.set_attribute("gen_ai.input.messages", json.dumps(self._history))
            span.set_attribute("gen_ai.output.messages", json.dumps([{**answer, "finish_reason": "stop"}]))
            span.set_attributes(
                {"gen_ai.usage.input_tokens": 40 * len(self._history), "gen_ai.usage.output_tokens": 12}
            )
            self._history.append(answer)

    def _execute(self, request: Message, response: str, is_failed: bool, expert: Agent | None) -> None:
        [part] = request["parts"]  # type: ignore[misc]
        with self._tracer.start_as_current_span(f"execute_tool {part['name']}") as span:
            span.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": part["name"]})
            span.set_attributes(
                {"gen_ai.tool.call.id": part["id"], "gen_ai.tool.call.arguments": json.dumps(part["arguments"])}
            )
            if expert is not None:
                expert.invoke(part["arguments"]["question"], text("assistant", response))
            self._finish(span, response, is_failed)
        self._history.append(result(part["id"], response))

    @staticmethod
    def _finish(span: Span, response: str, is_failed: bool) -> None:
        if is_failed:
            span.set_status(Status(StatusCode.ERROR, response))
        else:
            span.set_attribute("gen_ai.tool.call.result", response)


def main() -> None:
    """Write the file."""
    with FILE.open("w", encoding="utf-8") as file:
        provider = TracerProvider(shutdown_on_exit=False)
        exporter = ConsoleSpanExporter(out=file, formatter=lambda span: span.to_json(indent=None) + "\n")
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        tracer = provider.get_tracer("shop")
        shop, expert = Agent(tracer, "shop", "order-17"), Agent(tracer, "returns")
        shop.invoke(
            "Where is my order 17?",
            (call("c1", "find_order", number=17), "sent on Monday", False, None),
            text("assistant", "Your order was sent on Monday."),
        )
        shop.invoke(
            "May I return it after 40 days?",
            (
                call("c2", "ask_expert", question="Returns after 40 days?"),
                "No: returns end after 30 days.",
                False,
                expert,
            ),
            text("assistant", "No, returns end after 30 days."),
        )
        shop.invoke(
            "Then cancel it.",
            (call("c3", "cancel_order", number=17), "the order was sent", True, None),
            text("assistant", "I could not cancel it: the order was sent already."),
        )


if __name__ == "__main__":
    main()
