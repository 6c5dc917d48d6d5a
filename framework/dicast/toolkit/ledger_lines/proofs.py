"""Proofs: a document which shows that a verdict is in a ledger, without the ledger.

The document has the line of the verdict, its maker, its contents, the digest before the line, and the leaf of each later line up to the head. Who noted the digest of the head knows
that the verdict was in the ledger at that time. A proof of a shard also has the audit path from the head of the shard to the root of its run. ``checksum`` is the SHA-256 of the other members,
so every changed byte is refused, also in members that the chain does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import attrs
import orjson

from dicast import Event

from ..merkle import audit_path, root_of_path
from ..shard_tree import shard_entries, shard_entry
from .chain import chained, leaf_of
from .lines import EVENT, events_of
from .makers import Maker, name_of
from .references import references_of
from .traced import SUBJECTS

VERDICT_TYPES = ("eval.completed", "eval.failed")
"""The types of the events that can be proven."""

_MEMBERS = frozenset(("format", "line", "maker", "content", "texts", "prev", "leaves", "head"))
_SHARD_MEMBERS = frozenset(("number", "run_id", "count", "index", "of", "path", "root"))


class ProofError(Exception):
    """A proof does not hold; the text has the reason."""


@attrs.frozen
class Proven:
    """Content of a valid proof: the events of the line, the head of the ledger, and the member ``shard`` of a proof of a shard."""

    events: Sequence[Event]
    head: Mapping[str, Any]
    shard: Mapping[str, Any] | None = None


def unknown_verdict(eval_id: str) -> str:
    """Return the message that a ledger does not have a verdict."""
    return f"no verdict has the id {eval_id!r}: dicast verdicts --json lists the ids"


def is_about(line: Sequence[Any], eval_id: str, makers: Mapping[str, Maker]) -> bool:
    """Return True if a line, as parsed JSON, has the verdict or the failure with the id *eval_id*."""
    return any(
        event.type in VERDICT_TYPES and event.payload.get("eval_id") == eval_id
        for _, event in events_of(line, makers, lambda _: None)
    )


def proof_of(
    line: bytes,
    makers: Mapping[str, Maker],
    content: Callable[[str], bytes | None],
    prev: bytes,
    later: Iterable[bytes],
    head: tuple[int, bytes],
) -> dict[str, Any]:
    """Return the proof of a *line*.

    :param content: returns the content with a digest; None for an absent content.
    :param prev: the digest before the line.
    :param later: the leaves of the lines after it, up to the head.
    :param head: the number of the last event, and the digest after the last line.
    """
    values = orjson.loads(line)
    maker = makers[values[1]] if values[0] in SUBJECTS else None
    digests = dict.fromkeys(reference.digest for reference in references_of(values, makers))
    first = "" if maker is None or maker.content is None else str(values[maker.content])
    texts = {digest: text.decode() for digest in digests if (text := content(digest)) is not None}
    document = {
        "format": 4,
        "line": line.decode(),
        "maker": None if maker is None else maker.line.decode(),
        "content": texts.pop(first, None),
        "texts": list(texts.values()),
        "prev": prev.hex(),
        "leaves": [leaf.hex() for leaf in later],
        "head": {"seq": head[0], "digest": head[1].hex()},
    }
    return document | {"checksum": _checksum(document)}


def proof_in_shard(proof: Mapping[str, Any], shards: Sequence[Mapping[str, Any]], index: int) -> dict[str, Any]:
    """Return *proof*, which leads to the head of the shard *index* of *shards*, continued to the root of all *shards*."""
    entries, shard = shard_entries(shards), shards[index]
    path = audit_path(entries, index)
    root = root_of_path(entries[index], index, len(entries), path)
    member = {
        **{name: shard[name] for name in ("number", "run_id", "count")},
        "index": index,
        "of": len(shards),
        "path": [digest.hex() for digest in path],
        "root": root.hex(),
    }
    document = {name: value for name, value in proof.items() if name != "checksum"} | {"shard": member}
    return document | {"checksum": _checksum(document)}


def read_proof(data: bytes) -> Proven:
    """Return the content of the file of a proof after checking it, without the ledger.

    :raises ProofError: if it does not hold, or if a byte was changed.
    """
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise ProofError(f"it is not JSON: {error}") from error
    proven = check_proof(document)
    if orjson.dumps(document) != data:
        raise ProofError("it is not written as dicast ledger prove writes it")
    return proven


def check_proof(document: Any) -> Proven:
    """Return the content of a proof after checking it, without the ledger. Older versions wrote proofs without ``checksum``.

    :raises ProofError: if it does not hold.
    """
    try:
        _check_members(document)
        line, maker = document["line"].encode(), document["maker"]
        texts = [text.encode() for text in (document["content"], *document.get("texts", ())) if text is not None]
        leaves = [leaf_of(line), *map(bytes.fromhex, document["leaves"])]
        digest, _ = chained(bytes.fromhex(document["prev"]), leaves)
        head = document["head"]
        if digest.hex() != head["digest"]:
            raise ProofError(
                f"the line and the leaves have the digest {digest.hex()}, not {head['digest']} of the head"
            )
        values = orjson.loads(line)
        makers = {} if maker is None else {name_of(maker.encode()): Maker.of(maker.encode())}
        if values[0] != EVENT and values[0] not in SUBJECTS:
            raise ProofError("the line has no events")
        if values[0] in SUBJECTS and values[1] not in makers:
            raise ProofError(f"the maker of the proof is not {values[1]}, the maker of the line")
        contents = {sha256(text).hexdigest(): text for text in texts}
        if not contents.keys() <= {reference.digest for reference in references_of(values, makers)}:
            raise ProofError("the line does not have the digest of the content")
        events = [event for _, event in events_of(values, makers, contents.get)]
        shard = document.get("shard")
        if shard is not None:
            _check_shard(shard, head, events)
        return Proven(events, head, shard)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ProofError(f"it is not the document of dicast ledger prove: {error!r}") from error


def _check_members(document: Any) -> None:
    missing, unknown = _MEMBERS - document.keys(), document.keys() - _MEMBERS - {"shard", "checksum"}
    if missing - {"texts"} or unknown or document["format"] != 4 or document["head"].keys() != {"seq", "digest"}:
        raise ProofError("it is not the document of dicast ledger prove: it has other members")
    others = {name: value for name, value in document.items() if name != "checksum"}
    if ("checksum" in document or "shard" in document) and document.get("checksum") != _checksum(others):
        raise ProofError("a member was changed: the checksum is another")


def _check_shard(shard: Mapping[str, Any], head: Mapping[str, Any], events: Sequence[Event]) -> None:
    """Check that the *head* of a shard leads to the root of its run, and that the *events* are of the shard."""
    if shard.keys() != _SHARD_MEMBERS:
        raise ProofError("the shard has other members")
    entry = shard_entry(shard["number"], shard["run_id"], shard["count"], head)
    path = [bytes.fromhex(digest) for digest in shard["path"]]
    root = root_of_path(entry, shard["index"], shard["of"], path).hex()
    if root != shard["root"]:
        raise ProofError(f"the head of the shard and the path have the root {root}, not {shard['root']}")
    if {event.run_id for event in events} != {shard["run_id"]}:
        raise ProofError(f"the verdict is not of run {shard['run_id']}, the run of the shard")


def _checksum(document: Mapping[str, Any]) -> str:
    return sha256(orjson.dumps(document)).hexdigest()
