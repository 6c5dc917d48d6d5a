"""Sessions of GitHub Copilot: event files of its command line, chat sessions of VS Code, and transcripts of AgentV."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from dicast.toolkit.beginning import Beginning
from dicast.toolkit.conversations import Conversation
from dicast.toolkit.detection import Detection
from dicast.toolkit.parts import MediaPart, Part, ReasoningPart, TextPart, ToolCall, ToolResult
from dicast.toolkit.session_reading import Failed, SessionReading
from dicast.toolkit.session_source import SessionSource
from dicast.toolkit.sessions import Session

from . import agentv, copilot_chat, copilot_chat_log
from .values import Record, mapping_of, objects_of, text_of

_AREAS = ("session.", "user.", "assistant.", "tool.", "subagent.", "skill.", "hook.", "permission.", "user_input.", "system.", "model.", "elicitation.",
          "external_tool.", "command.", "exit_plan_mode.", "sampling.", "mcp.", "commands.", "capabilities.", "auto_mode", "abort", "pending_messages.")  # fmt: skip


@attrs.frozen
class Copilot(SessionSource):
    """Sessions of GitHub Copilot: event files of its command line, chats of VS Code, and transcripts of AgentV.

    A chat of VS Code is a JSON document, or the log of its changes.
    A sub-agent becomes a separate session. A tool call that did not succeed is a failure.
    """

    title = "a Copilot session"

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the detection of an event file, a chat session or a transcript."""
        lines = any(agentv.is_line(record) for record in beginning.objects)
        if lines and not agentv.is_of(beginning, "codex"):
            specificity = 1 if agentv.is_of(beginning, "copilot") else 0
            title = cls.title if specificity else "a transcript of AgentV"
            return Detection(title, agentv.version_of(beginning), specificity=specificity)
        if any(map(_is_event, beginning.objects)):
            starts = [
                mapping_of(record, "data") for record in beginning.objects if record.get("type") == "session.start"
            ]
            return Detection(cls.title, next((text_of(start, "copilotVersion") for start in starts), None))
        records = beginning.objects
        is_chat = any(map(copilot_chat.is_chat, records)) or any(map(copilot_chat_log.is_start, records[:1]))
        return Detection("a Copilot chat of VS Code") if is_chat else None

    def sessions(self, reading: SessionReading) -> Iterator[Session | Failed]:
        """Yield the sessions of one file."""
        transcripts, events = agentv.Transcripts(reading), _Events(reading)
        log = copilot_chat_log.ChatLog(reading)
        for _, line, record in reading.records(joins_messages=False):
            if agentv.is_line(record):
                transcripts.add(record, line)
            elif copilot_chat.is_chat(record):
                yield copilot_chat.read_chat(record, reading)
            elif copilot_chat_log.is_operation(record):
                log.add(record)
            else:
                events.add(record)
        yield from transcripts.sessions()
        yield from events.sessions()
        yield from log.sessions()


def _is_event(record: Record) -> bool:
    type_ = record.get("type")
    return isinstance(type_, str) and isinstance(record.get("data"), dict) and type_.startswith(_AREAS)


@attrs.define
class _Agent:
    """The session of one agent, with the ids of its calls and messages."""

    conversation: Conversation
    context: dict[str, object] = attrs.field(factory=dict)
    calls: set[str | None] = attrs.field(factory=set)
    messages: set[str] = attrs.field(factory=set)
    reasoning: str | None = None


class _Events:
    """Collects the events of one file by agent."""

    def __init__(self, reading: SessionReading) -> None:
        self._reading = reading
        self._agents: dict[str | None, _Agent] = {}
        self._id: str | None = None
        self._model: str | None = None

    def add(self, record: Record) -> None:
        """Add an event."""
        type_, data, time = str(record.get("type")), mapping_of(record, "data"), text_of(record, "timestamp")
        if type_ == "result":  # the last line of a run's output has no message
            self._reading.totals.kinds[type_] += 1
            return
        if not _is_event(record):
            self._reading.unknown("event", record.get("type", ", ".join(record)[:60]), "type")
            return
        self._reading.totals.kinds[type_] += 1
        self._model = text_of(data, "newModel", "selectedModel", "model") or self._model
        if type_ == "session.start":
            self._id = self._id or text_of(data, "sessionId")
            fields = {key: data[key] for key in ("copilotVersion", "context", "selectedModel") if data.get(key)}
            self._agent(None).context.update(fields)
            return
        call = text_of(data, "parentToolCallId")
        agent = self._agent(text_of(record, "agentId") or call, call)
        match type_:
            case "user.message":
                agent.conversation.add("user", _prompt(data), time=time)
            case "system.message":
                agent.conversation.add("system", [TextPart(text_of(data, "content") or "")], time=time)
            case "assistant.reasoning":
                agent.reasoning = text_of(data, "content", "reasoningText")
            case "assistant.message":
                self._add_answer(agent, data, time)
            case "tool.execution_start" | "tool.user_requested":
                self._add_call(agent, data, time)
            case "tool.execution_complete":
                agent.conversation.add("tool", [_result(data)], time=time)
            case "assistant.usage":
                keys = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
                usage = {key: data[key] for key in keys if data.get(key) is not None}
                model = text_of(data, "model")
                agent.conversation.model_call(model=model, usage=usage or None, time=time)
            case "session.error" | "session.warning" | "system.notification":
                text = text_of(data, "message", "content") or type_
                agent.conversation.add("context", [TextPart(text)], time=time)
                if type_ == "session.error":
                    agent.conversation.model_failure(text, model=self._model, time=time)
            case "abort":
                agent.conversation.interruption("interrupted")

    def sessions(self) -> Iterator[Session]:
        """Yield the sessions; the main session is first."""
        for agent in self._agents.values():
            yield self._reading.end(agent.conversation, agent.context)

    def _agent(self, name: str | None, call: str | None = None) -> _Agent:
        if name not in self._agents:
            if name is not None and None not in self._agents:
                self._agent(None)
            id_ = self._id or self._reading.stem
            conversation = self._reading.conversation(
                id_ if name is None else f"{id_}/agent-{name}", None if name is None else id_, call
            )
            self._agents[name] = _Agent(conversation)
        return self._agents[name]

    def _add_answer(self, agent: _Agent, data: Record, time: str | None) -> None:
        conversation = agent.conversation
        if (id_ := text_of(data, "messageId")) is not None:
            if id_ in agent.messages:  # the event file may repeat a message
                self._reading.totals.kinds["repeated message"] += 1
                return
            agent.messages.add(id_)
        if not conversation.has_turns:
            conversation.start_turn()
        tokens = data.get("outputTokens")
        usage = {"outputTokens": tokens} if tokens is not None else None
        conversation.model_call(model=text_of(data, "model") or self._model, usage=usage, time=time)
        parts: list[Part] = []
        reasoning = text_of(data, "reasoningText") or agent.reasoning
        agent.reasoning = None
        if reasoning:
            parts.append(ReasoningPart(reasoning))
        if text := text_of(data, "content"):
            parts.append(TextPart(text))
        for number, request in enumerate(objects_of(data, "toolRequests")):
            if (name := text_of(request, "name")) is None:
                parts.append(self._reading.unknown("tool request", ", ".join(request)[:60], f"toolRequests[{number}]"))
                continue
            id_ = text_of(request, "toolCallId")
            if id_ is not None and id_ in agent.calls:
                self._reading.totals.kinds["repeated call"] += 1
                continue
            agent.calls.add(id_)
            parts.append(ToolCall(id_, name, request.get("arguments")))
        conversation.add("assistant", parts, time=time)

    def _add_call(self, agent: _Agent, data: Record, time: str | None) -> None:
        """Add a call that is in no message of the assistant."""
        id_ = text_of(data, "toolCallId")
        if id_ in agent.calls:
            return
        agent.calls.add(id_)
        name = text_of(data, "toolName", "name") or "unknown"
        agent.conversation.add("assistant", [ToolCall(id_, name, data.get("arguments"))], time=time)


def _prompt(data: Record) -> list[Part]:
    names = (text_of(attachment, "displayName", "path", "filePath") for attachment in objects_of(data, "attachments"))
    return [TextPart(text_of(data, "content") or ""), *(MediaPart("file", name=name) for name in names)]


def _result(data: Record) -> ToolResult:
    result, error = data.get("result"), data.get("error")
    content: object = result
    if isinstance(result, dict) and isinstance(result.get("content"), str):
        content = result["content"]
    if error is not None and result is None:
        content = text_of(error, "message") if isinstance(error, dict) else error
    is_error = data.get("success") is False or (error is not None and data.get("success") is not True)
    return ToolResult(text_of(data, "toolCallId"), content, text_of(data, "toolName"), is_error)
