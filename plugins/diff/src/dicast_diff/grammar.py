"""Code of other languages than Python as tokens, by their tree-sitter grammars."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, get_args

import attrs

from dicast import ConfigError, Problem, nearest
from dicast.toolkit.installing import how_to_install

from .tokens import Token, Unparsable

if TYPE_CHECKING:
    from tree_sitter import Node

_SEMICOLONS = frozenset(
    ("bash", "css", "go", "javascript", "kotlin", "lua", "luau", "ruby", "scala", "scss", "swift", "tsx", "typescript")
)
"""Languages where the end of a line, or of a block, ends a statement as a semicolon does."""

_EITHER_QUOTE = frozenset(("css", "dart", "javascript", "lua", "luau", "r", "scss", "tsx", "typescript"))
"""Languages where a string means the same between quotes of either kind."""

_PLAIN_QUOTE = frozenset(("bash", "html", "perl", "php", "powershell", "ruby", "svelte", "toml", "vue", "yaml"))
"""Languages with two equal kinds of quotes for strings without special characters."""

_QUOTED = re.compile(rb"""(["'])((?:(?>\\.|(?!\1)[^\\]))*+)\1""", re.DOTALL)  # (?>…): see python_code
_SPECIAL = re.compile(rb"""[\\$#@%&`{'"\n]""")
_ESCAPED_QUOTE = re.compile(rb"""\\(?:(["'])|.)""", re.DOTALL)
_CONTINUED = re.compile(rb"\\\n")

_HEADS = ("call", "field", "member", "subscript", "method", "navigation", "selector", "decltype")
"""In the types of nodes: there ``(a.b)()`` and ``(a?.b).c`` mean another thing than without parentheses."""

_PARENTHESES_MATTER = frozenset(("lua", "luau", "r"))
_ENDS = (";", "\n", "empty_statement")
_CHUNK = 2**16
_MEMBERS = ("interface_body", "object_type")  # of TypeScript: members of them may also end in a comma
_TEXTS = ("string", "char", "text", "template", "literal", "heredoc")


_CALLED = {
    "c#": "csharp",
    "c++": "cpp",
    "js": "javascript",
    "py": "python",
    "rs": "rust",
    "sh": "bash",
    "ts": "typescript",
}


def check_language(language: str) -> None:
    """Check that there is a grammar for *language*.

    :raises ConfigError: when there is none, or when the grammars are not installed.
    """
    if find_spec("tree_sitter_language_pack") is None:
        languages: Sequence[str] = ("python",)
        wrong = f"there is no grammar for language {language!r}: {how_to_install('grammars')}"
    else:
        from tree_sitter_language_pack import SupportedLanguage  # loads tree-sitter, which python does without

        languages = ("python", *get_args(SupportedLanguage))
        wrong = f"unknown language {language!r}"
    if language not in languages:
        raise ConfigError(
            Problem(wrong, value=language, hint=_CALLED.get(language.lower()) or nearest(language.lower(), languages))
        )


def tokens(text: str, language: str) -> list[Token]:
    """Return the tokens of *text*, without its comments and layout, and without quotes and parentheses that do not matter.

    :raises Unparsable: if it is not *language*.
    """
    source = text.encode(errors="surrogatepass")
    root = _parsed(source, language)
    if root.has_error and not source.endswith(b"\n"):  # some grammars end a last line only there
        tree_end = _parsed(source := source + b"\n", language)
        root = root if tree_end.has_error else tree_end
    if root.has_error:
        raise _fault(root)
    return list(_Reading(source, language).tokens(root))


def _parsed(source: bytes, language: str) -> Node:
    from tree_sitter_language_pack import get_parser  # as above

    def read(at: int, _point: object) -> bytes:
        return source[at : at + _CHUNK]

    named: Any = language  # one of those that check_language knows
    # Called in between, so that a timer can end what takes too long; bytes would be parsed without a pause.
    try:
        return get_parser(named).parse(read, progress_callback=lambda _at, _error: False).root_node
    except SystemError as error:
        if error.__cause__ is None:
            raise
        raise error.__cause__ from None  # what the timer raised inside read, after which the parser had called on


def _fault(root: Node) -> Unparsable:
    node, wrong = root, [root]
    while wrong and not (node.is_error or node.is_missing):
        node = wrong[0]
        wrong = [child for child in node.children if child.has_error]  # none where what is missing has no node
    why = f"{node.type!r} is missing" if node.is_missing else "a syntax error"
    return Unparsable(why, node.start_point.row + 1, node.start_point.column)


@attrs.frozen
class _Reading:
    """Reads the tokens of one *source*."""

    source: bytes
    language: str

    def tokens(self, root: Node) -> Iterator[Token]:
        """Yield the tree in preorder, in a loop: code may be nested deeper than Python's recursion limit."""
        waiting = [root]
        while waiting:
            node = waiting.pop()
            content = self._content(node)
            inside = self._kept_children(node) if content is None else []
            token = (node.type, len(inside), *self._between(node)) if content is None else content
            yield token, node.start_point.row + 1, node.start_point.column
            waiting += reversed(inside)

    def _text(self, node: Node) -> bytes:
        return self.source[node.start_byte : node.end_byte]

    def _content(self, node: Node) -> tuple[str, bytes] | None:
        """Return the text of a leaf, or of a quoted string in a language where both quotes are equal; None for any other node."""
        text = self._quoted(node)
        if text is not None:
            return "a string", text
        if node.child_count:
            return None
        is_word = self.language == "sql" and node.type.startswith("keyword_")  # written in any case
        return node.type, b"" if is_word else self._text(node)

    def _quoted(self, node: Node) -> bytes | None:
        if not (node.is_named and ("string" in node.type or "quote" in node.type or "scalar" in node.type)):
            return None
        quoted = _QUOTED.fullmatch(self._text(node))
        if quoted is None:
            return None
        if self.language in _EITHER_QUOTE:
            return _ESCAPED_QUOTE.sub(lambda match: match[1] or match[0], quoted[2])
        return quoted[2] if self.language in _PLAIN_QUOTE and not _SPECIAL.search(quoted[2]) else None

    def _kept_children(self, node: Node) -> list[Node]:
        children = [child for child in node.children if not child.type.endswith("comment")]
        semicolons = self.language in _SEMICOLONS and not node.type.startswith("for")
        kept_nodes = []
        for index, child in enumerate(children):
            tree_end = semicolons and (child.type in _ENDS or (child.type == "," and node.type in _MEMBERS))
            if not tree_end and not _is_last_comma(node, children, index):
                kept_nodes.append(self._bare(child, node, first=not index))
        return kept_nodes

    def _bare(self, node: Node, parent: Node, *, first: bool) -> Node:
        """*node* without redundant parentheses around it."""
        if node.type == "formal_parameters" and parent.type == "arrow_function":
            return _only_name(node)
        matter = self.language in _PARENTHESES_MATTER or (first and any(head in parent.type for head in _HEADS))
        while node.type == "parenthesized_expression" and not matter:
            inside = [child for child in node.named_children if not child.type.endswith("comment")]
            if len(inside) != 1:
                break
            node = inside[0]
        return node

    def _between(self, node: Node) -> Iterator[bytes]:
        """Yield the text of *node* that is in none of its children and is no layout: some grammars have no nodes for parts of a string."""
        exact = any(part in node.type for part in _TEXTS)
        start = node.start_byte
        for end, after in [*((child.start_byte, child.end_byte) for child in node.children), (node.end_byte, 0)]:
            text = self.source[start:end]
            if text and (exact or (text := _CONTINUED.sub(b"", text).strip())):
                yield text
            start = after


def _only_name(parameters: Node) -> Node:
    """Return the name in ``(x) => …``, which may be written ``x => …``; or the *parameters* themselves if they are not one name."""
    node = parameters
    while node.type in ("formal_parameters", "required_parameter"):
        if node.named_child_count != 1:
            return parameters
        node = node.named_children[0]
    return node if node.type == "identifier" else parameters


def _is_last_comma(node: Node, children: Sequence[Node], index: int) -> bool:
    """Return True for a comma that only follows the last item of a list before its closing bracket."""
    if children[index].type != "," or not 0 < index < len(children) - 1:
        return False
    counts = "tuple" in node.type or "token_tree" in node.type
    return not counts and children[index - 1].is_named and children[index + 1].type in (")", "]", "}", ">")
