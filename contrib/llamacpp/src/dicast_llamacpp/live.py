"""A loaded model, and its calls."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import attrs

from dicast import ChatRequest, ConfigError, Cost, Failure, Reply, Token, Usage, normalize_stop_reason

from .waiting import Waiting

BATCH = 512
"""Tokens of a prompt that are read in one step. A canceled call ends after one step at the latest."""

ROLLOUT = 1000
"""Distance between the seeds of two rollouts, so that the seeds of one judgment's calls fit between them."""

LONGEST = 300


@attrs.frozen
class Settings:
    """Settings of a model and its calls. If *threads* is None, llama.cpp chooses the number."""

    path: Path
    context: int
    threads: int | None
    parallel: int
    temperature: float


def load(settings: Settings) -> Any:
    """Load the model.

    :raises ConfigError: if llama.cpp does not accept the file.
    """
    import xllamacpp  # type: ignore[import-untyped]  # it has no types; imported here, because it is 60 MB of native code

    params = xllamacpp.CommonParams()
    params.model.path = str(settings.path)
    params.n_parallel, params.n_ctx = settings.parallel, settings.context * settings.parallel
    params.n_batch = BATCH
    if settings.threads is not None:
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.threads
    params.verbosity = -1
    params.warmup = False
    params.cache_prompt = True  # reuse the prefix shared with the slot's last request
    params.cache_ram_mib = 0  # the default keeps up to 8 GiB of prompts, which do not recur
    # The server always opens a port on loopback; with a random key, nobody else can use it.
    params.api_keys, params.ui, params.endpoint_slots = [secrets.token_hex()], False, False
    params.endpoint_metrics = True
    try:
        server = xllamacpp.Server(params)
        server.handle_metrics()  # returns once the server's loop runs; a server freed before that would deadlock
        return server
    except RuntimeError as error:
        raise ConfigError(
            f"llama.cpp could not load {str(settings.path)!r}: it is damaged, of a kind that xllamacpp "
            f"{xllamacpp.__version__} does not know, or too large for the memory (context {settings.context})"
        ) from error


class LiveChat:
    """The loaded model. Each parallel call has its own thread."""

    def __init__(self, server: Any, settings: Settings, identity: Mapping[str, object], waiting: Waiting) -> None:
        self._server, self._settings, self._identity, self._waiting = server, settings, identity, waiting
        self._threads = ThreadPoolExecutor(settings.parallel, "llamacpp")

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        """Answer *request*. If the caller cancels the call, the generation ends."""
        stop = Event()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._answer, request, stop)
        finally:
            stop.set()

    def estimate(self, request: ChatRequest) -> Cost:
        """Return zero."""
        return Cost.zero()

    def identity(self) -> Mapping[str, object]:
        """Return the values that decide a reply."""
        return self._identity

    async def close(self) -> None:
        """Wait for running calls, and free the model."""
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
        self._server = None

    def _answer(self, request: ChatRequest, stop: Event) -> Reply | Failure:
        chunks = list[Mapping[str, Any]]()

        def take(chunk: Mapping[str, Any]) -> bool:
            chunks.append(chunk)  # parsed later, because an exception here would be lost
            return stop.is_set()

        name = self._settings.path.name
        with self._waiting.of(f"{name} answers a call", lambda: _state(chunks)):
            self._server.handle_chat_completions(_body(request, self._settings.temperature), take)
        return _reply(chunks, name, has_top=request.top_logprobs > 0)


def _state(chunks: Sequence[Mapping[str, Any]]) -> str:
    """Return the progress of a call: tokens of the prompt read so far, or tokens of the reply."""
    last = chunks[-1] if chunks else {}
    progress = last.get("prompt_progress")
    if isinstance(progress, Mapping):
        return f": {progress.get('processed')} of {progress.get('total')} tokens of the prompt read"
    return f": {len(chunks)} tokens of the reply" if chunks else ": waiting for its turn"


def _body(request: ChatRequest, temperature: float) -> dict[str, Any]:
    body = {
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        "max_tokens": request.max_output_tokens,
        "temperature": temperature if request.temperature is None else request.temperature,
        "seed": request.rollout * ROLLOUT + request.attempt,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,
    }
    if request.schema is not None:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": dict(request.schema)},
        }
    if request.logprobs:
        body |= {"logprobs": True, "top_logprobs": max(1, request.top_logprobs)}
    if request.top_logprobs:  # the first token must be the answer, not the start of a thought
        body["chat_template_kwargs"] = {"enable_thinking": False}
    return body


def _reply(chunks: Sequence[Mapping[str, Any]], model: str, *, has_top: bool) -> Reply | Failure:
    text, tokens = list[str](), list[Token]()
    reason, usage = None, None
    for chunk in chunks:
        if "error" in chunk:
            return Failure("judge_call_failed", f"llama.cpp: {chunk['error'].get('message')}"[:LONGEST])
        if "usage" in chunk:
            usage = _usage(chunk["usage"])
        for choice in chunk["choices"]:
            text.append(choice["delta"].get("content") or "")
            tokens += _tokens(choice.get("logprobs"), has_top)
            reason = choice["finish_reason"] or reason
    if reason is None:
        return Failure("judge_call_failed", "llama.cpp ended before the reply was whole", retryable=True)
    return Reply(
        "".join(text),
        model,
        normalize_stop_reason(reason),
        usage,
        logprobs=tuple(tokens) or None,
        finish_reason=reason,
    )


def _usage(counts: Mapping[str, Any]) -> Usage:
    cached = (counts.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return Usage(counts["prompt_tokens"], counts["completion_tokens"], cached_input_tokens=cached)


def _tokens(logprobs: Mapping[str, Any] | None, has_top: bool) -> list[Token]:
    """Return the tokens of a chunk; if *has_top* is true, each has the most probable tokens at its position."""
    return [
        Token(token["token"], token["logprob"], _top(token) if has_top else ())
        for token in (logprobs or {}).get("content") or ()
    ]


def _top(token: Mapping[str, Any]) -> tuple[Token, ...]:
    return tuple(Token(top["token"], top["logprob"]) for top in token.get("top_logprobs") or ())
