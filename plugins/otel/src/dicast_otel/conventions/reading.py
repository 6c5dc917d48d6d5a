"""The messages, the tool call and the figures of a span in any convention."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from dicast.toolkit.message_formats import Shapes

from ..span import Attributes, Span
from . import vercel
from .events import DETAILS, NAMES, read_events
from .figures import Figures, figures_of
from .indexed import read_openinference, read_openllmetry
from .message import Collector, Message
from .values import parsed, read_value

Reader = Callable[[Attributes, Collector], None]


@attrs.frozen
class Exchange:
    """The messages that a model or an agent received in a span (*inputs*), and its answers (*outputs*)."""

    inputs: Sequence[Message]
    outputs: Sequence[Message]

    def __bool__(self) -> bool:
        return bool(self.inputs or self.outputs)


_NO_MESSAGES = Exchange((), ())


@attrs.frozen
class ToolUse:
    """A call of a tool with its result. *has_result* is False if the span does not record a result."""

    id: str | None
    name: str
    arguments: object
    result: object
    has_result: bool
    error: str | None


def exchange_of(span: Span, shapes: Shapes, *, generic: bool = True) -> Exchange:
    """Return the messages of a span; with *generic* also messages in attributes for any kind of input and output."""
    inputs, outputs = Collector(shapes), Collector(shapes)
    attributes = span.attributes
    details = next((event.attributes for event in span.events if event.name == DETAILS), None)
    for source in (attributes, details or {}):
        if not inputs.messages:
            _read_genai(source, inputs)
        _try(source, outputs, _OUTPUTS[:1])
    bodies = _bodies(attributes) or [(event.name, event.attributes) for event in span.events if event.name in NAMES]
    if bodies and not (inputs.messages and outputs.messages):
        own_inputs, own_outputs = Collector(shapes), Collector(shapes)
        read_events(bodies, own_inputs, own_outputs)
        inputs.messages = inputs.messages or own_inputs.messages
        outputs.messages = outputs.messages or own_outputs.messages
    count = len(_INPUTS) if generic else _SPECIFIC
    _try(attributes, inputs, _INPUTS[:count])
    _try(attributes, outputs, _OUTPUTS[1 : count + 1])
    history = _history(attributes, shapes)
    if history and not (inputs.messages and outputs.messages):
        return history
    return Exchange(inputs.messages, outputs.messages)


def _try(attributes: Attributes, collector: Collector, readers: Sequence[Reader]) -> None:
    for reader in readers:
        if collector.messages:
            return
        reader(attributes, collector)


def _read_genai(attributes: Attributes, collector: Collector) -> None:
    if "gen_ai.input.messages" in attributes or "gen_ai.system_instructions" in attributes:
        if attributes.get("gen_ai.system_instructions"):
            read_value({"system": attributes["gen_ai.system_instructions"], "messages": []}, "user", "", collector)
        read_value(attributes.get("gen_ai.input.messages"), "user", "gen_ai.input.messages", collector)


def _genai_outputs(attributes: Attributes, collector: Collector) -> None:
    read_value(attributes.get("gen_ai.output.messages"), "assistant", "gen_ai.output.messages", collector)


def _openllmetry(*prefixes: str, role: str) -> Reader:
    def read(attributes: Attributes, collector: Collector) -> None:
        for prefix in prefixes:
            if not collector.messages:
                read_openllmetry(attributes, prefix, role, collector)

    return read


def _openinference(prefix: str, role: str) -> Reader:
    def read(attributes: Attributes, collector: Collector) -> None:
        read_openinference(attributes, prefix, role, collector)

    return read


def _plain(role: str, *keys: str) -> Reader:
    """Return a reader of the first of *keys*, whose value holds messages in some form."""

    def read(attributes: Attributes, collector: Collector) -> None:
        for key in keys:
            if not collector.messages and attributes.get(key) not in (None, "", "{}"):
                read_value(_entity(attributes[key]), role, key, collector)

    return read


def _entity(value: object) -> object:
    """Return the input of a function whose arguments OpenLLMetry recorded as ``{args, kwargs}``; any other value unchanged."""
    inner = parsed(value)
    if isinstance(inner, dict) and {"args", "kwargs"} == set(inner) and isinstance(inner["kwargs"], dict):
        arguments = [*inner["args"], *inner["kwargs"].values()]
        return arguments[0] if len(arguments) == 1 else inner
    return value


def _bodies(attributes: Attributes) -> list[tuple[str, Attributes]]:
    """Return the events that pydantic-ai writes into one attribute of a span."""
    events = parsed(attributes.get("events"))
    if not isinstance(events, list):
        return []
    return [
        (str(event.get("event.name")), event) for event in events if isinstance(event, dict) and "event.name" in event
    ]


def _history(attributes: Attributes, shapes: Shapes) -> Exchange:
    """Return the history that an agent of pydantic-ai records. The outputs are the assistant's messages at its end."""
    if "pydantic_ai.all_messages" not in attributes and "all_messages_events" not in attributes:
        return _NO_MESSAGES
    collector = Collector(shapes)
    read_value(attributes.get("pydantic_ai.all_messages"), "user", "pydantic_ai.all_messages", collector)
    events = parsed(attributes.get("all_messages_events"))
    if not collector.messages and isinstance(events, list):
        plain = [event for event in events if isinstance(event, dict)]
        answers = Collector(shapes)
        for event in plain:  # event by event into one collector, which keeps the order
            read_events([(str(event.get("event.name")), event)], collector, answers)
            collector.messages += answers.messages
            answers.messages = []
    last = max((place for place, message in enumerate(collector.messages) if message.role != "assistant"), default=-1)
    return Exchange(collector.messages[: last + 1], collector.messages[last + 1 :])


_INPUTS: Sequence[Reader] = (
    _openllmetry("gen_ai.prompt", "llm.prompts", role="user"),
    _openinference("llm.input_messages", "user"),
    vercel.read_prompt,
    _plain("user", "gcp.vertex.agent.llm_request", "request_data"),
    _plain(
        "user",
        "gen_ai.prompt",
        "mlflow.spanInputs",
        "langfuse.observation.input",
        "input.value",
        "traceloop.entity.input",
        "input",
    ),
)
_OUTPUTS: Sequence[Reader] = (
    _genai_outputs,
    _openllmetry("gen_ai.completion", "llm.completions", role="assistant"),
    _openinference("llm.output_messages", "assistant"),
    vercel.read_answer,
    _plain("assistant", "gcp.vertex.agent.llm_response", "response_data"),
    _plain("assistant", "gen_ai.completion", "mlflow.spanOutputs", "langfuse.observation.output", "output.value", "traceloop.entity.output", "final_result", "output"),
)  # fmt: skip
_SPECIFIC = len(_INPUTS) - 1


def figures(span: Span) -> Figures:
    """Return the figures of a span."""
    return figures_of(span.attributes)


_TOOL_IDS = ("gen_ai.tool.call.id", "ai.toolCall.id", "tool_call.id", "tool.id")
_TOOL_NAMES = ("gen_ai.tool.name", "ai.toolCall.name", "tool.name", "tool_call.function.name", "traceloop.entity.name")
_ARGUMENTS = ("gen_ai.tool.call.arguments", "ai.toolCall.args", "gcp.vertex.agent.tool_call_args", "tool_arguments", "tool_call.function.arguments",
              "mlflow.spanInputs", "langfuse.observation.input", "input.value", "traceloop.entity.input", "gen_ai.tool.arguments", "tool.parameters", "input")  # fmt: skip
_RESULTS = ("gen_ai.tool.call.result", "ai.toolCall.result", "gcp.vertex.agent.tool_response", "tool_response", "mlflow.spanOutputs",
            "langfuse.observation.output", "output.value", "traceloop.entity.output", "gen_ai.tool.message", "gen_ai.tool.result", "output")  # fmt: skip
_PREFIXES = ("execute_tool ", "running tool: ", "running tool ", "ai.toolCall ")


def tool_of(span: Span) -> ToolUse:
    """Return the tool call in a span of a tool."""
    attributes = span.attributes
    id_ = next((value for key in _TOOL_IDS if isinstance(value := attributes.get(key), str) and value), None)
    name = next((value for key in _TOOL_NAMES if isinstance(value := attributes.get(key), str) and value), None)
    if name is None:
        name = next((span.name.removeprefix(start) for start in _PREFIXES if span.name.startswith(start)), span.name)
    arguments = next((attributes[key] for key in _ARGUMENTS if attributes.get(key) is not None), None)
    key = next((key for key in _RESULTS if attributes.get(key) is not None), None)
    result = attributes[key] if key is not None else None
    for event in span.events:
        if event.name == "gen_ai.tool.message" and arguments is None:
            arguments, id_ = event.attributes.get("content"), id_ or event.attributes.get("id")
        elif event.name == "gen_ai.choice" and key is None:
            key, result = event.name, event.attributes.get("message", event.attributes.get("content"))
    error = span.error
    if error is not None and not error:
        error = _exception(span)
    if attributes.get("gen_ai.tool.status") == "error":
        error = error or ""
    return ToolUse(id_, name, _entity(arguments), result, key is not None, error)


def _exception(span: Span) -> str:
    """Return the text of the exception that a span recorded, empty without one."""
    for event in span.events:
        if event.name == "exception":
            words = (event.attributes.get("exception.type"), event.attributes.get("exception.message"))
            return ": ".join(str(word) for word in words if word)
    return str(span.attributes.get("error.type") or "")


def error_text(span: Span) -> str:
    """Return why a span failed."""
    return span.error or _exception(span) or "no message"
