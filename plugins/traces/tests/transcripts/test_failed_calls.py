"""Failed calls of the model, and stopped turns, in recorded sessions."""

from __future__ import annotations

import pytest

from dicast_transcripts import ClaudeCode, Codex, Copilot, GeminiCli, OpenCode, OpenHands, SweAgent


def claude(type_, content, number, **fields):
    message = {"role": type_, "content": content, "model": fields.pop("model", "claude-x")}
    return {"type": type_, "uuid": f"u{number}", "sessionId": "s", "message": message, **fields}


def claude_error(number, words="API Error: 529 Overloaded", **fields):
    return claude("assistant", [{"type": "text", "text": words}], number, model="<synthetic>", **fields)


def codex(type_, **fields):
    return {"timestamp": "2026-01-01T00:00:00Z", "type": "event_msg", "payload": {"type": type_, **fields}}


def copilot(type_, **data):
    return {"type": type_, "data": data, "timestamp": "2026-01-01T00:00:00Z"}


def opencode(name, parts):
    error = {"name": name, "data": {"message": "Overloaded"}}
    messages = [
        {"info": {"id": "a", "role": "user"}, "parts": [{"type": "text", "text": "Go"}]},
        {"info": {"id": "b", "role": "assistant", "error": error}, "parts": parts},
    ]
    return {"info": {"id": "s"}, "messages": messages}


def ends(reading):
    """Return the stop reasons of the turns, the errors of failed calls, the disposition, and the counted failures."""
    trail = list(reading.sessions[0].trail)
    stops = [event.payload["stop_reason"] for event in trail if event.type == "turn.completed"]
    errors = [event.payload["error"] for event in trail if event.type == "llm.call_failed"]
    return stops, errors, trail[-1].payload["disposition"], reading.contents.get("failed_model_calls", 0)


FLAGS = [{"isApiErrorMessage": True}, {"error": "server_error"}, {"isApiErrorMessage": True, "error": "rate_limit"}]


@pytest.mark.parametrize("fields", FLAGS)
def test_an_api_error_in_the_place_of_an_answer_is_a_failed_call(read, fields):
    reading = read(ClaudeCode, [claude("user", "Go", 1), claude_error(2, **fields)])
    words = "API Error: 529 Overloaded"
    assert ends(reading) == (["error"], [words], "error", 1)
    assert (reading.turns[0].output, reading.contents["messages"]) == (words, 2)


def test_an_answer_after_a_failed_call_ends_the_turn_cleanly(read):
    answer = claude("assistant", [{"type": "text", "text": "Done"}], 3)
    reading = read(ClaudeCode, [claude("user", "Go", 1), claude_error(2, "API Error", isApiErrorMessage=True), answer])
    assert ends(reading) == (["end_turn"], ["API Error"], "completed", 1)


def test_a_text_that_claude_code_wrote_without_an_error_is_no_failed_call(read):
    reading = read(ClaudeCode, [claude("user", "Go", 1), claude_error(2, "No response requested.")])
    assert ends(reading) == (["end_turn"], [], "completed", 0)


GO, START = codex("user_message", message="Go"), codex("agent_message", message="I start.")


@pytest.mark.parametrize("answers", [[], [START]])
@pytest.mark.parametrize("trailing", ["keep", "drop"])
def test_an_error_event_is_a_failed_call_and_keeps_a_turn_without_an_answer(read, answers, trailing):
    error = codex("error", message="stream disconnected", codex_error_info="other")
    usage = codex("token_count", info={"last_token_usage": {"input_tokens": 3}})
    reading = read(Codex, [GO, *answers, error, usage], trailing=trailing)
    assert ends(reading) == (["error"], ["stream disconnected"], "error", 1)


def test_the_same_error_at_the_end_of_the_task_counts_once(read):
    error = {"message": "no", "codex_error_info": "unauthorized"}
    reading = read(Codex, [GO, codex("error", **error), codex("task_complete", turn_id="t", error=error)])
    assert ends(reading) == (["error"], ["no"], "error", 1)
    reading = read(Codex, [GO, codex("task_complete", turn_id="t", error=error)])
    assert ends(reading) == (["error"], ["no"], "error", 1)


@pytest.mark.parametrize("info", ["thread_rollback_failed", {"active_turn_not_steerable": {"turn_kind": "review"}}])
def test_an_error_of_a_command_of_the_user_is_no_failed_call(read, info):
    reading = read(Codex, [GO, START, codex("error", message="no", codex_error_info=info)])
    assert ends(reading) == (["end_turn"], [], "completed", 0)


@pytest.mark.parametrize(("reason", "stop"), [("interrupted", "interrupted"), ("budget_limited", "budget_limited"),
                                              (None, "aborted"), ("review_ended", "end_turn")])  # fmt: skip
def test_an_aborted_turn_ends_with_the_reason(read, reason, stop):
    aborted = codex("turn_aborted", **({} if reason is None else {"reason": reason}))
    again = [codex("user_message", message="Again"), codex("agent_message", message="Done")]
    reading = read(Codex, [GO, START, aborted, *again])
    assert ends(reading) == ([stop, "end_turn"], [], "completed", 0)
    assert reading.contents["messages"] == 4


STREAM = [
    {"type": "thread.started", "thread_id": "s"},
    {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "I start."}},
    {"type": "error", "message": "no"},
]


@pytest.mark.parametrize(("last", "failures"), [([], 1), ([{"type": "turn.failed", "error": {"message": "no"}}], 1),
                                                ([{"type": "turn.completed", "usage": {}}], 0)])  # fmt: skip
def test_an_error_of_a_stream_is_a_failed_call_unless_the_turn_completes(read, last, failures):
    reading = read(Codex, [*STREAM, *last])
    stop, disposition = ("error", "error") if failures else ("end_turn", "completed")
    assert ends(reading) == ([stop], ["no"] * failures, disposition, failures)


def test_a_stream_that_fails_at_once_has_a_turn(read):
    reading = read(Codex, [STREAM[0], {"type": "turn.failed", "error": {"message": "no"}}])
    assert ends(reading) == (["error"], ["no"], "error", 1)


def test_an_error_of_a_copilot_session_is_a_failed_call(read):
    start = copilot("session.start", sessionId="s")
    error = copilot("session.error", errorType="quota", message="You have no quota.")
    reading = read(Copilot, [start, copilot("user.message", content="Go"), error])
    assert ends(reading) == (["error"], ["You have no quota."], "error", 1)


@pytest.mark.parametrize("parts", [[], [{"type": "text", "text": "I start."}]])
def test_an_error_of_an_opencode_answer_is_a_failed_call_with_or_without_a_text(read, parts):
    reading = read(OpenCode, document=opencode("APIError", parts))
    assert ends(reading) == (["error"], ["APIError: Overloaded"], "error", 1)


@pytest.mark.parametrize(("name", "stop"), [("MessageAbortedError", "interrupted"), ("MessageOutputLengthError", "max_tokens")])  # fmt: skip
def test_an_opencode_answer_that_was_stopped_is_no_failed_call(read, name, stop):
    reading = read(OpenCode, document=opencode(name, [{"type": "text", "text": "I start."}]))
    assert ends(reading) == ([stop], [], "completed", 0)


def ended_by(reading):
    """Return why each turn of the first session ended."""
    return [event.payload.get("ended_by") for event in reading.sessions[0].trail if event.type == "turn.completed"]


STOP = "[Request interrupted by user]"


@pytest.mark.parametrize("words", [STOP, "[Request interrupted by user for tool use]"])
def test_a_turn_of_claude_code_that_the_user_stopped_ends_by_it(read, words):
    answer = claude("assistant", [{"type": "text", "text": "I start."}], 2)
    stop = claude("user", [{"type": "text", "text": words}], 3)
    again = [claude("user", "Again", 4), claude("assistant", [{"type": "text", "text": "Done"}], 5)]
    reading = read(ClaudeCode, [claude("user", "Go", 1), answer, stop, *again])
    assert (ended_by(reading), ends(reading)[0]) == (["interruption", None], ["interrupted", "end_turn"])


def test_an_answer_after_a_stop_ends_the_turn(read):
    answers = [claude("assistant", [{"type": "text", "text": text}], number) for number, text in ((2, "A"), (4, "B"))]
    stop = claude("user", [{"type": "text", "text": STOP}], 3)
    assert ended_by(read(ClaudeCode, [claude("user", "Go", 1), answers[0], stop, answers[1]])) == [None]


def test_failed_calls_and_aborted_turns_say_why_the_turn_ended(read):
    error = codex("error", message="no", codex_error_info="other")
    assert ended_by(read(Codex, [GO, START, error])) == ["model_failure"]
    assert ended_by(read(Codex, [GO, START, codex("turn_aborted", reason="interrupted")])) == ["interruption"]
    assert ended_by(read(OpenCode, document=opencode("MessageOutputLengthError", []))) == [None]


def test_a_stopped_turn_of_copilot_ends_by_it(read):
    events = [copilot("session.start", sessionId="s"), copilot("user.message", content="Go")]
    events += [copilot("assistant.message", content="I start."), copilot("abort", reason="user initiated")]
    assert ended_by(read(Copilot, events)) == ["interruption"]


CHAT_ERROR = {"errorDetails": {"message": "You have no quota."}}


@pytest.mark.parametrize(("fields", "reason"), [({"result": CHAT_ERROR}, "model_failure"), ({"isCanceled": True}, "interruption"),
                                                ({"result": CHAT_ERROR, "isCanceled": True}, "interruption"), ({}, None)])  # fmt: skip
def test_a_request_of_a_copilot_chat_ends_by_its_error_or_its_stop(read, fields, reason):
    request = {"message": {"text": "Go"}, "response": [{"value": "I start."}], **fields}
    document = {"sessionId": "s", "responderUsername": "GitHub Copilot", "requests": [request]}
    assert ended_by(read(Copilot, document=document)) == [reason]


@pytest.mark.parametrize(("type_", "text", "reason"), [("error", "[API Error: quota]", "model_failure"), ("info", "Request cancelled.", "interruption"),
                                                       ("error", "Unknown command: /x", None), ("info", "Update available", None)])  # fmt: skip
def test_a_note_of_gemini_cli_ends_the_turn_only_if_it_says_so(read, type_, text, reason):
    messages = [{"id": str(number), "type": kind, "content": words} for number, (kind, words) in
                enumerate([("user", "Go"), ("gemini", "I start."), (type_, text)])]  # fmt: skip
    document = {"sessionId": "s", "projectHash": "p", "startTime": "2026-01-01T00:00:00Z", "messages": messages}
    assert ended_by(read(GeminiCli, document=document)) == [reason]


def test_an_error_of_an_openhands_conversation_is_a_failed_call(read):
    message = {"role": "user", "content": [{"type": "text", "text": "Go"}]}
    said = {"kind": "MessageEvent", "id": "1", "source": "user", "llm_message": message}
    error = {"kind": "ConversationErrorEvent", "id": "2", "source": "environment", "code": "RateLimit", "detail": "429"}
    reading = read(OpenHands, [said, error])
    assert (ended_by(reading), ends(reading)[1]) == (["model_failure"], ["429"])


@pytest.mark.parametrize(("status", "reason"), [("submitted", None), ("submitted (exit_cost)", None), ("exit_cost", "interruption"),
                                                ("exit_api", "model_failure"), ("litellm.RateLimitError", "model_failure"), (None, None)])  # fmt: skip
def test_a_trajectory_that_did_not_submit_ends_by_its_status(read, status, reason):
    step = {"action": "ls", "observation": "a", "response": "I look.", "thought": "I look.", "state": "{}"}
    document = {"environment": "e", "trajectory": [step], "history": [], "info": {"exit_status": status}}
    assert ended_by(read(SweAgent, document=document)) == [reason]


def claude_retry(number, subtype="api_error"):
    error = {"status": 529, "message": "Overloaded"}
    return {
        "type": "system",
        "subtype": subtype,
        "uuid": f"u{number}",
        "sessionId": "s",
        "error": error,
        "retryAttempt": 1,
        "maxRetries": 10,
    }


def claude_tool(number):
    """Return the records of a tool call and its result."""
    call = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "ok"}
    return [claude("assistant", [call], number), claude("user", [result], number + 1)]


@pytest.mark.parametrize("subtype", ["api_error", "api_retry"])
def test_a_session_that_ends_while_claude_code_tries_again_does_not_end_its_turn(read, subtype):
    records = [claude("user", "Go", 1), *claude_tool(2), claude_retry(4, subtype)]
    reading = read(ClaudeCode, records)
    assert (ended_by(reading), ends(reading)) == (["interruption"], (["retried"], [], "completed", 0))
    answer = claude("assistant", [{"type": "text", "text": "Done"}], 5)
    assert ended_by(read(ClaudeCode, [*records, answer, claude_retry(6, subtype)])) == [None]
    assert ended_by(read(ClaudeCode, [*records, *claude_tool(5), claude("user", "More", 7), answer])) == [None, None]


def test_a_prompt_with_retries_alone_is_a_turn_without_a_reply(read):
    answered = [claude("user", "Go", 1), claude("assistant", [{"type": "text", "text": "Done"}], 2)]
    reading = read(ClaudeCode, [*answered, claude("user", "More", 3), claude_retry(4)], trailing="drop")
    assert (ended_by(reading), reading.contents["trailing_messages"]) == ([None], 1)
    reading = read(ClaudeCode, [*answered, claude("user", "More", 3), claude_retry(4)], trailing="keep")
    assert ended_by(reading) == [None, "interruption"]


def test_a_session_that_ends_while_codex_tries_again_does_not_end_its_turn(read):
    call = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"}
    output = {"type": "function_call_output", "call_id": "c", "output": "ok"}
    items = [{"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": item} for item in (call, output)]
    error = codex("stream_error", message="Reconnecting... 1/5")
    assert ended_by(read(Codex, [GO, *items, error])) == ["interruption"]
    assert ended_by(read(Codex, [GO, *items, error, codex("agent_message", message="Done")])) == [None]


@pytest.mark.parametrize(("parts", "reason"), [(["tool", "retry"], "interruption"), (["tool", "retry", "text"], None)])
def test_a_session_that_ends_while_opencode_tries_again_does_not_end_its_turn(read, parts, reason):
    blocks = {
        "tool": {
            "type": "tool",
            "tool": "read",
            "callID": "c",
            "state": {"status": "completed", "input": {}, "output": "ok"},
        },
        "retry": {"type": "retry", "attempt": 1, "error": {"name": "APIError", "data": {"message": "Overloaded"}}},
        "text": {"type": "text", "text": "Done"},
    }
    document = opencode("APIError", [blocks[name] for name in parts])
    del document["messages"][1]["info"]["error"]
    assert ended_by(read(OpenCode, document=document)) == [reason]


@pytest.mark.parametrize(("fields", "reason", "stop"), [
    ({"subtype": "success", "is_error": True, "result": "API Error: 529"}, "model_failure", "error"),
    ({"subtype": "error_max_turns", "is_error": False}, "interruption", "error_max_turns"),
    ({"subtype": "success", "is_error": False, "result": "Done"}, None, "tool_use")])  # fmt: skip
def test_the_result_of_a_stream_of_claude_code_ends_the_turn(read, fields, reason, stop):
    result = {"type": "result", "session_id": "s", **fields}
    reading = read(ClaudeCode, [claude("user", "Go", 1), *claude_tool(2), result])
    assert (ended_by(reading), ends(reading)[0]) == ([reason], [stop])
    error = claude_error(4, "API Error: 529", is_api_error_message=True)
    assert ends(read(ClaudeCode, [claude("user", "Go", 1), error, {**result, "is_error": True}]))[3] == 1


@pytest.mark.parametrize(("reason", "end"), [("STATUS$ERROR_LLM_SERVICE_UNAVAILABLE", "model_failure"),
                                             ("RuntimeError: the sandbox died", "interruption")])  # fmt: skip
def test_an_agent_of_openhands_in_the_state_error_did_not_end_its_turn(read, reason, end):
    go = {"id": 1, "source": "user", "action": "message", "args": {"content": "Go"}, "timestamp": "2026-01-01T00:00:00"}
    run = {"id": 2, "source": "agent", "action": "run", "args": {"command": "ls"}}
    output = {"id": 3, "source": "agent", "observation": "run", "content": "a", "cause": 2, "extras": {}}
    state = {"agent_state": "error", "reason": reason}
    error = {"id": 4, "source": "environment", "observation": "agent_state_changed", "content": "", "extras": state}
    assert ended_by(read(OpenHands, [go, run, output, error])) == [end]
