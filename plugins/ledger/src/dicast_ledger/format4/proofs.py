"""Proofs: a document which shows that a verdict is in a ledger, without the ledger.

The document has the line of the verdict, its maker, the content and the texts, the digest before the line, and the leaf of each later line up to the
head. Who noted the digest of the head knows that the verdict was in the ledger at that time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import attrs
import orjson

from dicast import Event, LedgerError
from dicast.toolkit.ledger_lines.blocks import lines_in
from dicast.toolkit.ledger_lines.chain import chained, leaf_of
from dicast.toolkit.ledger_lines.lines import EVENT, events_of
from dicast.toolkit.ledger_lines.makers import Maker, name_of
from dicast.toolkit.ledger_lines.references import references_of
from dicast.toolkit.ledger_lines.traced import SUBJECTS

from .reading import Makers
from .texts import Texts

_VERDICTS = ("eval.completed", "eval.failed")
_TYPES = " OR ".join(f"instr(types, '{type_}')" for type_ in _VERDICTS)


class ProofError(Exception):
    """A proof does not hold; the text has the reason."""


@attrs.frozen
class Proven:
    """Content of a valid proof: the events of the line, and the head of the ledger."""

    events: Sequence[Event]
    head: Mapping[str, Any]


def prove(connection: sqlite3.Connection, eval_id: str) -> dict[str, Any]:
    """Return the proof of the verdict or failure with this id.

    :raises LedgerError: if the ledger does not have it.
    :raises ValueError: if a block cannot be read.
    """
    needle, makers, texts = orjson.dumps(eval_id), Makers(connection), Texts(connection)
    for first, prev, size, body in connection.execute(
        f"SELECT first, prev, size, body FROM blocks WHERE {_TYPES} ORDER BY first DESC"
    ):
        lines = lines_in(size, body)
        for place, line in enumerate(lines):
            if needle in line and _is_about(orjson.loads(line), eval_id, makers, texts):
                before, _ = chained(prev, map(leaf_of, lines[:place]))
                later = [leaf_of(other).hex() for other in lines[place + 1 :]]
                return _document(connection, first, line, before, later)
    raise LedgerError(f"no verdict has the id {eval_id!r}: dicast verdicts --json lists the ids")


def _is_about(line: Sequence[Any], eval_id: str, makers: Makers, texts: Texts) -> bool:
    return any(
        event.type in _VERDICTS and event.payload.get("eval_id") == eval_id
        for _, event in events_of(line, makers, texts.get)
    )


def _document(
    connection: sqlite3.Connection, first: int, line: bytes, before: bytes, later: list[str]
) -> dict[str, Any]:
    values = orjson.loads(line)
    maker = Makers(connection)[values[1]] if values[0] in SUBJECTS else None
    place, texts = None if maker is None else maker.content, Texts(connection)
    content = None if place is None else texts.get(values[place])
    others = {reference.digest: texts.get(reference.digest) for reference in references_of(values, Makers(connection))}
    for size, body in connection.execute("SELECT size, body FROM blocks WHERE first > ? ORDER BY first", (first,)):
        later += [leaf_of(other).hex() for other in lines_in(size, body)]
    last, digest = connection.execute("SELECT last, digest FROM blocks ORDER BY first DESC LIMIT 1").fetchone()
    return {
        "format": 4,
        "line": line.decode(),
        "maker": None if maker is None else maker.line.decode(),
        "content": None if content is None else content.decode(),
        "texts": [text.decode() for text in others.values() if text not in (None, content)],
        "prev": before.hex(),
        "leaves": later,
        "head": {"seq": last, "digest": digest.hex()},
    }


def check_proof(document: Any) -> Proven:
    """Return the content of a proof after checking it, without the ledger.

    :raises ProofError: if it does not hold.
    """
    try:
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
        return Proven([event for _, event in events_of(values, makers, contents.get)], head)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ProofError(f"it is not the document of dicast ledger prove: {error!r}") from error
