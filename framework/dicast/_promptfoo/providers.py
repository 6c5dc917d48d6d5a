"""promptfoo's providers as chat models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import attrs

from ..toolkit.yaml.nodes import Node
from .configuration import Folders, Losses, data_of, items, mapping_of, read_node, slug

ECHO = "echo"

_LITELLM = {
    "google": "gemini", "vertex": "vertex_ai", "azureopenai": "azure", "ollama": "ollama_chat", "togetherai": "together_ai",
    "huggingface": "huggingface", "anthropic": "anthropic", "azure": "azure", "mistral": "mistral", "groq": "groq",
    "bedrock": "bedrock", "openrouter": "openrouter", "deepseek": "deepseek", "cohere": "cohere", "xai": "xai",
    "fireworks": "fireworks_ai", "perplexity": "perplexity", "replicate": "replicate", "cerebras": "cerebras",
}  # fmt: skip
"""litellm's names of providers, by promptfoo's."""

_KINDS = ("chat", "messages", "completion", "responses")
_TASK = {"temperature": "temperature", "max_tokens": "max_output_tokens"}
_LOCAL = ("localhost", "127.0.0.1", "::1")
_IDLE = {"id", "label", "config", "delay"}


@attrs.frozen
class Provider:
    """A provider: its *name*, the *model* that ``prompt/chat`` asks (None for promptfoo's echo), and *options* of the task."""

    name: str
    model: Mapping[str, Any] | None
    options: Mapping[str, Any]


def providers(node: Node | None, folders: Folders, losses: Losses) -> list[Provider]:
    """Return the providers that dicast can ask."""
    result = []
    for place, named, keys in _named(node, folders):
        odd = sorted(set(keys) - _IDLE)
        config = mapping_of(keys.get("config"))
        candidate = provider(
            named, {name: data_of(entry) for name, entry in config.items()}, data_of(keys.get("label"))
        )
        if candidate is None:
            instead = "ask it by task/python, task/command or task/http in a pipeline that includes this one"
            losses.add(place.place, f"provider {named}", instead)
        elif odd:
            instead = "it changes what the provider is asked or answers: write a pipeline of its own"
            losses.add(place.place, f"provider {named} with {', '.join(odd)}", instead)
        else:
            result.append(candidate)
            for name in sorted(set(config) - {*_TASK, "apiBaseUrl"}):
                instead = "see the options of openai/chat, litellm/chat and prompt/chat"
                losses.add(keys["config"].place, f"{name} of {named}", instead)
    return result


def _named(node: Node | None, folders: Folders) -> Iterator[tuple[Node, str, Mapping[str, Node]]]:
    """Yield each provider with its name and its mapping, including providers in files."""
    for entry in items(node):
        path = folders.file(entry)
        if path is not None and path.suffix in (".yaml", ".yml", ".json"):
            yield from _named(read_node(path), folders)
            continue
        keys = mapping_of(entry)
        named = data_of(keys.get("id")) if keys else entry.value
        if keys and named is None:  # {"openai:gpt-5": {config: …}}
            named, keys = next(iter(keys)), mapping_of(next(iter(keys.values())))
        yield entry, str(named), keys


def provider(named: str, config: Mapping[str, Any], label: str | None = None) -> Provider | None:
    """Return the provider *named*, None if dicast has no model for it."""
    if named == ECHO:
        return Provider(slug(label or ECHO), None, {})
    kind, _, rest = named.partition(":")
    first, _, model = rest.partition(":")
    model = model if first in _KINDS and model else rest
    options = {ours: config[theirs] for theirs, ours in _TASK.items() if theirs in config}
    if kind == "openai" and model and (first in (*_KINDS, "ft") or ":" not in rest):
        return Provider(slug(label or model), {"openai/chat": {**_address(config), "model": model}}, options)
    if kind in _LITELLM and model:
        return Provider(slug(label or model), {"litellm/chat": {"model": f"{_LITELLM[kind]}/{model}"}}, options)
    return None


def _address(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for the address in *config*; a model on this machine costs nothing, unless it takes a key."""
    if "apiBaseUrl" not in config:
        return {}
    address = str(config["apiBaseUrl"])
    is_local = (urlsplit(address).hostname or "") in _LOCAL and not {"apiKey", "apiKeyEnvar"} & set(config)
    return {"base_url": address, **({"price": "free"} if is_local else {})}
