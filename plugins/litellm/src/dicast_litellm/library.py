"""litellm itself, set up so that it does nothing but ask."""

from __future__ import annotations

import asyncio
import logging
import os
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


def forget_clients(litellm: Any) -> None:
    """Have litellm drop the clients that it keeps for the running event loop.

    It keeps them by the loop's address, which the next loop may get; those that are in use work on.
    """
    cache, ending = litellm.in_memory_llm_clients_cache, f"-{id(asyncio.get_running_loop())}"
    for key in [key for key in cache.cache_dict if key.endswith(ending)]:
        cache.delete_cache(key)


def secrets_around() -> list[str]:
    """What the environment holds under the names of secrets, from where litellm takes keys."""
    return [
        value
        for name, value in os.environ.items()
        if len(value) >= _SHORTEST_SECRET and any(word in name.upper() for word in _SECRET_NAMES)
    ]
