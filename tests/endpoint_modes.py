"""Quirks of endpoints that speak the OpenAI chat format, as answers for ``ChatServer``: from the public documentation and reports of providers.

    chat_server.answer = modes.MODES["azure_policy"]
    chat_server.answer = modes.refusing(modes.openai_error("seed"), "seed")

Each mode is a function of the request (:class:`chat_server.Asked`), which returns an answer. A verdict has the score 0.8 and the
confidence 0.9; the usual usage is 100 tokens of input and 20 of output.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from chat_server import Answer, Asked

Mode = Callable[[Asked], Any]

USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


def verdict(**options: Any) -> Answer:
    """Return a completion with a verdict; *options* are members of the answer."""
    text = json.dumps({"seal": "$SEAL", "score": 0.8, "confidence": 0.9, "rationale": "It fits."})
    return Answer(text, **{"usage": USAGE, **options})


def problem(status: int, body: object, **headers: str) -> Answer:
    """Return an error with *body*."""
    return Answer(status=status, body=body, headers={name.replace("_", "-"): value for name, value in headers.items()})


def openai_error(name: str, message: str = "", code: str = "unsupported_parameter") -> Answer:
    """Return OpenAI's error about the parameter *name*."""
    text = message or f"Unsupported parameter: '{name}' is not supported with this model."
    return problem(400, {"error": {"message": text, "type": "invalid_request_error", "param": name, "code": code}})


def plain_error(message: str, status: int = 400) -> Answer:
    """Return an error that names its parameter in words only, as vLLM's."""
    return problem(
        status, {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": status}
    )


def pydantic_error(name: str) -> Answer:
    """Return the error of an endpoint that forbids unknown fields."""
    return problem(
        422, {"detail": [{"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}]}
    )


def refusing(error: Answer, *names: str) -> Mode:
    """Return a mode that answers *error* to a request with any parameter of *names*."""
    return lambda asked: error if any(name in asked.body for name in names) else verdict()


def has_system(asked: Asked) -> bool:
    """Return whether the request has a system message."""
    return any(message["role"] == "system" for message in asked.body["messages"])


def form(asked: Asked) -> str | None:
    """Return the type of ``response_format``."""
    return (asked.body.get("response_format") or {}).get("type")


def gpt5(asked: Asked) -> Answer:
    """A reasoning model of OpenAI: other limits, no temperature, and it needs room for reasoning."""
    if "max_tokens" in asked.body:
        text = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
        return openai_error("max_tokens", text)
    if asked.body.get("temperature") not in (None, 1):
        text = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported."
        return openai_error("temperature", text, "unsupported_value")
    return reasoning(asked, "max_completion_tokens")


def reasoning(asked: Asked, name: str = "max_tokens", needs: int = 600) -> Answer:
    """A model that reasons for *needs* tokens before it answers."""
    limit = asked.body[name]
    if limit < needs:
        usage = {**USAGE, "completion_tokens": limit, "total_tokens": 100 + limit}
        return Answer(
            "", finish_reason="length", usage={**usage, "completion_tokens_details": {"reasoning_tokens": limit}}
        )
    usage = {"prompt_tokens": 100, "completion_tokens": 520, "total_tokens": 620}
    return verdict(usage={**usage, "completion_tokens_details": {"reasoning_tokens": 500}})


def o1_mini(asked: Asked) -> Answer:
    """A model of OpenAI without system messages."""
    if has_system(asked):
        text = "Unsupported value: 'messages[0].role' does not support 'system' with this model."
        return openai_error("messages[0].role", text, "unsupported_value")
    return verdict()


def developer_only(asked: Asked) -> Answer:
    """A model that wants developer messages."""
    return plain_error("role 'system' is not supported, use 'developer' instead") if has_system(asked) else verdict()


def gemini(asked: Asked) -> Answer:
    """Gemini's compatible endpoint, whose errors are in a list: no seed, and Gemma has no system messages."""
    if "seed" in asked.body:
        return _google('Invalid JSON payload received. Unknown name "seed": Cannot find field.')
    if has_system(asked):
        return _google("Developer instruction is not enabled for models/gemma-3-27b-it")
    return verdict(finish_reason="STOP", usage={"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 420})


def _google(message: str, status: int = 400, word: str = "INVALID_ARGUMENT") -> Answer:
    return problem(status, [{"error": {"code": status, "message": message, "status": word}}])


def mistral(asked: Asked) -> Answer:
    """Mistral: its error has the details inside of the message, and it forbids unknown fields."""
    for name in ("seed", "max_completion_tokens"):
        if name in asked.body:
            detail = {
                "detail": [{"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}]
            }
            return problem(422, {"object": "error", "message": detail, "type": "invalid_request_error", "param": None})
    return verdict(finish_reason="stop")


def deepseek(asked: Asked) -> Answer:
    """DeepSeek: JSON objects, no schemas, and its own names for tokens from the cache."""
    if form(asked) == "json_schema":
        return problem(
            400, {"error": {"message": "This response_format type is unavailable now", "type": "invalid_request_error"}}
        )
    return verdict(usage={**USAGE, "prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40})


def _cut(asked: Asked) -> Answer:
    return Answer('{"seal": "$SEAL", "score": 0.', finish_reason="MAX_TOKENS", usage=USAGE)


def once(first: Answer) -> Mode:
    """Return a mode that answers *first* to the first request."""
    return lambda asked: first if asked.number == 1 else verdict()


def _need_json(asked: Asked) -> Answer:
    """An endpoint that takes a JSON object only if the prompt names JSON."""
    if form(asked) == "json_schema":
        return openai_error("response_format", "Invalid value: 'json_schema'", "invalid_value")
    has_word = "json" in json.dumps(asked.body["messages"]).lower()
    text = "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
    return verdict() if has_word or form(asked) is None else openai_error("messages", text)


def _wrapped(asked: Asked, message: str = "the model is overloaded", code: object = 503) -> Answer:
    return Answer(body={"error": {"message": message, "code": code}})


_MONEY = {"message": "You exceeded your current quota, please check your plan and billing details."}

MODES: Mapping[str, Mode] = {
    "plain": lambda asked: verdict(),
    # Parameters that are refused
    "openai_gpt5": gpt5,
    "openai_o1_mini": o1_mini,
    "openai_needs_json": _need_json,
    "developer_only": developer_only,
    "gemini": gemini,
    "mistral": mistral,
    "deepseek": deepseek,
    "only_max_tokens": refusing(pydantic_error("max_completion_tokens"), "max_completion_tokens"),
    "xai_stop": refusing(problem(400, {"code": "Client specified an invalid argument", "error": "Argument not supported on this model: stop"}), "stop"),
    "xai_effort": refusing(
        problem(400, {"code": "invalid-argument", "error": "Model grok-4 does not support parameter reasoningEffort."}), "reasoning_effort"
    ),
    "vllm_system": lambda asked: plain_error("System role not supported") if has_system(asked) else verdict(),
    "template_roles": lambda asked: problem(
        500, {"error": {"code": 500, "message": "Conversation roles must alternate user/assistant/user/assistant/...", "type": "server_error"}}
    ) if has_system(asked) else verdict(),
    "llamacpp_grammar": refusing(
        problem(500, {"error": {"code": 500, "message": "Failed to parse grammar", "type": "server_error"}}), "response_format"
    ),
    "openrouter_parameters": refusing(
        problem(404, {"error": {"message": "No endpoints found that support the requested parameters: response_format.", "code": 404}}), "response_format"
    ),
    "groq_schema": lambda asked: openai_error("response_format", "This model does not support response format `json_schema`.")
    if form(asked) == "json_schema"
    else verdict(),
    "tgi_temperature": refusing(
        problem(422, {"error": "Input validation error: `temperature` must be strictly positive", "error_type": "validation"}), "temperature"
    ),
    "bedrock_top_p": refusing(
        problem(400, {"message": "The model returned the following errors: `temperature` and `top_p` cannot both be specified for this model."}), "top_p"
    ),
    "unnamed_format": refusing(problem(400, {"error": {"message": "Bad request"}}), "response_format"),
    "logprobs": refusing(plain_error("Gaudi doesn't support logprobs. Please remove 'logprobs'/'top_logprobs' from your request"), "logprobs"),
    "five_logprobs": lambda asked: plain_error("top_logprobs must be less than or equal to 5, got 20")
    if asked.body.get("top_logprobs", 0) > 5
    else verdict(logprobs=(("yes", -0.1),)),
    "needs_schema": refusing(openai_error("response_format", "response_format is not supported"), "response_format"),
    # Reasoning
    "reasoning": reasoning,
    "always_reasoning": lambda asked: reasoning(asked, needs=10**9),
    "grok": lambda asked: verdict(
        usage={"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 4020, "completion_tokens_details": {"reasoning_tokens": 3000}}
    ),
    # Tokens and costs
    "cached": lambda asked: verdict(usage={**USAGE, "prompt_tokens_details": {"cached_tokens": 80}}),
    "cache_written": lambda asked: verdict(usage={**USAGE, "cache_creation_input_tokens": 50, "cache_read_input_tokens": 30}),
    "moonshot_cached": lambda asked: verdict(usage={**USAGE, "cached_tokens": 40}),
    "float_usage": lambda asked: verdict(usage={"prompt_tokens": 100.0, "completion_tokens": 20.0, "total_tokens": 120.0}),
    "no_usage": lambda asked: verdict(usage=None),
    "openrouter_cost": lambda asked: verdict(usage={**USAGE, "cost": 0.0005}),
    "litellm_proxy": lambda asked: verdict(headers={"x-litellm-response-cost": "0.00025"}),
    # Errors in an answer with status 200
    "openrouter_502": lambda asked: _wrapped(asked, "Provider returned error", 502) if asked.number == 1 else verdict(),
    "openrouter_choice": lambda asked: Answer(body={"choices": [{"error": {"code": 502, "message": "Network error"}, "finish_reason": "error"}]})
    if asked.number == 1
    else verdict(),
    "wrapped_quota": lambda asked: _wrapped(asked, "Insufficient credits", 402),
    # The end of an account
    "openai_quota": lambda asked: problem(429, {"error": {**_MONEY, "type": "insufficient_quota", "code": "insufficient_quota"}}),
    "openai_billing": lambda asked: problem(429, {"error": {"message": "Billing hard limit has been reached", "code": "billing_hard_limit_reached"}}),
    "deepseek_balance": lambda asked: problem(402, {"error": {"message": "Insufficient Balance", "type": "unknown_error", "code": "invalid_request_error"}}),
    "account_disabled": lambda asked: problem(403, {"error": {"message": "Your account has been disabled.", "code": "account_deactivated"}}),
    "credit_balance": lambda asked: problem(400, {"error": {"message": "Your credit balance is too low to access the API.", "type": "invalid_request_error"}}),
    "gemini_rate": once(_google(f"{_MONEY['message']} Please retry in 0.01s.", 429, "RESOURCE_EXHAUSTED")),
    # Refused content
    "azure_policy": lambda asked: problem(
        400,
        {
            "error": {
                "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
                "param": "prompt",
                "code": "content_filter",
                "innererror": {"code": "ResponsibleAIPolicyViolation"},
            }
        },
    ),
    "qwen_inspection": lambda asked: problem(400, {"error": {"code": "data_inspection_failed", "message": "Input data may contain inappropriate content."}}),
    "openrouter_moderation": lambda asked: problem(
        403, {"error": {"code": 403, "message": 'The model requires moderation on OpenRouter. Your input was flagged for "violence".'}}
    ),
    "filtered": lambda asked: Answer("", finish_reason="content_filter", usage=USAGE),
    "gemini_safety": lambda asked: Answer(None, finish_reason="SAFETY", usage=USAGE),
    "refusal": lambda asked: Answer(None, message={"refusal": "I can't help with that."}, usage=USAGE),
    # Ends of a reply
    **{
        f"ends_{word}": (lambda asked, word=word: verdict(finish_reason=word))
        for word in ("eos", "eos_token", "STOP", "end_turn", "stop_sequence", "COMPLETE", "completed", None)
    },
    "cut": _cut,
    # Limits of length and rate
    "vllm_length": lambda asked: plain_error(
        "'max_tokens' or 'max_completion_tokens' is too large: 256. This model's maximum context length is 128 tokens and your request has 100 input tokens"
    ),
    "context": lambda asked: problem(
        400, {"error": {"message": "This model's maximum context length is 8192 tokens.", "param": "messages", "code": "context_length_exceeded"}}
    ),
    "rate": once(problem(429, {"error": {"message": "Rate limit reached"}}, Retry_After="0.01")),
    "rate_ms": once(problem(429, {"error": {"message": "Rate limit reached"}}, retry_after_ms="10")),
    # Forms of a reply
    "streamed": lambda asked: Answer(headers={"Content-Type": "text/event-stream"}, body=_stream(asked)),
    "tool": lambda asked: Answer(
        None, finish_reason="tool_calls", message={"tool_calls": [{"id": "c", "function": {"name": "json_tool_call", "arguments": _text(asked)}}]}
    ),
    "parts": lambda asked: Answer([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": _text(asked)}], usage=USAGE),
    "together_logprobs": lambda asked: Answer(
        body={
            "choices": [
                {
                    "message": {"content": "yes"},
                    "finish_reason": "eos",
                    "logprobs": {"tokens": ["yes"], "token_logprobs": [-0.25], "top_logprobs": [{"yes": -0.25, "no": -1.5}]},
                }
            ],
            "usage": USAGE,
        }
    ),
}  # fmt: skip


def _stream(asked: Asked) -> bytes:
    text = _text(asked)
    pieces = [
        {"choices": [{"delta": {"content": text[at : at + 9]}, "finish_reason": None}]} for at in range(0, len(text), 9)
    ]
    pieces += [{"choices": [{"delta": {}, "finish_reason": "stop"}]}, {"choices": [], "usage": USAGE}]
    return b"".join(b"data: %s\n\n" % json.dumps(piece).encode() for piece in pieces) + b"data: [DONE]\n\n"


def _text(asked: Asked) -> str:
    return str(verdict().content).replace("$SEAL", asked.seal)
