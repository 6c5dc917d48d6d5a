"""Jinja2 for prompts: sandboxed, without a loader, strict about names, and bounded in what it does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

import attrs
import jinja2
import orjson
from jinja2 import nodes
from jinja2.runtime import Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

MOST_STEPS = 1_000_000
"""How many rounds of loops and calls one rendering may take: about half a second of work."""

MOST_CHARS = 10_000_000
"""How long a rendered template may become, and whatever it makes by multiplication."""

STEPS = "\0steps"
"""The name under which :class:`Steps` stand; no template can spell it."""

_COUNTED = "\0counted"
_WIDEST = 10_000
_OF_WIDTHS = ("batch", "center", "indent", "round", "slice")


class Unrenderable(Exception):
    """A template cannot be rendered for a row; *kind* is the Failure's."""

    def __init__(self, message: str, kind: str = "crashed") -> None:
        super().__init__(message)
        self.kind = kind


@attrs.define
class Steps:
    """How many steps a rendering has left."""

    left: int = MOST_STEPS

    def take(self) -> None:
        """Take one.

        :raises Unrenderable: when there are none.
        """
        self.left -= 1
        if self.left < 0:
            raise Unrenderable(f"it takes more than {MOST_STEPS:,} rounds of loops and calls")


def sandbox() -> jinja2.Environment:
    """An environment for templates that nobody has to trust."""
    made = _Sandbox(undefined=jinja2.StrictUndefined, finalize=_printed, keep_trailing_newline=True)
    made.filters |= {name: _bounded(made.filters[name]) for name in _OF_WIDTHS}
    made.filters |= {_COUNTED: _counted, "tojson": _tojson}
    del made.filters["attr"], made.globals["lipsum"]
    return made


class _Sandbox(ImmutableSandboxedEnvironment):
    """Counts the rounds of loops, and calls: without a limit on both a template may take for ever, inside of the sandbox too."""

    intercepted_binops = frozenset(("*", "**"))

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        for loop in list(tree.find_all(nodes.For)):
            loop.iter = nodes.Filter(loop.iter, _COUNTED, [], [], None, None, lineno=loop.lineno)
        return tree

    def call(self, context: Any, obj: Any, /, *args: Any, **options: Any) -> Any:
        context.parent[STEPS].take()
        return super().call(context, obj, *args, **options)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**":
            raise Unrenderable("a template has no powers (**)")
        for one, times in ((left, right), (right, left)):
            if isinstance(one, str | list | tuple) and isinstance(times, int) and len(one) * times > MOST_CHARS:
                raise Unrenderable(f"it makes something longer than {MOST_CHARS:,} by a multiplication")
        return super().call_binop(context, operator, left, right)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """A key of an object comes before a method of its name: ``{{ input.items }}``."""
        return obj[attribute] if isinstance(obj, dict) and attribute in obj else super().getattr(obj, attribute)


@jinja2.pass_context
def _counted(context: Any, items: Iterable[Any]) -> Iterator[Any]:
    """The items of a loop, each of which is a step."""
    steps = context.parent[STEPS]
    for item in items:
        steps.take()
        yield item


def _bounded(of_width: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that makes something as wide, or as many, as it is told."""

    @wraps(of_width)
    def narrow(*given: Any, **options: Any) -> Any:
        if any(isinstance(one, int) and one > _WIDEST for one in (*given[1:], *options.values())):
            raise Unrenderable(f"the filters {', '.join(_OF_WIDTHS)} take numbers up to {_WIDEST:,}")
        return of_width(*given, **options)

    return narrow


def _printed(value: Any) -> Any:
    """What ``{{ value }}`` writes: texts and numbers as they are, other values as JSON; null and methods not at all."""
    if isinstance(value, str | Undefined):
        return value
    if value is None:
        raise Unrenderable(
            "it prints a value that is null; write {{ value or 'none' }} for one that may be", "missing_input"
        )
    if callable(value):
        name = getattr(value, "__name__", type(value).__name__)
        raise Unrenderable(f"it prints the method {name} itself; write {name}() for what it gives")
    return orjson.dumps(value).decode() if isinstance(value, bool | dict | list | tuple) else value


def _tojson(value: Any, indent: int | None = None) -> str:
    """Plain JSON: Jinja2's own filter writes ``<`` and the like as HTML wants them."""
    if isinstance(value, Undefined):
        return str(value)  # which is an error
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else None).decode()
