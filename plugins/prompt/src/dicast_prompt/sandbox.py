"""Jinja2 for prompts: sandboxed, without a loader, strict about names, and with limits."""

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
"""Longest integer in bits: the time of printing grows with its square."""

_UNBOUNDED = frozenset(
    (
        *("center", "encode", "expandtabs", "format_map", "from_bytes", "ljust", "maketrans"),
        *("rjust", "to_bytes", "translate", "zfill"),
    )
)
"""Methods of texts and numbers whose arguments set the length of the result."""

_COMPOSED = (nodes.Concat, nodes.List, nodes.Tuple, nodes.Dict, nodes.Filter)


def sandbox() -> jinja2.Environment:
    """Return an environment for untrusted templates."""
    environment = _Sandbox(undefined=jinja2.StrictUndefined, finalize=_printed, keep_trailing_newline=True)
    environment.filters |= {**bounded(environment.filters), _COUNTED: _counted, _WEIGHED: _weighed}
    for name in REFUSED:
        del environment.filters[name]
    del environment.globals["lipsum"]
    return environment


class _Sandbox(ImmutableSandboxedEnvironment):
    """Environment that counts rounds of loops, calls, and the size of values. Without limits a sandboxed template may run forever."""

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
        steps.weigh([args, options])  # a macro gets them as varargs
        result = super().call(context, obj, *args, **options)
        steps.weigh(result)
        return result

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**":
            raise Unrenderable("a template has no powers (**)")
        steps = context.parent[STEPS]
        for operand, factor in ((left, right), (right, left)):
            if isinstance(operand, int) and operand.bit_length() > _MOST_BITS:
                raise Unrenderable(f"it calculates with a number of more than {_MOST_BITS:,} bits")
            if operator == "*" and isinstance(operand, str | list | tuple) and isinstance(factor, int):
                steps.make(len(operand) * factor)
        if operator == "+" and isinstance(left, str | list | tuple) and isinstance(right, type(left)):
            steps.make(len(left) + len(right))
        if operator == "%" and isinstance(left, str):
            steps.make(percent_length(left, steps.weigh(right)))
        result = super().call_binop(context, operator, left, right)
        if isinstance(result, list | tuple):
            steps.weigh(result)
        return result

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return a key of an object before a method of its name: ``{{ input.items }}``."""
        return obj[attribute] if isinstance(obj, dict) and attribute in obj else super().getattr(obj, attribute)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return not (attr in _UNBOUNDED and isinstance(obj, str | int | float)) and super().is_safe_attribute(
            obj, attr, value
        )


def _weigh(node: nodes.Node) -> None:
    """Add a weighing filter to printed values and to composed values in *node* and below."""
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
        return False  # the filter of a block, which has the block's text, or a target of an assignment
    if isinstance(parent, nodes.Output):
        return not isinstance(child, nodes.TemplateData | nodes.Const)
    return isinstance(child, _COMPOSED) or (isinstance(child, nodes.Getitem) and isinstance(child.arg, nodes.Slice))


def _through(name: str, node: nodes.Node) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno, environment=node.environment)


@jinja2.pass_context
def _counted(context: Any, items: Iterable[Any]) -> Iterator[Any]:
    """Yield the items of a loop and count each as a step."""
    steps = context.parent[STEPS]
    for item in items:
        steps.take()
        yield item


@jinja2.pass_context
def _weighed(context: Any, value: Any) -> Any:
    context.parent[STEPS].weigh(value)
    return value


def _printed(value: Any) -> Any:
    """Return *value* as ``{{ value }}`` prints it: texts and numbers unchanged, other values as JSON. Null and methods are refused."""
    if isinstance(value, str | Undefined):
        return value
    if value is None:
        raise Unrenderable(
            "it prints a value that is null; write {{ value or 'none' }} for a value that may be null", "missing_input"
        )
    if callable(value):
        name = getattr(value, "__name__", type(value).__name__)
        raise Unrenderable(f"it prints the method {name} itself; write {name}() for its result")
    return orjson.dumps(value).decode() if isinstance(value, bool | dict | list | tuple) else value
