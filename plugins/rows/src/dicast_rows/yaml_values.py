"""The items of a YAML file as JSON data, one at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING, Any

from dicast import DataError, Problem

if TYPE_CHECKING:
    import yaml

MAX_VALUES = 1_000_000
"""Values that one item may have, with its aliases expanded: an alias bomb ends here."""

MAX_DEPTH = 100

_PIECE = 2**14

_CORE = "tag:yaml.org,2002:"
_PLAIN = (
    ("null", re.compile(r"~|null|Null|NULL|")),
    ("bool", re.compile(r"true|True|TRUE|false|False|FALSE")),
    ("int", re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")),
    ("float", re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")),
)
"""What a scalar without quotes is, by YAML 1.2's core schema; any other is a text."""

_DOTTED = re.compile(r"\.(inf|nan)", re.IGNORECASE)


class _Stream:
    """Pieces of a file as a stream."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, b""

    def read(self, size: int = _PIECE, /) -> bytes:
        """At most *size* bytes, none at the end."""
        piece = self._rest or next(self._pieces, b"")
        self._rest = piece[size:]
        return piece[:size]


def nodes(pieces: Iterator[bytes]) -> Iterator[Any]:
    """Yield the items of each document that is a list, and each other document that is not empty.

    :raises yaml.YAMLError: where the bytes are not YAML.
    """
    import yaml  # 40 ms, which only this source needs

    loader = _loader(_Stream(pieces))
    loader.get_event()
    while not loader.check_event(yaml.StreamEndEvent):
        loader.get_event()
        loader.anchors = {}
        if loader.check_event(yaml.SequenceStartEvent) and not loader.peek_event().anchor:
            loader.get_event()
            while not loader.check_event(yaml.SequenceEndEvent):
                yield loader.compose_node(None, None)
            loader.get_event()
        else:
            node = loader.compose_node(None, None)
            if node.value != "" or node.tag != f"{_CORE}null":
                yield node
        loader.get_event()


def _loader(stream: _Stream) -> Any:
    """What composes nodes from the events of libyaml, or of PyYAML's own parser where that is missing."""
    import yaml
    from yaml.composer import Composer
    from yaml.resolver import BaseResolver

    base = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader

    class Loader(base, Composer, BaseResolver):  # type: ignore[misc, valid-type]  # which of the two is known only here
        def __init__(self) -> None:
            base.__init__(self, stream)
            Composer.__init__(self)
            BaseResolver.__init__(self)
            self.depth = 0

        def compose_node(self, parent: yaml.Node | None, index: Any) -> Any:
            """Compose as ever, but not deeper than an item may be: each level takes three frames of Python's stack."""
            if self.depth > MAX_DEPTH:
                deep = f"an item has more than {MAX_DEPTH} levels"
                raise yaml.composer.ComposerError(None, None, deep, self.peek_event().start_mark)
            self.depth += 1
            node = Composer.compose_node(self, parent, index)
            self.depth -= 1
            return node

        def resolve(self, kind: type[yaml.Node], value: str, implicit: tuple[bool, bool]) -> str:
            if kind is not yaml.ScalarNode:
                return _CORE + ("seq" if kind is yaml.SequenceNode else "map")
            plain = (name for name, form in _PLAIN if form.fullmatch(value))
            return _CORE + (next(plain, "str") if implicit[0] else "str")

    return Loader()


def value_of(node: yaml.Node) -> Any:
    """The JSON data that *node* is.

    :raises DataError: (without a file) when it holds what JSON has not.
    """
    return _Values().of(node, 0)


class _Values:
    """Makes the values of one item, and counts them."""

    def __init__(self) -> None:
        self._left = MAX_VALUES

    def of(self, node: Any, depth: int) -> Any:
        """The value of *node*, which *depth* others are around."""
        self._left -= 1
        if depth > MAX_DEPTH or self._left < 0:
            what = f"more than {MAX_DEPTH} levels" if depth > MAX_DEPTH else f"more than {MAX_VALUES:,} values"
            raise _wrong(node, f"it has {what}, its aliases expanded")
        kind = node.tag.removeprefix(_CORE)
        if node.id == "scalar":
            return _scalar(node, kind)
        if node.id == "sequence" and kind == "seq":
            return [self.of(item, depth + 1) for item in node.value]
        if node.id == "mapping" and kind == "map":
            return self._mapping(node, depth + 1)
        raise _wrong(node, f"the tag {node.tag} is none of JSON data")

    def _mapping(self, node: Any, depth: int) -> dict[str, Any]:
        own, merged = dict[str, Any](), dict[str, Any]()
        for key, value_node in node.value:
            value = self.of(value_node, depth)
            if key.id != "scalar":
                raise _wrong(key, "a key is a text, not a list or a mapping")
            if key.value == "<<" and not key.style:
                for each in reversed(value if isinstance(value, list) else [value]):
                    if not isinstance(each, dict):
                        raise _wrong(value_node, "<< takes a mapping, or a list of them")
                    merged |= each
            elif key.value in own:
                raise _wrong(key, f"the key {key.value!r} occurs twice")
            else:
                own[key.value] = value
        return merged | own


def _scalar(node: Any, kind: str) -> str | int | float | bool | None:
    text = str(node.value)
    if kind == "str":
        return text
    if kind == "null":
        return None
    if kind not in ("bool", "int", "float"):
        raise _wrong(node, f"the tag {node.tag} is none of JSON data")
    try:
        number = _number(text, kind)
    except (ValueError, KeyError) as error:
        raise _wrong(node, f"{text!r:.100} is not what its tag says, {node.tag}") from error
    if kind == "int" and not -(2**63) <= number < 2**64:
        raise _wrong(node, f"the number {text:.40} needs more than 64 bits; write it as a string")
    if not isfinite(number):
        raise _wrong(node, f"{text} is no number of JSON; write null, or a text")
    return number


def _number(text: str, kind: str) -> int | float:
    if kind == "bool":
        return {"true": True, "false": False}[text.lower()]
    if kind == "int":
        return int(text, 8 if text.startswith("0o") else 16 if text.startswith("0x") else 10)
    return float(_DOTTED.sub(r"\1", text))


def _wrong(node: Any, what: str) -> DataError:
    mark = node.start_mark
    return DataError(Problem(what, line=mark.line + 1, column=mark.column + 1))
