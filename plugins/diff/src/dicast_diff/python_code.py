"""Python code as tokens, by the grammar of the Python that runs this."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from .tokens import Token, Unparsable

_IGNORED = frozenset(("kind", "type_comment", "type_ignores"))  # u"" next to "", and comments
# Python before 3.11.5 matches a possessive (?:…)*+ wrongly where what it repeats could backtrack; (?>…) inside keeps it from that.
_INDENTED = re.compile(r"(?:(?>[ \t\f]*+(?:#[^\n]*+)?\n))*+[ \t]++[^\s#]")  # the first line of code is
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def tokens(text: str) -> list[Token]:
    """Return the tokens of *text*, without its comments, layout, quotes, redundant parentheses and forms of numbers.

    Docstrings are included, without the white space around them and around each of their lines. A body without its head,
    indented as a whole, is code like any other.

    :raises Unparsable: if it is not Python.
    """
    return list(_tokens(_parsed(text)))


def _parsed(text: str) -> ast.Module:
    if "\0" in text:
        raise Unparsable("a null byte", *_place(text, text.index("\0")))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes and comparisons in what is judged
            return _body(text) if _INDENTED.match(text) else ast.parse(text)
    except SyntaxError as error:
        raise Unparsable(str(error.msg), error.lineno, _offset(error)) from error
    except UnicodeEncodeError as error:
        raise Unparsable("a lone surrogate", *_place(text, error.start)) from error
    except (RecursionError, MemoryError) as error:
        raise Unparsable("nested deeper than Python parses") from error


def _body(text: str) -> ast.Module:
    """Parse *text*, whose statements are all indented."""
    try:
        tree = ast.parse(f"if 1:\n{text}")
    except SyntaxError as error:
        error.lineno = (error.lineno or 2) - 1
        raise
    head = tree.body[0]
    if len(tree.body) > 1 or not isinstance(head, ast.If) or head.orelse:
        return ast.parse(text)  # which says what is wrong
    return ast.increment_lineno(ast.Module(head.body, []), -1)


def _place(text: str, at: int) -> tuple[int, int]:
    """Return the line of the character *at*, and the number of bytes before it in the line."""
    before = text[:at].split("\n")
    return len(before), len(before[-1].encode(errors="replace"))


def _offset(error: SyntaxError) -> int:
    """Return the number of bytes before the place of *error*, which counts characters from 1."""
    return len((error.text or "")[: max(0, (error.offset or 1) - 1)].encode(errors="replace"))


def _tokens(tree: ast.Module) -> Iterator[Token]:
    """Yield the tree in preorder, in a loop: code may be nested deeper than Python's recursion limit."""
    waiting: list[object] = [tree]
    line, offset = 1, 0
    while waiting:
        item = waiting.pop()
        if isinstance(item, ast.AST):
            line, offset = getattr(item, "lineno", line), getattr(item, "col_offset", offset)
            yield type(item).__name__, line, offset
            waiting += reversed(_fields(item))
        elif isinstance(item, list):
            yield len(item), line, offset
            waiting += reversed(item)
        else:
            yield (type(item), item), line, offset  # 1, 1.0 and True are equal, and different code


def _fields(node: ast.AST) -> list[object]:
    fields = [(name, getattr(node, name, None)) for name in node._fields if name not in _IGNORED]
    if isinstance(node, ast.Delete):  # del (a, b), which black writes del a, b
        return [
            name_node
            for target in node.targets
            for name_node in (target.elts if isinstance(target, ast.Tuple) else [target])
        ]
    if isinstance(node, _DOCUMENTED) and (docstring := ast.get_docstring(node)) is not None:
        # as black compares code before and after: each line by itself, because an escaped line end hides how deep the others are
        stripped = "\n".join(map(str.strip, docstring.splitlines())).strip()
        return [[stripped, *node.body[1:]] if name == "body" else value for name, value in fields]
    return [value for _, value in fields]
