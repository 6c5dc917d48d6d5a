"""promptfoo's prompts as templates of ``prompt/chat``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
import orjson

from ..toolkit.yaml.nodes import Node, Place
from .configuration import Folders, Losses, data_of, is_file, items, mapping_of, read_node, read_text, renamed, slug

_TEXTS = (".txt", ".md", ".json", ".j2", ".jsonl", ".yaml", ".yml")
_CODE = (".js", ".cjs", ".mjs", ".ts", ".py", ".csv")
_KEYS = {"raw", "id", "label", "display"}
_ASK = "ask it by task/command or task/python"


@attrs.frozen
class Prompt:
    """A prompt: its *name*, its *text* as promptfoo has it, and the *templates* of ``prompt/chat``."""

    name: str
    text: str
    templates: Mapping[str, str]
    place: Place


def prompts(node: Node | None, folders: Folders, losses: Losses) -> list[Prompt]:
    """Return the prompts, including prompts in files."""
    result: list[Prompt] = []
    for place, body, label in _bodies(node, losses):
        for text in _texts(body, folders, losses):
            templates = _templates(text)
            if templates is None:
                feature = "a prompt of more messages than one of the system and one of the user"
                losses.add(place.place, feature, _ASK)
            else:
                result.append(Prompt(slug(label or f"prompt{len(result) + 1}"), text, templates, place.place))
    return result


def _bodies(node: Node | None, losses: Losses) -> Iterator[tuple[Node, Node, str | None]]:
    """Yield the place of each prompt, its text or the name of its file, and its label."""
    for entry in items(node):
        keys = mapping_of(entry)
        body = entry if isinstance(entry.value, str) else keys.get("raw", keys.get("id"))
        if body is not None:
            for odd in sorted(set(keys) - _KEYS):
                losses.add(keys[odd].place, f"{odd} of a prompt", "write it into the task")
            label = data_of(keys.get("label"))
            yield entry, body, None if label is None else str(label)
        elif keys and not _KEYS & set(keys) and all(isinstance(child.value, str) for child in keys.values()):
            for name, child in keys.items():  # {prompt.txt: label}
                yield entry, attrs.evolve(child, value=name), str(child.value)
        else:
            losses.add(entry.place, f"prompt {data_of(entry)!r:.60}", "write its text, or the name of its file")


def _texts(node: Node, folders: Folders, losses: Losses) -> Iterator[str]:
    """Yield the prompt *node*, or the prompts in the files that it names."""
    text = str(node.value)
    name = text.removeprefix("file://")
    is_path = is_file(text) or ("\n" not in text and Path(name).suffix in (*_TEXTS, *_CODE) and " " not in name)
    if not is_path:
        yield text
        return
    paths = folders.matches(name, node.place)
    if not paths or any(path.suffix not in _TEXTS for path in paths):
        instead = f"write its text to a .txt file, or {_ASK}"
        losses.add(
            node.place, f"prompt {text}", instead if paths or Path(name).suffix in _CODE else "there is no such file"
        )
        return
    for path in paths:
        yield from _in_file(path)


def _in_file(path: Path) -> Iterator[str]:
    if path.suffix in (".yaml", ".yml"):
        yield orjson.dumps(data_of(read_node(path))).decode()
        return
    text = read_text(path)
    parts = [text]
    if path.suffix == ".txt":
        parts = text.replace("\r\n", "\n").split("\n---\n")
    elif path.suffix == ".jsonl":
        parts = text.splitlines()
    yield from (part.strip() for part in parts if part.strip())


def _templates(text: str) -> dict[str, str] | None:
    """Return the templates of *text*, which may be a list of messages; None if a task cannot send these messages."""
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
