"""Events of OpenHands: actions and observations of the older application, and the kinds of the newer SDK."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dicast import DataError
from dicast.toolkit.conversations import Conversation
from dicast.toolkit.message_formats.blocks import ANY, read_content
from dicast.toolkit.message_formats.chat import read_calls
from dicast.toolkit.parts import Part, ReasoningPart, TextPart, ToolCall, ToolResult
from dicast.toolkit.roles import role_of
from dicast.toolkit.session_reading import SessionReading
from dicast.toolkit.sessions import Session

from ..values import Record, id_of, list_of, mapping_of, objects_of, text_of

_SILENT_ACTIONS = frozenset(("change_agent_state", "recall", "condensation", "condensation_request", "loop_recovery", "start", "null", "pause", "resume", "stop"))  # fmt: skip
_SILENT_OBSERVATIONS = frozenset(("agent_state_changed", "recall", "null", "user_rejected_state", "loop_detection"))
_SILENT_KINDS = frozenset(
    ("PauseEvent", "Condensation", "CondensationRequest", "ConversationStateUpdateEvent", "LLMCompletionLogEvent", "TokenEvent", "InterruptEvent",
     "HookExecutionEvent", "StreamingDeltaEvent", "ACPToolCallEvent")
)  # fmt: skip
_MODEL_ERRORS = ("error_llm", "litellm", "llmnoresponse", "ratelimit", "contextwindow")
"""Words in the reasons of errors that are failed calls of the model."""
_SOURCES = ("agent", "user", "environment")
_FIELDS = frozenset(("timestamp", "args", "content", "extras", "cause"))
_NO_ARGUMENTS = ("thought", "blocking", "keep_prompt", "confirmation_state", "hidden", "is_confirmed", "security_risk")


def is_event(record: Record) -> bool:
    """Return whether *record* is an event of OpenHands."""
    kind = record.get("kind")
    if isinstance(kind, str) and "source" in record and "id" in record:
        return kind.endswith("Event") or kind in _SILENT_KINDS or kind in ("UserRejectObservation", "AgentErrorEvent")
    has_type = isinstance(record.get("action"), str) or isinstance(record.get("observation"), str)
    return has_type and record.get("source") in _SOURCES and not _FIELDS.isdisjoint(record)


class Events:
    """Collects the events of one session."""

    def __init__(self, reading: SessionReading, id: str) -> None:
        self.is_empty = True
        self._reading, self._id = reading, id
        self._conversation: Conversation | None = None
        self._instruction: str | None = None
        self._seen: dict[str, Record] = {}
        self._calls: dict[object, str | None] = {}  # the id of each action's call, by the id of the event

    @property
    def conversation(self) -> Conversation:
        """The conversation; the first access creates it."""
        if self._conversation is None:
            self._conversation = self._reading.conversation(self._id)
            self.is_empty = False
        return self._conversation

    def add_instruction(self, text: str) -> None:
        """Add the instruction of an evaluation, unless an event has it."""
        self._instruction = text

    def add_all(self, events: Iterable[object]) -> None:
        """Add the events of a list."""
        for event in events:
            if isinstance(event, dict):
                self.add(event)
            else:
                self.conversation.add("context", [self._reading.unknown("event", type(event).__name__, "history")])

    def add(self, event: Record) -> None:
        """Add one event. A conversation that was resumed or copied may have an event twice."""
        id_ = event.get("id")
        if isinstance(id_, str):  # the ids of the SDK are unique; numbers start again in a new log
            if self._seen.get(id_) == event:
                self._reading.totals.kinds["repeated event"] += 1
                return
            self._seen[id_] = event
        if ("kind" in event and "observation" not in event) or isinstance(event.get("observation"), dict):
            self._add_kind(event)
        elif isinstance(event.get("observation"), str):
            self._add_observation(event)
        elif isinstance(event.get("action"), str):
            self._add_action(event)
        elif "kind" in event:
            self._add_kind(event)
        else:
            marker = self._reading.unknown("event", ", ".join(event)[:60], "")
            self.conversation.add("context", [marker])

    def sessions(self, context: Mapping[str, object]) -> Iterator[Session]:
        """Yield the session, if there were events."""
        if self._instruction is not None and not self.conversation.has_turns:
            self.conversation.add("user", [TextPart(self._instruction)])
        if self._conversation is not None:
            yield self._reading.end(self._conversation, context)

    def _add_action(self, event: Record) -> None:
        action, args, time = str(event["action"]), mapping_of(event, "args"), text_of(event, "timestamp")
        self._reading.totals.kinds[f"action {action}"] += 1
        conversation, source = self.conversation, event.get("source")
        if action == "message":
            text = text_of(args, "content") or text_of(event, "message") or ""
            self._answer("user" if source == "user" else "assistant", [TextPart(text)], event, time)
        elif action == "system":
            conversation.add("system", [TextPart(text_of(args, "content") or "")], time=time)
        elif action not in _SILENT_ACTIONS:
            metadata = mapping_of(event, "tool_call_metadata")
            id_ = text_of(metadata, "tool_call_id")
            self._calls[id_of(event, "id")] = id_ or f"event-{event.get('id')}"
            arguments = {key: value for key, value in args.items() if key not in _NO_ARGUMENTS and value is not None}
            thought = text_of(args, "thought")
            parts: list[Part] = [TextPart(thought)] if thought and action != "think" else []
            name = text_of(metadata, "function_name") or action
            arguments |= {"thought": thought} if action == "think" and thought else {}
            parts.append(ToolCall(self._calls[id_of(event, "id")], name, arguments))
            if action == "finish" and (final := text_of(args, "final_thought", "message")):
                parts.append(TextPart(final))
            self._answer("assistant" if source != "user" else "user", parts, event, time)

    def _answer(self, role: str, parts: list[Part], event: Record, time: str | None) -> None:
        """Add a message; if it is the assistant's, also record its model call."""
        if role == "assistant":
            if not self.conversation.has_turns:
                self._start()
            response = mapping_of(mapping_of(event, "tool_call_metadata"), "model_response")
            model, usage = text_of(response, "model"), mapping_of(response, "usage") or None
            self.conversation.model_call(model=model, usage=usage, time=time)
        self.conversation.add(role, parts, time=time)

    def _start(self) -> None:
        """Start the first turn with the instruction as the prompt, if there is one."""
        if self._instruction is not None:
            self.conversation.add("user", [TextPart(self._instruction)])
            self._instruction = None
        else:
            self.conversation.start_turn()

    def _add_observation(self, event: Record) -> None:
        kind, time, extras = str(event["observation"]), text_of(event, "timestamp"), mapping_of(event, "extras")
        self._reading.totals.kinds[f"observation {kind}"] += 1
        if kind in _SILENT_OBSERVATIONS:
            if extras.get("agent_state") == "error":
                self._add_error(text_of(extras, "reason") or text_of(event, "content", "message") or "error", time)
            return
        content = event.get("content", event.get("message"))
        cause = id_of(event, "cause")
        id_ = text_of(mapping_of(event, "tool_call_metadata"), "tool_call_id") or self._calls.get(cause)
        if id_ is None and kind in ("error", "chat") and cause not in self._calls:
            self.conversation.add("context", [TextPart(str(content))], time=time)
            return
        code = extras.get("exit_code", mapping_of(extras, "metadata").get("exit_code"))
        code = code if type(code) is int and code >= 0 else None
        is_error = kind in ("error", "user_rejected") or (event.get("success") is False and not code)
        self.conversation.add("tool", [ToolResult(id_, content, None, is_error, code)], time=time)

    def _add_error(self, reason: str, time: str | None) -> None:
        """Add the error that stopped the agent: a failed call of the model if the *reason* names one."""
        if any(word in reason.lower() for word in _MODEL_ERRORS):
            self.conversation.model_failure(reason, time=time)
        else:
            self.conversation.interruption("error")

    def _add_kind(self, event: Record) -> None:
        """Add an event of the SDK."""
        kind, time = str(event.get("kind")), text_of(event, "timestamp")
        conversation = self.conversation
        self._reading.totals.kinds[kind] += 1
        match kind:
            case "SystemPromptEvent":
                prompt = event.get("system_prompt")
                parts = self._content([prompt] if isinstance(prompt, dict) else prompt, "system_prompt")
                conversation.add("system", parts, time=time)
            case "MessageEvent":
                self._add_message(event, time)
            case "ActionEvent":
                self._add_call(event, time)
            case "ObservationEvent":
                conversation.add("tool", [self._result(event)], time=time)
            case "AgentErrorEvent" | "UserRejectObservation":
                text = text_of(event, "error", "rejection_reason") or ""
                result = ToolResult(text_of(event, "tool_call_id"), text, text_of(event, "tool_name"), is_error=True)
                conversation.add("tool", [result], time=time)
            case "CondensationSummaryEvent" | "ConversationErrorEvent":
                text = text_of(event, "summary", "detail", "error") or kind
                conversation.add("context", [TextPart(text)], time=time)
                if kind == "ConversationErrorEvent":
                    conversation.model_failure(text, time=time)
            case _ if kind not in _SILENT_KINDS:
                conversation.add("context", [self._reading.unknown("event", kind, "kind")], time=time)

    def _add_message(self, event: Record, time: str | None) -> None:
        message = mapping_of(event, "llm_message")
        name = message.get("role", event.get("source"))
        role = role_of(name)
        parts: list[Part] = []
        if reasoning := text_of(message, "reasoning_content") or text_of(event, "reasoning_content"):
            parts.append(ReasoningPart(reasoning))
        parts += self._content(message.get("content"), "llm_message.content")
        try:
            parts += read_calls(message, "llm_message", self._reading.shapes)
        except DataError as error:
            parts.append(self._reading.malformed(error, "message"))
        if role is None:
            parts = [self._reading.shapes.unknown_role(name, "llm_message"), *parts]
        self._answer(role or str(name), parts, event, time)

    def _add_call(self, event: Record, time: str | None) -> None:
        call, action = mapping_of(event, "tool_call"), mapping_of(event, "action")
        function = mapping_of(call, "function") or call
        name = text_of(event, "tool_name") or text_of(function, "name") or "unknown"
        arguments: object = {key: value for key, value in action.items() if key != "kind"}
        arguments = function.get("arguments") if "arguments" in function else arguments
        thoughts = [text_of(block, "thinking") for block in objects_of(event, "thinking_blocks")]
        reasoning = text_of(event, "reasoning_content") or "\n".join(text for text in thoughts if text)
        parts: list[Part] = [ReasoningPart(reasoning)] if reasoning else []
        parts += self._content(list_of(event, "thought"), "thought")
        parts.append(ToolCall(text_of(event, "tool_call_id") or text_of(call, "id"), name, arguments))
        if name == "finish" and (final := text_of(action, "message")):
            parts.append(TextPart(final))
        self._answer("assistant", parts, event, time)

    def _result(self, event: Record) -> ToolResult:
        value = mapping_of(event, "observation")
        content = value.get("content", value.get("output"))
        parts: object = content
        if isinstance(content, list):
            parts = self._content(content, "observation.content") or ""
        code = value.get("exit_code", mapping_of(value, "metadata").get("exit_code"))
        code = code if type(code) is int and code >= 0 else None
        is_error = value.get("is_error") is True or bool(value.get("error"))
        return ToolResult(text_of(event, "tool_call_id"), parts, text_of(event, "tool_name"), is_error, code)

    def _content(self, content: object, path: str) -> list[Part]:
        try:
            return read_content(content, path, self._reading.shapes, ANY)
        except DataError as error:
            return [self._reading.malformed(error, "message")]
