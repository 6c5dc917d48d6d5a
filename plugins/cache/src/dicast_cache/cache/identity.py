"""The identity of a chat model: the data that determines its replies."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs

from dicast import ConfigError, Secret

UNRELATED = ("timeout", "retries", "price", "requests_per_minute", "tokens_per_minute")
"""Options of chat models that change the time and cost of a reply, not its content."""


def identity(model: Any) -> dict[str, object]:
    """Return the identity that *model* states, or else its class and its options.

    Secrets are left out, and the options in :data:`UNRELATED`.

    :raises ConfigError: if *model* has no ``identity()``, and is not an attrs class or has an option that is not plain data.
    """
    method = getattr(model, "identity", None)
    if method is not None:
        return dict(method())
    cls = type(model)
    if not attrs.has(cls):
        raise _unknown(cls, "is not an attrs class")
    options = {
        field.alias: getattr(model, field.name)
        for field in attrs.fields(cls)
        if field.init and field.alias not in UNRELATED
    }
    return {"class": _dotted(cls), **_without_secrets(cls, options)}


def _without_secrets(cls: type[Any], options: Mapping[str, object]) -> dict[str, object]:
    return {name: _plain(cls, name, value) for name, value in options.items() if not isinstance(value, Secret)}


def _plain(cls: type[Any], name: str, value: Any) -> object:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Decimal | Path):
        return str(value)
    if isinstance(value, Mapping):
        return _without_secrets(cls, {str(key): item for key, item in value.items()})
    if isinstance(value, list | tuple):
        return [_plain(cls, name, item) for item in value if not isinstance(item, Secret)]
    if attrs.has(type(value)):
        return identity(value)
    raise _unknown(cls, f"has an option {name!r} that is a {type(value).__name__}")


def _unknown(cls: type[Any], why: str) -> ConfigError:
    return ConfigError(
        f"cache/chat cannot tell what decides the replies of {_dotted(cls)}, which {why}: give it a method identity() "
        "that returns the model, its endpoint and its options as JSON data"
    )


def _dotted(cls: type[Any]) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
