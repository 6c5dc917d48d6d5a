"""Is a text a program of its language? Tree-sitter's grammars decide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, get_args

from dicast import ConfigError, Problem, nearest
from dicast.toolkit.installing import how_to_install

from .scanner import Fault

if TYPE_CHECKING:
    from tree_sitter import Node, Point, Tree

MAX_CODE_BYTES = 8 * 2**20
"""The largest size of one parse: its tree takes some 60 times as much memory."""

CALLED = {
    "c#": "csharp",
    "c++": "cpp",
    "cs": "csharp",
    "golang": "go",
    "js": "javascript",
    "jsx": "javascript",
    "kt": "kotlin",
    "py": "python",
    "rb": "ruby",
    "rs": "rust",
    "sh": "bash",
    "shell": "bash",
    "ts": "typescript",
    "yml": "yaml",
}
"""Names of languages other than the names of their grammars."""

_CHUNK = 2**16
_MAX_SHOWN = 40


def check_language(_instance: object, _attribute: object, language: str | None) -> None:
    """Check, as an attrs validator, the name of a grammar; None is no grammar.

    :raises ConfigError: if there is no such grammar, or the grammars are not installed.
    """
    if language is None:
        return
    try:
        from tree_sitter_language_pack import SupportedLanguage  # an extra, and 40 ms to import
    except ImportError as error:
        raise ConfigError(f"language {language!r} needs grammars: {how_to_install('grammars')}") from error
    names = get_args(SupportedLanguage)
    if language not in names:
        message = f"there is no grammar of the language {language!r}, but of {len(names)} others such as python or rust"
        raise ConfigError(Problem(message, value=language, hint=_meant(language.lower(), names)))


def _meant(name: str, names: tuple[str, ...]) -> str | None:
    return CALLED[name] if name in CALLED else nearest(name, names)


def syntax_errors(text: str, language: str, first_line: int = 1) -> Iterator[Fault]:
    """Yield every place of *text* that is no *language*, in the order of the text. Its first line has the number *first_line*."""
    source = text.encode("utf-8", "replace")  # a lone surrogate is one byte, as it is one character
    tree = _parse(source, language)
    if tree.root_node.has_error and not source.endswith(b"\n"):  # some grammars end a last line only there
        tree_end = _parse(source + b"\n", language)
        tree = tree if tree_end.root_node.has_error else tree_end
    for node in _wrong(tree):
        begin = source.rfind(b"\n", 0, node.start_byte) + 1
        column = len(source[begin : node.start_byte].decode("utf-8", "replace")) + 1
        yield Fault(_describe(node, source), node.start_point.row + first_line, column)


def _parse(source: bytes, language: str) -> Tree:
    from tree_sitter_language_pack import get_parser  # as above

    def read(at: int, _point: Point) -> bytes:
        return source[at : at + _CHUNK]

    # Called in between, so that a timer can end what takes too long; bytes would be parsed without a pause.
    return get_parser(language).parse(read, progress_callback=lambda _at, _error: False)  # type: ignore[arg-type]  # checked


def _wrong(tree: Tree) -> Iterator[Node]:
    """Yield the nodes for skipped or missing parts, down from the root, without recursion."""
    cursor = tree.walk()
    while True:
        node = cursor.node
        if node is not None and (node.is_error or node.is_missing):
            yield node
        elif node is not None and node.has_error and cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


def _describe(node: Node, source: bytes) -> str:
    if node.is_missing:
        return f"{node.type} is missing"
    skipped = source[node.start_byte : min(node.end_byte, node.start_byte + 4 * _MAX_SHOWN)].decode("utf-8", "replace")
    line = skipped.strip().split("\n", 1)[0].rstrip()
    return f"cannot read {line[:_MAX_SHOWN] + '…' if len(line) > _MAX_SHOWN or len(skipped.strip()) > len(line) else line!r}"
