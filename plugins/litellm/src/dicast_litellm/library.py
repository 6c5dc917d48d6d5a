"""The library litellm, configured to send requests and nothing else."""

from __future__ import annotations

import asyncio
import logging
import os
from datetime import datetime
from functools import cache
from typing import Any

_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_SECRET_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")
_SHORTEST_SECRET = 8


def load() -> Any:
    """Import litellm, which takes seconds."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else the import fetches a price list
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")  # else the import reads .env files into the environment
    os.environ.setdefault(
        "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True"
    )  # else Claude's models fetch a file of headers
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True  # else it prints to stdout when a call fails
    if "LITELLM_LOG" not in os.environ:
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return litellm


def silent_logging(model: str, messages: list[dict[str, Any]]) -> Any:
    """Return a logging object for one call that calls no callback and computes no cost.

    These take litellm a quarter of the time of a call, and dicast reads usage and prices itself.
    """
    return _silent_class()(
        model=model,
        messages=messages,
        stream=False,
        call_type="acompletion",
        start_time=datetime.now(),  # noqa: DTZ005  # litellm compares it with its own naive times
        litellm_call_id="dicast",
        function_id="",
        litellm_trace_id="dicast",
    )


@cache
def _silent_class() -> type:
    """Return the class of :func:`silent_logging`; it needs litellm."""
    from litellm.litellm_core_utils.litellm_logging import Logging

    class Silent(Logging):
        """The logging of one call, without any."""

        def claim_async_success_log(self) -> bool:
            return False

        def handle_sync_success_callbacks_for_async_calls(self, *arguments: Any, **options: Any) -> None:
            pass

        def response_cost_calculator(self, *arguments: Any, **options: Any) -> float:
            return 0.0

        def failure_handler(self, *arguments: Any, **options: Any) -> None:
            pass

        async def async_failure_handler(self, *arguments: Any, **options: Any) -> None:
            pass

        def pre_call(self, *arguments: Any, **options: Any) -> None:
            pass

        def post_call(self, *arguments: Any, **options: Any) -> None:
            pass

    return Silent


def forget_clients(litellm: Any) -> None:
    """Make litellm drop the clients that it caches for the running event loop.

    It caches them by the loop's address, which the next loop may get; clients in use continue to work.
    """
    cache, ending = litellm.in_memory_llm_clients_cache, f"-{id(asyncio.get_running_loop())}"
    for key in [key for key in cache.cache_dict if key.endswith(ending)]:
        cache.delete_cache(key)


def secrets_around() -> list[str]:
    """Return the values of environment variables with names of secrets, which litellm reads as keys."""
    return [
        value
        for name, value in os.environ.items()
        if len(value) >= _SHORTEST_SECRET and any(word in name.upper() for word in _SECRET_NAMES)
    ]
