"""Jinja2 for prompts: sandboxed, without a loader, strict about names, and bounded in what it makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import jinja2
import orjson
from jinja2 import nodes
from jinja2.runtime import Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from .bounds import Unrenderable, method_length, percent_length
from .filters import REFUSED, STEPS, bounded

_COUNTED = "\0counted"
_WEIGHED = "\0weighed"
_MOST_BITS = 10_000
"""How long a whole number may be: printing one takes the square of that."""

_UNBOUNDED = frozenset(
    (
        *("center", "encode", "expandtabs", "format_map", "from_bytes", "ljust", "maketrans"),
        *("rjust", "to_bytes", "translate", "zfill"),
    )
)
"""Methods of texts and numbers whose results are as long as they are told."""

_MADE = (nodes.Concat, nodes.List, nodes.Tuple, nodes.Dict, nodes.Filter)


def sandbox() -> jinja2.Environment:
    """An environment for templates that nobody has to trust."""
    made = _Sandbox(undefined=jinja2.StrictUndefined, finalize=_printed, keep_trailing_newline=True)
    made.filters |= {**bounded(made.filters), _COUNTED: _counted, _WEIGHED: _weighed}
    for name in REFUSED:
        del made.filters[name]
    del made.globals["lipsum"]
    return made


class _Sandbox(ImmutableSandboxedEnvironment):
    """Counts the rounds of loops, calls, and what is made: without limits a template may take for ever, inside of the sandbox too."""

    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "%", "**"))

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        _weigh(tree)
        for loop in list(tree.find_all(nodes.For)):
            loop.iter = _through(_COUNTED, loop.iter)
        return tree

    def call(self, context: Any, obj: Any, /, *args: Any, **options: Any) -> Any:
        steps = context.parent[STEPS]
        steps.take()
        method = getattr(obj, "__wrapped__", obj)  # the sandbox has its own str.format
        owner = getattr(method, "__self__", None)
        if isinstance(owner, str):
            if method.__name__ == "join" and args:
                args = (list(args[0]), *args[1:])
            steps.make(method_length(owner, method.__name__, args, options, steps))
        steps.weigh([args, options])  # a macro has them as its varargs
        result = super().call(context, obj, *args, **options)
        steps.weigh(result)
        return result

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**":
            raise Unrenderable("a template has no powers (**)")
        steps = context.parent[STEPS]
        for one, other in ((left, right), (right, left)):
            if isinstance(one, int) and one.bit_length() > _MOST_BITS:
                raise Unrenderable(f"it calculates with a number of more than {_MOST_BITS:,} bits")
            if operator == "*" and isinstance(one, str | list | tuple) and isinstance(other, int):
                steps.make(len(one) * other)
        if operator == "+" and isinstance(left, str | list | tuple) and isinstance(right, type(left)):
            steps.make(len(left) + len(right))
        if operator == "%" and isinstance(left, str):
            steps.make(percent_length(left, steps.weigh(right)))
        result = super().call_binop(context, operator, left, right)
        if isinstance(result, list | tuple):
            steps.weigh(result)
        return result

    def getattr(self, obj: Any, attribute: str) -> Any:
        """A key of an object comes before a method of its name: ``{{ input.items }}``."""
        return obj[attribute] if isinstance(obj, dict) and attribute in obj else super().getattr(obj, attribute)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return not (attr in _UNBOUNDED and isinstance(obj, str | int | float)) and super().is_safe_attribute(
            obj, attr, value
        )


def _weigh(node: nodes.Node) -> None:
    """Let what is printed, and whatever *node* and those below it put together, be weighed."""
    for name, value in node.iter_fields():
        for place, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, nodes.Node):
                continue
            _weigh(child)
            if _makes(node, name, child):
                through = _through(_WEIGHED, child)
                if isinstance(value, list):
                    value[place] = through
                else:
                    setattr(node, name, through)


def _makes(parent: nodes.Node, name: str, child: nodes.Node) -> bool:
    if name == "filter" or getattr(child, "ctx", "load") != "load":
        return False  # the filter of a block, which has the block's text; what is assigned to
    if isinstance(parent, nodes.Output):
        return not isinstance(child, nodes.TemplateData | nodes.Const)
    return isinstance(child, _MADE) or (isinstance(child, nodes.Getitem) and isinstance(child.arg, nodes.Slice))


def _through(name: str, node: nodes.Node) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno, environment=node.environment)


@jinja2.pass_context
def _counted(context: Any, items: Iterable[Any]) -> Iterator[Any]:
    """The items of a loop, each of which is a step."""
    steps = context.parent[STEPS]
    for item in items:
        steps.take()
        yield item


@jinja2.pass_context
def _weighed(context: Any, value: Any) -> Any:
    context.parent[STEPS].weigh(value)
    return value


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
