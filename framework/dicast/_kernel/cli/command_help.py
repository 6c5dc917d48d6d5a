"""Help texts of the plugins' commands, read from the source code without importing it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.machinery import PathFinder
from importlib.util import find_spec
from inspect import cleandoc

from ...toolkit.printable import one_line
from ..contract.registry import Offer

_HELP = ("short_help", "help")
"""Arguments of click's decorators with the help; the first one set is used, else the docstring."""
_FUNCTION = re.compile(r"(?m)^(?:@.*\n(?:[ \t)#].*\n|\n)*)*(?:async )?def (\w+)\(.*\n(?:[ \t)#].*\n|\n)*")


def in_one_line(offer: Offer, width: int) -> str:
    """Return the first sentence of the command's help, with its distribution, cut to *width* characters."""
    origin = f"({offer.distribution})"
    sentence = re.match(r".*?(?:\.(?= )|$)", one_line(" ".join(command_help(offer).split("\n\n")[0].split())))
    summary, limit = sentence[0] if sentence else "", max(width - len(origin) - 1, 10)
    return f"{summary if len(summary) <= limit else f'{summary[: limit - 1].rstrip()}…'} {origin}".lstrip()


def command_help(offer: Offer) -> str:
    """Return the help of the command as its author wrote it; empty if it cannot be read without importing the module."""
    module, _, name = offer.target.partition(":")
    try:
        function = _function(_source(module), name)
    except Exception:  # code of a plugin: calling the command reports the error
        return ""
    return "" if function is None else next(_help_texts(function), "")


def _source(module: str) -> str:
    """Return the source of *module*. Packages are searched like the import system does, but not imported."""
    name, *inside = module.split(".")
    spec = find_spec(name)
    for part in inside:
        name = f"{name}.{part}"
        spec = spec and PathFinder.find_spec(name, spec.submodule_search_locations)
    loader = spec and spec.loader
    source: str | None = loader.get_source(name) if loader is not None and hasattr(loader, "get_source") else None
    return source or ""


def _function(source: str, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """Return the function *name* of the module, or None.

    Only the lines of the function are parsed if they can be separated from the module, in a tenth of the time.
    """
    block = next((match for match in _FUNCTION.finditer(source) if match[1] == name), None)
    if block is None:
        return None
    try:
        tree = ast.parse(block[0])
    except SyntaxError:  # a multi-line string in the function may have lines without indentation
        tree = ast.parse(source)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return next((node for node in functions if node.name == name), None)


def _help_texts(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    calls = [call for call in function.decorator_list if isinstance(call, ast.Call)]
    arguments = {word.arg: word.value for call in calls for word in call.keywords if _is_of_command(call)}
    for value in (arguments.get(name) for name in _HELP):
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield cleandoc(value.value)
    yield ast.get_docstring(function) or ""


def _is_of_command(decorator: ast.Call) -> bool:
    """Return True for ``click.command(…)`` or ``click.group(…)``; options have their own help."""
    called = decorator.func
    return (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) in ("command", "group")
