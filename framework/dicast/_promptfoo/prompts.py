"""promptfoo's prompts and providers as tasks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import orjson

from .._kernel.pipeline.yaml_nodes import Node, Place
from .configuration import Losses, data_of, file_named, items, mapping_of, read_text, renamed

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


@attrs.frozen
class Prompt:
    """A prompt: its *name*, its *text* as promptfoo has it, and the *templates* of ``prompt/chat``."""

    name: str
    text: str
    templates: Mapping[str, str]
    place: Place


@attrs.frozen
class Provider:
    """A provider: its *name*, the *model* that ``prompt/chat`` asks, None for promptfoo's echo, and *options* of the task."""

    name: str
    model: Mapping[str, Any] | None
    options: Mapping[str, Any]


def prompts(node: Node | None, losses: Losses) -> list[Prompt]:
    """The prompts, those in files among them."""
    found: list[Prompt] = []
    for one in items(node):
        given = mapping_of(one)
        body = one if isinstance(one.value, str) else given.get("raw", given.get("id"))
        label = data_of(given.get("label"))
        for text in _texts(body, losses) if body is not None else ():
            templates = _templates(text)
            if templates is None:
                losses.add(
                    one.place,
                    "a prompt of more messages than one of the system and one of the user",
                    "ask it by task/command or task/python",
                )
            else:
                found.append(Prompt(slug(label or f"prompt{len(found) + 1}"), text, templates, one.place))
    return found


def _texts(node: Node, losses: Losses) -> Iterator[str]:
    path = file_named(node)
    if path is None:
        yield str(node.value)
    elif path.suffix in (".txt", ".md", ".json") and path.is_file():
        text = read_text(path)
        yield from (
            part.strip() for part in (text.split("\n---\n") if path.suffix == ".txt" else [text]) if part.strip()
        )
    else:
        losses.add(
            node.place,
            f"prompt {node.value}",
            "write its text to a .txt file, or ask it by task/command or task/python",
        )


def _templates(text: str) -> dict[str, str] | None:
    """The templates of *text*, which may be a list of messages; None where these are no question."""
    try:
        messages = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {"user": renamed(text)}
    if not isinstance(messages, list):
        return {"user": renamed(text)}
    roles = [message.get("role") if isinstance(message, dict) else None for message in messages]
    contents = [message.get("content") if isinstance(message, dict) else None for message in messages]
    if roles not in (["user"], ["system", "user"]) or not all(isinstance(content, str) for content in contents):
        return None
    return {
        str(role): renamed(content) for role, content in zip(roles, contents, strict=True) if isinstance(content, str)
    }


def providers(node: Node | None, losses: Losses) -> list[Provider]:
    """The providers that dicast can ask."""
    found = []
    for one in items(node):
        given = mapping_of(one)
        named = data_of(given.get("id")) if given else one.value
        if given and named is None:  # {"openai:gpt-5": {config: …}}
            named, given = next(iter(given)), mapping_of(next(iter(given.values())))
        made = provider(
            str(named),
            {name: data_of(node) for name, node in mapping_of(given.get("config")).items()},
            data_of(given.get("label")),
        )
        if made is None:
            losses.add(
                one.place,
                f"provider {named}",
                "ask it by task/command, task/http or task/python, or name a model: --model",
            )
            continue
        found.append(made)
        for name in sorted(set(mapping_of(given.get("config"))) - {*_TASK, "apiBaseUrl"}):
            losses.add(
                given["config"].place,
                f"{name} of {named}",
                "see the options of openai/chat, litellm/chat and prompt/chat",
            )
    return found


def provider(named: str, config: Mapping[str, Any], label: str | None = None) -> Provider | None:
    """The provider *named*; None where dicast has nothing for it."""
    if named == ECHO:
        return Provider(slug(label or ECHO), None, {})
    kind, _, rest = named.partition(":")
    first, _, model = rest.partition(":")
    model = model if first in _KINDS and model else rest
    options = {ours: config[theirs] for theirs, ours in _TASK.items() if theirs in config}
    if kind == "openai" and model:
        address = {"base_url": config["apiBaseUrl"]} if "apiBaseUrl" in config else {}
        return Provider(slug(label or model), {"openai/chat": {**address, "model": model}}, options)
    if kind in _LITELLM and model:
        return Provider(slug(label or model), {"litellm/chat": {"model": f"{_LITELLM[kind]}/{model}"}}, options)
    return None


def slug(text: object) -> str:
    """*text* as the name of an experiment."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", str(text)).strip("-.")[:40] or "variant"
