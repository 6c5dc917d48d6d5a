"""What plugins' commands are for, read from their sources without importing them."""

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
"""The arguments of click's decorators that say it, the first that is given; else the docstring does."""
_FUNCTION = re.compile(r"(?m)^(?:@.*\n(?:[ \t)#].*\n|\n)*)*(?:async )?def (\w+)\(.*\n(?:[ \t)#].*\n|\n)*")


def in_one_line(offer: Offer, width: int) -> str:
    """The first sentence of the command's help, cut where it is longer than *width* allows, with the distribution."""
    origin = f"({offer.distribution})"
    sentence = re.match(r".*?(?:\.(?= )|$)", one_line(" ".join(command_help(offer).split("\n\n")[0].split())))
    said, room = sentence[0] if sentence else "", max(width - len(origin) - 1, 10)
    return f"{said if len(said) <= room else f'{said[: room - 1].rstrip()}…'} {origin}".lstrip()


def command_help(offer: Offer) -> str:
    """The help of the command, as its author wrote it; empty where that cannot be read without importing the module."""
    module, _, name = offer.target.partition(":")
    try:
        found = _function(_source(module), name)
    except Exception:  # the border to other people's code: whoever calls the command is told what is wrong
        return ""
    return "" if found is None else next(_said(found), "")


def _source(module: str) -> str:
    """The source of *module*; its packages are looked up as the import system does, and none is imported."""
    name, *inside = module.split(".")
    spec = find_spec(name)
    for part in inside:
        name = f"{name}.{part}"
        spec = spec and PathFinder.find_spec(name, spec.submodule_search_locations)
    loader = spec and spec.loader
    source: str | None = loader.get_source(name) if loader is not None and hasattr(loader, "get_source") else None
    return source or ""


def _function(source: str, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The function *name* of the module. Its lines alone are parsed, where they can be told from the others: a tenth of the time."""
    block = next((found for found in _FUNCTION.finditer(source) if found[1] == name), None)
    if block is None:
        return None
    try:
        tree = ast.parse(block[0])
    except SyntaxError:  # a text of several lines begins some of them at the margin
        tree = ast.parse(source)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return next((node for node in functions if node.name == name), None)


def _said(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    calls = [call for call in function.decorator_list if isinstance(call, ast.Call)]
    given = {word.arg: word.value for call in calls for word in call.keywords if _is_of_command(call)}
    for value in (given.get(name) for name in _HELP):
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield cleandoc(value.value)
    yield ast.get_docstring(function) or ""


def _is_of_command(decorator: ast.Call) -> bool:
    """Whether it is ``click.command(…)`` or ``click.group(…)``: options have a help of their own."""
    called = decorator.func
    return (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) in ("command", "group")
