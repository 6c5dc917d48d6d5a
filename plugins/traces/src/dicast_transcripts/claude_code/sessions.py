"""Builds the sessions of one file: adds the records to their conversations, in the order of the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from dicast import DataError
from dicast.toolkit.conversations import Conversation
from dicast.toolkit.message_formats.blocks import ANTHROPIC, read_content
from dicast.toolkit.parts import Part, TextPart, ToolCall, ToolResult, visible_text
from dicast.toolkit.session_reading import SessionReading
from dicast.toolkit.sessions import Session

from ..values import Record, mapping_of, text_of, word_of
from .branches import Branches
from .kinds import BOOKKEEPING, INTERRUPTED, is_command, is_context

CONTEXT = "context"
"""The role of texts that the tool wrote in the user's name."""

_SYNTHETIC = "<synthetic>"
_FIELDS = ("cwd", "gitBranch", "version", "slug")


@attrs.define
class _Answer:
    """An answer of the assistant that is streamed over several lines, with its *blocks* so far and the recorded *usage*."""

    blocks: list[Any] = attrs.field(factory=list)
    usage: dict[str, Any] | None = None


@attrs.define
class _Thread:
    """One session. *waiting* is a command whose kind the next record will show; *answers* has the streamed answers by id."""

    conversation: Conversation
    context: dict[str, object] = attrs.field(factory=dict)
    waiting: tuple[list[Part], str | None] | None = None
    answers: dict[str, _Answer] = attrs.field(factory=dict)
    calls: set[str] = attrs.field(factory=set)
    queued: set[str] = attrs.field(factory=set)
    last_id: str | None = None
    parts: list[Part] = attrs.field(factory=list)
    time: str | None = None
    has_failed: bool = False


class SessionFile:
    """Collects the records of one file by session; each sub-agent has its own session."""

    def __init__(self, reading: SessionReading) -> None:
        self._reading = reading
        self._records: list[tuple[int, Record]] = []
        self._branches = Branches()
        self._threads: dict[tuple[str, str | None], _Thread] = {}
        self._abandoned: dict[str, _Thread] = {}
        self._is_abandoned = False
        self._sidechains: dict[object, str] = {}  # the root of each record of a sub-agent, by the record's uuid
        self._seen: dict[object, object] = {}
        self._newest: str | None = None

    def add(self, record: dict[str, Any], line: int) -> None:
        """Add the record on *line*."""
        type_ = record.get("type")
        self._branches.add(record)
        if type_ in ("user", "assistant", "attachment") or (isinstance(type_, str) and type_ in BOOKKEEPING):
            self._reading.totals.kinds[str(type_)] += 1
            if type_ not in BOOKKEEPING or _is_retry(record) or _is_end(record) or _is_unqueued(record):
                result = record.pop("toolUseResult", None)  # the message has it too
                if isinstance(result, dict) and "agentId" in result:
                    record["agent"] = result["agentId"]
                self._records.append((line, record))
        else:
            self._reading.unknown(
                "record type" if "type" in record else "record", type_ or ", ".join(record)[:60], "type"
            )

    def sessions(self) -> Iterator[Session]:
        """Yield the sessions; a main session comes before its sub-agents."""
        abandoned = frozenset[str]() if self._reading.keeps_abandoned else self._branches.abandoned()
        for line, record in self._records:
            self._reading.line = line
            is_step = record["type"] not in ("system", "result") and not _is_sidechain(record)
            if is_step and (uuid := word_of(record, "uuid")) is not None:
                self._is_abandoned = uuid in abandoned
            self._add_message(record)
            self._reading.settle(line)
        for thread in self._abandoned.values():
            self._end(thread)
            self._reading.abandon(thread.conversation)
        for thread in self._threads.values():
            self._end(thread)
            yield self._reading.end(thread.conversation, thread.context)

    def _add_message(self, record: Record) -> None:
        type_, message = record["type"], record.get("message")
        if type_ == "attachment":
            self._add_attachment(record)
        elif type_ == "queue-operation":
            self._add_queued(record, record.get("content"))
        elif type_ in ("system", "result"):
            self._add_fault(self._thread(record), record)
        elif not isinstance(message, dict):
            marker = self._reading.unknown("message", type(message).__name__, "message")
            self._thread(record).conversation.add(CONTEXT, [marker])
        elif not self._is_repeated(record, message):
            thread = self._thread(record)
            self._add_answer(thread, record, message) if type_ == "assistant" else self._add_user(
                thread, record, message
            )

    def _end(self, thread: _Thread) -> None:
        self._end_answer(thread)
        self._end_command(thread, is_turn=False)

    def _is_repeated(self, record: Record, message: object) -> bool:
        """Return whether the file has had the same record before, which happens if a session was resumed."""
        uuid = word_of(record, "uuid")
        if uuid is None:
            return False
        if uuid in self._seen and self._seen[uuid] == message:
            self._reading.totals.kinds["repeated record"] += 1
            return True
        self._seen[uuid] = message
        return False

    def _thread(self, record: Record) -> _Thread:
        """Return the session to which *record* belongs."""
        session_id = text_of(record, "sessionId", "session_id") or self._newest or self._reading.stem
        self._newest = session_id
        agent = self._agent(record)
        if agent is None and self._is_abandoned:
            return self._abandoned.setdefault(session_id, _Thread(Conversation(session_id)))
        thread = self._threads.get((session_id, agent))
        if thread is None:
            id_ = session_id if agent is None else f"{session_id}/agent-{agent}"
            parent = None if agent is None else session_id
            call = text_of(record, "parent_tool_use_id")
            thread = self._threads[session_id, agent] = _Thread(self._reading.conversation(id_, parent, call))
            thread.context.update((key, record[key]) for key in _FIELDS if record.get(key))
        return thread

    def _agent(self, record: Record) -> str | None:
        """Return the id of the sub-agent that wrote *record*, or None for the main session."""
        if called := text_of(record, "parent_tool_use_id"):
            return called
        if not _is_sidechain(record):
            return None
        if agent := text_of(record, "agentId"):
            return agent
        uuid, parent = word_of(record, "uuid"), word_of(record, "parentUuid")
        root = self._sidechains.get(parent) or str(uuid or len(self._sidechains) + 1)
        self._sidechains[uuid] = root
        return root

    def _add_user(self, thread: _Thread, record: Record, message: Record) -> None:
        self._end_answer(thread)
        thread.has_failed = False
        time = text_of(record, "timestamp")
        parts = self._parts(message, "user")
        text = visible_text([part for part in parts if not isinstance(part, ToolCall | ToolResult)]) or ""
        if any(isinstance(part, ToolResult) for part in parts):
            self._end_command(thread, is_turn=False)
            parts = _with_agent(parts, text_of(record, "agent"), thread.conversation.id)
            thread.conversation.add("user" if not is_context(text.lstrip()) else "tool", parts, time=time)
        elif record.get("isMeta") or record.get("isCompactSummary") or is_context(text.lstrip()) or _is_sent(record):
            # The prompt of a slash command follows the command, as a text of the tool.
            is_prompt = bool(record.get("isMeta")) and not is_context(text.lstrip())
            self._end_command(thread, is_turn=is_prompt)
            thread.conversation.add(CONTEXT, parts, time=time)
        elif is_command(text.lstrip()):
            self._end_command(thread, is_turn=False)
            thread.waiting = (parts, time)
        else:
            self._end_command(thread, is_turn=False)
            thread.conversation.add("user", parts, time=time)
        if text.lstrip().startswith(INTERRUPTED):
            thread.conversation.interruption("interrupted")

    def _add_fault(self, thread: _Thread, record: Record) -> None:
        """Add a failed call of the model that Claude Code tries again, or the error that ended the session."""
        self._end_answer(thread)
        self._end_command(thread, is_turn=True)
        conversation, subtype = thread.conversation, text_of(record, "subtype") or "error"
        if record["type"] == "system":
            conversation.retry()
        elif not thread.has_failed:  # else the answer has the error
            if not conversation.has_turns:  # a stream has no prompts
                conversation.start_turn()
            if subtype == "success":
                error = text_of(record, "result", "terminal_reason") or "unknown error"
                conversation.model_failure(error, time=text_of(record, "timestamp"))
            else:
                conversation.interruption(subtype)

    def _end_command(self, thread: _Thread, *, is_turn: bool) -> None:
        """Add the waiting command, as the user's message if the agent answers it."""
        if thread.waiting is not None:
            parts, time = thread.waiting
            thread.waiting = None
            thread.conversation.add("user" if is_turn else CONTEXT, parts, time=time)

    def _add_answer(self, thread: _Thread, record: Record, message: Record) -> None:
        self._end_command(thread, is_turn=True)
        id_ = text_of(message, "id")
        if id_ is None or id_ != thread.last_id:
            self._end_answer(thread)
        time = text_of(record, "timestamp")
        answer = thread.answers.get(id_) if id_ is not None else None
        usage = mapping_of(message, "usage")
        if answer is None:
            answer = _Answer(usage=dict(usage) or None)
            self._call(thread, answer, message, time)
            thread.time = time
            if id_ is not None:
                thread.answers[id_] = answer
        elif answer.usage is not None:
            answer.usage.update(usage)
        elif id_ != thread.last_id:
            thread.time = time
        thread.last_id = id_
        content = message.get("content")
        new = content if not isinstance(content, list) else [block for block in content if block not in answer.blocks]
        if isinstance(new, list):
            answer.blocks += new
        parts = self._parts({"content": new}, "assistant")
        thread.parts += [part for part in parts if self._is_new(thread, part)]
        thread.has_failed = _is_failure(record, message)
        if thread.has_failed:
            self._end_answer(thread)
            error = visible_text([part for part in parts if not isinstance(part, ToolCall | ToolResult)])
            thread.conversation.model_failure(error or text_of(record, "error") or "unknown error", time=time)

    def _call(self, thread: _Thread, answer: _Answer, message: Record, time: str | None) -> None:
        """Record the model call of an answer, unless Claude Code wrote the answer instead of the model."""
        if not thread.conversation.has_turns:
            thread.conversation.start_turn()
        if message.get("model") == _SYNTHETIC:
            return
        stop = text_of(message, "stop_reason")
        thread.conversation.model_call(model=text_of(message, "model"), usage=answer.usage, stop_reason=stop, time=time)

    def _end_answer(self, thread: _Thread) -> None:
        """Add the parts of the streamed answer so far, as one message."""
        if thread.last_id is not None or thread.parts:
            if thread.parts:
                thread.conversation.add("assistant", thread.parts, time=thread.time)
            thread.parts, thread.last_id = [], None

    def _is_new(self, thread: _Thread, part: Part) -> bool:
        """Return whether *part* is new; a call is not if the session already has its id."""
        if not isinstance(part, ToolCall) or part.id is None:
            return True
        if part.id in thread.calls:
            self._reading.totals.kinds["repeated call"] += 1
            return False
        thread.calls.add(part.id)
        return True

    def _add_attachment(self, record: Record) -> None:
        """Add a prompt that the user typed while the agent worked; ignore other attachments."""
        attachment = mapping_of(record, "attachment")
        if attachment.get("type") == "queued_command" and attachment.get("commandMode", "prompt") == "prompt":
            self._add_queued(record, attachment.get("prompt"), is_sent=_is_sent(attachment))

    def _add_queued(self, record: Record, prompt: object, *, is_sent: bool = False) -> None:
        """Add a queued prompt that the agent received while it worked. Depending on the version, a queue record, an attachment or both have it."""
        if not prompt:
            return
        thread = self._thread(record)
        parts = self._parts({"content": prompt}, "queued message")
        text = visible_text([part for part in parts if not isinstance(part, ToolCall | ToolResult)]) or ""
        if text in thread.queued:
            thread.queued.remove(text)
            self._reading.totals.kinds["repeated queued message"] += 1
            return
        thread.queued.add(text)
        self._end_answer(thread)
        self._end_command(thread, is_turn=False)
        role = CONTEXT if is_sent or is_context(text.lstrip()) else "user"
        thread.conversation.add(role, parts, time=text_of(record, "timestamp"))

    def _parts(self, message: Record, kind: str) -> list[Part]:
        content = message.get("content")
        if type(content) is str:
            return [TextPart(content)]
        if "content" not in message:
            names = ", ".join(f"'{name}'" for name in message)
            return [self._reading.unknown("message", f"with the keys {names}"[:60], "message")]
        try:
            return read_content(content, "message.content", self._reading.shapes, ANTHROPIC)
        except DataError as error:
            return [self._reading.malformed(error, f"{kind} message")]


def _is_failure(record: Record, message: Record) -> bool:
    """Return whether Claude Code wrote an answer because the call of the model failed."""
    is_error = record.get("isApiErrorMessage", record.get("is_api_error_message")) is True
    return is_error or (message.get("model") == _SYNTHETIC and text_of(record, "error") is not None)


def _is_retry(record: Record) -> bool:
    """Return whether Claude Code recorded a failed call of the model that it tries again."""
    return record.get("type") == "system" and record.get("subtype") in ("api_error", "api_retry")


def _is_end(record: Record) -> bool:
    """Return whether a session of ``claude -p`` ended with an error. A failed call of the model has the subtype ``success``."""
    is_error = record.get("is_error") is True or (text_of(record, "subtype") or "").startswith("error_")
    return record.get("type") == "result" and is_error


def _is_unqueued(record: Record) -> bool:
    """Return whether the agent took a prompt out of the queue."""
    return record.get("type") == "queue-operation" and record.get("operation") == "remove"


def _is_sidechain(record: Record) -> bool:
    return record.get("isSidechain") is True or bool(text_of(record, "parent_tool_use_id"))


def _with_agent(parts: list[Part], agent: str | None, session_id: str) -> list[Part]:
    """Return *parts* with the session of the sub-agent *agent* that the call of the only result among them started."""
    results = [part for part in parts if isinstance(part, ToolResult)]
    if len(results) != 1 or agent is None:
        return parts
    session = f"{session_id}/agent-{agent}"
    return [attrs.evolve(part, session_id=session) if isinstance(part, ToolResult) else part for part in parts]


def _is_sent(record: Record) -> bool:
    """Return whether something other than the user sent a message: another session, a notification, or the tool itself."""
    kind = mapping_of(record, "origin").get("kind", "human")
    return bool(kind != "human")
