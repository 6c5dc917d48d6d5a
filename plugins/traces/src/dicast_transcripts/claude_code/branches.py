"""The tree of the records in a session file, and the branches that the user left by a rewind.

Each record names its parent. A rewind continues at an earlier record, so that the records after it are on a branch that is no longer part of the
conversation. Claude Code follows the parents from the newest message in the same way. Other branches stay: parallel calls of one answer,
their results, and messages that name no parent or a parent in no record: a compaction and a session that starts anew write them too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from ..values import Record, list_of, mapping_of, text_of
from .kinds import is_context

_MESSAGES = ("user", "assistant")
_LINKS = ("uuid", "parentUuid", "logicalParentUuid", "sessionId", "session_id")


class Branches:
    """The tree of the records in one file."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}

    def add(self, record: Record) -> None:
        """Add *record*, if it has a place in the tree of a main session."""
        uuid = record.get("uuid")
        if type(uuid) is not str or record.get("isSidechain") is True or record.get("parent_tool_use_id"):
            return
        if record.get("type") not in _MESSAGES:
            record = {key: record[key] for key in _LINKS if key in record}
        self._records.setdefault(uuid, record)

    def abandoned(self) -> frozenset[str]:
        """Return the ids of the records on branches that the user left."""
        parents = set(map(_parent, self._records.values()))
        if len(parents) == len(self._records):  # no two records have one parent
            return frozenset()
        return _Tree(self._records).abandoned()


@attrs.frozen
class _Node:
    """A record of a main session, and the id of its parent."""

    parent: str | None
    record: Record


class _Tree:
    """The tree of *records* with branches."""

    def __init__(self, records: Mapping[str, Record]) -> None:
        self._nodes: dict[str, _Node] = {}
        self._newest: dict[str | None, str] = {}
        for uuid, record in records.items():
            self._nodes[uuid] = _Node(_parent(record), record)
            if record.get("type") in _MESSAGES:
                self._newest[text_of(record, "sessionId", "session_id")] = uuid

    def abandoned(self) -> frozenset[str]:
        """Return the ids of the records on branches that the user left."""
        chain = {step for uuid in self._newest.values() for step in self._up(uuid)}
        tops = self._tops(chain)
        prompts = {top for uuid, top in tops.items() if _is_prompt(self._nodes[uuid].record)}
        left = {top for top in prompts if self._nodes[top].parent in chain}
        if not left:
            return frozenset()
        parallel = self._parallel(chain)
        return frozenset(uuid for uuid, top in tops.items() if top in left and uuid not in parallel)

    def _up(self, uuid: str) -> Iterator[str]:
        """Yield *uuid* and its ancestors."""
        passed: set[str] = set()
        step: str | None = uuid
        while step is not None and step in self._nodes and step not in passed:
            passed.add(step)
            yield step
            step = self._nodes[step].parent

    def _tops(self, chain: set[str]) -> dict[str, str]:
        """Return the first record of the branch of each record that is not in *chain*."""
        tops: dict[str, str] = {}
        for uuid in self._nodes:
            if uuid in chain:
                continue
            path: list[str] = []
            for step in self._up(uuid):
                if step in chain or step in tops:
                    break
                path.append(step)
            parent = self._nodes[path[-1]].parent if path else None
            top = tops.get(parent or "", path[-1]) if path else uuid
            tops.update(dict.fromkeys(path, top))
        return tops

    def _parallel(self, chain: set[str]) -> set[str]:
        """Return the records that belong to an answer in *chain*: its other lines, and the results of their calls."""
        answers = {id_ for uuid in chain if (id_ := _answer(self._nodes[uuid].record))}
        lines = {uuid for uuid, node in self._nodes.items() if _answer(node.record) in answers}
        results = {uuid for uuid, node in self._nodes.items() if node.parent in lines and _has_result(node.record)}
        return lines | results


def _parent(record: Record) -> str | None:
    return text_of(record, "parentUuid", "logicalParentUuid")


def _answer(record: Record) -> str | None:
    """Return the id of the answer to which a line of the assistant belongs."""
    return text_of(mapping_of(record, "message"), "id") if record.get("type") == "assistant" else None


def _has_result(record: Record) -> bool:
    blocks = list_of(mapping_of(record, "message"), "content")
    return any(isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks)


def _is_prompt(record: Record) -> bool:
    """Return whether the user wrote *record*."""
    if record.get("type") != "user" or record.get("isMeta") or record.get("isCompactSummary") or _has_result(record):
        return False
    content = mapping_of(record, "message").get("content")
    blocks = [content] if isinstance(content, str) else content if isinstance(content, list) else []
    texts = [
        block if isinstance(block, str) else text_of(block, "text") for block in blocks if isinstance(block, str | dict)
    ]
    return bool(blocks) and not is_context("\n".join(filter(None, texts)).lstrip())
